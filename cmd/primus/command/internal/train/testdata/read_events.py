"""Reads the event files of a directory as TensorBoard does, and prints what it shows as JSON.

Files are read in the order of their names, each up to a record that is not whole. A session that starts at a step takes
back what was said about this and later steps. Nothing but the standard library is used: checksums and protocol buffers
are read here, bit by bit.
"""

import json
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields the records, and then the number of bytes that are left."""
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            break
        (length,) = struct.unpack_from("<Q", data, at)
        if masked(data[at : at + 8]) != struct.unpack_from("<I", data, at + 8)[0]:
            sys.exit("checksum of a length is wrong at byte %d" % at)
        if at + 16 + length > len(data):
            break
        content = data[at + 12 : at + 12 + length]
        if masked(content) != struct.unpack_from("<I", data, at + 12 + length)[0]:
            sys.exit("checksum of a record is wrong at byte %d" % at)
        yield content
        at += 16 + length
    yield len(data) - at


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """Yields number and value of the fields of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        elif kind == 2:
            length, at = varint(data, at)
            value, at = bytes(data[at : at + length]), at + length
        else:
            sys.exit("a field has the wire type %d" % kind)
        yield key >> 3, value


def main(directory):
    shown, torn, times = {}, [], []
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as f:
            *events, left = records(f.read())
        torn.append(left)
        for number, content in enumerate(events):
            event = dict(fields(content))
            step = event.get(2, 0)
            times.append(event[1])
            if number == 0 and event.get(3) != b"brain.Event:2":
                sys.exit("%s does not begin with the version of the format" % name)
            if 7 in event and dict(fields(event[7])).get(1) == 1:
                for points in shown.values():
                    points[:] = [p for p in points if p[0] < step]
            for _, value in fields(event.get(5, b"")):
                scalar = dict(fields(value))
                shown.setdefault(scalar[1].decode(), []).append([step, scalar[2]])
    if times != sorted(times):
        sys.exit("events are not in the order of their times")
    json.dump({"shown": shown, "torn": torn}, sys.stdout)


main(sys.argv[1])

package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/primus-fl/primus/internal/meter"
)

// The tags of Snappy, in the two lowest bits of the first byte of an element.
const (
	snappyLiteral = 0
	snappyCopy1   = 1 // with an offset of eleven bits
	snappyCopy2   = 2 // of two bytes
)

// snappyChunk is how many bytes are decoded between two looks at the context.
const snappyChunk = 1 << 20

var errSnappy = errors.New("it is no data of Snappy")

// snappyLen returns how long a block of Snappy says that its content is, and the rest of the block.
func snappyLen(block []byte) (int64, []byte, error) {
	n, used := binary.Uvarint(block)
	if used <= 0 || n > 1<<32-1 {
		return 0, nil, errSnappy
	}
	return int64(n), block[used:], nil
}

// snappyDecode decodes the elements of a block of Snappy into out, which they fill. It ends soon
// after the context of the meter.
//
// Source: https://github.com/google/snappy/blob/main/format_description.txt
func snappyDecode(m *meter.Meter, out, elements []byte) error {
	at, look := 0, snappyChunk
	for len(elements) > 0 {
		if at >= look {
			if err := m.Check(); err != nil {
				return err
			}
			look = at + snappyChunk
		}
		tag := elements[0]
		length, offset, used := int(tag>>2)+1, 0, 1
		switch tag & 3 {
		case snappyLiteral:
			if extra := length - 60; extra > 0 { // the length follows in up to four bytes
				if len(elements) <= extra {
					return errSnappy
				}
				length = 1
				for i := range extra {
					length += int(elements[1+i]) << (8 * i)
				}
				used += extra
			}
			elements = elements[used:]
			if length > len(elements) || length > len(out)-at {
				return errSnappy
			}
			for ; length > snappyChunk; length -= snappyChunk {
				if err := m.Check(); err != nil {
					return err
				}
				copy(out[at:], elements[:snappyChunk])
				at, elements = at+snappyChunk, elements[snappyChunk:]
			}
			at += copy(out[at:], elements[:length])
			elements = elements[length:]
			continue
		case snappyCopy1:
			if used = 2; len(elements) < used {
				return errSnappy
			}
			length, offset = int(tag>>2&7)+4, int(tag>>5)<<8|int(elements[1])
		case snappyCopy2:
			if used = 3; len(elements) < used {
				return errSnappy
			}
			offset = int(binary.LittleEndian.Uint16(elements[1:]))
		default:
			if used = 5; len(elements) < used {
				return errSnappy
			}
			offset = int(binary.LittleEndian.Uint32(elements[1:]))
		}
		if offset == 0 || offset > at || length > len(out)-at {
			return errSnappy
		}
		elements = elements[used:]
		for from, end := at-offset, at+length; at < end; { // a copy may reach into what it makes
			at += copy(out[at:end], out[from:at])
		}
	}
	if at != len(out) {
		return errSnappy
	}
	return nil
}

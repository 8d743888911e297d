"""Exchanges tensors with PyTorch as the bytes of DLPack's structs.

Prints a line of JSON for each tensor that PyTorch exports: the bytes of its DLTensor, whose pointers are valid in this
process only, with what they lead to. Then reads lines of the same form from standard input and prints the values that
PyTorch finds in them.
"""

import ctypes
import json
import sys

import torch
from torch.utils.dlpack import from_dlpack, to_dlpack


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def values(x):
    return x.to(torch.float64).flatten().tolist()


def exported(x):
    capsule = to_dlpack(x)
    d = DLManagedTensor.from_address(capsule_pointer(capsule, b"dltensor")).dl_tensor
    shape = [d.shape[i] for i in range(d.ndim)]
    strides = [d.strides[i] for i in range(d.ndim)]
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if x.numel() else 0
    size = d.byte_offset + span * d.bits // 8
    return {
        "dtype": str(x.dtype).removeprefix("torch."),
        "struct": bytes(d).hex(),
        "shape": shape,
        "strides": strides,
        "data": ctypes.string_at(d.data, size).hex() if size else "",
        "values": values(x),
    }


def imported(line):
    given = json.loads(line)
    axes, steps = given["shape"] or [], given["strides"] or []  # of a scalar, null
    data = ctypes.create_string_buffer(bytes.fromhex(given["data"]), len(given["data"]) // 2 + 1)
    shape, strides = (ctypes.c_int64 * len(axes))(*axes), (ctypes.c_int64 * len(steps))(*steps)
    managed = DLManagedTensor(dl_tensor=DLTensor.from_buffer_copy(bytes.fromhex(given["struct"])))
    managed.dl_tensor.data = ctypes.addressof(data)
    managed.dl_tensor.shape, managed.dl_tensor.strides = shape, strides
    x = from_dlpack(new_capsule(ctypes.addressof(managed), b"dltensor", None))
    return {"dtype": str(x.dtype).removeprefix("torch."), "shape": list(x.shape), "values": values(x)}


for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8):
    x = torch.arange(24).to(dtype).reshape(2, 3, 4)
    for view in (x, x[1:, 1:, ::2], x.permute(2, 0, 1), x[1, 2], x[:, 0:0], x[1, 1, 1]):
        print(json.dumps(exported(view)))
print("end", flush=True)
for line in sys.stdin:
    print(json.dumps(imported(line)), flush=True)

"""Operands: the memory of tensors of torch, numpy and whatever has __dlpack__, as it is."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, NamedTuple, Sequence

from ._library import Tensor, Unsupported

# Type codes of DLPack with the bits of an element.
CODES = {
    "f64": (2, 64),
    "f32": (2, 32),
    "bf16": (4, 16),
    "f16": (2, 16),
    "f8e4m3": (10, 8),
    "f8e5m2": (12, 8),
    "i64": (0, 64),
    "i32": (0, 32),
    "i16": (0, 16),
    "u8": (1, 8),
    "bool": (6, 8),
}

_NUMPY = {
    "float64": "f64",
    "float32": "f32",
    "bfloat16": "bf16",
    "float16": "f16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "uint8": "u8",
    "bool": "bool",
}


class Described(NamedTuple):
    """What the library has to know of a tensor."""

    owner: Any  # keeps the memory alive
    data: int
    dtype: str
    shape: Sequence[int]
    strides: Sequence[int]  # in elements


class Operand:
    """A tensor that the library can read. It keeps the memory alive."""

    __slots__ = ("owner", "struct", "address", "dtype", "shape", "_axes")

    def __init__(self, t: Described) -> None:
        n = len(t.shape)
        axes = (ctypes.c_int64 * (2 * n))(*t.shape, *t.strides)
        at = ctypes.addressof(axes)
        code, bits = CODES[t.dtype]
        self.owner, self._axes, self.dtype, self.shape = t.owner, axes, t.dtype, tuple(t.shape)
        self.struct = Tensor(t.data, 1, 0, n, code, bits, 1, at, at + 8 * n, 0)
        self.address = ctypes.addressof(self.struct)


def _torch(x: Any, written: bool) -> Described:
    torch = sys.modules["torch"]
    if not x.is_cpu:
        raise TypeError(f"given a tensor on {x.device}, want one in host memory: x.cpu() copies it")
    if x.layout is not torch.strided:
        raise TypeError(f"given a tensor of layout {x.layout}, want a strided one: x.to_dense() makes one")
    if written and x.requires_grad and x.is_leaf and torch.is_grad_enabled():
        raise TypeError(
            "given a leaf that requires grad to write to, want another one, or a call within torch.no_grad()"
        )
    if x.is_neg():
        raise TypeError("given a view that is negated when it is read, want x.resolve_neg()")
    dtype = (_torch_table or _torch_dtypes(torch)).get(x.dtype)
    if dtype is None:
        raise TypeError(f"given a tensor of {x.dtype}, want one of {', '.join(CODES)}")
    return Described(x, x.data_ptr(), dtype, x.shape, x.stride())


_torch_table: dict[Any, str] = {}


def _torch_dtypes(torch: Any) -> dict[Any, str]:
    if not _torch_table:
        for name, dtype in _NUMPY.items():
            if hasattr(torch, name):
                _torch_table[getattr(torch, name)] = dtype
    return _torch_table


_torch_names: dict[str, Any] = {}


def torch_dtype(dtype: str) -> Any:
    """Return the dtype of torch with this name."""
    if not _torch_names:
        _torch_names.update({name: of for of, name in _torch_dtypes(sys.modules["torch"]).items()})
    if dtype not in _torch_names:
        raise Unsupported(f"this version of torch has no dtype {dtype}")
    return _torch_names[dtype]


def numpy_dtype(dtype: str) -> Any:
    """Return the dtype of numpy with this name."""
    import numpy

    name = next(n for n, of in _NUMPY.items() if of == dtype)
    try:
        return numpy.dtype(name)
    except TypeError:
        raise Unsupported(f"numpy has no dtype {dtype}") from None


def name_of(t: Tensor) -> str:
    """Return the name of the dtype of a primus_tensor."""
    return next(name for name, code in CODES.items() if code == (t.code, t.bits))


def _numpy(x: Any, written: bool) -> Described:
    dtype = _NUMPY.get(x.dtype.name)
    if dtype is None or not x.dtype.isnative:
        raise TypeError(f"given an array of {x.dtype!r}, want one of {', '.join(CODES)}")
    if written and not x.flags.writeable:
        raise TypeError("given an array that is read-only to write to")
    size = x.itemsize
    strides = x.strides
    if any(s % size for s in strides):
        raise TypeError(f"given an array with strides of {strides} bytes, want multiples of its {size} bytes")
    return Described(x, x.__array_interface__["data"][0], dtype, x.shape, [s // size for s in strides])


class _Managed(ctypes.Structure):
    """The beginning of DLManagedTensor."""

    _fields_ = [("tensor", Tensor)]


_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.restype, _capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dlpack(x: Any, written: bool) -> Described:
    if x.__dlpack_device__()[0] != 1:
        raise TypeError(f"given a tensor on device {tuple(x.__dlpack_device__())} of DLPack, want one in host memory")
    capsule = x.__dlpack__()  # it gives the memory back when it is dropped
    t = _Managed.from_address(_capsule(capsule, b"dltensor")).tensor
    dtype = next((name for name, code in CODES.items() if code == (t.code, t.bits)), None)
    if dtype is None or t.lanes != 1:
        raise TypeError(f"given a tensor of type code {t.code} with {t.bits} bits, want one of {', '.join(CODES)}")
    n = t.ndim
    shape = list((ctypes.c_int64 * n).from_address(t.shape)) if n else []
    strides = list((ctypes.c_int64 * n).from_address(t.strides)) if t.strides and n else packed(shape)
    return Described((x, capsule), (t.data or 0) + t.byte_offset, dtype, shape, strides)


def packed(shape: Sequence[int]) -> list[int]:
    """Return the strides of elements in row-major order without gaps."""
    strides, step = [0] * len(shape), 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = step
        step *= max(shape[i], 1)
    return strides


_describers: dict[type, Callable[[Any, bool], Described]] = {}


def wrap(x: Any, written: bool = False) -> Operand:
    """Return x as an operand, without a copy, to be used in several calls."""
    return x if type(x) is Operand else Operand(describe(x, written))


def describe(x: Any, written: bool) -> Described:
    """Describe x, which may be a tensor of torch, an array of numpy, or anything with __dlpack__."""
    describer = _describers.get(type(x))
    if describer is None:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None and isinstance(x, torch.Tensor):
            describer = _torch
        elif numpy is not None and isinstance(x, numpy.ndarray):
            describer = _numpy
        elif hasattr(x, "__dlpack__"):
            describer = _dlpack
        else:
            raise TypeError(
                f"given {type(x).__name__}, want a tensor of torch, an array of numpy, or anything with __dlpack__"
            )
        _describers[type(x)] = describer
    return describer(x, written)


def empty_like(owner: Any, dtype: str, shape: Sequence[int]) -> Any:
    """Return a new tensor of the framework of another one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        return torch.empty(tuple(shape), dtype=torch_dtype(dtype))
    import numpy

    return numpy.empty(tuple(shape), dtype=numpy_dtype(dtype))

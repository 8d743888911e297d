"""Implementations of ops that are written in Python."""

from __future__ import annotations

import ctypes
import itertools
import threading
import traceback
from typing import Any, Callable, Optional

from . import _library as lib
from ._catalogue import Op
from ._tensors import name_of, numpy_dtype, packed, torch_dtype

KINDS = {"flagos": 1, "vendor": 2, "reference": 3}


class _CallStruct(ctypes.Structure):
    """primus_call."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("n_args", ctypes.c_uint32),
        ("args", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
        ("host", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("error_bytes", ctypes.c_uint64),
    ]


class _OpStruct(ctypes.Structure):
    """primus_op."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("op", ctypes.c_char_p),
        ("impl_id", ctypes.c_char_p),
        ("vendor", ctypes.c_char_p),
        ("priority", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("is_available", ctypes.c_void_p),
        ("supports", ctypes.c_void_p),
        ("workspace_size", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("layout", ctypes.c_uint64),
        ("device_types", ctypes.c_void_p),
        ("n_device_types", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class _PluginStruct(ctypes.Structure):
    """primus_plugin."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("abi_major", ctypes.c_uint32),
        ("abi_minor", ctypes.c_uint32),
        ("n_ops", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("ops", ctypes.c_void_p),
    ]


_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_THREAD_SAFE = 1

_forever: list[Any] = []  # what the library points to as long as the process lives
_numbers = itertools.count(1)
_raised = threading.local()


def register(
    manager_number: int,
    op: Op,
    function: Callable[..., Any],
    impl_id: str,
    kind: str,
    vendor: Optional[str],
    priority: int,
    framework: str,
) -> None:
    """Register a function as an implementation of an op."""
    if kind not in KINDS:
        raise lib.ArgumentError(f"given kind {kind!r}, want one of {', '.join(KINDS)}")
    if framework not in _VIEWS:
        raise lib.ArgumentError(f"given framework {framework!r}, want one of {', '.join(_VIEWS)}")
    view = _VIEWS[framework]

    def run(at: int) -> int:
        call = _CallStruct.from_address(at)
        try:
            _invoke(op, function, view, call)
        except NotImplementedError as e:
            _tell(call, str(e) or type(e).__name__)
            return lib.UNSUPPORTED
        except BaseException as e:  # noqa: BLE001 - it goes on in the caller
            _raised.error, _raised.text = e, _summary(e)
            _tell(call, _raised.text)
            return lib.FAILED
        return lib.OK

    callback = _RUN(run)
    entry = _OpStruct(
        ctypes.sizeof(_OpStruct),
        KINDS[kind],
        op.name.encode(),
        impl_id.encode(),
        vendor.encode() if vendor else None,
        priority,
        _THREAD_SAFE,
        None,
        None,
        None,
        ctypes.cast(callback, ctypes.c_void_p),
        op.layout,
    )
    entries = (ctypes.c_void_p * 1)(ctypes.addressof(entry))
    plugin = _PluginStruct(
        ctypes.sizeof(_PluginStruct), 1, 2, 1, f"python_{next(_numbers)}".encode(), b"", ctypes.addressof(entries)
    )
    _forever.append((callback, entry, entries, plugin))
    lib.call("register", manager_number, ctypes.addressof(plugin))


def cause(text: str) -> Optional[BaseException]:
    """Return the exception of an implementation in this thread that an error tells of."""
    error, summary = getattr(_raised, "error", None), getattr(_raised, "text", "")
    _raised.error = None
    return error if error is not None and summary and summary in text else None


def _summary(e: BaseException) -> str:
    """Return an exception on one line, with where it was raised."""
    frames = traceback.extract_tb(e.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = " ".join(f"{type(e).__name__}: {e}".split())
    return text[: 400 - len(where)] + where


def _tell(call: _CallStruct, text: str) -> None:
    """Leave a text in a call, cut where a character ends."""
    room = min(call.error_bytes, 1 << 16) - 1
    if call.error and room > 0:
        content = text.encode()[:room].decode("utf-8", "ignore").encode() + b"\0"
        ctypes.memmove(call.error, content, len(content))


def _invoke(op: Op, function: Callable[..., Any], view: Callable[[lib.Tensor], Any], call: _CallStruct) -> None:
    args = (lib.Arg * call.n_args).from_address(call.args)
    values: dict[str, Any] = {}
    written: list[Any] = []
    for p, arg in zip(op.params, args):
        value: Any = None
        if arg.sort == lib.TENSOR:
            value = view(lib.Tensor.from_address(arg.value.pointer))
        elif arg.sort in (lib.TENSORS, lib.LISTS):
            value = _tensors(view, lib.List.from_address(arg.value.pointer), arg.sort)
        elif arg.sort == lib.INT:
            value = arg.value.i
        elif arg.sort == lib.FLOAT:
            value = arg.value.f
        elif arg.sort == lib.INTS:
            given = lib.List.from_address(arg.value.pointer)
            value = list((ctypes.c_int64 * given.count).from_address(given.items)) if given.count else []
        values[p.name] = value
        if arg.sort == lib.TENSOR and p.access != "read":
            written.append(value)
    results = function(**values)
    if results is None:
        return
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(written):
        raise TypeError(f"given {len(results)} results, want {len(written)}, or None if the function has written them")
    for to, result in zip(written, results):
        if result is not to:
            to[...] = result


def _tensors(view: Callable[[lib.Tensor], Any], given: lib.List, sort: int) -> list[Any]:
    if not given.count:
        return []
    if sort == lib.LISTS:
        return [_tensors(view, inner, lib.TENSORS) for inner in (lib.List * given.count).from_address(given.items)]
    return [view(t) if t.bits else None for t in (lib.Tensor * given.count).from_address(given.items)]


def _axes(t: lib.Tensor) -> tuple[list[int], list[int]]:
    n = t.ndim
    shape = list((ctypes.c_int64 * n).from_address(t.shape)) if n else []
    return shape, list((ctypes.c_int64 * n).from_address(t.strides)) if t.strides and n else packed(shape)


def _memory(t: lib.Tensor, shape: list[int], strides: list[int]) -> Any:
    """Return the bytes of a tensor from the first element to the last."""
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    return (ctypes.c_char * (span * t.bits // 8)).from_address(t.data + t.byte_offset)


def _of_torch(t: lib.Tensor) -> Any:
    import torch

    shape, strides = _axes(t)
    dtype = torch_dtype(name_of(t))
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(_memory(t, shape, strides), dtype=dtype).as_strided(shape, strides)


def _of_numpy(t: lib.Tensor) -> Any:
    import numpy

    shape, strides = _axes(t)
    dtype = numpy_dtype(name_of(t))
    if 0 in shape:
        return numpy.empty(shape, dtype=dtype)
    return numpy.ndarray(shape, dtype, _memory(t, shape, strides), 0, [s * t.bits // 8 for s in strides])


_VIEWS: dict[str, Callable[[lib.Tensor], Any]] = {"torch": _of_torch, "numpy": _of_numpy}

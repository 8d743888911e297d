"""libprimus: its structs, its functions, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, NoReturn, Optional

from ._version import LIBRARY

API_MAJOR = 1

# Results of functions.
OK, UNSUPPORTED, FAILED = 0, 1, 2
INVALID, NOT_FOUND, REFUSED, FORKED, BUG = 16, 17, 18, 19, 20

# Sorts of an argument.
ABSENT, TENSOR, TENSORS, LISTS, INT, FLOAT, INTS = range(7)


class Error(RuntimeError):
    """An op or the library failed. The text is that which a program in Go gets."""


class ArgumentError(Error, ValueError):
    """An argument is wrong. Nothing was computed."""


class NotFoundError(Error, LookupError):
    """There is no op of this name."""


class PolicyError(Error, ValueError):
    """A policy cannot be put in force. The old one stays."""


class ForkError(Error):
    """This process is a child that fork has made of one that had loaded the library."""


class Unsupported(Error, NotImplementedError):
    """An implementation declines a call; raised by one, it sends the call to the next."""


_ERRORS = {
    UNSUPPORTED: Unsupported,
    INVALID: ArgumentError,
    NOT_FOUND: NotFoundError,
    REFUSED: PolicyError,
    FORKED: ForkError,
}


class Tensor(ctypes.Structure):
    """primus_tensor, the layout of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class List(ctypes.Structure):
    """primus_tensor_list, primus_tensor_lists and primus_ints."""

    _fields_ = [("count", ctypes.c_uint64), ("items", ctypes.c_void_p)]


class Value(ctypes.Union):
    """The value of a primus_arg."""

    _fields_ = [("pointer", ctypes.c_void_p), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Arg(ctypes.Structure):
    """primus_arg."""

    _fields_ = [("sort", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("value", Value)]


class Options(ctypes.Structure):
    """primus_options."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("policy", ctypes.c_char_p),
        ("policy_file", ctypes.c_char_p),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


WITHOUT_VARIABLES = 1


def path() -> str:
    """Return the file of the library: the one that PRIMUS_LIBRARY names, or the one in the package."""
    return os.environ.get("PRIMUS_LIBRARY") or os.path.join(os.path.dirname(__file__), "lib", "libprimus.so")


_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def load() -> ctypes.CDLL:
    """Load the library when it is first needed, so that a process may fork before."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load(path())
    return _loaded


def _load(file: str) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(file)
    except OSError as e:
        raise ImportError(
            f"primus_fl: cannot load {file}: {e}; make wheel builds a package with the library, "
            "and PRIMUS_LIBRARY names another file"
        ) from e
    lib.primus_api.restype = ctypes.c_uint32
    major, minor = divmod(lib.primus_api(), 1 << 16)
    if major != API_MAJOR:
        raise ImportError(f"primus_fl: {file} has interface {major}.{minor}, this package needs {API_MAJOR}.x")
    lib.primus_version.restype = ctypes.c_char_p
    version = lib.primus_version().decode()
    if LIBRARY not in ("", version):
        raise ImportError(f"primus_fl: {file} is of version {version}, this package needs {LIBRARY}; install one wheel")
    lib.primus_error.restype = ctypes.c_char_p
    lib.primus_free.argtypes = [ctypes.c_void_p]
    lib.primus_free.restype = None
    u64, u32, text = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p
    out = ctypes.POINTER(ctypes.c_void_p)
    for name, argtypes in {
        "open": [ctypes.POINTER(Options), ctypes.POINTER(u64)],
        "close": [u64],
        "bind": [u64, text, u64, ctypes.POINTER(u64)],
        "unbind": [u64],
        "run": [u64, ctypes.c_void_p, u32, ctypes.c_void_p],
        "explain": [u64, text, out],
        "explain_json": [u64, text, out],
        "policy": [u64, out],
        "set_policy": [u64, text],
        "reload_policy": [u64],
        "metrics": [u64, out],
        "register": [u64, ctypes.c_void_p],
    }.items():
        function = getattr(lib, "primus_" + name)
        function.argtypes, function.restype = argtypes, ctypes.c_int32
    return lib


def raise_error(lib: ctypes.CDLL, code: int) -> NoReturn:
    """Raise the exception of a result that is not OK."""
    from ._impls import cause

    text = lib.primus_error().decode("utf-8", "replace")
    reason = cause(text)
    if reason is not None and not isinstance(reason, Exception):
        raise reason  # such as KeyboardInterrupt
    raise _ERRORS.get(code, Error)(text) from reason


def call(name: str, *args: Any) -> None:
    """Call a function that returns a result."""
    lib = load()
    code = getattr(lib, "primus_" + name)(*args)
    if code:
        raise_error(lib, code)


def text_of(name: str, *args: Any) -> str:
    """Call a function that writes a text, and return it."""
    to = ctypes.c_void_p()
    call(name, *args, ctypes.byref(to))
    try:
        return ctypes.string_at(to.value or 0).decode("utf-8")
    finally:
        load().primus_free(to)

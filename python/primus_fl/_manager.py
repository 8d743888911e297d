"""Managers, which choose an implementation for every call, and ops that are bound in them."""

from __future__ import annotations

import ctypes
import json
import operator
import os
import struct
import threading
import weakref
from typing import Any, Callable, Mapping, Optional, Union

from . import _impls, _openmp
from . import _library as lib
from ._catalogue import OPS, Op, Param
from ._shapes import Sizes
from ._tensors import CODES, Described, Operand, describe, empty_like, wrap

Policy = Union[str, Mapping[str, Any]]


class Saved:
    """Says which implementation has written the saved state of a forward op, for its backward op."""

    __slots__ = ("number", "address")

    def __init__(self) -> None:
        self.number = ctypes.c_uint64()
        self.address = ctypes.addressof(self.number)


class Call:
    """A call whose operands are wrapped already: calling it again costs little. Manager.bind makes it.

    The operands are those that were given, so their content may change between calls. ``results`` are
    the operands that the op writes, in the order of the catalogue.
    """

    __slots__ = ("op", "results", "saved", "_lib", "_run", "_bound", "_args", "_at", "_n", "_saved", "_keep")

    def __init__(self, manager: "Manager", op: Op, values: Mapping[str, Any], saved: Optional[Saved]) -> None:
        self._lib = lib.load()
        self._run = self._lib.primus_run
        self._bound = manager._bind(op)
        self._keep: list[Any] = [manager]
        self._n = len(op.params)
        self._args = ctypes.create_string_buffer(16 * self._n + _TENSOR_BYTES * op.tensors)
        self._at = ctypes.addressof(self._args)
        self.op = op
        self.saved = saved if saved is not None else Saved() if op.family else None
        self._saved = self.saved.address if self.saved else None
        self.results = _fill(self._args, self._at, op, values, self._keep)

    def __call__(self) -> None:
        code = self._run(self._bound, self._at, self._n, self._saved)
        if code:
            lib.raise_error(self._lib, code)


class Manager:
    """Chooses implementations by a policy, calls them, and falls back where one declines or fails.

    policy is a text in YAML as in a policy file, or a mapping with its keys, such as
    ``{"prefer": "vendor"}``. It stands above policy_file (else the file that PRIMUS_POLICY names) and
    the TE_FL_* variables. threads is the number of threads that compute; 0 takes it from
    PRIMUS_NUM_THREADS or OMP_NUM_THREADS. With variables=False the TE_FL_* variables do not count.
    """

    def __init__(
        self,
        policy: Optional[Policy] = None,
        *,
        policy_file: Optional[str] = None,
        threads: int = 0,
        variables: bool = True,
    ) -> None:
        _openmp.shorten_spins()
        options = lib.Options(ctypes.sizeof(lib.Options), threads, _policy_text(policy))
        options.flags = 0 if variables else lib.WITHOUT_VARIABLES
        if policy_file is not None:
            options.policy_file = os.fsencode(policy_file)
        number = ctypes.c_uint64()
        lib.call("open", ctypes.byref(options), ctypes.byref(number))
        self._number = number.value
        self._lock = threading.Lock()
        self._handles: dict[str, int] = {}
        self._finalizer = weakref.finalize(self, _close, self._number, self._handles)
        self._finalizer.atexit = False

    def close(self) -> None:
        """Close the manager and what is bound in it. A second call does nothing."""
        self._finalizer()

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bind(self, op: Op) -> int:
        handle = self._handles.get(op.name)
        if handle is None:
            with self._lock:
                to = ctypes.c_uint64()
                lib.call("bind", self._number, op.name.encode(), op.layout, ctypes.byref(to))
                handle = self._handles.setdefault(op.name, to.value)
        return handle

    def bind(self, op: str, *, saved: Optional[Saved] = None, **arguments: Any) -> Call:
        """Prepare a call of an op with these operands and numbers, to be made again and again."""
        return Call(self, _find(op), arguments, saved)

    def call(self, op: str, *, saved: Optional[Saved] = None, **arguments: Any) -> Any:
        """Call an op once and return what it writes, as primus_fl.ops does."""
        prepared = Call(self, _find(op), arguments, saved)
        prepared()
        results = prepared.results
        return results[0] if len(results) == 1 else results

    def register(
        self,
        op: str,
        function: Callable[..., Any],
        *,
        impl: str,
        kind: str = "vendor",
        vendor: Optional[str] = None,
        priority: int = 100,
        framework: str = "torch",
    ) -> None:
        """Add a function of Python as an implementation of an op, for the life of the process.

        It gets every argument of the op by its name, tensors as those of a framework ("torch" or
        "numpy") over the memory of the caller, and None for what a call leaves out. It writes its
        results into the operands for them, or returns them, to be copied there. Raising Unsupported
        before it has written anything sends the call to the next implementation; another exception
        is a failure, as in any implementation. impl is its id, such as "vendor.acme"; vendor is the
        name that a policy knows it by.
        """
        _impls.register(self._number, _find(op), function, impl, kind, vendor, priority, framework)

    def ops(self) -> list[str]:
        """Return the names of the ops that can be called."""
        return list(OPS)

    def explain(self, op: Optional[str] = None) -> str:
        """Say which implementation serves an op, or each op, and why."""
        return lib.text_of("explain", self._number, op.encode() if op else None)

    def impls(self, op: str) -> list[dict[str, Any]]:
        """Return the implementations of an op, in the order in which they are tried, rejected ones last."""
        explained = json.loads(lib.text_of("explain_json", self._number, op.encode()))[0]
        return [dict(i, candidate=True) for i in explained["order"] or []] + [
            dict(i, candidate=False) for i in explained["rejected"] or []
        ]

    def selected(self, op: str) -> Optional[str]:
        """Return the implementation that serves an op, None if calls fail."""
        return json.loads(lib.text_of("explain_json", self._number, op.encode()))[0].get("selected") or None

    @property
    def policy(self) -> dict[str, Any]:
        """The policy in force. Assigning replaces the one that was given to the manager."""
        return dict(json.loads(lib.text_of("policy", self._number)))

    @policy.setter
    def policy(self, policy: Optional[Policy]) -> None:
        lib.call("set_policy", self._number, _policy_text(policy) or b"")

    def reload_policy(self) -> None:
        """Read the policy file and the variables of the environment again."""
        lib.call("reload_policy", self._number)

    def metrics(self) -> str:
        """Return the counters in the text format of Prometheus."""
        return lib.text_of("metrics", self._number)


def _close(number: int, handles: dict[str, int]) -> None:
    loaded = lib.load()
    for handle in handles.values():
        loaded.primus_unbind(handle)
    loaded.primus_close(number)


def _policy_text(policy: Optional[Policy]) -> Optional[bytes]:
    if policy is None:
        return None
    if isinstance(policy, str):
        return policy.encode()
    return json.dumps(dict(policy)).encode()


def _find(name: str) -> Op:
    op = OPS.get(name)
    if op is None:
        import difflib

        near = difflib.get_close_matches(name, OPS, 1)
        raise lib.NotFoundError(f"op {name!r}: not in the catalogue" + (f"; did you mean {near[0]!r}?" if near else ""))
    return op


# A call is one block of memory: a primus_arg for each argument, then for each tensor a primus_tensor
# with room for its shape and strides.
_MOST_AXES = 8
_TENSOR_BYTES = 48 + 16 * _MOST_AXES
_pack_arg = struct.Struct("IIQ").pack_into
_pack_tensor = struct.Struct("QiiiBBHQQQ").pack_into
_pack_axes = [struct.Struct(f"{2 * n}q").pack_into for n in range(_MOST_AXES + 1)]


def _fill(block: Any, at: int, op: Op, values: Mapping[str, Any], keep: list[Any]) -> tuple[Any, ...]:
    """Write the arguments of a call. Return what the op writes, with new tensors for what is left out."""
    operands: dict[str, Described] = {}
    results: list[Any] = []
    missing: list[tuple[int, int, int]] = []  # indexes of results and of arguments, where the tensor goes
    left = len(values)
    room = 16 * len(op.params)
    for i, p in enumerate(op.params):
        name, sort = p.name, p.sort
        if name not in values:
            value = None
        else:
            value = values[name]
            left -= 1
        access = p.access
        if ":" in access:
            access = _access(access, values)
        written = access not in ("", "read")
        if sort == lib.TENSOR:
            room += _TENSOR_BYTES
        if value is None:
            if sort == lib.TENSOR and access == "write" and _wanted(p, values):
                missing.append((len(results), i, room - _TENSOR_BYTES))
                results.append(None)
            continue
        try:
            if sort == lib.TENSOR:
                operands[name] = _operand(block, at, i, room - _TENSOR_BYTES, value, written, keep)
            else:
                _other(lib.Arg.from_buffer(block, 16 * i), p, value, written, keep)
        except (TypeError, ValueError, OverflowError) as e:
            raise lib.ArgumentError(f'op "{op.name}": argument "{name}": {e}') from None
        if written:
            results.append(value)
    if left:
        known = [p.name for p in op.params]
        unknown = next(name for name in values if name not in known)
        raise lib.ArgumentError(f'op "{op.name}": has no argument "{unknown}", want some of {", ".join(known)}')
    if missing:
        sizes = Sizes()
        for p in op.params:
            if p.name in operands:
                sizes.learn(p.shape, operands[p.name].shape)
        for result, i, to in missing:
            p = op.params[i]
            results[result] = _new(op, p, operands, sizes)
            operands[p.name] = _operand(block, at, i, to, results[result], True, keep)
    return tuple(results)


def _access(access: str, values: Mapping[str, Any]) -> str:
    """Return what a call does to an operand: access is such as ``write|update:accumulate``."""
    kinds, _, condition = access.partition(":")
    base, _, other = kinds.partition("|")
    return other if condition and _on(values, condition) else base


def _wanted(p: Param, values: Mapping[str, Any]) -> bool:
    """Say whether a call without this result needs one."""
    return not p.given or p.given.startswith("?:") and _on(values, p.given[2:])


def _on(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name)
    return value is not None and value is not False


def _new(op: Op, p: Param, operands: Mapping[str, Described], sizes: Sizes) -> Any:
    shape = sizes.shape(p.shape)
    like = next((operands[q.name] for q in op.params if q.name in operands), None)
    dtype: Optional[str] = p.dtypes
    if p.dtypes.startswith("="):
        dtype = operands[p.dtypes[1:]].dtype if p.dtypes[1:] in operands else None
    elif like is not None and like.dtype in p.dtypes.replace(",", "").split():
        dtype = like.dtype
    if shape is None or like is None or dtype is None or " " in dtype or dtype == "any":
        raise lib.ArgumentError(
            f'op "{op.name}": argument "{p.name}": given none, want a tensor to write to: '
            "its shape and dtype do not follow from the other arguments"
        )
    return empty_like(like.owner, dtype, shape)


def _operand(block: Any, at: int, i: int, to: int, value: Any, written: bool, keep: list[Any]) -> Described:
    """Write a tensor with its axes behind it, and its address as argument i."""
    if type(value) is Operand:
        keep.append(value)
        _pack_arg(block, 16 * i, lib.TENSOR, 0, value.address)
        return Described(value.owner, 0, value.dtype, value.shape, ())
    t = describe(value, written)
    n = len(t.shape)
    if n > _MOST_AXES:
        raise TypeError(f"given a tensor of {n} axes, want at most {_MOST_AXES}")
    keep.append(t.owner)
    code, bits = CODES[t.dtype]
    axes = to + 48
    _pack_arg(block, 16 * i, lib.TENSOR, 0, at + to)
    _pack_tensor(block, to, t.data, 1, 0, n, code, bits, 1, at + axes, at + axes + 8 * n, 0)
    _pack_axes[n](block, axes, *t.shape, *t.strides)
    return t


def _other(arg: Any, p: Param, value: Any, written: bool, keep: list[Any]) -> None:
    """Write an argument that is not a tensor."""
    arg.sort = p.sort
    if p.sort == lib.FLOAT:
        arg.value.f = value
    elif p.sort == lib.INT:
        arg.value.i = _number(p, value)
    elif p.sort == lib.INTS:
        numbers = (ctypes.c_int64 * len(value))(*value)
        keep.append(numbers)
        arg.value.pointer = _place(lib.List(len(value), ctypes.addressof(numbers)), keep)
    elif p.sort == lib.TENSORS:
        arg.value.pointer = _place(_list(value, written, keep), keep)
    else:
        lists = (lib.List * len(value))(*(_list(v, written, keep) for v in value))
        keep.append(lists)
        arg.value.pointer = _place(lib.List(len(value), ctypes.addressof(lists)), keep)


def _number(p: Param, value: Any) -> int:
    if isinstance(value, str):
        if not p.values:
            raise TypeError(f"given {value!r}, want a number")
        for number, name in p.values.items():
            if name == value:
                return number
        raise ValueError(f"given {value!r}, want one of {', '.join(p.values.values())}")
    return int(value) if isinstance(value, bool) else operator.index(value)


def _list(tensors: Any, written: bool, keep: list[Any]) -> lib.List:
    structs = (lib.Tensor * len(tensors))()
    for i, t in enumerate(tensors):
        if t is not None:
            operand = wrap(t, written)
            keep.append(operand)
            structs[i] = operand.struct
    keep.append(structs)
    return lib.List(len(tensors), ctypes.addressof(structs))


def _place(given: lib.List, keep: list[Any]) -> int:
    keep.append(given)
    return ctypes.addressof(given)

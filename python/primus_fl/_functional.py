"""Functions of torch.nn.functional that call the ops of primus_fl where those can serve them."""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Optional

import torch

from . import torch as own
from ._autograd import compiling

F = torch.nn.functional
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
try:
    from torch._subclasses.fake_tensor import FakeTensor

    _TRACED: tuple[type, ...] = (*_PLAIN, FakeTensor)  # torch.export calls modules with these
except ImportError:  # before torch 2
    _TRACED = _PLAIN
_tracing: Callable[[], bool] = getattr(torch.jit, "is_tracing")  # noqa: B009  not among the exported names
try:
    torch.is_autocast_enabled("cpu")
    _autocast: Callable[[], bool] = functools.partial(torch.is_autocast_enabled, "cpu")
except TypeError:  # before torch 2.4
    _autocast = torch.is_autocast_cpu_enabled


def served(*tensors: Any) -> bool:
    """Say whether ops can take these operands as they are: plain tensors of one dtype in host memory."""
    given = [t for t in tensors if t is not None]
    if not given or _autocast() or _tracing():
        return False
    dtype, types = given[0].dtype, _TRACED if compiling() else _PLAIN
    return dtype in FLOATS and all(
        type(t) in types
        and t.is_cpu
        and t.layout is torch.strided
        and t.dtype is dtype
        and (compiling() or not t.is_neg())
        and t.numel() > 0
        for t in given
    )


def linear(theirs: Callable[..., Any], input: Any, weight: Any, bias: Any = None) -> Any:
    if not served(input, weight, bias) or input.dim() == 0 or weight.dim() != 2 or input.shape[-1] != weight.shape[1]:
        return theirs(input, weight, bias)
    return own.linear(input[None], weight, bias)[0] if input.dim() == 1 else own.linear(input, weight, bias)


def embedding(
    theirs: Callable[..., Any],
    input: Any,
    weight: Any,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if (
        max_norm is not None
        or scale_grad_by_freq
        or sparse
        or not served(weight)
        or weight.dim() != 2
        or not _indices(input)
        or padding_idx is not None
        and not -weight.shape[0] <= padding_idx < weight.shape[0]
    ):
        return theirs(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    return own.embedding(input, weight, padding_idx)


def _indices(t: Any) -> bool:
    return type(t) in _PLAIN and t.dtype in (torch.int64, torch.int32) and bool(t.is_cpu) and t.numel() > 0


def layer_norm(
    theirs: Callable[..., Any],
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    if len(normalized_shape) != 1 or weight is None or not served(input, weight, bias) or not _last(input, weight):
        return theirs(input, normalized_shape, weight, bias, eps)
    return own.layer_norm(input, weight, bias, eps)


def _eps(dtype: Any) -> float:
    """Return the eps of rms_norm without one: that of the dtype, or in later versions of torch at most that of f32."""
    if dtype.itemsize < 4 and F.rms_norm(torch.full((1, 1), 1e-3, dtype=dtype), (1,)) > 0.5:
        dtype = torch.float32
    return float(torch.finfo(dtype).eps)


_EPS = {dtype: _eps(dtype) for dtype in FLOATS} if hasattr(F, "rms_norm") else {}


def rms_norm(
    theirs: Callable[..., Any], input: Any, normalized_shape: Any, weight: Any = None, eps: Optional[float] = None
) -> Any:
    if len(normalized_shape) != 1 or weight is None or not served(input, weight) or not _last(input, weight):
        return theirs(input, normalized_shape, weight, eps)
    return own.rms_norm(input, weight, _EPS[input.dtype] if eps is None else eps)


def _last(input: Any, weight: Any) -> bool:
    return bool(input.dim() > 0 and weight.dim() == 1 and input.shape[-1] == weight.shape[0])


def experts(theirs: Callable[..., Any], x: Any, index: Any, weights: Any, gate_up: Any, down: Any) -> Any:
    if not served(x, gate_up, down) or x.dtype is torch.float64 or weights.dtype not in FLOATS:
        return theirs(x, index, weights)
    return own.experts(x, index, weights, gate_up, down)


def silu(theirs: Callable[..., Any], input: Any, inplace: bool = False) -> Any:
    return theirs(input, inplace) if inplace or not served(input) else own.silu(input)


def gelu(theirs: Callable[..., Any], input: Any, approximate: str = "none") -> Any:
    if approximate not in ("tanh", "none") or not served(input):
        return theirs(input, approximate=approximate)
    return own.gelu(input, approximate)


def cross_entropy(
    theirs: Callable[..., Any],
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if (
        weight is not None
        or size_average is not None
        or reduce is not None
        or label_smoothing != 0
        or reduction not in ("none", "mean", "sum")
        or not served(input)
        or input.dim() != 2
        or not _indices(target)
        or target.dtype is not torch.int64
        or target.shape != input.shape[:1]
    ):
        return theirs(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    return own.cross_entropy(input, target, ignore_index, reduction).to(input.dtype)


def attention(
    theirs: Callable[..., Any],
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **others: Any,
) -> Any:
    scale, grouped = others.get("scale"), others.get("enable_gqa", False)
    if (
        attn_mask is not None
        or dropout_p != 0
        or set(others) - {"scale", "enable_gqa"}
        or not served(query, key, value)
        or any(t.dim() != 4 for t in (query, key, value))
        or query.shape[1] != key.shape[1] * (query.shape[1] // key.shape[1] if grouped else 1)
        or is_causal
        and query.shape[2] != key.shape[2]
    ):
        return theirs(query, key, value, attn_mask, dropout_p, is_causal, **others)
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    return own.attention(q, k, v, causal=is_causal, scale=scale).transpose(1, 2)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "embedding": embedding,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "silu": silu,
    "gelu": gelu,
    "cross_entropy": cross_entropy,
    "scaled_dot_product_attention": attention,
}

_lock = threading.Lock()
_theirs: dict[str, Callable[..., Any]] = {}


def install() -> None:
    """Make functions of torch.nn.functional, and with them its modules, call the ops of primus_fl.

    These are linear, embedding, layer_norm, rms_norm, silu, gelu, cross_entropy and
    scaled_dot_product_attention, as far as this torch has them. What ops cannot serve goes to torch as
    before: operands on devices, of mixed dtypes or of subclasses of Tensor, autocast, masks and dropout
    in attention, class weights, torch.jit.trace. Gradients of gradients are errors. A second call does
    nothing.
    """
    with _lock:
        for name, function in _FUNCTIONS.items():
            theirs = getattr(F, name, None)
            if theirs is not None and name not in _theirs:
                _theirs[name] = theirs
                setattr(F, name, functools.wraps(theirs)(functools.partial(function, theirs)))


def uninstall() -> None:
    """Undo install."""
    with _lock:
        for name, theirs in _theirs.items():
            setattr(F, name, theirs)
        _theirs.clear()

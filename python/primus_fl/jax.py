"""Ops with gradients for JAX on a CPU, under jit, grad and vmap.

XLA calls the process for each op, through jax.pure_callback, and the op reads the arrays where they are.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

import jax
import jax.numpy as jnp
import numpy

from . import ops
from ._manager import Saved

__all__ = [
    "attention",
    "cross_entropy",
    "embedding",
    "gelu",
    "layer_norm",
    "matmul",
    "rms_norm",
    "rope",
    "silu",
    "swiglu",
]

Shape: Any = jax.ShapeDtypeStruct


class _State(Saved):
    """Saved in the memory of an array, which a callback can return: two uint32, as JAX has no wider ones."""

    __slots__ = ()

    def __init__(self, number: Any) -> None:
        self.number, self.address = number, number.ctypes.data


_STATE = Shape((2,), numpy.uint32)


def _call(compute: Callable[..., None], results: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Call compute(results, operands) when XLA runs the program."""

    def run(*arrays: Any) -> list[Any]:
        outputs = [numpy.zeros(r.shape, r.dtype) if r is _STATE else numpy.empty(r.shape, r.dtype) for r in results]
        compute(outputs, [numpy.asarray(a) for a in arrays])
        return outputs

    return list(jax.pure_callback(run, list(results), *operands, vmap_method="sequential"))


def _like(x: Any) -> Any:
    return Shape(x.shape, x.dtype)


def _differentiable(
    results: Callable[..., Sequence[Any]],
    forward: Callable[..., None],
    backward: Callable[..., None],
    constant: Sequence[int] = (),
) -> Callable[..., Any]:
    """Return a function of tensors and keywords that JAX differentiates.

    results returns the shape of what it returns and of what it keeps. forward(results, tensors,
    **keywords) computes them. backward(gradients, dy, tensors, results, **keywords) computes the
    gradients of the tensors that are not constant.
    """

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def function(keywords: tuple[tuple[str, Any], ...], *tensors: Any) -> Any:
        return compute(keywords, *tensors)[0]

    def compute(keywords: tuple[tuple[str, Any], ...], *tensors: Any) -> Any:
        shapes = results(*tensors)
        kept = _call(lambda outputs, given: forward(outputs, given, **dict(keywords)), shapes, tensors)
        return kept[0], (tensors, kept)

    def gradient(keywords: tuple[tuple[str, Any], ...], saved: Any, dy: Any) -> Any:
        tensors, kept = saved
        n = len(tensors)

        def run(outputs: Any, given: Any) -> None:
            backward(outputs, given[0], given[1 : n + 1], given[n + 1 :], **dict(keywords))

        wanted = [i for i in range(n) if i not in constant]
        grads = dict(zip(wanted, _call(run, [_like(tensors[i]) for i in wanted], [dy, *tensors, *kept])))
        return tuple(grads.get(i) for i in range(n))

    function.defvjp(compute, gradient)

    def call(*tensors: Any, **keywords: Any) -> Any:
        return function(tuple(keywords.items()), *(jnp.asarray(t) for t in tensors))

    return call


def _state(number: Any) -> _State:
    return _State(numpy.array(number))


def _f32(*shape: int) -> Any:
    return Shape(shape, numpy.float32)


def _rows(x: Any) -> Any:
    return _f32(x.size // x.shape[-1])


def _rms_norm_forward(out: Any, given: Any, eps: float) -> None:
    y, rsigma, state = out
    ops.rmsnorm_fwd(*given, output=y, rsigma=rsigma, eps=eps, saved=_State(state))


def _rms_norm_backward(grads: Any, dy: Any, given: Any, kept: Any, eps: float) -> None:
    (x, weight), (_, rsigma, state) = given, kept
    ops.rmsnorm_bwd(dy, x, rsigma, weight, dx=grads[0], dgamma=grads[1], saved=_state(state))


_rms_norm = _differentiable(lambda x, _: [_like(x), _rows(x), _STATE], _rms_norm_forward, _rms_norm_backward)


def rms_norm(x: Any, weight: Any, eps: float = 1e-6) -> Any:
    """Normalise the last axis by its root mean square."""
    return _rms_norm(x, weight, eps=eps)


def _layer_norm_forward(out: Any, given: Any, eps: float) -> None:
    (x, weight, bias), (y, mu, rsigma, state) = given, out
    ops.layernorm_fwd(x, weight, bias=bias, output=y, mu=mu, rsigma=rsigma, eps=eps, saved=_State(state))


def _layer_norm_backward(grads: Any, dy: Any, given: Any, kept: Any, eps: float) -> None:
    (x, weight, _), (_, mu, rsigma, state) = given, kept
    dx, dgamma, dbeta = grads
    ops.layernorm_bwd(dy, x, mu, rsigma, weight, dx=dx, dgamma=dgamma, dbeta=dbeta, saved=_state(state))


_layer_norm = _differentiable(
    lambda x, *_: [_like(x), _rows(x), _rows(x), _STATE], _layer_norm_forward, _layer_norm_backward
)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    """Normalise the last axis by its mean and its standard deviation."""
    return _layer_norm(x, weight, bias, eps=eps)


def _matmul_forward(out: Any, given: Any) -> None:
    x, w = given
    ops.generic_gemm(w, x, D=out[0])


def _matmul_backward(grads: Any, dy: Any, given: Any, _: Any) -> None:
    (x, w), (dx, dw) = given, grads
    ops.generic_gemm(w, dy, trans_a=True, D=dx)
    ops.generic_gemm(dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1]), trans_b=True, D=dw)


_matmul = _differentiable(lambda x, w: [Shape((*x.shape[:-1], w.shape[1]), x.dtype)], _matmul_forward, _matmul_backward)


def matmul(x: Any, w: Any) -> Any:
    """Return x·w, where x is [..., in] and w [in, out]."""
    if jnp.ndim(w) != 2 or jnp.ndim(x) < 2 or jnp.shape(x)[-1] != jnp.shape(w)[0]:
        raise ValueError(f"given x {jnp.shape(x)} and w {jnp.shape(w)}, want [..., in] and [in, out]")
    return _matmul(x, w)


def _activation(forward: Callable[..., Any], backward: Callable[..., Any], gated: bool = False) -> Callable[..., Any]:
    def results(x: Any) -> list[Any]:
        return [Shape((*x.shape[:-1], x.shape[-1] // 2), x.dtype) if gated else _like(x)]

    def compute(out: Any, given: Any) -> None:
        forward(given[0], output=out[0])

    def gradient(grads: Any, dy: Any, given: Any, _: Any) -> None:
        backward(dy, given[0], output=grads[0])

    return _differentiable(results, compute, gradient)


_swiglu = _activation(ops.swiglu, ops.dswiglu, gated=True)
_silu, _gelu = _activation(ops.silu, ops.dsilu), _activation(ops.gelu, ops.dgelu)
_gelu_erf = _activation(ops.gelu_erf, ops.dgelu_erf)


def swiglu(x: Any) -> Any:
    """Return silu(a)·b of the halves of the last axis."""
    return _swiglu(x)


def silu(x: Any) -> Any:
    """Return x·σ(x)."""
    return _silu(x)


def gelu(x: Any, approximate: bool = True) -> Any:
    """Return the Gaussian error linear unit of x, in its tanh form or exact, as jax.nn.gelu."""
    return _gelu(x) if approximate else _gelu_erf(x)


def _rope_forward(out: Any, given: Any, **keywords: Any) -> None:
    ops.fused_rope_forward(*given, output=out[0], **keywords)


def _rope_backward(grads: Any, dy: Any, given: Any, _: Any, **keywords: Any) -> None:
    ops.fused_rope_backward(dy, given[1], output=grads[0], **keywords)


_rope = _differentiable(lambda x, _: [_like(x)], _rope_forward, _rope_backward, constant=(1,))


def rope(x: Any, freqs: Any, interleaved: bool = False) -> Any:
    """Rotate pairs of elements of each head of x [batch, seq, heads, dim] by freqs [seq, 1, 1, dim]."""
    return _rope(x, freqs, qkv_format="bshd", interleaved=interleaved)


def _attention_results(q: Any, k: Any, v: Any) -> list[Any]:
    batch, seq, heads, _ = q.shape
    return [Shape((*q.shape[:-1], v.shape[-1]), q.dtype), _f32(batch, heads, seq, 1), _STATE]


def _attention_forward(out: Any, given: Any, **keywords: Any) -> None:
    o, stats, state = out
    ops.fused_attn_fwd(*given, O=o, stats=stats, qkv_format="bshd", saved=_State(state), **keywords)


def _attention_backward(grads: Any, do: Any, given: Any, kept: Any, **keywords: Any) -> None:
    (q, k, v), (dq, dk, dv), (o, stats, state) = given, grads, kept
    ops.fused_attn_bwd(q, k, v, o, do, stats, dQ=dq, dK=dk, dV=dv, qkv_format="bshd", saved=_state(state), **keywords)


_attention = _differentiable(_attention_results, _attention_forward, _attention_backward)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: Optional[float] = None,
    window_size: Optional[tuple[int, int]] = None,
) -> Any:
    """Scaled dot-product attention of [batch, seq, heads, dim]; k and v may have fewer heads than q."""
    mask = "causal" if causal else "no_mask"
    return _attention(q, k, v, attn_mask_type=mask, attn_scale=scale, window_size=window_size)


def _embedding_forward(out: Any, given: Any) -> None:
    ops.embedding_fwd(*given, output=out[0])


def _embedding_backward(grads: Any, dy: Any, given: Any, _: Any) -> None:
    ops.embedding_bwd(dy, given[0], grads[0])


_embedding = _differentiable(
    lambda indices, weight: [Shape((*indices.shape, weight.shape[1]), weight.dtype)],
    _embedding_forward,
    _embedding_backward,
    constant=(0,),
)


def embedding(indices: Any, weight: Any) -> Any:
    """Return the rows of weight with these indices."""
    return _embedding(indices, weight)


def _cross_entropy_forward(out: Any, given: Any, ignore_index: int) -> None:
    losses, lse, state = out
    ops.cross_entropy_fwd(*given, losses=losses, lse=lse, ignore_index=ignore_index, saved=_State(state))


def _cross_entropy_backward(grads: Any, dy: Any, given: Any, kept: Any, ignore_index: int) -> None:
    (logits, targets), (_, lse, state) = given, kept
    ops.cross_entropy_bwd(logits, targets, lse, dy, dlogits=grads[0], ignore_index=ignore_index, saved=_state(state))


_cross_entropy = _differentiable(
    lambda logits, _: [_rows(logits), _rows(logits), _STATE],
    _cross_entropy_forward,
    _cross_entropy_backward,
    constant=(1,),
)


def cross_entropy(logits: Any, targets: Any, ignore_index: int = -100) -> Any:
    """Return the negative log-likelihood of targets under a softmax of rows, one for each row, in f32."""
    return _cross_entropy(logits, targets, ignore_index=ignore_index)

"""Ops with gradients for torch: functions and modules that stand in for those of torch.nn."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

import torch
from torch.autograd.function import once_differentiable

from . import ops
from ._default import of
from ._manager import Saved

__all__ = [
    "AdamW",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "SwiGLU",
    "attention",
    "cross_entropy",
    "gated_linear",
    "gelu",
    "install",
    "layer_norm",
    "linear",
    "patch",
    "rms_norm",
    "rope",
    "silu",
    "swiglu",
    "uninstall",
    "unpatch",
]


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, eps: float, zero_centered: bool) -> Any:
        ctx.saved = Saved()
        y, rsigma = ops.rmsnorm_fwd(x, weight, eps=eps, zero_centered_gamma=zero_centered, saved=ctx.saved)
        ctx.save_for_backward(x, weight, rsigma)
        ctx.zero_centered = zero_centered
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, weight, rsigma = ctx.saved_tensors
        dx, dweight = ops.rmsnorm_bwd(
            dy.contiguous(), x, rsigma, weight, zero_centered_gamma=ctx.zero_centered, saved=ctx.saved
        )
        return dx, dweight, None, None


def rms_norm(x: Any, weight: Any, eps: float = 1e-6, zero_centered: bool = False) -> Any:
    """Normalise the last axis by its root mean square."""
    return _RMSNorm.apply(x, weight, eps, zero_centered)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
        ctx.saved = Saved()
        y, mu, rsigma = ops.layernorm_fwd(x, weight, bias=bias, eps=eps, saved=ctx.saved)
        ctx.save_for_backward(x, weight, mu, rsigma)
        ctx.biased = bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, weight, mu, rsigma = ctx.saved_tensors
        dbias = torch.empty_like(weight)
        dx, dweight, dbias = ops.layernorm_bwd(dy.contiguous(), x, mu, rsigma, weight, dbeta=dbias, saved=ctx.saved)
        return dx, dweight, dbias if ctx.biased else None, None


def layer_norm(x: Any, weight: Any, bias: Optional[Any] = None, eps: float = 1e-5) -> Any:
    """Normalise the last axis by its mean and variance."""
    return _LayerNorm.apply(x, weight, bias, eps)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
        y = x.new_empty((*x.shape[:-1], weight.shape[0]))
        ops.generic_gemm(weight, x, trans_a=True, D=y, bias=bias)
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, weight = ctx.saved_tensors
        dx = dweight = dbias = None
        dy = dy.contiguous()
        if ctx.needs_input_grad[0]:
            dx = torch.empty_like(x, memory_format=torch.contiguous_format)
            ops.generic_gemm(weight, dy, D=dx)
        if ctx.needs_input_grad[1] or ctx.biased:
            dweight = torch.empty_like(weight)
            rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
            if ctx.biased:
                dbias = weight.new_empty(weight.shape[0])
            ops.generic_gemm(rows, drows, trans_b=True, D=dweight, grad=True, bias=dbias)
        return dx, dweight, dbias


def linear(x: Any, weight: Any, bias: Optional[Any] = None) -> Any:
    """Return x·weightᵀ + bias."""
    return _Linear.apply(x, weight, bias)


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return ops.swiglu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        return ops.dswiglu(dy.contiguous(), *ctx.saved_tensors)


def swiglu(x: Any) -> Any:
    """Return silu(a)·b, where a and b are the halves of the last axis."""
    return _SwiGLU.apply(x)


class _GatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, gate: Any, up: Any) -> Any:
        h = x.new_empty((*x.shape[:-1], 2 * gate.shape[0]))
        for weight, half in zip((gate, up), h.chunk(2, -1)):
            ops.generic_gemm(weight, x, trans_a=True, D=half)
        ctx.save_for_backward(x, gate, up, h)
        return ops.swiglu(h)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        x, gate, up, h = ctx.saved_tensors
        dh = ops.dswiglu(dy.contiguous(), h)
        rows, halves = x.reshape(-1, x.shape[-1]), dh.view(-1, dh.shape[-1]).chunk(2, -1)
        dx, *dweights = (torch.empty_like(t) if on else None for t, on in zip((rows, gate, up), ctx.needs_input_grad))
        for weight, dhalf, dweight in zip((gate, up), halves, dweights):
            if dweight is not None:
                ops.generic_gemm(rows, dhalf, trans_b=True, D=dweight)
            if dx is not None:
                ops.generic_gemm(weight, dhalf, D=dx, accumulate=weight is up)
        return None if dx is None else dx.view(x.shape), *dweights


def gated_linear(x: Any, gate: Any, up: Any) -> Any:
    """Return silu(x·gateᵀ)·(x·upᵀ)."""
    return _GatedLinear.apply(x, gate, up)


class _Activation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
        ctx.save_for_backward(x)
        ctx.gradient = backward
        return forward(x, output=torch.empty_like(x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ctx.gradient(dy.contiguous(), x, output=torch.empty_like(x)), None, None


def silu(x: Any) -> Any:
    """Return x·σ(x)."""
    return _Activation.apply(x, ops.silu, ops.dsilu)


def gelu(x: Any) -> Any:
    """Return the Gaussian error linear unit of x in its tanh form."""
    return _Activation.apply(x, ops.gelu, ops.dgelu)


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, freqs: Any, qkv_format: str, interleaved: bool) -> Any:
        ctx.save_for_backward(freqs)
        ctx.arguments = {"qkv_format": qkv_format, "interleaved": interleaved}
        return ops.fused_rope_forward(x, freqs, output=torch.empty_like(x), **ctx.arguments)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Any) -> Any:
        (freqs,) = ctx.saved_tensors
        dx = ops.fused_rope_backward(
            dy.contiguous(), freqs, output=torch.empty(dy.shape, dtype=dy.dtype), **ctx.arguments
        )
        return dx, None, None, None


def rope(x: Any, freqs: Any, qkv_format: str = "bshd", interleaved: bool = False) -> Any:
    """Rotate pairs of elements of each head by the angles of their position, freqs[position]."""
    return _Rope.apply(x, freqs, qkv_format, interleaved)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, arguments: dict[str, Any]) -> Any:
        ctx.saved, ctx.arguments = Saved(), arguments
        fmt = arguments["qkv_format"]
        if fmt == "thd":
            stats = q.new_empty((q.shape[0], q.shape[1], 1), dtype=torch.float32)
        else:
            b, s = (q.shape[0], q.shape[1]) if fmt == "bshd" else (q.shape[1], q.shape[0])
            stats = q.new_empty((b, q.shape[2], s, 1), dtype=torch.float32)
        o = q.new_empty((*q.shape[:-1], v.shape[-1]))
        ops.fused_attn_fwd(q, k, v, O=o, stats=stats, saved=ctx.saved, **arguments)
        ctx.save_for_backward(q, k, v, o, stats)
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, do: Any) -> Any:
        q, k, v, o, stats = ctx.saved_tensors
        dq, dk, dv = (torch.empty(t.shape, dtype=t.dtype) for t in (q, k, v))
        ops.fused_attn_bwd(q, k, v, o, do.contiguous(), stats, dQ=dq, dK=dk, dV=dv, saved=ctx.saved, **ctx.arguments)
        return dq, dk, dv, None


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: Optional[float] = None,
    qkv_format: str = "bshd",
    **arguments: Any,
) -> Any:
    """Scaled dot-product attention; k and v may have fewer heads than q, whose number theirs divides.

    arguments are others of fused_attn_fwd, such as window_size=(128, 0).
    """
    arguments.setdefault("attn_mask_type", "causal" if causal else "no_mask")
    return _Attention.apply(q, k, v, {"qkv_format": qkv_format, "attn_scale": scale, **arguments})


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Any, targets: Any, ignore_index: int) -> Any:
        ctx.saved, ctx.ignore_index = Saved(), ignore_index
        losses, lse = ops.cross_entropy_fwd(logits, targets, ignore_index=ignore_index, saved=ctx.saved)
        ctx.save_for_backward(logits, targets, lse)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dlosses: Any) -> Any:
        logits, targets, lse = ctx.saved_tensors
        dlogits = ops.cross_entropy_bwd(
            logits, targets, lse, dlosses.float().contiguous(), ignore_index=ctx.ignore_index, saved=ctx.saved
        )
        return dlogits, None, None


def cross_entropy(logits: Any, targets: Any, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """Return the negative log-likelihood of targets under a softmax over the last axis, in f32."""
    losses = _CrossEntropy.apply(logits, targets, ignore_index)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.sum() / (targets != ignore_index).sum()
    raise ValueError(f"given reduction {reduction!r}, want none, sum or mean")


class RMSNorm(torch.nn.Module):
    """rms_norm with a weight, named as in torch.nn.RMSNorm."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x: Any) -> Any:
        return rms_norm(x, self.weight, self.eps)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm over the last axis."""

    def forward(self, input: Any) -> Any:
        if len(self.normalized_shape) != 1 or self.weight is None:
            return super().forward(input)
        return layer_norm(input, self.weight, self.bias, self.eps)


class Linear(torch.nn.Linear):
    """torch.nn.Linear."""

    def forward(self, input: Any) -> Any:
        return linear(input, self.weight, self.bias)


class SwiGLU(torch.nn.Module):
    """swiglu as a module."""

    def forward(self, x: Any) -> Any:
        return swiglu(x)


class AdamW(torch.optim.Optimizer):
    """AdamW over all parameters of a group in one call."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "step": 0})

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        noop = torch.zeros(1, dtype=torch.int32)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            group["step"] += 1
            for p in params:
                if not self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p, dtype=torch.float32)
                    self.state[p]["exp_avg_sq"] = torch.zeros_like(p, dtype=torch.float32)
            lists = [
                [p.grad for p in params],
                params,
                [self.state[p]["exp_avg"] for p in params],
                [self.state[p]["exp_avg_sq"] for p in params],
            ]
            of(None).call(
                "multi_tensor_adam",
                noop_flag=noop,
                tensor_lists=lists,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                epsilon=group["eps"],
                step=group["step"],
                mode=1,
                bias_correction=True,
                weight_decay=group["weight_decay"],
            )
        return loss


from ._functional import install, uninstall  # noqa: E402  functions above stand in for those of torch
from ._patch import patch, unpatch  # noqa: E402

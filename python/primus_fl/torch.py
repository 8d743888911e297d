"""Ops with gradients for torch: functions and modules that stand in for those of torch.nn."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence

import torch

from . import ops
from ._autograd import Function, State, contiguous, differentiable
from ._default import of

__all__ = [
    "AdamW",
    "Embedding",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "SwiGLU",
    "attention",
    "cross_entropy",
    "embedding",
    "experts",
    "gated_linear",
    "gelu",
    "install",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "patch",
    "rms_norm",
    "rope",
    "silu",
    "swiglu",
    "uninstall",
    "unpatch",
]


def _state(like: Any) -> Any:
    return like.new_zeros(1, dtype=torch.int64)


def _rms_norm_forward(x: Any, weight: Any, eps: float, zero_centered: bool) -> Any:
    state = _state(x)
    y, rsigma = ops.rmsnorm_fwd(x, weight, eps=eps, zero_centered_gamma=zero_centered, saved=State(state))
    return y, rsigma, state


def _rms_norm_backward(
    dy: Any, x: Any, weight: Any, rsigma: Any, state: Any, eps: float, zero_centered: bool, _: Any
) -> Any:
    return ops.rmsnorm_bwd(dy, x, rsigma, weight, zero_centered_gamma=zero_centered, saved=State(state))


def _rows(x: Any) -> Any:
    return x.new_empty(x.numel() // x.shape[-1], dtype=torch.float32)


_rms_norm = differentiable(
    Function(
        "rms_norm",
        "Tensor x, Tensor weight, float eps, bool zero_centered",
        2,
        _rms_norm_forward,
        _rms_norm_backward,
        lambda x, *_: (contiguous(x), _rows(x), _state(x)),
    )
)


def rms_norm(x: Any, weight: Any, eps: float = 1e-6, zero_centered: bool = False) -> Any:
    """Normalise the last axis by its root mean square."""
    return _rms_norm(x, weight, eps, zero_centered)


def _layer_norm_forward(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    state = _state(x)
    y, mu, rsigma = ops.layernorm_fwd(x, weight, bias=bias, eps=eps, saved=State(state))
    return y, mu, rsigma, state


def _layer_norm_backward(
    dy: Any, x: Any, weight: Any, bias: Any, mu: Any, rsigma: Any, state: Any, eps: float, wanted: Any
) -> Any:
    dbias = torch.empty_like(weight)
    dx, dweight, dbias = ops.layernorm_bwd(dy, x, mu, rsigma, weight, dbeta=dbias, saved=State(state))
    return dx, dweight, dbias if wanted[2] else None


_layer_norm = differentiable(
    Function(
        "layer_norm",
        "Tensor x, Tensor weight, Tensor? bias, float eps",
        3,
        _layer_norm_forward,
        _layer_norm_backward,
        lambda x, *_: (contiguous(x), _rows(x), _rows(x), _state(x)),
    )
)


def layer_norm(x: Any, weight: Any, bias: Optional[Any] = None, eps: float = 1e-5) -> Any:
    """Normalise the last axis by its mean and variance."""
    return _layer_norm(x, weight, bias, eps)


def _linear_forward(x: Any, weight: Any, bias: Any) -> Any:
    y = x.new_empty((*x.shape[:-1], weight.shape[0]))
    ops.generic_gemm(weight, x, trans_a=True, D=y, bias=bias)
    return (y,)


def _linear_backward(dy: Any, x: Any, weight: Any, bias: Any, wanted: Any) -> Any:
    dx = dweight = dbias = None
    if wanted[0]:
        dx = contiguous(x)
        ops.generic_gemm(weight, dy, D=dx)
    if wanted[1] or wanted[2]:
        dweight = torch.empty_like(weight)
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        if dweight.t().is_contiguous():  # as Conv1D of transformers has it
            ops.generic_gemm(drows, rows, trans_b=True, D=dweight.t())
            dbias = drows.sum(0) if wanted[2] else None
        else:
            dbias = torch.empty_like(bias) if wanted[2] else None
            ops.generic_gemm(rows, drows, trans_b=True, D=dweight, grad=True, bias=dbias)
    return dx, dweight if wanted[1] else None, dbias


_linear = differentiable(
    Function(
        "linear",
        "Tensor x, Tensor weight, Tensor? bias",
        0,
        _linear_forward,
        _linear_backward,
        lambda x, weight, bias: (x.new_empty((*x.shape[:-1], weight.shape[0])),),
        inputs=1,
    )
)


def linear(x: Any, weight: Any, bias: Optional[Any] = None) -> Any:
    """Return x·weightᵀ + bias."""
    return _linear(x, weight, bias)


_swiglu = differentiable(
    Function(
        "swiglu",
        "Tensor x",
        0,
        lambda x: (ops.swiglu(x),),
        lambda dy, x, _: (ops.dswiglu(dy, x),),
        lambda x: (x.new_empty((*x.shape[:-1], x.shape[-1] // 2)),),
    )
)


def swiglu(x: Any) -> Any:
    """Return silu(a)·b, where a and b are the halves of the last axis."""
    return _swiglu(x)


def _gated_linear_forward(x: Any, gate: Any, up: Any) -> Any:
    h = x.new_empty((*x.shape[:-1], 2 * gate.shape[0]))
    for weight, half in zip((gate, up), h.chunk(2, -1)):
        ops.generic_gemm(weight, x, trans_a=True, D=half)
    return ops.swiglu(h), h


def _gated_linear_backward(dy: Any, x: Any, gate: Any, up: Any, h: Any, wanted: Any) -> Any:
    dh = ops.dswiglu(dy, h)
    rows, halves = x.reshape(-1, x.shape[-1]), dh.view(-1, dh.shape[-1]).chunk(2, -1)
    dx = contiguous(x) if wanted[0] else None
    dweights = [torch.empty_like(t) if on else None for t, on in zip((gate, up), wanted[1:])]
    for i, (weight, dhalf, dweight) in enumerate(zip((gate, up), halves, dweights)):
        if dweight is not None:
            ops.generic_gemm(rows, dhalf, trans_b=True, D=dweight)
        if dx is not None:
            ops.generic_gemm(weight, dhalf, D=dx.view(rows.shape), accumulate=i > 0)
    return (dx, *dweights)


_gated_linear = differentiable(
    Function(
        "gated_linear",
        "Tensor x, Tensor gate, Tensor up",
        1,
        _gated_linear_forward,
        _gated_linear_backward,
        lambda x, gate, up: tuple(x.new_empty((*x.shape[:-1], n * gate.shape[0])) for n in (1, 2)),
        inputs=1,
    )
)


def gated_linear(x: Any, gate: Any, up: Any) -> Any:
    """Return silu(x·gateᵀ)·(x·upᵀ)."""
    return _gated_linear(x, gate, up)


def _groups(index: Any, experts: int) -> list[int]:
    """Return how many rows each expert gets."""
    counts: list[int] = torch.bincount(index.view(-1), minlength=experts).tolist()
    if len(counts) > experts:
        raise IndexError(f"index: given the expert {len(counts) - 1}, want one below {experts}")
    return counts


def _grouped(weights: Any, rows: Any, result: Any, counts: Sequence[int], trans_a: bool = False) -> Any:
    """Multiply the rows of each expert with its weight."""
    ops.te_general_grouped_gemm(
        list(weights), list(rows.split(counts)), D=[result], single_output=True, trans_a=trans_a
    )
    return result


def _grouped_gradient(rows: Any, grads: Any, like: Any, counts: Sequence[int]) -> Any:
    """Return the gradient of the weights of all experts."""
    result = contiguous(like)
    ops.te_general_grouped_gemm(list(rows.split(counts)), list(grads.split(counts)), trans_b=True, D=list(result))
    return result


def _experts_forward(x: Any, weights: Any, gate_up: Any, down: Any, index: Any) -> Any:
    counts, state, rows = _groups(index, len(gate_up)), _state(x), index.numel()
    taken, at = x.new_empty((rows, x.shape[1])), index.new_empty(rows)
    ops.moe_permute_fwd(x, index, output=taken, row_id_map=at, saved=State(state))
    h = _grouped(gate_up, taken, x.new_empty((rows, gate_up.shape[1])), counts, trans_a=True)
    a = ops.swiglu(h)
    each = _grouped(down, a, x.new_empty((rows, down.shape[1])), counts, trans_a=True)
    y = ops.moe_unpermute_fwd(each, at, prob=weights, output=torch.empty_like(x), saved=State(state))
    return y, taken, h, a, each, at, state


def _experts_backward(
    dy: Any,
    x: Any,
    weights: Any,
    gate_up: Any,
    down: Any,
    index: Any,
    taken: Any,
    h: Any,
    a: Any,
    each: Any,
    at: Any,
    state: Any,
    wanted: Any,
) -> Any:
    counts, saved = _groups(index, len(gate_up)), State(state)
    deach, dweights = torch.empty_like(each), torch.empty_like(weights)
    ops.moe_unpermute_bwd(dy, each, at, prob=weights, act_grad=deach, prob_grad=dweights, saved=saved)
    ddown = _grouped_gradient(a, deach, down, counts) if wanted[3] else None
    dh = ops.dswiglu(_grouped(down, deach, torch.empty_like(a), counts), h)
    dgate_up = _grouped_gradient(taken, dh, gate_up, counts) if wanted[2] else None
    dx = None
    if wanted[0]:
        dtaken = _grouped(gate_up, dh, torch.empty_like(taken), counts)
        dx = ops.moe_permute_bwd(dtaken, at, output=contiguous(x), saved=saved)
    return dx, dweights if wanted[1] else None, dgate_up, ddown, None


def _experts_empty(x: Any, weights: Any, gate_up: Any, down: Any, index: Any) -> Any:
    rows = index.numel()
    widths = x.shape[1], gate_up.shape[1], down.shape[2], x.shape[1]
    return (torch.empty_like(x), *(x.new_empty((rows, n)) for n in widths), index.new_empty(rows), _state(x))


_experts = differentiable(
    Function(
        "experts",
        "Tensor x, Tensor weights, Tensor gate_up, Tensor down, Tensor index",
        6,
        _experts_forward,
        _experts_backward,
        _experts_empty,
    )
)


def experts(x: Any, index: Any, weights: Any, gate_up: Any, down: Any) -> Any:
    """Return the sum of the experts of each row of x, by their weights.

    x is [rows, hidden], and index and weights are [rows, experts of a row]: which experts, and how much
    of each. gate_up is [experts, 2·size, hidden], its gate first, and down [experts, hidden, size]. An expert is
    (silu(x·gateᵀ)·(x·upᵀ))·downᵀ. Weights are used in f32.
    """
    return _experts(x.contiguous(), weights.float().contiguous(), gate_up, down, index.int().contiguous())


def _activation(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    return differentiable(
        Function(
            name,
            "Tensor x",
            0,
            lambda x: (forward(x, output=torch.empty_like(x)),),
            lambda dy, x, _: (backward(dy, x, output=contiguous(x)),),
            lambda x: (torch.empty_like(x),),
        )
    )


_silu, _gelu = _activation("silu", ops.silu, ops.dsilu), _activation("gelu", ops.gelu, ops.dgelu)
_gelu_erf = _activation("gelu_erf", ops.gelu_erf, ops.dgelu_erf)


def silu(x: Any) -> Any:
    """Return x·σ(x)."""
    return _silu(x)


def gelu(x: Any, approximate: str = "tanh") -> Any:
    """Return the Gaussian error linear unit of x in its tanh form, or with "none" the exact one."""
    if approximate not in ("tanh", "none"):
        raise ValueError(f"given approximate {approximate!r}, want tanh or none")
    return _gelu(x) if approximate == "tanh" else _gelu_erf(x)


def _rope_forward(x: Any, freqs: Any, qkv_format: str, interleaved: bool) -> Any:
    return (
        ops.fused_rope_forward(x, freqs, output=torch.empty_like(x), qkv_format=qkv_format, interleaved=interleaved),
    )


def _rope_backward(dy: Any, x: Any, freqs: Any, qkv_format: str, interleaved: bool, _: Any) -> Any:
    dx = ops.fused_rope_backward(dy, freqs, output=contiguous(dy), qkv_format=qkv_format, interleaved=interleaved)
    return dx, None


_rope = differentiable(
    Function(
        "rope",
        "Tensor x, Tensor freqs, str qkv_format, bool interleaved",
        0,
        _rope_forward,
        _rope_backward,
        lambda x, *_: (torch.empty_like(x),),
    )
)


def rope(x: Any, freqs: Any, qkv_format: str = "bshd", interleaved: bool = False) -> Any:
    """Rotate pairs of elements of each head by the angles of their position, freqs[position]."""
    return _rope(x, freqs, qkv_format, interleaved)


def _attention_empty(q: Any, k: Any, v: Any, mask: str, scale: Optional[float], qkv_format: str, *_: Any) -> Any:
    if qkv_format == "thd":
        stats: tuple[int, ...] = (q.shape[0], q.shape[1], 1)
    else:
        b, s = (q.shape[0], q.shape[1]) if qkv_format == "bshd" else (q.shape[1], q.shape[0])
        stats = (b, q.shape[2], s, 1)
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(stats, dtype=torch.float32), _state(q)


def _attention_arguments(
    mask: str, scale: Optional[float], qkv_format: str, window: Any, others: Optional[dict[str, Any]] = None
) -> dict[str, Any]:
    return {
        "attn_mask_type": mask,
        "attn_scale": scale,
        "qkv_format": qkv_format,
        "window_size": window,
        **(others or {}),
    }


def _attention_forward(q: Any, k: Any, v: Any, *arguments: Any) -> Any:
    o, stats, state = _attention_empty(q, k, v, *arguments)
    ops.fused_attn_fwd(q, k, v, O=o, stats=stats, saved=State(state), **_attention_arguments(*arguments))
    return o, stats, state


def _attention_backward(do: Any, q: Any, k: Any, v: Any, o: Any, stats: Any, state: Any, *arguments: Any) -> Any:
    dq, dk, dv = (contiguous(t) for t in (q, k, v))
    ops.fused_attn_bwd(
        q, k, v, o, do, stats, dQ=dq, dK=dk, dV=dv, saved=State(state), **_attention_arguments(*arguments[:-1])
    )
    return dq, dk, dv


_attention = differentiable(
    Function(
        "attention",
        "Tensor q, Tensor k, Tensor v, str attn_mask_type, float? attn_scale, str qkv_format, int[]? window_size",
        2,
        _attention_forward,
        _attention_backward,
        _attention_empty,
        needs_result=True,
    )
)


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
    mask = arguments.pop("attn_mask_type", "causal" if causal else "no_mask")
    window = arguments.pop("window_size", None)
    return _attention(q, k, v, mask, scale, qkv_format, window, *([arguments] if arguments else []))


def _cross_entropy_forward(logits: Any, targets: Any, ignore_index: int) -> Any:
    state = _state(logits)
    losses, lse = ops.cross_entropy_fwd(logits, targets, ignore_index=ignore_index, saved=State(state))
    return losses, lse, state


def _cross_entropy_backward(
    dlosses: Any, logits: Any, targets: Any, lse: Any, state: Any, ignore_index: int, _: Any
) -> Any:
    dlogits = ops.cross_entropy_bwd(
        logits, targets, lse, dlosses.float(), ignore_index=ignore_index, saved=State(state)
    )
    return dlogits, None


_cross_entropy = differentiable(
    Function(
        "cross_entropy",
        "Tensor logits, Tensor targets, int ignore_index",
        2,
        _cross_entropy_forward,
        _cross_entropy_backward,
        lambda logits, *_: (_rows(logits), _rows(logits), _state(logits)),
    )
)


def cross_entropy(logits: Any, targets: Any, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """Return the negative log-likelihood of targets under a softmax over the last axis, in f32."""
    _check(reduction)
    return _reduced(_cross_entropy(logits, targets, ignore_index), targets, ignore_index, reduction)


def _check(reduction: str) -> None:
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"given reduction {reduction!r}, want none, sum or mean")


def _reduced(losses: Any, targets: Any, ignore_index: int, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / (targets != ignore_index).sum()


def _linear_cross_entropy_forward(x: Any, weight: Any, targets: Any, ignore_index: int) -> Any:
    state = _state(x)
    losses, lse = ops.linear_cross_entropy_fwd(x, weight, targets, ignore_index=ignore_index, saved=State(state))
    return losses, lse, state


def _linear_cross_entropy_backward(
    dlosses: Any, x: Any, weight: Any, targets: Any, lse: Any, state: Any, ignore_index: int, wanted: Any
) -> Any:
    dx, dweight = contiguous(x), torch.empty_like(weight) if wanted[1] else None
    ops.linear_cross_entropy_bwd(
        x, weight, targets, lse, dlosses, dhidden=dx, dweight=dweight, ignore_index=ignore_index, saved=State(state)
    )
    return dx, dweight, None


_linear_cross_entropy = differentiable(
    Function(
        "linear_cross_entropy",
        "Tensor x, Tensor weight, Tensor targets, int ignore_index",
        2,
        _linear_cross_entropy_forward,
        _linear_cross_entropy_backward,
        lambda x, *_: (_rows(x), _rows(x), _state(x)),
    )
)


def _linear_cross_entropy_at_once_forward(
    x: Any, weight: Any, targets: Any, ignore_index: int, mean: bool, frozen: bool
) -> Any:
    dlosses = torch.ones_like(targets, dtype=torch.float32)
    if mean:
        dlosses /= (targets != ignore_index).sum()
    dx, dweight = contiguous(x), x.new_empty(0) if frozen else torch.empty_like(weight)
    losses = dlosses.new_empty(dlosses.shape)
    ops.linear_cross_entropy_fwd(
        x,
        weight,
        targets,
        losses=losses,
        dlosses=dlosses,
        dhidden=dx,
        dweight=None if frozen else dweight,
        ignore_index=ignore_index,
        saved=State(_state(x)),
    )
    return _reduced(losses, targets, ignore_index, "mean" if mean else "sum"), dx, dweight


def _linear_cross_entropy_at_once_backward(
    dloss: Any, x: Any, weight: Any, targets: Any, dx: Any, dweight: Any, *arguments: Any
) -> Any:
    return dx * dloss, dweight * dloss if arguments[-1][1] else None, None


_linear_cross_entropy_at_once = differentiable(
    Function(
        "linear_cross_entropy_at_once",
        "Tensor x, Tensor weight, Tensor targets, int ignore_index, bool mean, bool frozen",
        2,
        _linear_cross_entropy_at_once_forward,
        _linear_cross_entropy_at_once_backward,
        lambda x, weight, targets, ignore_index, mean, frozen: (
            x.new_empty((), dtype=torch.float32),
            contiguous(x),
            x.new_empty(0) if frozen else torch.empty_like(weight),
        ),
    )
)


def linear_cross_entropy(x: Any, weight: Any, targets: Any, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """Return cross_entropy of the logits x·weightᵀ, [..., vocabulary], which are never kept.

    With reduction mean or sum, the gradients are computed with the loss, which takes one product less.
    In float16 they are computed later, since they could be too small before the loss is scaled.
    """
    _check(reduction)
    wanted = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    if wanted and reduction != "none" and x.dtype is not torch.float16:
        return _linear_cross_entropy_at_once(
            x, weight, targets, ignore_index, reduction == "mean", not weight.requires_grad
        )
    losses = _linear_cross_entropy(x, weight, targets, ignore_index)
    return _reduced(losses, targets, ignore_index, reduction)


def _embedding_forward(indices: Any, weight: Any, padding_idx: Optional[int]) -> Any:
    return (ops.embedding_fwd(indices, weight, output=weight.new_empty((*indices.shape, weight.shape[1]))),)


def _embedding_backward(dy: Any, indices: Any, weight: Any, padding_idx: Optional[int], _: Any) -> Any:
    dweight = contiguous(weight)
    ops.embedding_bwd(dy, indices, dweight)
    if padding_idx is not None:
        dweight[padding_idx] = 0
    return None, dweight


_embedding = differentiable(
    Function(
        "embedding",
        "Tensor indices, Tensor weight, int? padding_idx",
        0,
        _embedding_forward,
        _embedding_backward,
        lambda indices, weight, _: (weight.new_empty((*indices.shape, weight.shape[1])),),
    )
)


def embedding(indices: Any, weight: Any, padding_idx: Optional[int] = None) -> Any:
    """Return the rows of weight with these indices. That of padding_idx has no gradient."""
    return _embedding(indices.contiguous(), weight, padding_idx)


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


class Embedding(torch.nn.Embedding):
    """torch.nn.Embedding."""

    def forward(self, input: Any) -> Any:
        if self.max_norm is not None or self.scale_grad_by_freq or self.sparse:
            return super().forward(input)
        return embedding(input, self.weight, self.padding_idx)


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

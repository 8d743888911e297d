"""Parts of models of transformers that call the ops of primus_fl."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable, Optional

import torch
from transformers import AttentionInterface, AttentionMaskInterface, activations, pytorch_utils
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.loss.loss_utils import ForCausalLMLoss
from transformers.masking_utils import sdpa_mask
from transformers.models.llama import modeling_llama

from . import _functional as functional
from . import torch as own
from ._patch import GELU, Linear, Patched, Rule, SiLU, Swapped, host_weight

F = torch.nn.functional

NAME = "primus_fl"  # of the attention
_BEFORE = "_primus_fl"  # the attribute of a model that says what it had before


class RMSNorm(Swapped):
    weight: Any
    variance_epsilon: float

    def forward(self, hidden_states: Any) -> Any:
        theirs = super().forward  # type: ignore[misc]
        return functional.rms_norm(
            lambda *_: theirs(hidden_states), hidden_states, self.weight.shape, self.weight, self.variance_epsilon
        )


class GatedMLP(Swapped):
    gate_proj: Any
    up_proj: Any
    down_proj: Any
    act_fn: Any

    def forward(self, x: Any) -> Any:
        gate, up = self.gate_proj, self.up_proj
        parts = _is(SiLU, self.act_fn) and _is(Linear, gate) and _is(Linear, up)
        if (
            not parts
            or not functional.served(x, gate.weight, up.weight)
            or gate.bias is not None
            or up.bias is not None
        ):
            return super().forward(x)  # type: ignore[misc]
        return self.down_proj(own.gated_linear(x, gate.weight, up.weight))


class Experts(Swapped):
    gate_up_proj: Any
    down_proj: Any
    act_fn: Any

    def forward(self, hidden_states: Any, top_k_index: Any, top_k_weights: Any) -> Any:
        theirs = super().forward  # type: ignore[misc]
        if not _is(SiLU, self.act_fn):
            return theirs(hidden_states, top_k_index, top_k_weights)
        return functional.experts(theirs, hidden_states, top_k_index, top_k_weights, self.gate_up_proj, self.down_proj)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _is(swap: type, module: Any) -> bool:
    """Say whether a call of a module is nothing but one of a forward that was swapped."""
    return isinstance(module, swap) and not any(getattr(module, hooks) for hooks in _HOOKS)


class Conv1D(Swapped):
    weight: Any
    bias: Any

    def forward(self, x: Any) -> Any:
        theirs = super().forward  # type: ignore[misc]
        return functional.linear(lambda *_: theirs(x), x, self.weight.t(), self.bias)


class Attention(Swapped):
    """Attention with rotary embedding: theirs, in which the function that rotates is another one."""

    @classmethod
    def members(cls, theirs: Any) -> dict[str, Any]:
        return {"forward": _rotating(theirs.forward)}


_ROTATE = "apply_rotary_pos_emb"


def _rotating(forward: Any) -> Any:
    """Return a copy of a function, or of the one that it wraps, that rotates with ops."""
    inner, names, cells = getattr(forward, "__wrapped__", None), forward.__globals__, forward.__closure__
    if inner is not None:
        copied = _rotating(inner)
        cells = tuple(types.CellType(copied) if cell.cell_contents is inner else cell for cell in cells)
    else:
        # Without __name__, which torch.compile would take for that of the module to look names up in.
        names = {name: value for name, value in names.items() if name != "__name__"}
        names[_ROTATE] = functools.partial(rotate, names[_ROTATE])
    copy = types.FunctionType(forward.__code__, names, forward.__name__, forward.__defaults__, cells)
    copy.__kwdefaults__ = forward.__kwdefaults__
    return copy


def rotate(theirs: Callable[..., Any], q: Any, k: Any, cos: Any, sin: Any, unsqueeze_dim: int = 1) -> Any:
    """Rotate the heads of q and k as apply_rotary_pos_emb, where all sequences have the same positions."""
    if (
        unsqueeze_dim != 1
        or not functional.served(q, k)
        or cos.shape != (1, q.shape[2], q.shape[3])
        or cos.requires_grad
        or sin.requires_grad
    ):
        return theirs(q, k, cos, sin, unsqueeze_dim)
    freqs = torch.atan2(sin.float(), cos.float())[0, :, None, None]
    return tuple(own.rope(x.transpose(1, 2), freqs).transpose(1, 2) for x in (q, k))


def attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: Optional[float] = None,
    is_causal: Optional[bool] = None,
    **others: Any,
) -> tuple[Any, None]:
    """Compute attention for models whose attn_implementation is primus_fl: what ops cannot, sdpa does."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = causal and query.shape[2] > 1
    if (
        attention_mask is not None
        or dropout != 0
        or any(others.get(name) is not None for name in ("position_bias", "softcap", "s_aux"))
        or not functional.served(query, key, value)
        or causal
        and query.shape[2] != key.shape[2]
    ):
        theirs: tuple[Any, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, is_causal, **others
        )
        return theirs
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    return own.attention(q, k, v, causal=causal, scale=scaling), None


def loss(
    logits: Any,
    labels: Any,
    vocab_size: int,
    num_items_in_batch: Any = None,
    ignore_index: int = -100,
    shift_labels: Any = None,
    **others: Any,
) -> Any:
    """Compute the loss of a causal model as ForCausalLMLoss, whose arguments these are."""
    if others.get("weight") is not None or others.get("label_smoothing"):
        return ForCausalLMLoss(logits, labels, vocab_size, num_items_in_batch, ignore_index, shift_labels, **others)
    if shift_labels is None:
        shift_labels = F.pad(labels, (0, 1), value=ignore_index)[..., 1:].contiguous()
    logits, targets = logits.float().view(-1, vocab_size), shift_labels.view(-1).to(logits.device)
    if num_items_in_batch is None:
        return functional.cross_entropy(F.cross_entropy, logits, targets, ignore_index=ignore_index)
    total = functional.cross_entropy(F.cross_entropy, logits, targets, ignore_index=ignore_index, reduction="sum")
    return total / (num_items_in_batch.to(total.device) if torch.is_tensor(num_items_in_batch) else num_items_in_batch)


def _experts_of_mixtral() -> Any:
    """Return the forward of experts whose weights are one tensor, None before transformers has them."""
    from transformers.models.mixtral import modeling_mixtral

    experts = getattr(modeling_mixtral, "MixtralExperts", None)
    return inspect.unwrap(experts.forward) if experts is not None else None


_EXPERTS = _experts_of_mixtral()


def _same(a: Any, b: Any) -> bool:
    """Say whether two functions of different models have the same code."""
    return all(
        getattr(a.__code__, part) == getattr(b.__code__, part) for part in ("co_code", "co_names", "co_varnames")
    )


def rule(theirs: Any) -> Optional[Rule]:
    """Return how modules of a class of transformers are swapped: one of Llama's, or with the same code."""
    forward = inspect.unwrap(theirs.forward)
    if not isinstance(forward, types.FunctionType):
        return None
    if theirs is pytorch_utils.Conv1D:
        return Rule(Conv1D, host_weight)
    if theirs in (activations.GELUTanh, activations.NewGELUActivation):
        return Rule(GELU)
    if theirs is activations.SiLUActivation:
        return Rule(SiLU)
    if _same(forward, modeling_llama.LlamaRMSNorm.forward):
        return Rule(RMSNorm, host_weight)
    if _same(forward, modeling_llama.LlamaMLP.forward):
        return Rule(GatedMLP, _not_gated)
    if _EXPERTS is not None and _same(forward, _EXPERTS):
        return Rule(Experts, _not_plain)
    rotates = forward.__globals__.get(_ROTATE) if _ROTATE in forward.__code__.co_names else None
    if rotates is not None and _same(rotates, modeling_llama.apply_rotary_pos_emb):
        return Rule(Attention, _scaled)
    return None


def _not_silu(module: Any) -> Optional[str]:
    if not isinstance(module.act_fn, (torch.nn.SiLU, activations.SiLUActivation)):
        return f"the activation is {type(module.act_fn).__name__}, want SiLU"
    return None


def _not_plain(experts: Any) -> Optional[str]:
    if getattr(experts, "_is_expert_parallel", False):
        return "its experts are spread over ranks"
    return _not_silu(experts)


def _not_gated(mlp: Any) -> Optional[str]:
    why = _not_silu(mlp)
    if why:
        return why
    return "its layers have biases" if mlp.gate_proj.bias is not None or mlp.up_proj.bias is not None else None


def _scaled(attention: Any) -> Optional[str]:
    config = attention.config
    parameters = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    for one in [p for p in parameters.values() if isinstance(p, dict)] or [parameters]:  # by layer, or of all
        kind = one.get("rope_type") or one.get("type") or "default"
        if kind not in ("default", "linear", "dynamic", "llama3"):
            return f"{kind} scales what it rotates"
    return None


def enter(model: Any, name: str, report: Patched) -> None:
    """Make attention and loss of a model those of primus_fl."""
    before = vars(model).setdefault(_BEFORE, {})
    at, which = f"{name}.attention".lstrip("."), f"attention of {type(model).__name__}"
    implementation = model.config._attn_implementation
    if implementation == "sdpa":
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation == NAME:
            before["attention"] = implementation
    if model.config._attn_implementation == NAME:
        report.swapped[at] = which
    else:
        report.left[at] = f"{which}: its implementation is {implementation}, want sdpa"
    if model.loss_type in ("ForCausalLM", None) and model.get_output_embeddings() is not None:
        if model.loss_function is ForCausalLMLoss:
            model.loss_function = loss
            before["loss"] = True
        at, which = f"{name}.loss".lstrip("."), f"loss of {type(model).__name__}"
        if model.loss_function is loss:
            report.swapped[at] = which
        else:
            report.left[at] = f"{which}: another function was set"


def leave(model: Any, name: str) -> list[str]:
    """Undo enter."""
    before = vars(model).pop(_BEFORE, {})
    if "attention" in before:
        model.set_attn_implementation(before["attention"])
    if "loss" in before:
        del model._loss_function
    return [f"{name}.{part}".lstrip(".") for part in before]


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)

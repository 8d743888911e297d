"""Modules of a model that call the ops of primus_fl in place of those of torch."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Iterator, NamedTuple, Optional

import torch

from . import _functional as functional

F = torch.nn.functional


class Patched(NamedTuple):
    """What patch has made of a model: printed, a table by class."""

    swapped: dict[str, str]  # module -> its class
    left: dict[str, str]  # module that computes as before -> its class and why

    def __str__(self) -> str:
        lines = [f"{len(self.swapped)} modules call ops of primus_fl, {len(self.left)} compute as before"]
        for title, modules in (("ops of primus_fl", self.swapped), ("as before", self.left)):
            groups: dict[str, list[str]] = {}
            for name, what in modules.items():
                groups.setdefault(what, []).append(name or "(the model)")
            lines += [f"{title:16}  {len(names):4}  {what}  ({names[0]})" for what, names in groups.items()]
        return "\n".join(lines)


class Swapped:
    """What classes have in front of those whose modules they take over."""

    theirs: type  # the class that a module had

    @classmethod
    def members(cls, theirs: Any) -> dict[str, Any]:
        """Return members of the class that takes over one of theirs, besides those of this one."""
        return {}

    def extra_repr(self) -> str:
        return ", ".join(filter(None, (super().extra_repr(), "ops=primus_fl")))  # type: ignore[misc]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_rebuilt, (type(self).__mro__[1], self.theirs), *super().__reduce_ex__(protocol)[2:])


def _rebuilt(swap: Any, theirs: Any) -> Any:
    """Return an empty module for copy and pickle, which do not find classes that are made here."""
    derived: Any = taking_over(swap, theirs)
    return derived.__new__(derived)


class Linear(Swapped):
    weight: Any
    bias: Any

    def forward(self, input: Any) -> Any:
        return functional.linear(F.linear, input, self.weight, self.bias)


class Embedding(Swapped):
    weight: Any
    padding_idx: Optional[int]

    def forward(self, input: Any) -> Any:
        return functional.embedding(F.embedding, input, self.weight, self.padding_idx)


class LayerNorm(Swapped):
    normalized_shape: Any
    weight: Any
    bias: Any
    eps: float

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(F.layer_norm, input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Swapped):
    normalized_shape: Any
    weight: Any
    eps: Optional[float]

    def forward(self, x: Any) -> Any:
        return functional.rms_norm(F.rms_norm, x, self.normalized_shape, self.weight, self.eps)


class SiLU(Swapped):
    def forward(self, input: Any) -> Any:
        return functional.silu(F.silu, input)


class GELU(Swapped):
    approximate = "tanh"

    def forward(self, input: Any) -> Any:
        return functional.gelu(F.gelu, input, approximate=self.approximate)


class Rule(NamedTuple):
    """How modules are swapped whose class has a certain forward."""

    swap: type
    refuse: Callable[[Any], Optional[str]] = lambda module: None  # says why a module is left as it is


def host_weight(module: Any) -> Optional[str]:
    """Say why ops cannot use the weight of a module."""
    weight = module.weight
    if weight is None:
        return "it has no weight"
    if torch.nn.parameter.is_lazy(weight):
        return "the shape of its weight is not known before its first call"
    if not weight.is_cpu:
        return f"given a weight on {weight.device}, want one in host memory"
    if weight.dtype not in functional.FLOATS or weight.layout is not torch.strided:
        return f"given a weight of {weight.dtype} and {weight.layout}, want a dense one of f32, bf16, f16 or f64"
    return None


def plain_rows(module: Any) -> Optional[str]:
    """Say why ops cannot be those of an embedding."""
    for name, default in (("max_norm", None), ("scale_grad_by_freq", False), ("sparse", False)):
        if getattr(module, name) != default:
            return f"given {name}={getattr(module, name)}, want {default}"
    return host_weight(module)


def last_axis(module: Any) -> Optional[str]:
    """Say why ops cannot be those of a norm."""
    axes = len(module.normalized_shape)
    return host_weight(module) if axes == 1 else f"given a norm over {axes} axes, want one over the last"


_RULES = {
    torch.nn.Linear.forward: Rule(Linear, host_weight),
    torch.nn.Embedding.forward: Rule(Embedding, plain_rows),
    torch.nn.LayerNorm.forward: Rule(LayerNorm, last_axis),
    torch.nn.SiLU.forward: Rule(SiLU, lambda module: "it writes over its input" if module.inplace else None),
    torch.nn.GELU.forward: Rule(GELU),
}
if hasattr(torch.nn, "RMSNorm"):
    _RULES[torch.nn.RMSNorm.forward] = Rule(RMSNorm, last_axis)


@functools.lru_cache(maxsize=None)
def taking_over(swap: Any, theirs: Any) -> type:
    """Return the class of modules of a class of theirs that are swapped."""
    names = {"theirs": theirs, "__module__": theirs.__module__, "__doc__": theirs.__doc__}
    return type(theirs.__name__, (swap, theirs), {**names, **swap.members(theirs)})


def patch(model: Any) -> Patched:
    """Make modules of a model call the ops of primus_fl, and say which do and which do not, and why.

    These are Linear, Embedding, LayerNorm, RMSNorm, SiLU and GELU of torch.nn, and of transformers the norms,
    MLPs, experts, rotary embeddings, attention and losses of Llama, Mistral, Mixtral, Qwen 2 and 3 and GPT-2.
    Each stays the object that it was, with its parameters, hooks and name; it is still an instance of
    its class. As with install, a call that ops cannot serve goes to torch, and gradients of gradients are
    errors. A second patch changes nothing more.
    """
    modules = dict(_modules(model))
    report = Patched({}, {})
    for name, module in modules.items():
        theirs: Any = type(module)
        if isinstance(module, Swapped):
            report.swapped[name] = theirs.__name__
            continue
        rule = _rule(theirs)
        if rule is None:
            if next(module.children(), None) is None and theirs.forward is not torch.nn.Module.forward:
                report.left[name] = f"{theirs.__name__}: ops have no part in it"
            continue
        why = "its forward was replaced" if "forward" in vars(module) else rule.refuse(module)
        if why:
            report.left[name] = f"{theirs.__name__}: {why}"
            continue
        module.__class__ = taking_over(rule.swap, theirs)
        report.swapped[name] = theirs.__name__
    configs = set()
    for name, module in modules.items():
        if _is_pretrained(module) and id(module.config) not in configs:
            from . import _transformers

            configs.add(id(module.config))  # a model and the one in it share theirs
            _transformers.enter(module, name, report)
    if not report.swapped:
        raise ValueError(f"given {type(model).__name__}, in which no module can call ops of primus_fl:\n{report}")
    return report


def unpatch(model: Any) -> list[str]:
    """Undo patch. Return the names of the modules that compute as torch has it again."""
    restored = []
    for name, module in _modules(model):
        if isinstance(module, Swapped):
            module.__class__ = module.theirs
            restored.append(name)
        elif _is_pretrained(module):
            from . import _transformers

            restored += _transformers.leave(module, name)
    return restored


def _modules(model: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"given {type(model).__name__}, want a torch.nn.Module")
    return iter(model.named_modules())


def _rule(theirs: Any) -> Optional[Rule]:
    rule = _RULES.get(theirs.forward)
    if rule is None and "transformers" in sys.modules and theirs.__module__.startswith("transformers."):
        from . import _transformers

        rule = _transformers.rule(theirs)
    return rule


def _is_pretrained(module: Any) -> bool:
    transformers = sys.modules.get("transformers.modeling_utils")
    return transformers is not None and isinstance(module, transformers.PreTrainedModel)

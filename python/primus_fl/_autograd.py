"""Functions with gradients, for autograd and as custom ops of torch, which torch.compile can trace."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import torch
from torch.autograd.function import once_differentiable

from ._manager import Saved

compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


class State(Saved):
    """Saved in the memory of a tensor, which a custom op can return."""

    __slots__ = ()

    def __init__(self, number: Any) -> None:
        self.number, self.address = number, number.data_ptr()


class Function(NamedTuple):
    """A function with its gradient.

    Its operands are those that schema declares in the language of torch.library, tensors first.
    forward returns the result and what it keeps for backward, kept tensors. backward gets the
    gradient of the result, the tensors, the result if it needs it, what forward kept, the other
    operands and which gradients are wanted. It returns one for each tensor, None for one that is
    not wanted. empty returns tensors as those of forward, without computing them.
    """

    name: str
    schema: str
    kept: int
    forward: Callable[..., Sequence[Any]]
    backward: Callable[..., Sequence[Any]]
    empty: Callable[..., Sequence[Any]]
    needs_result: bool = False
    inputs: int = 8  # gradients of so many tensors are contiguous, others have the strides of the tensor


def differentiable(function: Function) -> Callable[..., Any]:
    """Return a function that autograd differentiates, and torch.compile knows if this torch can."""
    operands = function.schema.split(", ")
    n, first = sum(each.startswith("Tensor") for each in operands), 0 if function.needs_result else 1

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            outputs = function.forward(*args)
            ctx.save_for_backward(*args[:n], *outputs[first:])
            ctx.others = args[n:]
            return outputs[0]

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            wanted = ctx.needs_input_grad[:n]
            grads = function.backward(dy.contiguous(), *ctx.saved_tensors, *ctx.others, wanted)
            return (*grads, *(None for _ in ctx.others))

    if not hasattr(torch.library, "register_autograd"):
        apply: Callable[..., Any] = Eager.apply
        return apply
    custom = _custom(function, operands, n)

    def call(*args: Any) -> Any:
        if compiling() and len(args) == len(operands):
            out = custom(*args)
            return out[0] if function.kept else out
        return Eager.apply(*args)

    return call


def _custom(function: Function, operands: Sequence[str], n: int) -> Any:
    """Define a custom op for a function and one for its gradient. A call costs more than that of Eager."""
    name = f"primus_fl::{function.name}"
    returned = ", ".join(["Tensor"] * (function.kept + 1))
    torch.library.define(name, f"({function.schema}) -> " + (f"({returned})" if function.kept else returned))
    first = 0 if function.needs_result else 1
    kept = [f"Tensor kept{i}" for i in range(first, function.kept + 1)]
    given = ", ".join(["Tensor dy", *operands[:n], *kept, *operands[n:], "bool[] wanted"])
    returned = ", ".join(["Tensor"] * n)
    torch.library.define(name + "_backward", f"({given}) -> " + (f"({returned})" if n > 1 else returned))
    backward = getattr(torch.ops.primus_fl, function.name + "_backward")

    def one_or_all(tensors: Sequence[Any]) -> Any:
        return tuple(tensors) if len(tensors) > 1 else tensors[0]

    def compute(*args: Any) -> Any:
        return one_or_all(function.forward(*args))

    def fake(*args: Any) -> Any:
        return one_or_all(function.empty(*args))

    def compute_backward(dy: Any, *args: Any) -> Any:
        grads = function.backward(dy.contiguous(), *args[:-1], args[-1])
        return one_or_all([dy.new_empty(0) if g is None else g for g in grads])

    def fake_backward(dy: Any, *args: Any) -> Any:
        grads = []
        for i, (t, wanted) in enumerate(zip(args[:n], args[-1])):
            alike = contiguous if i < function.inputs else torch.empty_like
            grads.append(alike(t) if wanted else dy.new_empty(0))
        return one_or_all(grads)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if function.kept else (output,)
        ctx.mark_non_differentiable(*outputs[1:])
        ctx.save_for_backward(*inputs[:n], *outputs[first:])
        ctx.others = inputs[n:]

    def gradient(ctx: Any, dy: Any, *_: Any) -> Any:
        wanted = list(ctx.needs_input_grad[:n])
        grads = backward(dy, *ctx.saved_tensors, *ctx.others, wanted)
        grads = grads if n > 1 else (grads,)
        return (*(g if w else None for g, w in zip(grads, wanted)), *(None for _ in ctx.others))

    torch.library.impl(name, "CPU", compute)
    torch.library.impl(name + "_backward", "CPU", compute_backward)
    torch.library.register_fake(name, fake)
    torch.library.register_fake(name + "_backward", fake_backward)
    torch.library.register_autograd(name, gradient, setup_context=setup)
    return getattr(torch.ops.primus_fl, function.name)


def contiguous(t: Any) -> Any:
    """Return a new tensor with the shape of another one."""
    return torch.empty_like(t, memory_format=torch.contiguous_format)

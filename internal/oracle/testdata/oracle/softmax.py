"""Softmaxes of attention scores and their gradients."""

import torch
from call import op


def scaled(x, factor, hidden):
    y = torch.softmax((factor * x).masked_fill(hidden, -torch.inf), -1)
    return y.masked_fill(hidden.expand_as(y), 0.0)


def nothing(x):
    return torch.zeros(x.shape[-2:], dtype=torch.bool)


def above(x):
    """What a causal mask hides that is aligned to the bottom right."""
    sq, sk = x.shape[-2:]
    return torch.ones(sq, sk, dtype=torch.bool).triu(1 + sk - sq)


def register(name, mask):
    op(name + "_forward")(lambda a: {a.Output: scaled(a.Input, a.ScaleFactor, mask(a.Input))})

    @op(name + "_backward")
    def backward(a):
        hidden = mask(a.SoftmaxResults)
        y, dy = a.SoftmaxResults.masked_fill(hidden, 0.0), a.OutputGrads.masked_fill(hidden, 0.0)
        dx = a.ScaleFactor * torch._softmax_backward_data(dy, y, -1, torch.float64)
        return {a.Output: dx.masked_fill(hidden, 0.0)}


register("scaled_softmax", nothing)
register("scaled_upper_triang_masked_softmax", above)
register("scaled_aligned_causal_masked_softmax", above)
register("scaled_masked_softmax", nothing)  # its forward op is below


@op("scaled_masked_softmax_forward")
def masked(a):
    z = a.ScaleFactor * a.Input
    if a.dtype(a.Mask) in ("u8", "bool"):
        z = torch.where(a.Mask == 1, -10000.0, z)
        hidden = z.amax(-1, keepdim=True) == -10000 if z.shape[-1] else torch.zeros_like(z, dtype=torch.bool)
        return {a.Output: torch.softmax(z, -1).masked_fill(hidden, 0.0)}
    return {a.Output: torch.softmax(z + a.Mask, -1)}

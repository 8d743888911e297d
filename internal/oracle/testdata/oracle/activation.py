"""Activations, gated ones, and their gradients."""

import torch
import torch.nn.functional as F
from call import leaf, op, rows

FUNCTIONS = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "qgelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": F.relu,
    "srelu": lambda x: F.relu(x) ** 2,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
GATES = {
    "swiglu": "silu", "geglu": "gelu", "geglu_erf": "gelu_erf", "glu": "sigmoid", "qgeglu": "qgelu", "reglu": "relu", "sreglu": "srelu",
}


def derivative(function, x):
    x = leaf(x)
    with torch.enable_grad():
        (d,) = torch.autograd.grad(function(x).sum(), x)
    return torch.where(torch.isnan(x), x.detach(), d)


def register(name, function):
    op(name)(lambda a: {a.Output: function(a.Input)})
    op("d" + name)(lambda a: {a.Output: a.Grad * derivative(function, a.FwdInput)})

    @op("dbias_d" + name)
    def with_bias(a):
        dx = a.Grad * derivative(function, a.FwdInput)
        return {a.Output: dx, a.DBias: rows(dx).sum(0)}


def register_gate(name, function):
    @op(name)
    def forward(a):
        first, second = a.Input.chunk(2, -1)
        return {a.Output: function(first) * second}

    @op("d" + name)
    def backward(a):
        first, second = a.FwdInput.chunk(2, -1)
        return {a.Output: torch.cat([a.Grad * second * derivative(function, first), a.Grad * function(first)], -1)}


for name in ("gelu", "gelu_erf", "qgelu", "relu", "srelu", "silu"):
    register(name, FUNCTIONS[name])
for name, function in GATES.items():
    register_gate(name, FUNCTIONS[function])


def bounded(x, low, high):
    """torch.clamp whose gradient passes where x is NaN, as the op has it."""
    return torch.where(x > high, high, torch.where(x < low, low, x))


def clamped(a, x):
    limit = 7.0 if a.Limit is None else a.Limit
    alpha = 1.702 if a.Alpha is None else a.Alpha
    offset = 1.0 if a.GLULinearOffset is None else a.GLULinearOffset
    first, second = x.chunk(2, -1)
    first, second = bounded(first, -torch.inf, limit), bounded(second, -limit, limit) + offset
    return first * torch.sigmoid(alpha * first) * second


@op("clamped_swiglu")
def clamped_swiglu(a):
    return {a.Output: clamped(a, a.Input)}


@op("clamped_dswiglu")
def clamped_dswiglu(a):
    x = leaf(a.FwdInput)
    (dx,) = torch.autograd.grad(clamped(a, x), x, a.Grad)
    return {a.Output: dx}


@op("softcap")
def softcap(a):
    return {a.Output: a.Limit * torch.tanh(a.Input / a.Limit)}


@op("dsoftcap")
def dsoftcap(a):
    return {a.Output: a.Grad * (1 - torch.tanh(a.FwdInput / a.Limit) ** 2)}

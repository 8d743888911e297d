"""What a request holds, and the table of ops."""

import ctypes
import math
import types

import torch

OPS = {}


class Declined(Exception):
    """The call asks for what PyTorch has no function for."""


def op(*names):
    """Registers a function, which gets the arguments of a call and returns the new
    values of the tensors that it writes."""

    def register(function):
        OPS.update((name, function) for name in names)
        return function

    return register


class Request:
    def __init__(self, head, stream):
        self.op = head["op"]
        self.tensors, dtypes = [], {}
        for shape, dtype in head["tensors"]:
            count = math.prod(shape)
            raw = bytearray(stream.read(8 * count))
            flat = torch.frombuffer(raw, dtype=torch.float64) if count else torch.empty(0)
            self.tensors.append(flat.reshape(shape))
            dtypes[id(self.tensors[-1])] = dtype
        self.arguments = types.SimpleNamespace(**self.fields(head["args"]))
        self.arguments.dtype = lambda t: dtypes[id(t)]

    def fields(self, values):
        return {name: self.value(v) for name, v in values.items()}

    def value(self, v):
        if isinstance(v, list):
            return [self.value(x) for x in v]
        if not isinstance(v, dict):
            return v
        if "tensor" in v:
            return self.tensors[v["tensor"]]
        if "float" in v:
            return float(v["float"])
        return types.SimpleNamespace(**self.fields(v["fields"]))

    def results(self, values):
        index = {id(t): i for i, t in enumerate(self.tensors)}
        written, payload = [], []
        for target, value in values.items():
            if target is None:
                continue
            value = torch.as_tensor(value, dtype=torch.float64).detach()
            if value.numel() != target.numel():
                raise ValueError(f"got {tuple(value.shape)}, want {tuple(target.shape)}")
            written.append(index[id(target)])
            value = value.contiguous()
            payload.append(ctypes.string_at(value.data_ptr(), 8 * value.numel()) if value.numel() else b"")
        return written, b"".join(payload)


def rows(x):
    """The matrix of a tensor, its leading axes as rows."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def leaf(x):
    """A copy that gradients are taken of."""
    return x.detach().clone().requires_grad_()

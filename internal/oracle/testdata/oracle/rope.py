"""Rotary position embeddings, whose gradients are those of autograd."""

import torch
from call import leaf, op


def turn(x, angles, interleaved):
    """Turns the first elements of each head [.., h, d] by angles [.., 1, d2]."""
    d2 = angles.shape[-1]
    turned, rest = x[..., :d2], x[..., d2:]
    if interleaved:
        partner = torch.stack([-turned[..., 1::2], turned[..., ::2]], -1).flatten(-2)
    else:
        first, second = turned.chunk(2, -1)
        partner = torch.cat([-second, first], -1)
    return torch.cat([turned * torch.cos(angles) + partner * torch.sin(angles), rest], -1)


def positions(count, size, rank):
    """The positions of the tokens that a rank of context parallelism holds."""
    if size <= 1:
        return torch.arange(count)
    half = torch.arange(count // 2)
    return torch.cat([half + rank * (count // 2), half + (2 * size - 1 - rank) * (count // 2)])


def table(freqs):
    return freqs.reshape(freqs.shape[0], freqs.shape[-1])


def packed_positions(a):
    lengths = a.CuSeqlens.long().diff() // max(a.CPSize, 1)
    return torch.cat([positions(n, a.CPSize, a.CPRank) for n in lengths.tolist()] or [torch.zeros(0).long()])


def starts(a, batch):
    return torch.zeros(batch).long() if a.StartPositions is None else a.StartPositions.long()


def rope(a, x):
    freqs = table(a.Freqs)
    if a.QKVFormat == "thd":
        at = packed_positions(a)
        first = starts(a, len(a.CuSeqlens) - 1)
        lengths = a.CuSeqlens.long().diff() // max(a.CPSize, 1)
        return turn(x, freqs[at + first.repeat_interleave(lengths)][:, None], a.Interleaved)
    order = (1, 0, 2, 3) if a.QKVFormat == "sbhd" else (0, 1, 2, 3)
    x = x.permute(order)
    at = positions(x.shape[1], a.CPSize, a.CPRank) + starts(a, x.shape[0])[:, None]
    return turn(x, freqs[at][:, :, None], a.Interleaved).permute(order)


@op("fused_rope_forward")
def fused_rope_forward(a):
    return {a.Output: rope(a, a.Input)}


@op("fused_rope_backward")
def fused_rope_backward(a):
    x = leaf(torch.zeros_like(a.Input))
    (dx,) = torch.autograd.grad(rope(a, x), x, a.Input)
    return {a.Output: dx}


def split(a, qkv):
    """Queries, keys and values of a fused projection in the format of the call."""
    q, k, v = qkv.split(a.QKVSplitArgList, -1)
    q = q.reshape(a.Q.shape)
    sequence = 0 if a.QKVFormat == "sbhd" else 1
    at = positions(qkv.shape[sequence], a.CPSize, a.CPRank)[:, None]
    if a.CPSize <= 1:
        at = at + starts(a, qkv.shape[1 - sequence])
    else:
        at = at.expand(-1, qkv.shape[1 - sequence])
    at = at if sequence == 0 else at.T
    return turn(q, table(a.QFreqs)[at][:, :, None], a.Interleaved), turn(k, table(a.KFreqs)[at][:, :, None], a.Interleaved), v


@op("fused_qkv_rope_forward")
def fused_qkv_rope_forward(a):
    q, k, v = split(a, a.QKV)
    return {a.Q: q, a.K: k, a.V: v}


@op("fused_qkv_rope_backward")
def fused_qkv_rope_backward(a):
    x = leaf(torch.zeros_like(a.QKV))
    parts = split(a, x)
    gradients = [g.reshape(p.shape) for g, p in zip((a.Q, a.K, a.V), parts)]
    (dx,) = torch.autograd.grad(parts, x, gradients)
    return {a.QKV: dx}

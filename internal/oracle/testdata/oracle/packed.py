"""Moves of packed sequences, and corrections of context parallelism."""

import torch
from call import op


def sequences(a):
    cu = a.CuSeqlens.long().tolist()
    return list(zip(cu, cu[1:]))


@op("fa_prepare_fwd")
def fa_prepare_fwd(a):
    return {a.Output: torch.stack([x.transpose(0, 1) for x in a.QKVI.chunk(3, -1)])}


@op("fa_prepare_bwd")
def fa_prepare_bwd(a):
    return {a.Output: torch.cat([a.Q, a.K, a.V], -1).transpose(0, 1)}


@op("convert_thd_to_bshd")
def unpack(a):
    out = torch.zeros_like(a.Output)
    for row, (first, end) in zip(out, sequences(a)):
        row[: end - first] = a.Tensor[first:end]
    return {a.Output: out}


@op("convert_bshd_to_thd")
def pack(a):
    out = torch.zeros_like(a.Output)
    for row, (first, end) in zip(a.Tensor, sequences(a)):
        out[first:end] = row[: end - first]
    return {a.Output: out}


@op("splits_to_offsets")
def splits_to_offsets(a):
    sizes = torch.tensor([0, *a.FirstDims], dtype=torch.int64) * a.LogicalLastDim
    return {a.Output: torch.cumsum(sizes, 0)}


@op("thd_get_partitioned_indices")
def partitioned_indices(a):
    owned = [torch.zeros(0)]
    for first, end in sequences(a):
        chunks = torch.arange(first, end).chunk(2 * a.WorldSize)
        if end > first:
            owned += [chunks[a.Rank], chunks[2 * a.WorldSize - 1 - a.Rank]]
    return {a.Output: torch.cat(owned)}


def by_token(x):
    """A view with the tokens first."""
    return x if x.dim() == 3 else x.transpose(0, 1)


@op("thd_read_half_tensor")
def read_half(a):
    out = torch.zeros_like(a.Half)
    for first, end in sequences(a):
        half = (end - first) // 2
        begin = first + a.HalfIdx * half
        by_token(out)[first // 2 : first // 2 + half] = by_token(a.Tensor)[begin : begin + half]
    return {a.Half: out}


def second_halves(a, whole, half):
    """Views of the second half of each sequence in both tensors of log-sum-exps."""
    for b, (first, end) in enumerate(sequences(a)):
        count = (end - first) // 2
        if a.LSEPacked:
            yield whole[:, first + count : end], half[:, first // 2 : first // 2 + count]
        else:
            yield whole[b, :, count : end - first], half[b, :, :count]


@op("thd_read_second_half_lse")
def read_second_half(a):
    out = torch.zeros_like(a.HalfLSE)
    for whole, half in second_halves(a, a.LSE, out):
        half.copy_(whole)
    return {a.HalfLSE: out}


@op("thd_second_half_lse_correction")
def correct_lse(a):
    out = a.LSE.clone()
    for whole, half in second_halves(a, out, a.LSEPerStep):
        whole.copy_(torch.logaddexp(whole, half))
    return {a.LSE: out}


@op("thd_out_correction")
def correct_out(a):
    out = a.Out.clone()
    for b, (first, end) in enumerate(sequences(a)):
        length = end - first
        half = length // 2 if a.OnlySecondHalf else 0
        step = slice(first // 2, first // 2 + length - half) if a.OnlySecondHalf else slice(first, end)
        if a.LSEPacked:
            whole, part = a.LSE[:, first + half : end], a.LSEPerStep[:, step]
        else:
            whole, part = a.LSE[b, :, half:length], a.LSEPerStep[b, :, : length - half]
        factor = torch.exp(part - whole).T[..., None]
        added = a.OutPerStep[step]
        out[first + half : end] += torch.where(added == 0, 0.0, added * factor)
    return {a.Out: out}


@op("thd_grad_correction")
def correct_grad(a):
    out = a.Grad.clone()
    whole = "none" not in (a.FirstHalf, a.SecondHalf)
    for first, end in sequences(a):
        half = (end - first) // 2
        for number, kind in enumerate((a.FirstHalf, a.SecondHalf)):
            target = by_token(out)[first + number * half : first + (number + 1) * half]
            begin = first + number * half if whole else first // 2
            step = by_token(a.GradPerStep)[begin : begin + half]
            if kind == "add":
                target += step
            elif kind == "copy":
                target.copy_(step)
    return {a.Grad: out}

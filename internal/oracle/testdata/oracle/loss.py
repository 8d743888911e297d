"""Embeddings and cross entropy."""

import torch
import torch.nn.functional as F
from call import leaf, op, rows


@op("embedding_fwd")
def embedding_fwd(a):
    return {a.Output: F.embedding(a.Indices.long().flatten(), a.Weight)}


@op("embedding_bwd")
def embedding_bwd(a):
    sums = torch.ops.aten.embedding_dense_backward(rows(a.Grad), a.Indices.long().flatten(), a.DWeight.shape[0], -1, False)
    return {a.DWeight: a.DWeight + sums if a.Accumulate else sums}


def losses(a, logits):
    return F.cross_entropy(logits, a.Targets.long().flatten(), ignore_index=a.IgnoreIndex, reduction="none")


@op("cross_entropy_fwd")
def cross_entropy_fwd(a):
    logits = rows(a.Logits)
    return {a.Losses: losses(a, logits), a.LSE: torch.logsumexp(logits, -1)}


def shift(lse):
    """What F.cross_entropy subtracts from logits: NaN if one of them is infinite."""
    return torch.where(lse.isinf(), torch.nan, lse)


def output_losses(a, hidden, weight):
    """The losses of an output layer: 0 for a target of another part of the vocabulary."""
    logits = hidden @ weight.T
    lse = torch.logsumexp(logits, -1)
    targets = a.Targets.long().flatten()
    at = targets - a.First
    here = (targets != a.IgnoreIndex) & (at >= 0) & (at < weight.shape[0])
    picked = logits.gather(1, torch.where(here, at, 0).unsqueeze(1)).squeeze(1)
    return torch.where(here, shift(lse) - picked, torch.zeros_like(lse)), lse


def output_gradients(a, hidden, weight, lse):
    logits = hidden @ weight.T
    targets = a.Targets.long().flatten()
    p = torch.exp(logits - shift(lse).unsqueeze(1))
    classes = a.First + torch.arange(weight.shape[0])
    d = a.DLosses.flatten().unsqueeze(1) * (p - (classes.unsqueeze(0) == targets.unsqueeze(1)).to(p.dtype))
    d = d.masked_fill((targets == a.IgnoreIndex).unsqueeze(1), 0.0)
    results = {a.DHidden: d @ weight}
    if a.DWeight is not None:
        results[a.DWeight] = d.T @ hidden + (a.DWeight if a.Accumulate else 0.0)
    return results


@op("linear_cross_entropy_fwd")
def linear_cross_entropy_fwd(a):
    hidden = rows(a.Hidden)
    found, lse = output_losses(a, hidden, a.Weight)
    results = {a.Losses: found, a.LSE: lse}
    if a.DLosses is not None:
        results.update(output_gradients(a, hidden, a.Weight, lse))
    return results


@op("linear_cross_entropy_bwd")
def linear_cross_entropy_bwd(a):
    return output_gradients(a, rows(a.Hidden), a.Weight, a.LSE.flatten())


@op("cross_entropy_bwd")
def cross_entropy_bwd(a):
    logits = leaf(rows(a.Logits))
    (gradient,) = torch.autograd.grad(losses(a, logits), logits, a.DLosses.flatten())
    ignored = a.Targets.reshape(-1, 1) == a.IgnoreIndex  # whose rows PyTorch multiplies by 0, NaN or not
    return {a.DLogits: gradient.masked_fill(ignored, 0.0)}

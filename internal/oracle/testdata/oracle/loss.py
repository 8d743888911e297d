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


@op("cross_entropy_bwd")
def cross_entropy_bwd(a):
    logits = leaf(rows(a.Logits))
    (gradient,) = torch.autograd.grad(losses(a, logits), logits, a.DLosses.flatten())
    ignored = a.Targets.reshape(-1, 1) == a.IgnoreIndex  # whose rows PyTorch multiplies by 0, NaN or not
    return {a.DLogits: gradient.masked_fill(ignored, 0.0)}

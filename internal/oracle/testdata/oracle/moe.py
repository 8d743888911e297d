"""Routing of tokens to experts."""

import torch
import torch.nn.functional as F
from call import leaf, op

EPSILON = 1e-20


@op("moe_permute_fwd")
def permute(a):
    experts = a.Indices.flatten()
    order = torch.sort(experts, stable=True).indices
    at = torch.empty_like(order)
    at[order] = torch.arange(order.numel())
    count, topk = a.Output.shape[0], a.Indices.shape[1]
    kept = order[:count]
    table = torch.where(at < count, at, -1).reshape(a.Indices.shape).T
    return {a.Output: a.Input[kept // max(topk, 1)], a.RowIDMap: table}


def unpermute(a, rows, prob):
    """Adds up the rows of each token, those times their probabilities."""
    tokens = a.InputBwd.shape[0] if hasattr(a, "InputBwd") else a.Output.shape[0]
    out = torch.zeros(tokens, rows.shape[1])
    if tokens == 0:
        return out
    for k, places in enumerate(a.RowIDMap.long().reshape(-1, tokens)):
        token = (places >= 0).nonzero().flatten()
        chosen = rows[places[token]]
        if prob is not None:
            chosen = chosen * prob[token, k, None]
        out = out.index_add(0, token, chosen)
    return out


@op("moe_permute_bwd", "moe_unpermute_fwd")
def unpermute_fwd(a):
    return {a.Output: unpermute(a, a.Input, a.Prob)}


@op("moe_unpermute_bwd")
def unpermute_bwd(a):
    rows = leaf(a.InputFwd)
    wanted = [rows] if a.Prob is None else [rows, leaf(a.Prob)]
    out = unpermute(a, rows, None if a.Prob is None else wanted[1])
    if not out.requires_grad:
        return {a.ActGrad: torch.zeros_like(rows), a.ProbGrad: None if a.Prob is None else torch.zeros_like(a.Prob)}
    gradients = torch.autograd.grad(out, wanted, a.InputBwd)
    return dict(zip((a.ActGrad, a.ProbGrad), gradients))


@op("moe_permute_with_routing_map")
def permute_with_map(a):
    expert, token = a.RoutingMap.T.nonzero(as_tuple=True)
    probs = None if a.Probs is None else a.Probs[token, expert]
    return {a.Output: a.Tokens[token], a.SortedIndices: token, a.OutputProbs: probs}


@op("moe_unpermute_with_routing_map")
def unpermute_with_map(a):
    return {a.Output: torch.zeros_like(a.Output).index_add(0, a.SortedIndices.long(), a.PermutedTokens)}


@op("moe_sort_chunks_fwd")
def sort_chunks(a):
    chunks = torch.arange(a.Input.shape[0]).split(a.SplitSizes.long().tolist())
    order = torch.cat([chunks[i] for i in a.SortedIdxs.long().tolist()] or [torch.zeros(0).long()])
    probs = None if a.Probs is None else a.Probs[order]
    return {a.Output: a.Input[order], a.InverseRowMap: torch.argsort(order), a.OutputProbs: probs}


@op("moe_sort_chunks_bwd")
def sort_chunks_bwd(a):
    at = a.InverseRowMap.long()
    return {a.GradInput: a.GradOutput[at], a.GradInProbs: None if a.GradProbs is None else a.GradProbs[at]}


@op("fused_multi_row_padding", "fused_multi_row_unpadding")
def pad_rows(a):
    groups = [F.pad(g[:n], (0, 0, 0, max(0, n - g.shape[0]))) for g, n in zip(a.Input.split(a.InputRows), a.OutputRows)]
    return {a.Output: torch.cat(groups) if groups else a.Output}


def raw_scores(logits, function):
    """What the choice is made by: scores of single experts, or of all by softmax."""
    if function == "softmax":
        return torch.softmax(logits, -1)
    return torch.sigmoid(logits) if function == "sigmoid" else torch.sqrt(F.softplus(logits))


def best(values, count):
    """The columns of the largest values, the first of equal ones, NaN first."""
    return torch.sort(values, dim=-1, descending=True, stable=True).indices[:, :count]


def chosen_map(values, count):
    return torch.zeros_like(values, dtype=torch.bool).scatter(1, best(values, count), True)


def weights(scores, chosen, topk):
    """The share of each chosen expert."""
    scores = torch.where(chosen, scores, 0.0)
    return scores / (scores.sum(-1, keepdim=True) + EPSILON) if topk > 1 else scores


@op("fused_topk_with_score_function_fwd")
def topk(a):
    logits, softmax = a.Logits, a.ScoreFunction == "softmax"
    s = logits if softmax and not a.UsePreSoftmax else raw_scores(logits, a.ScoreFunction)
    values = s if a.ExpertBias is None else s + a.ExpertBias
    if a.GroupTopk:
        grouped = values.reshape(values.shape[0], a.NumGroups, -1)
        worth = torch.topk(grouped, a.Topk // a.GroupTopk, -1).values.sum(-1)
        seen = chosen_map(worth, a.GroupTopk).repeat_interleave(grouped.shape[-1], 1)
        values = values.masked_fill(~seen, -torch.inf)
    chosen = chosen_map(values, a.Topk)
    if not softmax:
        p = weights(s, chosen, a.Topk)
        saved = s if a.ScoreFunction == "sigmoid" else logits
    elif a.UsePreSoftmax:
        p, saved = torch.where(chosen, s, 0.0), s
    else:
        p = torch.softmax(logits.masked_fill(~chosen, -torch.inf), -1)
        saved = torch.where(chosen, p, -torch.inf)
    factor = 1.0 if a.ScalingFactor is None else a.ScalingFactor
    return {a.Probs: torch.where(chosen, factor * p, 0.0), a.RoutingMap: chosen, a.IntermediateOutput: saved}


def score_gradient(saved, gradient, chosen, function, topk):
    """The gradient of logits, of a gradient of the shares of the chosen experts."""
    if function == "softmax":
        return torch._softmax_backward_data(gradient, saved, -1, torch.float64)
    x = leaf(saved)
    s = x if function == "sigmoid" else raw_scores(x, function)
    (dx,) = torch.autograd.grad(weights(s, chosen, topk), x, gradient)
    if function == "sigmoid":
        return torch.ops.aten.sigmoid_backward(dx, saved)
    return dx.masked_fill(saved == -torch.inf, 0.0)  # where PyTorch divides 0 by 0, and the op by ε


@op("fused_topk_with_score_function_bwd")
def topk_bwd(a):
    chosen = a.RoutingMap.bool()
    factor = 1.0 if a.ScalingFactor is None else a.ScalingFactor
    gradient = torch.where(chosen, factor * a.GradProbs, 0.0)
    saved = a.IntermediateOutput
    if a.ScoreFunction == "softmax" and not a.UsePreSoftmax:
        saved = torch.where(chosen, saved, 0.0)
    return {a.GradLogits: score_gradient(saved, gradient, chosen, a.ScoreFunction, a.Topk)}


@op("fused_score_for_moe_aux_loss_fwd")
def aux_scores(a):
    s = raw_scores(a.Logits, a.ScoreFunction)
    everyone = torch.ones_like(s, dtype=torch.bool)
    scores = s if a.ScoreFunction == "softmax" else weights(s, everyone, a.Topk)
    saved = a.Logits if a.ScoreFunction == "sqrtsoftplus" else s
    return {a.Scores: scores, a.RoutingMap: chosen_map(s, a.Topk), a.IntermediateOutput: saved}


@op("fused_score_for_moe_aux_loss_bwd")
def aux_scores_bwd(a):
    everyone = torch.ones_like(a.GradScores, dtype=torch.bool)
    return {a.GradLogits: score_gradient(a.IntermediateOutput, a.GradScores, everyone, a.ScoreFunction, a.Topk)}


@op("fused_moe_aux_loss_fwd")
def aux_loss(a):
    factor = a.NumExperts * a.Coeff / (a.Topk * a.TotalNumTokens**2)
    return {a.AuxLoss: factor * torch.dot(a.TokensPerExpert, a.Probs.sum(0)), a.ConstBuf: factor}


@op("fused_moe_aux_loss_bwd")
def aux_loss_bwd(a):
    row = a.ConstBuf.flatten() * a.TokensPerExpert * a.GradAuxLoss.flatten()
    return {a.GradProbs: row.expand(a.GradProbs.shape)}

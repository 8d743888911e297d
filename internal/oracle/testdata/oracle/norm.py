"""Normalisations, sums of residuals, and dropout with a given mask."""

import torch
from call import leaf, op, rows


def gain(weight, zero_centered):
    return weight + 1 if zero_centered else weight


@op("rmsnorm_fwd")
def rmsnorm_fwd(a):
    x = rows(a.Input)
    rsigma = torch.rsqrt(x.square().mean(-1, keepdim=True) + a.Eps)
    return {a.Output: x * rsigma * gain(a.Weight, a.ZeroCenteredGamma), a.RSigma: rsigma}


def rmsnorm_gradients(a):
    """Gradients through the root that gave rsigma, whose eps the call does not say."""
    x, gamma, rsigma = leaf(rows(a.X)), leaf(a.Gamma), leaf(a.RSigma.reshape(-1, 1))
    y = x * rsigma * gain(gamma, a.ZeroCenteredGamma)
    dx, dgamma, droot = torch.autograd.grad(y, (x, gamma, rsigma), rows(a.DZ))
    mean = x.square().mean(-1, keepdim=True)
    (through_root,) = torch.autograd.grad(mean, x, -droot * rsigma.detach() ** 3 / 2)
    return dx + through_root, dgamma


@op("rmsnorm_bwd")
def rmsnorm_bwd(a):
    dx, dgamma = rmsnorm_gradients(a)
    return {a.DX: dx, a.DGamma: dgamma}


@op("rmsnorm_bwd_add")
def rmsnorm_bwd_add(a):
    dx, dgamma = rmsnorm_gradients(a)
    return {a.DX: dx + rows(a.Add), a.DGamma: dgamma}


@op("layernorm_fwd")
def layernorm_fwd(a):
    weight = gain(a.Weight, a.ZeroCenteredGamma)
    x = rows(a.Input)
    y, _, rsigma = torch.native_layer_norm(x, weight.shape, weight, a.Bias, a.Eps)
    return {a.Output: y, a.Mu: x.mean(-1), a.RSigma: rsigma}


@op("layernorm_bwd")
def layernorm_bwd(a):
    weight = gain(a.Gamma, a.ZeroCenteredGamma)
    x = rows(a.X)
    mu, rsigma = a.Mu.reshape(-1, 1), a.RSigma.reshape(-1, 1)
    dx, dgamma, dbeta = torch.ops.aten.native_layer_norm_backward(
        rows(a.DZ), x, weight.shape, mu, rsigma, weight, torch.zeros_like(weight), [True, True, True]
    )
    return {a.DX: dx, a.DGamma: dgamma, a.DBeta: dbeta}


@op("residual_add")
def residual_add(a):
    return {a.Output: torch.add(a.A, a.B)}


@op("dropout_fwd")
def dropout_fwd(a):
    x = a.Input.flatten()
    keep = a.Keep.bool() if a.DropoutProbability else torch.ones_like(x, dtype=torch.bool)
    bits = torch.zeros(8 * a.Mask.numel())
    bits[: x.numel()] = keep.double()
    mask = bits.reshape(-1, 8) @ 2.0 ** torch.arange(8)
    return {a.Out: torch.where(keep, x / (1 - a.DropoutProbability), 0.0), a.Mask: mask}


@op("dropout_bwd")
def dropout_bwd(a):
    bits = a.Mask.reshape(-1, 1).long() >> torch.arange(8) & 1
    keep = bits.flatten()[: a.GradOutput.numel()].bool()
    dy = a.GradOutput.flatten()
    return {a.GradInput: torch.where(keep, dy / (1 - a.DropoutProbability), 0.0)}

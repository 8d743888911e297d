"""Steps of optimizers, by torch.optim, and norms and scales of lists of tensors."""

import torch
from call import Declined, op

ALWAYS = 10**9  # a step whose bias correction is 1


def optimizer(make, parameter, **options):
    try:
        return make([parameter], **options)
    except ValueError as reason:
        raise Declined(str(reason)) from None


def adam_step(a, gradient, parameter, first, second, lr, step):
    make = torch.optim.AdamW if a.Mode == 1 else torch.optim.Adam
    p = torch.nn.Parameter(parameter.clone())
    chosen = optimizer(make, p, lr=lr, betas=(a.Beta1, a.Beta2), eps=a.Epsilon, weight_decay=a.WeightDecay)
    p.grad = gradient
    count = torch.tensor(float((step if a.BiasCorrection else ALWAYS) - 1))
    state = chosen.state[p] = {"step": count, "exp_avg": first.clone(), "exp_avg_sq": second.clone()}
    chosen.step()
    return p.detach(), state["exp_avg"], state["exp_avg_sq"]


def adam(a, lists, scale, lr, step):
    results = {}
    for g, p, m, v, *master in zip(*lists):
        weights = master[0] if master else p
        new, first, second = adam_step(a, g * scale, weights, m, v, lr, step)
        results.update({p: new, m: first, v: second, weights: new})
        if scale is not UNSCALED:
            results[g] = g * scale
    return results


UNSCALED = 1.0


@op("multi_tensor_adam")
def multi_tensor_adam(a):
    return adam(a, a.TensorLists, UNSCALED, a.LR, a.Step)


@op("multi_tensor_adam_capturable", "multi_tensor_adam_capturable_master")
def capturable(a):
    if a.NoopFlag.item() == 1:
        return {}
    return adam(a, a.TensorLists, a.InvScale.flatten(), a.LR.item(), int(a.Step.item()))


@op("multi_tensor_sgd")
def sgd(a):
    results = {}
    if a.NoopFlag.item() != 0:
        return results
    for g, p, momentum, *copy in zip(*a.TensorLists):
        parameter = torch.nn.Parameter(p.clone())
        chosen = optimizer(
            torch.optim.SGD, parameter, lr=a.LR, momentum=a.Momentum, dampening=a.Dampening, nesterov=a.Nesterov,
            weight_decay=0.0 if a.WDAfterMomentum else a.WD,
        )
        parameter.grad = g * a.Scale
        if a.Momentum and not a.FirstRun:
            chosen.state[parameter]["momentum_buffer"] = momentum.clone()
        chosen.step()
        new = parameter.detach()
        if a.WDAfterMomentum:
            new = new - a.LR * a.WD * p
        results[p] = new
        if a.Momentum:
            results[momentum] = chosen.state[parameter]["momentum_buffer"]
        if copy:
            results[copy[0]] = new
    return results


def raised(flag, values):
    finite = all(torch.isfinite(v).all() for v in values)
    return flag if finite else torch.ones_like(flag)


@op("multi_tensor_l2norm", "multi_tensor_unscale_l2norm")
def l2norm(a):
    scale = getattr(a, "InvScale", None)
    tensors = [x if scale is None else x * scale.flatten() for x in a.TensorLists[0]]
    norms = torch.stack([torch.linalg.vector_norm(x) for x in tensors]) if tensors else torch.zeros(0)
    norm = torch.linalg.vector_norm(norms)
    return {a.NoopFlag: raised(a.NoopFlag, [norm]), a.Norm: norm, a.PerTensor: norms}


@op("multi_tensor_scale", "multi_tensor_scale_tensor")
def scale(a):
    inputs, outputs = a.TensorLists
    factor = a.Scale.item() if isinstance(a.Scale, torch.Tensor) else a.Scale
    return {a.NoopFlag: raised(a.NoopFlag, inputs), **{y: x * factor for x, y in zip(inputs, outputs)}}


@op("compute_amax")
def compute_amax(a):
    x = a.Input[~torch.isnan(a.Input)].abs()
    return {a.Amax: x.max() if x.numel() else 0.0}

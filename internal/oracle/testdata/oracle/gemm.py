"""Products of matrices, alone and in groups."""

import torch
from activation import FUNCTIONS, derivative
from call import op, rows


def product(a, b, transa, transb):
    a, b = rows(a), rows(b)
    return (b.T if transb else b) @ (a.T if transa else a)


def gemm(a, b, d, transa, transb, bias, gelu_in, grad, alpha, beta):
    """The results of GenericGemm; beta is None when D is not accumulated into."""
    x = alpha * product(a, b, transa, transb)
    results = {}
    if grad:
        if bias is not None:
            results[bias] = rows(b).sum(0)
        if gelu_in is not None:
            x = x * derivative(FUNCTIONS["gelu"], rows(gelu_in))
    else:
        if bias is not None:
            x = x + bias
        if gelu_in is not None:
            results[gelu_in] = x
            x = FUNCTIONS["gelu"](x)
    if beta:
        x = x + beta * d.reshape(x.shape)
    results[d] = x
    return results


@op("generic_gemm")
def generic_gemm(a):
    alpha = 1.0 if a.Alpha is None else a.Alpha
    beta = (1.0 if a.Beta is None else a.Beta) if a.Accumulate else 0
    gelu_in = a.GeluIn if a.Gelu else None
    return gemm(a.A, a.B, a.D, a.TransA, a.TransB, a.Bias, gelu_in, a.Grad, alpha, beta)


@op("te_general_grouped_gemm")
def grouped(a):
    results, whole, first = {}, [], 0
    for i, (x, y) in enumerate(zip(a.A, a.B)):
        d = a.D[0] if a.SingleOutput else a.D[i]
        if a.SingleOutput:
            count = rows(y).shape[1 if a.TransB else 0]
            d, first = rows(d)[first : first + count], first + count
            whole.append(d)
        bias = a.Bias[i] if a.Bias else None
        gelu_in = a.PreGeluOut[i] if a.PreGeluOut else None
        results.update(gemm(x, y, d, a.TransA, a.TransB, bias, gelu_in, a.Grad, 1.0, 1.0 if a.Accumulate else 0))
    if a.SingleOutput:
        results[a.D[0]] = torch.cat([results.pop(d) for d in whole]) if whole else a.D[0]
    return results


def members(group):
    if group.List:
        return [rows(x) for x in group.List]
    if group.FirstDims is not None:
        counts = group.FirstDims.long().tolist()
        return list(rows(group.Data)[: sum(counts)].split(counts))
    return list(rows(group.Data).chunk(group.NumTensors)) if group.NumTensors else []


@op(
    "te_general_grouped_gemm_for_grouped_tensor",
    "te_general_grouped_gemm_for_discrete_in",
    "te_general_grouped_gemm_for_discrete_out",
)
def grouped_tensor(a):
    values = []
    for i, (x, y, d) in enumerate(zip(members(a.A), members(a.B), members(a.D))):
        alpha = 1.0 if a.Alpha is None else a.Alpha[i]
        value = alpha * product(x, y, a.TransA, a.TransB)
        if a.Bias is not None:
            value = value + a.Bias[i]
        if a.Beta is not None and a.Beta[i] != 0:
            value = value + a.Beta[i] * d
        values.append(value)
    if a.D.Data is None:
        return dict(zip(a.D.List, values))
    rest = rows(a.D.Data)[sum(v.shape[0] for v in values) :]
    return {a.D.Data: torch.cat([*values, rest])}

"""Attention, sequence by sequence, and linear attention."""

import math

import torch
import torch.nn.functional as F
from call import leaf, op


class Call:
    """The parts of an attention call that belong to single sequences."""

    def __init__(self, a):
        self.a = a
        self.padding = a.AttnMaskType.startswith("padding")
        self.packed = a.QKVFormat == "thd"
        self.heads = a.Q.shape[-2]
        self.scale = 1 / math.sqrt(a.Q.shape[-1]) if a.AttnScale is None else a.AttnScale
        self.batch = len(a.CuSeqlensQ) - 1 if self.packed else a.Q.shape[1 if a.QKVFormat == "sbhd" else 0]
        self.seq_q, self.seq_kv = (x.shape[1 if a.QKVFormat == "bshd" else 0] for x in (a.Q, a.K))

    def lengths(self, b):
        if not self.padding:
            return self.seq_q, self.seq_kv
        return tuple(int(c[b + 1] - c[b]) for c in (self.a.CuSeqlensQ, self.a.CuSeqlensKV))

    def rows(self, x, b, keys):
        """The tokens [l, h, d] of a sequence, as a view."""
        length = self.lengths(b)[keys]
        if self.packed:
            padded, plain = ((self.a.CuSeqlensKVPadded, self.a.CuSeqlensKV) if keys
                             else (self.a.CuSeqlensQPadded, self.a.CuSeqlensQ))
            first = int((plain if padded is None else padded)[b])
            return x[first : first + length]
        return x[b, :length] if self.a.QKVFormat == "bshd" else x[:length, b]

    def hidden(self, b):
        """Which keys each query of a sequence does not see, and how far each key is from
        the diagonal."""
        lq, lkv = self.lengths(b)
        kind = self.a.AttnMaskType
        bottom = kind.endswith("bottom_right") if self.a.BottomRightDiagonal is None else self.a.BottomRightDiagonal
        away = torch.arange(lkv) - torch.arange(lq)[:, None] - (lkv - lq if bottom else 0)
        hidden = torch.zeros(lq, lkv, dtype=torch.bool)
        if "causal" in kind:
            hidden |= away > 0
        left, right = self.a.WindowSize
        if left >= 0:
            hidden |= away < -left
        if right >= 0:
            hidden |= away > right
        if kind == "arbitrary":
            mask = self.a.AttentionMask
            hidden = hidden | mask[b if mask.shape[0] > 1 else 0].bool()
        return hidden, away

    def slopes(self, b):
        given = self.a.AlibiSlopes
        if given is not None:
            return given if given.dim() == 1 else given[b]
        n = 2 ** int(math.log2(self.heads))
        first = [2 ** (-8 * (k + 1) / n) for k in range(n)]
        return torch.tensor(first + [2 ** (-4 * (2 * k + 1) / n) for k in range(self.heads - n)])

    def scores(self, b, q, k, bias):
        """Scores [h, lq, lkv] of queries [lq, h, d], without hiding any, and what is hidden."""
        repeats = self.heads // k.shape[1] if k.shape[1] else 1
        products = torch.einsum("ihd,jhd->hij", q, k.repeat_interleave(repeats, 1))
        hidden, away = self.hidden(b)
        lq, lkv = hidden.shape[-2:]
        if bias is not None:
            bias = bias[b if bias.shape[0] > 1 else 0]
            bias = bias.expand(self.heads, self.seq_q, self.seq_kv)[:, :lq, :lkv]
        kind = self.a.BiasType
        if kind == "pre_scale_bias":
            return self.capped(self.scale * (products + bias)), hidden
        s = self.capped(self.scale * products)
        if kind == "post_scale_bias":
            s = s + bias
        if kind == "alibi":
            s = s - self.slopes(b)[:, None, None] * away.abs()
        return s, hidden

    def capped(self, scores):
        """The soft cap of scores, whose derivative self.derivative becomes."""
        if not self.a.Softcap:
            self.derivative = torch.ones(())
            return scores
        tanh = torch.tanh(scores / self.a.Softcap)
        self.derivative = 1 - tanh.detach() ** 2
        return self.a.Softcap * tanh

    def factors(self, b, scores):
        """What dropout multiplies the probabilities of a sequence by."""
        if not self.a.PDropout:
            return torch.ones_like(scores)
        return self.a.Keep[b, :, : scores.shape[1], : scores.shape[2]] / (1 - self.a.PDropout)

    def sink(self, lq):
        """What the softmax divides by beside the scores, as a further score, or None."""
        if self.a.SoftmaxType == "vanilla":
            return None
        offset = torch.zeros(self.heads) if self.a.SoftmaxType == "off-by-one" else self.a.SoftmaxOffset.flatten()
        return offset[:, None, None].expand(-1, lq, 1)

    def probabilities(self, scores, hidden):
        """P, 0 for hidden keys, and the logarithm of the softmax's denominator [h, lq]."""
        sink = self.sink(scores.shape[1])
        wide = scores if sink is None else torch.cat([scores, sink], -1)
        total = torch.logsumexp(wide, -1) if wide.shape[-1] else torch.full(wide.shape[:2], -torch.inf)
        p = torch.softmax(wide, -1)[..., : scores.shape[-1]]
        return torch.where(hidden, 0.0, p), total

    def outputs(self, p, v, hidden, finite):
        """Outputs [lq, h, d] of probabilities [h, lq, lkv] and values [lkv, h, d]. PyTorch multiplies
        those of hidden keys, and their gradients, by 0; one that is not finite would reach rows that
        do not depend on it."""
        wide = v.repeat_interleave(self.heads // v.shape[1] if v.shape[1] else 1, 1)
        if finite:
            return torch.einsum("hij,jhd->ihd", p, wide)
        terms = p[..., None] * wide.transpose(0, 1)[:, None]
        return torch.where(hidden[..., None], 0.0, terms).sum(2).transpose(0, 1)


@op("fused_attn_fwd")
def fused_attn_fwd(a):
    call = Call(a)
    out = torch.zeros_like(a.O)
    stats = torch.full_like(a.Stats, -torch.inf)
    largest = torch.full((call.heads,), -torch.inf)
    for b in range(call.batch):
        q, k, v = call.rows(a.Q, b, 0), call.rows(a.K, b, 1), call.rows(a.V, b, 1)
        s, hidden = call.scores(b, q, k, a.Bias)
        s = s.masked_fill(hidden, -torch.inf)
        p, total = call.probabilities(s, hidden)
        p = p * call.factors(b, s)
        call.rows(out, b, 0).copy_(call.outputs(p, v, hidden, v.isfinite().all()))
        if call.packed:
            call.rows(stats, b, 0)[..., 0] = total.T
        else:
            stats[b, :, : q.shape[0], 0] = total
        if s.numel():
            largest = torch.maximum(largest, s.amax((1, 2)))
    return {a.O: out, a.Stats: stats, a.MaxLogit: largest}


@op("fused_attn_bwd")
def fused_attn_bwd(a):
    call = Call(a)
    dq, dk, dv = torch.zeros_like(a.Q), torch.zeros_like(a.K), torch.zeros_like(a.V)
    dbias = None if a.Bias is None else torch.zeros_like(a.Bias)
    doffset = torch.zeros(call.heads)
    for b in range(call.batch):
        q, k, v = (leaf(call.rows(x, b, keys)) for x, keys in ((a.Q, 0), (a.K, 1), (a.V, 1)))
        o, do = call.rows(a.O, b, 0), call.rows(a.DO, b, 0)
        bias = None if a.Bias is None else leaf(a.Bias)
        s, hidden = call.scores(b, q, k, bias)
        p, total = call.probabilities(s.detach().masked_fill(hidden, -torch.inf), hidden)
        factors = call.factors(b, s)
        (gv,) = torch.autograd.grad(call.outputs(p * factors, v, hidden, do.isfinite().all()), v, do)
        wide = v.detach().repeat_interleave(call.heads // v.shape[1] if v.shape[1] else 1, 1)
        row = (do * o).sum(-1).T  # of the output as it was rounded, which is what the op is given
        ds = p * (factors * torch.einsum("ihd,jhd->hij", do, wide) - row[..., None])
        ds = ds.masked_fill(hidden, 0.0)
        q, k, dx = q.detach(), k.detach(), call.scale * call.derivative * ds
        gq = call.outputs(dx, k, hidden, k.isfinite().all())
        gk = call.outputs(dx.transpose(1, 2), q, hidden.transpose(-1, -2), q.isfinite().all())
        gk = gk.unflatten(1, (k.shape[1], -1)).sum(2) if k.numel() else torch.zeros_like(k)
        for target, keys, value in ((dq, 0, gq), (dk, 1, gk), (dv, 1, gv)):
            call.rows(target, b, keys).copy_(value)
        if bias is not None:
            (gbias,) = torch.autograd.grad(s, bias, ds)
            dbias += gbias
        if a.SoftmaxType == "learnable":
            seen = torch.where(total == -torch.inf, 0.0, torch.exp(a.SoftmaxOffset.flatten()[:, None] - total))
            doffset -= (seen * row).sum(-1)
    return {a.DQ: dq, a.DK: dk, a.DV: dv, a.DBias: dbias, a.DSoftmaxOffset: doffset}


@op("gated_delta_net_forward")
def gated_delta_net_forward(a):
    q, k = a.Query, a.Key
    if a.UseQKL2Norm:
        q, k = F.normalize(q, dim=-1, eps=1e-6), F.normalize(k, dim=-1, eps=1e-6)
    batch, length, heads, dk = q.shape
    dv = a.Value.shape[-1]
    state = torch.zeros(batch, heads, dk, dv) if a.InitialState is None else a.InitialState
    out = torch.zeros_like(a.Output)
    for t in range(length):
        state = torch.exp(a.G[:, t])[..., None, None] * state
        update = a.Beta[:, t][..., None] * (a.Value[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], update)
        out[:, t] = torch.einsum("bhkv,bhk->bhv", state, q[:, t]) / math.sqrt(dk)
    return {a.Output: out, a.FinalState: state}

#!/usr/bin/env python3
"""Times training steps of a decoder in PyTorch on the CPU, in f32.

The model, its shapes and its step are those of the native backend: RMSNorm, rotary
positions on halves of a head, grouped causal attention, SwiGLU, cross entropy, clipping
of the global gradient norm and AdamW that leaves the norms undecayed. --gpt2 has LayerNorm,
learned positions, GELU and biases instead; --experts a mixture of experts in the place of
SwiGLU, each of which computes all tokens that chose it at once. It is written for speed:
projections are fused, attention is PyTorch's own where it has one, gradients are released
between steps, AdamW and the norm go through torch._foreach.

With the variables of torchrun several processes train together, each with these batches, by
DistributedDataParallel over gloo.

Prints one JSON object. What the process needs from outside, such as the kernels that
OpenBLAS takes for this CPU, is the caller's business; see the driver beside this file.
"""

import argparse
import json
import os
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


class RMSNorm(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.eps, self.weight = a.eps, nn.Parameter(torch.ones(a.hidden))

    def forward(self, x):
        return rms_norm(x, self.weight, self.eps)


def norm(a):
    return nn.LayerNorm(a.hidden, eps=a.eps) if a.gpt2 else RMSNorm(a)


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.groups, self.rotary = a.heads, a.groups, not a.gpt2
        self.dim = a.hidden // a.heads
        self.qkv = nn.Linear(a.hidden, (a.heads + 2 * a.groups) * self.dim, bias=a.gpt2)
        self.out = nn.Linear(a.heads * self.dim, a.hidden, bias=a.gpt2)
        angles = torch.outer(torch.arange(a.seq), 10000.0 ** (-torch.arange(0, self.dim, 2) / self.dim))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        if not hasattr(F, "scaled_dot_product_attention"):
            mask = torch.full((a.seq, a.seq), float("-inf")).triu(1)
            self.register_buffer("mask", mask)

    def rotate(self, x):
        low, high = x.chunk(2, -1)
        return torch.cat((low * self.cos - high * self.sin, high * self.cos + low * self.sin), -1)

    def forward(self, x):
        batch, seq, _ = x.shape
        qkv = self.qkv(x).view(batch, seq, -1, self.dim).transpose(1, 2)
        qk, v = qkv.split([self.heads + self.groups, self.groups], 1)
        q, k = (self.rotate(qk) if self.rotary else qk).split([self.heads, self.groups], 1)
        if self.groups != self.heads:
            k = k.repeat_interleave(self.heads // self.groups, 1)
            v = v.repeat_interleave(self.heads // self.groups, 1)
        y = self.attend(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, seq, -1))

    def attend(self, q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        shape = q.shape
        q, k, v = (t.reshape(-1, *t.shape[2:]) for t in (q, k, v))
        scores = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=self.dim**-0.5)
        return torch.bmm(scores.softmax(-1), v).view(shape)


class SwiGLU(nn.Module):
    def __init__(self, a, ffn):
        super().__init__()
        self.gate_up = nn.Linear(a.hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, a.hidden, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class GELU(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.up, self.down = nn.Linear(a.hidden, a.ffn), nn.Linear(a.ffn, a.hidden)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.top = a.top_k
        self.router = nn.Linear(a.hidden, a.experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(a, a.expert_ffn) for _ in range(a.experts))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, chosen = self.router(flat).topk(self.top, -1)
        weights = weights.softmax(-1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, slots = (chosen == i).nonzero(as_tuple=True)
            out = out.index_add(0, rows, expert(flat[rows]) * weights[rows, slots, None])
        return out.view_as(x)


class Layer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.norm1, self.norm2 = norm(a), norm(a)
        self.attention = Attention(a)
        self.mlp = GELU(a) if a.gpt2 else Experts(a) if a.experts else SwiGLU(a, a.ffn)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embedding = nn.Embedding(a.vocab, a.hidden)
        self.positions = nn.Parameter(torch.empty(a.seq, a.hidden)) if a.gpt2 else None
        self.layers = nn.ModuleList(Layer(a) for _ in range(a.layers))
        self.norm = norm(a)
        self.head = nn.Linear(a.hidden, a.vocab, bias=False)
        if a.tied:
            self.head.weight = self.embedding.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def clip(parameters, limit):
    """Scales the gradients down to a global norm and returns the norm they had."""
    grads = [p.grad for p in parameters if p.grad is not None]  # no token may have chosen an expert
    norm = torch.stack(torch._foreach_norm(grads)).norm().item()
    if norm > limit:
        torch._foreach_mul_(grads, limit / (norm + 1e-6))
    return norm


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("layers", "hidden", "ffn", "heads", "groups", "vocab", "seq", "batch"):
        args.add_argument("--" + name, type=int, required=True)
    args.add_argument("--micro-batches", type=int, default=1)
    args.add_argument("--tied", action="store_true")
    args.add_argument("--gpt2", action="store_true")
    args.add_argument("--experts", type=int, default=0)
    args.add_argument("--top-k", type=int, default=0)
    args.add_argument("--expert-ffn", type=int, default=0)
    args.add_argument("--eps", type=float, default=1e-5)
    args.add_argument("--warmup", type=int, default=2)
    args.add_argument("--steps", type=int, default=5)
    args.add_argument("--threads", type=int, default=0, help="0 is PyTorch's choice")
    a = args.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)

    model = Decoder(a)
    parameters = list(model.parameters())
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=1e-3, betas=(0.9, 0.95), eps=1e-8, foreach=True,
    )
    rows = torch.randint(a.vocab, (a.micro_batches, a.batch, a.seq + 1))

    seconds = []
    for _ in range(a.warmup + a.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for part in rows:
            scores = model(part[:, :-1])
            mean = F.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten()) / a.micro_batches
            mean.backward()
            loss += mean.item()
        clip(parameters, 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    seconds = seconds[a.warmup:]
    step = statistics.median(seconds)
    if rank > 0:
        return
    print(json.dumps({
        "peer": "pytorch " + torch.__version__,
        "threads": torch.get_num_threads(),
        "parameters": sum(p.numel() for p in parameters),
        "tokens_per_second": ranks * rows.shape[0] * a.batch * a.seq / step,
        "step_ms": 1e3 * step,
        "step_ms_all": [1e3 * s for s in seconds],
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "loss": loss,
        "vector_instructions": torch.backends.cpu.get_cpu_capability()
        if hasattr(torch.backends, "cpu") and hasattr(torch.backends.cpu, "get_cpu_capability")
        else "",
    }))


if __name__ == "__main__":
    main()

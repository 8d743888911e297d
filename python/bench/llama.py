"""Trains a model of the shape of Llama with plain torch and with primus_fl.torch, in alternating rounds.

python bench/llama.py --layers 8 --hidden 512 --steps 3 --rounds 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

import torch
import torch.nn.functional as F

import primus_fl
import primus_fl.torch as pt


def rms_norm(x: Any, weight: Any) -> Any:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def rope(x: Any, freqs: Any) -> Any:
    cos, sin = freqs[:, 0, 0].cos()[None, :, None], freqs[:, 0, 0].sin()[None, :, None]
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2)


def swiglu(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


PLAIN = (F.linear, rms_norm, rope, attention, swiglu, F.cross_entropy, torch.optim.AdamW)
PRIMUS = (
    pt.linear,
    lambda x, w: pt.rms_norm(x, w, 1e-5),
    pt.rope,
    lambda q, k, v: pt.attention(q, k, v, causal=True),
    pt.swiglu,
    pt.cross_entropy,
    pt.AdamW,
)


class Trainer:
    """A model with its optimizer, made of the functions of one of the two."""

    def __init__(self, args: argparse.Namespace, parts: Any) -> None:
        torch.manual_seed(0)
        h, f, v = args.hidden, args.ffn, args.vocab
        self.args, self.parts = args, parts
        shapes = {"embed": (v, h), "head": (v, h)}
        for i in range(args.layers):
            shapes.update({f"{i}.qkv": (3 * h, h), f"{i}.o": (h, h), f"{i}.up": (2 * f, h), f"{i}.down": (h, f)})
        self.p = {name: torch.nn.Parameter(torch.randn(shape) * 0.02) for name, shape in shapes.items()}
        for name in ["norm"] + [f"{i}.{n}" for i in range(args.layers) for n in ("n1", "n2")]:
            self.p[name] = torch.nn.Parameter(torch.ones(h))
        self.optimizer = parts[6](list(self.p.values()), lr=3e-4)
        dim = h // args.heads
        angles = torch.outer(torch.arange(float(args.seq)), 1e4 ** (-torch.arange(0, dim, 2) / dim))
        self.freqs = angles.repeat(1, 2)[:, None, None]

    def step(self, tokens: Any) -> float:
        linear, norm, rotate, attend, gate, loss_of, _ = self.parts
        a, p = self.args, self.p
        x = F.embedding(tokens[:, :-1], p["embed"])
        for i in range(a.layers):
            y = linear(norm(x, p[f"{i}.n1"]), p[f"{i}.qkv"]).view(a.batch, a.seq, 3, a.heads, -1)
            q, k, v = y.unbind(2)
            y = attend(rotate(q, self.freqs), rotate(k, self.freqs), v)
            x = x + linear(y.reshape(a.batch, a.seq, -1), p[f"{i}.o"])
            x = x + linear(gate(linear(norm(x, p[f"{i}.n2"]), p[f"{i}.up"])), p[f"{i}.down"])
        logits = linear(norm(x, p["norm"]), p["head"])
        loss = loss_of(logits.view(-1, a.vocab), tokens[:, 1:].reshape(-1))
        for parameter in p.values():
            parameter.grad = None
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = {"layers": 8, "hidden": 512, "heads": 8, "ffn": 1376, "vocab": 4096, "seq": 256, "batch": 2}
    for name, value in {**sizes, "steps": 3, "rounds": 3}.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    os.environ["PRIMUS_NUM_THREADS"] = str(args.threads)
    torch.set_num_threads(args.threads)
    trainers = {"torch": Trainer(args, PLAIN), "primus_fl": Trainer(args, PRIMUS)}
    parameters = sum(p.numel() for p in trainers["torch"].p.values())
    print(f"{parameters / 1e6:.1f}M parameters, torch {torch.__version__}, {torch.get_num_threads()} threads")
    tokens = torch.randint(0, args.vocab, (1 + args.rounds * args.steps, args.batch, args.seq + 1))
    losses: dict[str, list[float]] = {name: [t.step(tokens[0])] for name, t in trainers.items()}
    rates: dict[str, list[float]] = {name: [] for name in trainers}
    for r in range(args.rounds):
        for name, trainer in trainers.items():
            begin = time.perf_counter()
            for s in range(args.steps):
                losses[name].append(trainer.step(tokens[1 + r * args.steps + s]))
            rates[name].append(args.steps * args.batch * args.seq / (time.perf_counter() - begin))
    for name, rate in rates.items():
        print(f"{name:10} {statistics.median(rate):8.0f} tokens/s (each round: {', '.join(f'{x:.0f}' for x in rate)})")
    apart = max(abs(a - b) for a, b in zip(*losses.values()))
    ratio = statistics.median(a / b for a, b in zip(rates["primus_fl"], rates["torch"]))
    print(f"ratio {ratio:.2f}, losses at most {apart:.1e} apart")
    counts = [line for line in primus_fl.metrics().splitlines() if line.startswith("primus_op_calls_total")]
    served = [line for line in counts if not line.endswith(" 0")]
    print(f"{sum(float(line.split()[-1]) for line in served):.0f} calls of {len(served)} ops")


if __name__ == "__main__":
    main()

"""Trains a model of transformers in plain torch, compiled, and patched, in alternating rounds.

python bench/patched.py --family gpt2 --rounds 5
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from typing import Any

import torch
import transformers

import primus_fl.torch as pt


def model_of(args: argparse.Namespace) -> Any:
    torch.manual_seed(0)
    if args.family == "gpt2":
        sizes = {"n_embd": args.hidden, "n_layer": args.layers, "n_head": args.heads, "n_positions": args.seq}
        dropout = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=args.vocab, **sizes, **dropout))
    mixtral = args.family == "mixtral"
    sizes = {
        "vocab_size": args.vocab,
        "hidden_size": args.hidden,
        "intermediate_size": args.hidden * 2 if mixtral else args.hidden * 43 // 16,
        "num_hidden_layers": args.layers,
        "num_attention_heads": args.heads,
        "num_key_value_heads": args.heads,
        "max_position_embeddings": args.seq,
    }
    if mixtral:
        return transformers.MixtralForCausalLM(transformers.MixtralConfig(num_local_experts=8, **sizes))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))


def step(model: Any, optimizer: Any, tokens: Any) -> float:
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=("llama", "gpt2", "mixtral"), default="llama")
    sizes = {"layers": 8, "hidden": 512, "heads": 8, "vocab": 4096, "seq": 256, "batch": 2}
    for name, value in {**sizes, "steps": 1, "rounds": 5}.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--variants", default="torch,compiled,patched", help="and patched+compiled")
    args = parser.parse_args()
    os.environ["PRIMUS_NUM_THREADS"] = str(args.threads)
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    first = model_of(args)
    print(
        f"{sum(p.numel() for p in first.parameters()) / 1e6:.1f}M parameters, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {args.threads} threads, load {os.getloadavg()[0]:.1f}"
    )
    variants: dict[str, tuple[Any, Any]] = {}
    for name in args.variants.split(","):
        model = copy.deepcopy(first)
        if "patched" in name:
            pt.patch(model)
        optimizer = (pt.AdamW if "patched" in name else torch.optim.AdamW)(model.parameters(), lr=3e-4)
        variants[name] = torch.compile(model) if "compiled" in name else model, optimizer
    batches = torch.randint(0, args.vocab, (1 + args.rounds * args.steps, args.batch, args.seq))
    losses = {name: [step(*parts, batches[0])] for name, parts in variants.items()}
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for r in range(args.rounds):
        for name, parts in variants.items():
            begin = time.perf_counter()
            for s in range(args.steps):
                losses[name].append(step(*parts, batches[1 + r * args.steps + s]))
            rates[name].append(args.steps * args.batch * args.seq / (time.perf_counter() - begin))
    base = next(iter(variants))
    for name, rate in rates.items():
        ratio = statistics.median(a / b for a, b in zip(rate, rates[base]))
        apart = max(abs(a - b) for a, b in zip(losses[name], losses[base]))
        rounds = ", ".join(f"{x:.0f}" for x in rate)
        print(
            f"{name:16} {statistics.median(rate):7.0f} tokens/s, {ratio:.2f} of {base} (each round: {rounds})", end=""
        )
        print(f", losses at most {apart:.1e} apart")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains runs of the native backend again, in PyTorch.

Starts from a run's first checkpoint (save_initial), takes its batches (dump_batches) in
their order, and compares the weights at the end with its last checkpoint. The models, one
for each family that config.json may name, are written from the papers on RMSNorm, layer
normalisation, rotary positions, attention, SwiGLU, GELU in both forms and the balanced mixture of experts,
with plain tensor operations and PyTorch's gradients. Prints one JSON object: for each run the
losses and gradient norms of all steps, and for each weight the relative distance at the end.
"""

import argparse
import json
import math
import os
import struct

import numpy
import torch


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], {"F32": "<f4", "I32": "<i4"}[entry["dtype"]])
        tensors[name] = torch.from_numpy(values.copy()).reshape(entry["shape"])
    return tensors


def standardise(x, w, at, eps):
    x = x - x.mean(-1, keepdim=True)
    return w[at + "weight"] * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) + w[at + "bias"]


def normalise(x, gain, eps):
    return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def frequencies(dim, config):
    """The angles per position, of which Llama 3.1 stretches the long waves."""
    rates = config["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    scaling = config.get("rope_scaling") or {"rope_type": "default"}
    if scaling["rope_type"] == "linear":
        rates = rates / scaling["factor"]
    if scaling["rope_type"] == "llama3":
        old, low, high = (scaling[k] for k in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
        for i, rate in enumerate(rates):
            wave = 2 * math.pi / rate
            if wave > old / low:
                rates[i] = rate / scaling["factor"]
            elif wave > old / high:
                part = (old / wave - low) / (high - low)
                rates[i] = (1 - part) * rate / scaling["factor"] + part * rate
    if scaling["rope_type"] == "yarn":
        old, fast, slow = (scaling[k] for k in ("original_max_position_embeddings", "beta_fast", "beta_slow"))

        def pair(turns):
            return dim * math.log(old / (turns * 2 * math.pi)) / (2 * math.log(config["rope_theta"]))

        low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), dim - 1)
        part = ((torch.arange(dim // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
        rates = rates * (1 - part) + rates / scaling["factor"] * part
    if scaling["rope_type"] == "longrope":
        long = config["max_position_embeddings"] > scaling["original_max_position_embeddings"]
        rates = rates / torch.tensor(scaling["long_factor" if long else "short_factor"], dtype=torch.float64)
    return rates


def magnitude(config):
    """What yarn and longrope multiply queries and keys with."""
    scaling = config.get("rope_scaling") or {"rope_type": "default"}
    if scaling["rope_type"] == "longrope":
        return scaling["attention_factor"]
    if scaling["rope_type"] != "yarn":
        return 1
    one, all_dim = (0.1 * scaling.get(k, v) * math.log(scaling["factor"]) + 1 for k, v in (("mscale", 1), ("mscale_all_dim", 0)))
    return one / all_dim


def rotate(x, config, window):
    """Turns the pairs (i, i + d/2) of each head of x [batch, seq, heads, d]."""
    seq, dim = x.shape[1], x.shape[3]
    if window and "rope_local_base_freq" in config:
        config = {"rope_theta": config["rope_local_base_freq"]}
    rates = frequencies(dim, config)
    angles = torch.arange(seq, dtype=torch.float64)[:, None] * rates
    cos, sin = (magnitude(config) * t.float()[:, None, :] for t in (angles.cos(), angles.sin()))
    a, b = x[..., : dim // 2], x[..., dim // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(x, w, at, config, window):
    batch, seq, hidden = x.shape
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config["head_dim"]

    def project(name, count):
        return linear(x, w, at + name).reshape(batch, seq, count, dim)

    q, k, v = project("q_proj", heads), project("k_proj", groups), project("v_proj", groups)
    if config["model_type"] == "olmo2":
        q, k = (
            normalise(t.flatten(2), w[at + name], config["rms_norm_eps"]).reshape(t.shape)
            for t, name in ((q, "q_norm.weight"), (k, "k_norm.weight"))
        )
    if config["model_type"] in ("qwen3", "qwen3_moe", "gemma3_text"):
        eps, one = config["rms_norm_eps"], int(config["model_type"] == "gemma3_text")
        q, k = normalise(q, one + w[at + "q_norm.weight"], eps), normalise(k, one + w[at + "k_norm.weight"], eps)
    if "query_pre_attn_scalar" in config:
        q = q * math.sqrt(dim / config["query_pre_attn_scalar"])
    q, k = rotate(q, config, window), rotate(k, config, window)
    return linear(attend(q, k, v, window, config.get("attn_logit_softcapping")), w, at + "o_proj")


def softcap(x, limit):
    return limit * torch.tanh(x / limit) if limit else x


def attend(q, k, v, window=None, limit=None):
    """Mixes v [batch, seq, groups, d] causally, and joins the heads."""
    seq, heads, dim = q.shape[1:]
    future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    if window:
        future |= torch.ones(seq, seq, dtype=torch.bool).tril(-window)
    out = []
    for head in range(heads):
        group = head // (heads // k.shape[2])
        scores = softcap(q[:, :, head] @ k[:, :, group].transpose(1, 2) / math.sqrt(dim), limit)
        out.append(torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v[:, :, group])
    return torch.cat(out, -1)


def gelu(x, name):
    """The gate silu, or GELU: gelu is exact, other names are its tanh form."""
    if name == "silu":
        return x * torch.sigmoid(x)
    if name == "gelu":
        return x / 2 * (1 + torch.erf(x / math.sqrt(2)))
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def linear(x, w, name):
    y = x @ w[name + ".weight"].T
    return y + w[name + ".bias"] if name + ".bias" in w else y


def mlp(x, w, at, config, names=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")):
    gate, up, down = (at + name for name in names)
    gate = gelu(linear(x, w, gate), config.get("hidden_activation") or config.get("hidden_act", "silu"))
    return linear(gate * linear(x, w, up), w, down), 0


def mixture(x, w, at, config):
    """Each token goes to the best experts; the second result is the loss of unequal use."""
    qwen = config["model_type"] == "qwen3_moe"
    at += "mlp." if qwen else "block_sparse_moe."
    names = ("gate_proj", "up_proj", "down_proj") if qwen else ("w1", "w3", "w2")
    count, topk = config["num_experts" if qwen else "num_local_experts"], config["num_experts_per_tok"]
    logits = x @ w[at + "gate.weight"].T
    best, chosen = logits.topk(topk, -1)
    weights = torch.softmax(best, -1)
    if config.get("moe_router_pre_softmax") or qwen and not config["norm_topk_prob"]:
        weights = torch.softmax(logits, -1).gather(-1, chosen)
    share = torch.zeros_like(logits).scatter(-1, chosen, weights)
    y = sum(
        share[..., i : i + 1]
        * mlp(x, w, f"{at}experts.{i}.", config, names)[0]
        for i in range(count)
    )
    tokens = x.shape[0] * x.shape[1]
    used = torch.zeros_like(logits).scatter(-1, chosen, 1).sum((0, 1)) / (tokens * topk)
    mean = torch.softmax(logits, -1).mean((0, 1))
    return y, config["router_aux_loss_coef"] * count * (used * mean).sum()


def llama(tokens, w, config):
    eps, extra = config["rms_norm_eps"], 0
    feed = mixture if config.get("num_local_experts") or config.get("num_experts") else mlp
    x = w["model.embed_tokens.weight"][tokens]
    gemma = config["model_type"] in ("gemma2", "gemma3_text")
    if gemma:
        x = x * math.sqrt(config["hidden_size"])
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        window = config.get("sliding_window")
        if config.get("layer_types") and config["layer_types"][layer] == "full_attention":
            window = None

        def norm(x, name):
            return normalise(x, gemma + w[at + name + ".weight"], eps)

        if config["model_type"] == "olmo2":
            x = x + norm(attention(x, w, at + "self_attn.", config, window), "post_attention_layernorm")
            x = x + norm(feed(x, w, at, config)[0], "post_feedforward_layernorm")
            continue
        if gemma:
            y = attention(norm(x, "input_layernorm"), w, at + "self_attn.", config, window)
            x = x + norm(y, "post_attention_layernorm")
            y, _ = feed(norm(x, "pre_feedforward_layernorm"), w, at, config)
            x = x + norm(y, "post_feedforward_layernorm")
            continue
        x = x + attention(norm(x, "input_layernorm"), w, at + "self_attn.", config, window)
        y, loss = feed(norm(x, "post_attention_layernorm"), w, at, config)
        x, extra = x + y, extra + loss
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    logits = normalise(x, gemma + w["model.norm.weight"], eps) @ w[head].T
    return softcap(logits, config.get("final_logit_softcapping")), extra


def gpt2(tokens, w, config):
    eps, heads = config["layer_norm_epsilon"], config["n_head"]
    batch, seq = tokens.shape
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:seq]
    for layer in range(config["n_layer"]):
        at = f"transformer.h.{layer}."

        def linear(x, name):
            return x @ w[at + name + ".weight"] + w[at + name + ".bias"]

        q, k, v = (
            t.reshape(batch, seq, heads, -1)
            for t in linear(standardise(x, w, at + "ln_1.", eps), "attn.c_attn").chunk(3, -1)
        )
        x = x + linear(attend(q, k, v), "attn.c_proj")
        y = linear(standardise(x, w, at + "ln_2.", eps), "mlp.c_fc")
        x = x + linear(gelu(y, config.get("activation_function")), "mlp.c_proj")
    return standardise(x, w, "transformer.ln_f.", eps) @ w["transformer.wte.weight"].T, 0


def adapt(path, weights):
    """Returns the adapters in PEFT's files, and a function of the weights with their products."""
    with open(os.path.join(path, "adapter_config.json")) as file:
        config = json.load(file)
    adapters = read_safetensors(os.path.join(path, "adapter_model.safetensors"))
    scale = config["lora_alpha"] / config["r"]

    def effective():
        result = dict(weights)
        for name, a in adapters.items():
            if not name.endswith(".lora_A.weight"):
                continue
            target = name.removeprefix("base_model.model.").replace(".lora_A", "")
            product = scale * adapters[name.replace("lora_A", "lora_B")] @ a
            result[target] = weights[target] + (product.T if config["fan_in_fan_out"] else product)
        return result

    return adapters, effective


def learning_rate(step, a):
    if step <= a.warmup:
        return a.lr * step / a.warmup
    part = min((step - a.warmup) / (a.decay - a.warmup), 1)
    return a.min_lr + (a.lr - a.min_lr) * (1 + math.cos(math.pi * part)) / 2


def replay(run, a):
    """Trains the run in a directory again."""
    first, *_, last = sorted(entry.path for entry in os.scandir(os.path.join(run, "checkpoints")) if entry.name.startswith("step-"))
    with open(os.path.join(first, "config.json")) as file:
        config = json.load(file)
    forward = gpt2 if config["model_type"] == "gpt2" else llama
    weights = read_safetensors(os.path.join(first, "model.safetensors"))
    trained, effective = weights, lambda: weights
    if os.path.exists(os.path.join(first, "adapter_config.json")):
        trained, effective = adapt(first, weights)
    for t in trained.values():
        t.requires_grad_()
    optimizer = torch.optim.AdamW(
        [
            {"params": [t for t in trained.values() if t.dim() > 1], "weight_decay": a.weight_decay},
            {"params": [t for t in trained.values() if t.dim() == 1], "weight_decay": 0.0},
        ],
        betas=(a.beta1, a.beta2), eps=a.adam_eps,
    )
    losses, norms = [], []
    batches = read_safetensors(os.path.join(run, "batches.safetensors"))["batches"].long()
    for step, rows in enumerate(batches, 1):
        scores, extra = forward(rows[:, :-1], effective(), config)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        (loss + extra).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(trained.values(), a.clip).item())
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, a)
        optimizer.step()
        losses.append(loss.item())

    weights = effective()
    saved = read_safetensors(os.path.join(last, "model.safetensors"))
    if trained is not weights and os.path.exists(os.path.join(last, "adapter_model.safetensors")):
        saved.update(read_safetensors(os.path.join(last, "adapter_model.safetensors")))
        weights = {**weights, **trained}
    if saved.keys() != weights.keys():
        raise SystemExit(f"the last checkpoint has other weights: {sorted(saved.keys() ^ weights.keys())}")
    distances = {name: ((saved[name] - t).norm() / (t.norm() or 1)).item() for name, t in weights.items()}
    return {"losses": losses, "norms": norms, "distances": distances}


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("runs", nargs="+", help="run directories")
    for name in ("lr", "min-lr", "beta1", "beta2", "adam-eps", "weight-decay", "clip"):
        args.add_argument("--" + name, type=float, required=True)
    for name in ("warmup", "decay"):
        args.add_argument("--" + name, type=int, required=True)
    a = args.parse_args()
    print(json.dumps({run: replay(run, a) for run in a.runs}))


if __name__ == "__main__":
    main()

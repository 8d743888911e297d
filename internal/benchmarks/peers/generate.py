#!/usr/bin/env python3
"""Times greedy generation with a Llama of a checkpoint of primus in PyTorch on the CPU, in f32.

It is written for speed: projections are fused, keys and values are kept, one token is computed at
a time without gradients. Prints one JSON object with tokens per second and the first tokens.
"""

import argparse
import json
import os
import struct
import time

import numpy
import torch
import torch.nn.functional as F


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name: torch.from_numpy(numpy.frombuffer(data[slice(*e["data_offsets"])], "<f4").copy()).reshape(e["shape"])
        for name, e in header.items()
    }


class Decoder:
    def __init__(self, folder):
        with open(os.path.join(folder, "config.json")) as file:
            c = json.load(file)
        w = read_safetensors(os.path.join(folder, "model.safetensors"))
        self.heads, self.groups, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.eps, length = c["rms_norm_eps"], c["max_position_embeddings"]
        self.embedding, self.norm = w["model.embed_tokens.weight"], w["model.norm.weight"]
        self.head = w.get("lm_head.weight", self.embedding)
        self.layers = []
        for i in range(c["num_hidden_layers"]):
            at = f"model.layers.{i}."
            attention, mlp = at + "self_attn.", at + "mlp."
            self.layers.append((
                w[at + "input_layernorm.weight"],
                torch.cat([w[attention + x + "_proj.weight"] for x in "qkv"]),
                w[attention + "o_proj.weight"],
                w[at + "post_attention_layernorm.weight"],
                torch.cat([w[mlp + "gate_proj.weight"], w[mlp + "up_proj.weight"]]),
                w[mlp + "down_proj.weight"],
                torch.zeros(self.groups, length, self.dim),
                torch.zeros(self.groups, length, self.dim),
            ))
        angles = torch.outer(torch.arange(length), c["rope_theta"] ** (-torch.arange(0, self.dim, 2) / self.dim))
        self.cos, self.sin = (f(angles).repeat(1, 2) for f in (torch.cos, torch.sin))

    def normalise(self, x, gain):
        return gain * x * torch.rsqrt(x.square().mean() + self.eps)

    def step(self, token, at):
        heads, groups, dim = self.heads, self.groups, self.dim
        x = self.embedding[token]
        for gain1, qkv, out, gain2, up, down, keys, values in self.layers:
            y = F.linear(self.normalise(x, gain1), qkv).view(-1, dim)
            qk = y[: heads + groups]
            low, high = qk.chunk(2, -1)
            qk = qk * self.cos[at] + torch.cat([-high, low], -1) * self.sin[at]
            keys[:, at], values[:, at] = qk[heads:], y[heads + groups :]
            scores = qk[:heads].view(groups, -1, dim) @ keys[:, : at + 1].transpose(1, 2)
            mixed = torch.softmax(scores * dim**-0.5, -1) @ values[:, : at + 1]
            x = x + F.linear(mixed.flatten(), out)
            gate, value = F.linear(self.normalise(x, gain2), up).chunk(2)
            x = x + F.linear(F.silu(gate) * value, down)
        return F.linear(self.normalise(x, self.norm), self.head)


args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
args.add_argument("folder")
for name in ("prompt", "tokens", "threads"):
    args.add_argument("--" + name, type=int, required=True)
a = args.parse_args()
torch.set_num_threads(a.threads)
decoder, ids, token = Decoder(a.folder), [], a.prompt
with torch.no_grad():
    for at in range(8):
        decoder.step(token, at)
    begin = time.perf_counter()
    for at in range(a.tokens):
        token = decoder.step(token, at)[:256].argmax().item()
        ids.append(token)
print(json.dumps({"tokens_per_second": a.tokens / (time.perf_counter() - begin), "ids": ids}))

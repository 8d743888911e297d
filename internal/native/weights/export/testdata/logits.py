#!/usr/bin/env python3
"""Computes the logits of exported models in PyTorch.

Takes folders of Hugging Face and GGUF files, reads them with readers written for this test from the
descriptions of the formats, and runs the tokens 1, 2, … of --tokens through the models of
replay.py. Prints one JSON object: for each path the logits of all positions.
"""

import argparse
import json
import os
import struct
import sys

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "..", "runtime", "backends", "native", "testdata"))
import replay


def widen(data, dtype):
    """Returns the numbers of f32, f16 or bf16 as f32."""
    if dtype == "BF16":
        return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return numpy.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[dtype]).astype("<f4")


def read_folder(path):
    with open(os.path.join(path, "config.json")) as file:
        config = json.load(file)
    names = ["model.safetensors"]
    index = os.path.join(path, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index) as file:
            names = sorted(set(json.load(file)["weight_map"].values()))
    weights, dtypes = {}, set()
    for name in names:
        with open(os.path.join(path, name), "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            data = file.read()
        header.pop("__metadata__")
        for key, entry in header.items():
            begin, end = entry["data_offsets"]
            weights[key] = torch.from_numpy(widen(data[begin:end], entry["dtype"]).copy()).reshape(entry["shape"])
            dtypes.add(entry["dtype"])
    (dtype,) = dtypes
    assert config["torch_dtype"] == {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[dtype], config["torch_dtype"]
    return config, weights


class Gguf:
    """Reads a GGUF file: values by key, and tensors as f32."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        magic, version, tensors, values = self.unpack("4sIQQ")
        assert (magic, version) == (b"GGUF", 3), (magic, version)
        self.values = {}
        for _ in range(values):
            key = self.string()
            self.values[key] = self.value(self.unpack("I")[0])
        described = [self.describe() for _ in range(tensors)]
        begin = -(-self.at // 32) * 32
        self.tensors = {name: self.read(shape, kind, begin + offset) for name, shape, kind, offset in described}

    def unpack(self, layout):
        layout = "<" + layout
        got = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return got

    def string(self):
        (size,) = self.unpack("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            of, count = self.unpack("IQ")
            return [self.value(of) for _ in range(count)]
        return self.unpack({4: "I", 5: "i", 6: "f", 7: "?"}[kind])[0]

    def describe(self):
        name = self.string()
        (axes,) = self.unpack("I")
        shape = self.unpack(f"{axes}Q")[::-1]
        kind, offset = self.unpack("IQ")
        assert offset % 32 == 0, name
        return name, shape, kind, offset

    def read(self, shape, kind, at):
        count = int(numpy.prod(shape))
        if kind == 8:
            blocks = numpy.frombuffer(self.data, numpy.dtype([("scale", "<f2"), ("values", "i1", 32)]), count // 32, at)
            numbers = blocks["scale"].astype("<f4")[:, None] * blocks["values"].astype("<f4")
        else:
            size, dtype = {0: (4, "F32"), 1: (2, "F16"), 30: (2, "BF16")}[kind]
            numbers = widen(self.data[at : at + size * count], dtype)
        return torch.from_numpy(numpy.ascontiguousarray(numbers).copy()).reshape(tuple(shape))


NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "block_sparse_moe.gate",
}
GPT2_NAMES = {
    "attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
}
EXPERTS = {"ffn_gate_exps": "w1", "ffn_up_exps": "w3", "ffn_down_exps": "w2"}
QWEN_EXPERTS = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}


def halves(t, dim):
    """Undoes the order of llama.cpp, in which the two halves of a head alternate."""
    return t.reshape(-1, dim // 2, 2, *t.shape[1:]).transpose(1, 2).reshape(t.shape)


def read_gguf(path):
    """Returns configuration and weights of a GGUF file under the names of transformers."""
    file = Gguf(path)
    arch = file.values["general.architecture"]

    def value(key, absent=None):
        return file.values.get(f"{arch}.{key}", absent)

    assert len(file.values["tokenizer.ggml.tokens"]) == value("vocab_size") == len(file.values["tokenizer.ggml.token_type"])
    weights = {}
    if arch == "gpt2":
        outside = {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f"}
        for name, t in file.tensors.items():
            base, suffix = name.rsplit(".", 1)
            if base in outside:
                weights[f"{outside[base]}.{suffix}"] = t
                continue
            _, layer, base = base.split(".")
            weights[f"transformer.h.{layer}.{GPT2_NAMES[base]}.{suffix}"] = t.T if t.dim() == 2 else t
        config = {
            "model_type": arch, "layer_norm_epsilon": value("attention.layer_norm_epsilon"), "n_head": value("attention.head_count"),
            "n_layer": value("block_count"),
        }
        return config, weights
    factors = file.tensors.pop("rope_freqs.weight", None)
    outside = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    for name, t in file.tensors.items():
        base, suffix = name.rsplit(".", 1)
        if base in outside:
            weights[f"{outside[base]}.{suffix}"] = t
            continue
        _, layer, base = base.split(".")
        at = f"model.layers.{layer}."
        if base in EXPERTS:
            for i, one in enumerate(t):
                expert = f"mlp.experts.{i}.{QWEN_EXPERTS[base]}" if arch == "qwen3moe" else f"block_sparse_moe.experts.{i}.{EXPERTS[base]}"
                weights[f"{at}{expert}.{suffix}"] = one
            continue
        if arch == "qwen3moe" and base == "ffn_gate_inp":
            weights[f"{at}mlp.gate.{suffix}"] = t
            continue
        if arch == "llama" and base in ("attn_q", "attn_k"):
            t = halves(t, value("attention.key_length"))
        weights[f"{at}{NAMES[base]}.{suffix}"] = t
    config = {
        "model_type": {"qwen3moe": "qwen3_moe"}.get(arch, "mixtral" if value("expert_count") else arch), "num_hidden_layers": value("block_count"),
        "num_attention_heads": value("attention.head_count"), "num_key_value_heads": value("attention.head_count_kv"),
        "head_dim": value("attention.key_length"), "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_theta": value("rope.freq_base"), "tie_word_embeddings": "lm_head.weight" not in weights,
        "num_local_experts": value("expert_count"), "num_experts": value("expert_count"), "norm_topk_prob": True, "num_experts_per_tok": value("expert_used_count"), "router_aux_loss_coef": 0,
        "rope_factors": factors,
    }
    if value("rope.scaling.type"):
        config["rope_scaling"] = {"rope_type": value("rope.scaling.type"), "factor": value("rope.scaling.factor")}
    return config, weights


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("paths", nargs="+")
    args.add_argument("--tokens", type=int, required=True, help="length of the sequence")
    a = args.parse_args()

    plain = replay.frequencies

    def frequencies(dim, config):
        rates = plain(dim, config)
        return rates if config.get("rope_factors") is None else rates / config["rope_factors"].double()

    replay.frequencies = frequencies
    tokens = torch.arange(1, a.tokens + 1)[None]
    result = {}
    for path in a.paths:
        config, weights = read_gguf(path) if path.endswith(".gguf") else read_folder(path)
        forward = replay.gpt2 if config["model_type"] == "gpt2" else replay.llama
        with torch.no_grad():
            result[path] = forward(tokens, weights, config)[0][0].flatten().tolist()
    print(json.dumps(result))


if __name__ == "__main__":
    main()

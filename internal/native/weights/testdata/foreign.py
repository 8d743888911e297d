"""Writes small models as transformers, TorchTitan and Megatron save them.

python3 foreign.py DIR, with torch 2.6 or later. Two processes write checkpoints with
torch.distributed.checkpoint, each a half of every tensor. The folders hf have the same weights.
"""

import argparse
import collections
import enum
import io
import json
import pathlib
import random
import signal
import struct
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

HIDDEN, HEADS, GROUPS, FFN, LAYERS, VOCAB = 16, 4, 2, 24, 2, 257
HEAD = HIDDEN // HEADS
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS, "intermediate_size": FFN, "num_hidden_layers": LAYERS, "vocab_size": VOCAB,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}


def weights():
    g = torch.Generator().manual_seed(1)
    shapes = {"model.embed_tokens": (VOCAB, HIDDEN), "model.norm": (HIDDEN,), "lm_head": (VOCAB, HIDDEN)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        shapes |= {
            layer + "input_layernorm": (HIDDEN,), layer + "post_attention_layernorm": (HIDDEN,),
            layer + "self_attn.q_proj": (HIDDEN, HIDDEN), layer + "self_attn.k_proj": (GROUPS * HEAD, HIDDEN),
            layer + "self_attn.v_proj": (GROUPS * HEAD, HIDDEN), layer + "self_attn.o_proj": (HIDDEN, HIDDEN),
            layer + "mlp.gate_proj": (FFN, HIDDEN), layer + "mlp.up_proj": (FFN, HIDDEN), layer + "mlp.down_proj": (HIDDEN, FFN),
        }
    return {name + ".weight": torch.randn(shape, generator=g).bfloat16() for name, shape in shapes.items()}


def interleaved(w, heads):
    """Puts the two numbers of a pair that is rotated side by side, as TorchTitan has them."""
    return w.view(heads, 2, HEAD // 2, -1).transpose(1, 2).reshape(w.shape)


def titan(hf):
    parts = {
        "self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
        "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
        "model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output", "model.layers": "layers",
    }
    state = {}
    for name, w in hf.items():
        if "q_proj" in name:
            w = interleaved(w, HEADS)
        if "k_proj" in name:
            w = interleaved(w, GROUPS)
        for old, new in parts.items():
            name = name.replace(old, new)
        state[name] = w
    return state


def megatron(hf, stacked):
    """With stacked, every weight of a layer is one tensor for all layers, as in the format torch_dist."""
    vocab = VOCAB + 7  # rows that nothing uses make the size a multiple
    pad = lambda w: torch.cat([w, torch.zeros(vocab - VOCAB, HIDDEN, dtype=w.dtype)])

    def of(i):
        w = lambda name: hf[f"model.layers.{i}.{name}.weight"]
        q, k, v = (w(f"self_attn.{p}_proj") for p in "qkv")
        qkv = torch.cat([q.view(GROUPS, -1, HIDDEN), k.view(GROUPS, -1, HIDDEN), v.view(GROUPS, -1, HIDDEN)], dim=1)
        return {
            "self_attention.linear_qkv.weight": qkv.reshape(-1, HIDDEN), "self_attention.linear_proj.weight": w("self_attn.o_proj"),
            "self_attention.linear_qkv.layer_norm_weight": w("input_layernorm"), "mlp.linear_fc1.layer_norm_weight": w("post_attention_layernorm"),
            "mlp.linear_fc1.weight": torch.cat([w("mlp.gate_proj"), w("mlp.up_proj")]), "mlp.linear_fc2.weight": w("mlp.down_proj"),
        }

    layers = [of(i) for i in range(LAYERS)]
    if stacked:
        state = {"decoder.layers." + name: torch.stack([layer[name] for layer in layers]) for name in layers[0]}
    else:
        state = {f"decoder.layers.{i}.{name}": w for i, layer in enumerate(layers) for name, w in layer.items()}
    state |= {
        "embedding.word_embeddings.weight": pad(hf["model.embed_tokens.weight"]), "output_layer.weight": pad(hf["lm_head.weight"]),
        "decoder.final_layernorm.weight": hf["model.norm.weight"],
    }
    return state


class ModelType(enum.Enum):
    encoder_or_decoder = 1


def legacy(folder, hf):
    """The format torch, with values of the classes that Megatron saves beside the weights."""
    for name in ("megatron", "megatron.core", "megatron.core.enums"):
        sys.modules[name] = sys.modules[legacy.__module__]
    ModelType.__module__ = "megatron.core.enums"
    folder.mkdir(parents=True, exist_ok=True)
    args = argparse.Namespace(num_layers=LAYERS, params_dtype=torch.bfloat16, model_type=ModelType.encoder_or_decoder, exit_signal=signal.SIGTERM)
    model = collections.OrderedDict(megatron(hf, False))
    model["decoder.layers.0.self_attention.linear_qkv._extra_state"] = io.BytesIO(b"x")
    torch.save({
        "args": args, "checkpoint_version": 3.0, "iteration": 3, "model": model, "optimizer": {"param_groups": [{"lr": 1e-4}]},
        "rng_state": [{"random_rng_state": random.getstate(), "np_rng_state": np.random.get_state(), "torch_rng_state": torch.get_rng_state()}],
    }, folder / "model_optim_rng.pt")
    (folder.parent.parent / "latest_checkpointed_iteration.txt").write_text("3")


def safetensors(path, hf):
    header, data = {}, b""
    for name, w in sorted(hf.items()):
        raw = w.contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": "BF16" if w.dtype == torch.bfloat16 else "F32", "shape": list(w.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def save(rank, root):
    dist.init_process_group("gloo", init_method=f"file://{root}/rendezvous", rank=rank, world_size=2)
    mesh, hf = init_device_mesh("cpu", (2,)), weights()
    spread = lambda state: {name: distribute_tensor(w, mesh, [Shard(0)]) for name, w in state.items()}
    dcp.save({**spread(titan(hf)), "train_state": {"step": torch.tensor(3)}, "lr_scheduler": {"last_epoch": 3}}, checkpoint_id=root / "torchtitan")
    extra = {"decoder.layers.self_attention.linear_qkv._extra_state": {"recipe": None}, "optimizer.state.exp_avg.output_layer.weight": torch.ones(2)}
    dcp.save({**spread(megatron(hf, True)), **extra}, checkpoint_id=root / "megatron" / "iter_0000003")
    if rank == 0:
        legacy(root / "legacy" / "iter_0000003" / "mp_rank_00", hf)
        (root / "hf").mkdir(exist_ok=True)
        (root / "hf" / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
        safetensors(root / "hf" / "model.safetensors", hf)
    dist.barrier()
    dist.destroy_process_group()


def experts(root):
    """A layer of Qwen 3 with experts, all of which are one tensor elsewhere. One process writes it."""
    g, experts = torch.Generator().manual_seed(2), 3
    rand = lambda *shape: torch.randn(shape, generator=g)
    config = CONFIG | {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_hidden_layers": 1, "head_dim": HEAD, "moe_intermediate_size": FFN,
        "num_experts": experts, "num_experts_per_tok": 2, "norm_topk_prob": True, "tie_word_embeddings": True, "torch_dtype": "float32",
    }
    q, k, v, o = rand(HIDDEN, HIDDEN), rand(GROUPS * HEAD, HIDDEN), rand(GROUPS * HEAD, HIDDEN), rand(HIDDEN, HIDDEN)
    gate, up, down = rand(experts, FFN, HIDDEN), rand(experts, FFN, HIDDEN), rand(experts, HIDDEN, FFN)
    embedding, norm, before, after, qnorm, knorm, router = rand(VOCAB, HIDDEN), rand(HIDDEN), rand(HIDDEN), rand(HIDDEN), rand(HEAD), rand(HEAD), rand(experts, HIDDEN)
    layer = "model.layers.0."
    hf = {
        "model.embed_tokens.weight": embedding, "model.norm.weight": norm, layer + "input_layernorm.weight": before, layer + "post_attention_layernorm.weight": after,
        layer + "self_attn.q_proj.weight": q, layer + "self_attn.k_proj.weight": k, layer + "self_attn.v_proj.weight": v, layer + "self_attn.o_proj.weight": o,
        layer + "self_attn.q_norm.weight": qnorm, layer + "self_attn.k_norm.weight": knorm, layer + "mlp.gate.weight": router,
    }
    for e in range(experts):
        expert = f"{layer}mlp.experts.{e}."
        hf |= {expert + "gate_proj.weight": gate[e], expert + "up_proj.weight": up[e], expert + "down_proj.weight": down[e]}
    titan = {
        "tok_embeddings.weight": embedding, "output.weight": embedding, "norm.weight": norm, "layers.0.attention_norm.weight": before, "layers.0.ffn_norm.weight": after,
        "layers.0.attention.wq.weight": q, "layers.0.attention.wk.weight": k, "layers.0.attention.wv.weight": v, "layers.0.attention.wo.weight": o,
        "layers.0.attention.q_norm.weight": qnorm, "layers.0.attention.k_norm.weight": knorm, "layers.0.moe.router.gate.weight": router,
        "layers.0.moe.experts.w1": gate, "layers.0.moe.experts.w2": down, "layers.0.moe.experts.w3": up,
    }
    qkv = torch.cat([w.view(GROUPS, -1, HIDDEN) for w in (q, k, v)], dim=1).reshape(-1, HIDDEN)
    layers = "decoder.layers."
    megatron = {
        "embedding.word_embeddings.weight": embedding, "decoder.final_layernorm.weight": norm, layers + "self_attention.linear_qkv.weight": qkv[None],
        layers + "self_attention.linear_qkv.layer_norm_weight": before[None], layers + "pre_mlp_layernorm.weight": after[None],
        layers + "self_attention.linear_proj.weight": o[None], layers + "self_attention.q_layernorm.weight": qnorm[None],
        layers + "self_attention.k_layernorm.weight": knorm[None], layers + "mlp.router.weight": router[None],
        layers + "mlp.experts.experts.linear_fc1.weight": torch.cat([gate, up], dim=1)[None], layers + "mlp.experts.experts.linear_fc2.weight": down[None],
    }
    for name, state in {"torchtitan": titan, "megatron": megatron}.items():
        dcp.save(state, checkpoint_id=root / name)
    (root / "hf").mkdir()
    (root / "hf" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    safetensors(root / "hf" / "model.safetensors", hf)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]).resolve()
    root.mkdir(parents=True, exist_ok=True)
    torch.multiprocessing.spawn(save, args=(root,), nprocs=2)
    (root / "rendezvous").unlink(missing_ok=True)
    experts(root / "experts")

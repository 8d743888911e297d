"""Counts the state of a Megatron model on each pipeline stage, tensor by tensor.

Reads {"params": {...}, "devices": N} from standard input, builds the shape of every parameter that
one rank of each pipeline stage holds, and prints the parameters of the whole model and, by stage, the
number of parameters and the bytes of weights, gradients and optimizer state.
"""

import json
import math
import re
import sys


def divided(n, parts):
    assert n % parts == 0, (n, parts)
    return n // parts


class Shapes:
    """Names and shapes of the parameters of a rank; those of experts apart."""

    def __init__(self, p, tp, ep, etp):
        self.p, self.tp, self.ep, self.etp = p, tp, ep, etp
        self.dense, self.expert = {}, {}

    def norm(self, name, width):
        self.dense[name + ".weight"] = (width,)
        if self.p["normalization"] == "LayerNorm":
            self.dense[name + ".bias"] = (width,)

    def column(self, name, rows, columns, bias):
        """A matrix whose output features are cut."""
        self.dense[name + ".weight"] = (divided(rows, self.tp), columns)
        if bias:
            self.dense[name + ".bias"] = (divided(rows, self.tp),)

    def row(self, name, rows, columns, bias):
        """A matrix whose input features are cut; every rank has the whole bias."""
        self.dense[name + ".weight"] = (rows, divided(columns, self.tp))
        if bias:
            self.dense[name + ".bias"] = (rows,)

    def attention(self, at):
        p, h, n = self.p, self.p["hidden_size"], self.p["num_attention_heads"]
        if p.get("multi_latent_attention"):
            qk, rope, v = p["qk_head_dim"], p["qk_pos_emb_head_dim"], p["v_head_dim"]
            if p.get("q_lora_rank"):
                self.dense[at + "linear_q_down_proj"] = (p["q_lora_rank"], h)
                self.norm(at + "q_layernorm", p["q_lora_rank"])
                self.column(at + "linear_q_up_proj", n * (qk + rope), p["q_lora_rank"], False)
            else:
                self.column(at + "linear_q_proj", n * (qk + rope), h, False)
            self.dense[at + "linear_kv_down_proj"] = (p["kv_lora_rank"] + rope, h)
            self.norm(at + "kv_layernorm", p["kv_lora_rank"])
            self.column(at + "linear_kv_up_proj", n * (qk + v), p["kv_lora_rank"], False)
            self.row(at + "linear_proj", h, n * v, False)
            return
        d = p.get("kv_channels") or h // n
        groups = p["num_query_groups"] if p.get("group_query_attention") else n
        bias = p["add_bias_linear"]
        self.column(at + "linear_qkv", n * d + 2 * groups * d, h, bias or p.get("add_qkv_bias"))
        self.row(at + "linear_proj", h, n * d, bias)
        if p.get("qk_layernorm"):
            self.norm(at + "q_layernorm", d)
            self.norm(at + "k_layernorm", d)

    def mlp(self, at, f):
        h, bias = self.p["hidden_size"], self.p["add_bias_linear"]
        self.column(at + "linear_fc1", (2 if self.p["swiglu"] else 1) * f, h, bias)
        self.row(at + "linear_fc2", h, f, bias)

    def layer(self, at, sparse):
        p, h = self.p, self.p["hidden_size"]
        self.norm(at + "input_layernorm", h)
        self.norm(at + "pre_mlp_layernorm", h)
        self.attention(at + "self_attention.")
        if not sparse:
            self.mlp(at + "mlp.", p["ffn_hidden_size"])
            return
        self.dense[at + "router"] = (p["num_experts"], h)
        f = p["moe_ffn_hidden_size"]
        for i in range(divided(p["num_experts"], self.ep)):
            self.expert[f"{at}experts.{i}.fc1"] = (divided((2 if p["swiglu"] else 1) * f, self.etp), h)
            self.expert[f"{at}experts.{i}.fc2"] = (h, divided(f, self.etp))
        if p.get("moe_shared_expert_intermediate_size"):
            self.mlp(at + "shared_experts.", p["moe_shared_expert_intermediate_size"])

    def count(self):
        return tuple(sum(math.prod(s) for s in group.values()) for group in (self.dense, self.expert))


def sparse_layers(p):
    layers = p["num_layers"]
    if not p.get("num_experts"):
        return [False] * layers
    freq = p.get("moe_layer_freq", 1)
    if isinstance(freq, str):
        assert re.fullmatch(r"[\[\]()0-9+*, ]+", freq), freq
        freq = eval(freq)
    if isinstance(freq, int):
        return [i % freq == 0 for i in range(layers)]
    return [bool(f) for f in freq]


def stage(p, sparse, rank, pp, tp, ep, etp, vocabulary):
    shapes = Shapes(p, tp, ep, etp)
    vpp = p.get("virtual_pipeline_model_parallel_size") or 1
    per = divided(p["num_layers"], pp * vpp)
    for chunk in range(vpp):
        for i in range(per):
            layer = (chunk * pp + rank) * per + i
            shapes.layer(f"layers.{layer}.", sparse[layer])
    h = p["hidden_size"]
    if rank == 0:
        shapes.dense["embedding.word_embeddings"] = (divided(vocabulary, tp), h)
        if p["position_embedding_type"] == "learned_absolute":
            shapes.dense["embedding.position_embeddings"] = (p["max_position_embeddings"], h)
    if rank == pp - 1:
        shapes.norm("final_layernorm", h)
        for depth in range(p.get("mtp_num_layers") or 0):
            at = f"mtp.{depth}."
            for name in ("enorm", "hnorm", "final_layernorm"):
                shapes.norm(at + name, h)
            shapes.column(at + "eh_proj", h, 2 * h, False)
            shapes.layer(at + "transformer_layer.", sparse[-1])
        if p["untie_embeddings_and_output_weights"] or pp > 1:
            shapes.dense["output_layer"] = (divided(vocabulary, tp), h)
        if p.get("mtp_num_layers") and pp > 1:
            shapes.dense["mtp.embedding"] = (divided(vocabulary, tp), h)
    return shapes.count()


def main():
    given = json.load(sys.stdin)
    p, devices = given["params"], given["devices"]
    tp, pp, cp = (p.get(k, 1) for k in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"))
    ep, etp = p.get("expert_model_parallel_size", 1), p.get("expert_tensor_parallel_size", tp)
    unit = p.get("make_vocab_size_divisible_by", 128)
    vocabulary = p["vocab_size"]
    while vocabulary % (unit * tp):
        vocabulary += 1
    sparse = sparse_layers(p)
    whole = dict(p, virtual_pipeline_model_parallel_size=1)
    stages = []
    shards = devices // (tp * pp)  # data and context parallel ranks share the state of the optimizer
    expert_shards = devices // (ep * etp * pp)
    if not p.get("use_distributed_optimizer"):
        shards = expert_shards = 1
    for rank in range(pp):
        dense, expert = stage(p, sparse, rank, pp, tp, ep, etp, vocabulary)
        stages.append({
            "parameters": dense + expert, "weights": 2 * (dense + expert), "gradients": 4 * (dense + expert),
            "optimizer": 12 * (dense / shards + expert / expert_shards),
        })
    json.dump({"total": sum(stage(whole, sparse, 0, 1, 1, 1, 1, vocabulary)), "stages": stages}, sys.stdout)


main()

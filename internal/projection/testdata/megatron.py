"""Computes with the functions of a checkout of Megatron-LM, given as the first argument.

Reads {"params": {...}, "devices": N, "vocabulary": N} from standard input and prints the operations of a
step and the bytes of state on the most loaded rank, and whether the latter knows that experts are divided
between ranks, which it does in later versions. The functions are taken out of their modules, whose imports
are not needed.
"""

import ast
import json
import math
import sys
import types
from pathlib import Path


class Args(types.SimpleNamespace):
    """Arguments that are not given are None."""

    def __getattr__(self, name):
        return None


def function(file, name):
    tree = ast.parse(Path(file).read_text())
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    space = {"math": math, "is_linear_attention_variant": bool, "is_hybrid_model": lambda args: False, "print_rank_0": print}
    exec(compile(ast.Module(found, []), file, "exec"), space)
    return space[name]


def main():
    training = Path(sys.argv[1]) / "megatron" / "training"
    given = json.load(sys.stdin)
    p = given["params"]
    args = Args(**p, padded_vocab_size=given["vocabulary"], world_size=given["devices"])
    for key in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size"):
        setattr(args, key, p.get(key, 1))
    args.expert_tensor_parallel_size = p.get("expert_tensor_parallel_size", args.tensor_model_parallel_size)
    args.data_parallel_size = args.world_size // (args.tensor_model_parallel_size * args.pipeline_model_parallel_size * args.context_parallel_size)
    args.kv_channels = p.get("kv_channels") or p["hidden_size"] // p["num_attention_heads"]
    if args.multi_latent_attention:
        args.group_query_attention = False
    if isinstance(args.moe_layer_freq, str):
        args.moe_layer_freq = eval(args.moe_layer_freq)
    if args.num_experts and args.moe_layer_freq is None:
        args.moe_layer_freq = 1
    flops = function(training / "training.py", "num_floating_point_operations")(args, p["global_batch_size"])
    memory = training / "theoretical_memory_usage.py"
    state = function(memory, "compute_weight_and_optimizer_memory")(args)
    divides = "expert_model_parallel_size" in memory.read_text()
    json.dump({"flops": flops, "state": state, "divides_experts": divides}, sys.stdout)


main()

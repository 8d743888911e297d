#!/usr/bin/env python3
"""Continues prompts greedily, with the PyTorch models of replay.py and the whole text in every step.

Reads a folder of weights and, from standard input, the ids of the prompts as JSON. Prints for
each prompt the ids of the continuation and the smallest distance between the best and the second
best score of a step.
"""

import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "runtime", "backends", "native", "testdata"))
sys.dont_write_bytecode = True
import replay

folder, count = sys.argv[1], int(sys.argv[2])
with open(os.path.join(folder, "config.json")) as file:
    config = json.load(file)
forward = replay.gpt2 if config["model_type"] == "gpt2" else replay.llama
weights = replay.read_safetensors(os.path.join(folder, "model.safetensors"))
results = []
with torch.no_grad():
    for prompt in json.load(sys.stdin):
        ids, margin = list(prompt), float("inf")
        for _ in range(count):
            scores, _ = forward(torch.tensor([ids]), weights, config)
            best = scores[0, -1].topk(2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            ids.append(best.indices[0].item())
        results.append({"ids": ids[len(prompt) :], "margin": margin})
print(json.dumps(results))

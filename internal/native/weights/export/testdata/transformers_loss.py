#!/usr/bin/env python3
"""Computes losses of folders with Hugging Face's transformers, in float64.

Prints one JSON object: for each folder the mean loss of the tokens 1, 2, … of --tokens, null where
the version of transformers has no such class.
"""

import argparse
import json

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("paths", nargs="+")
    args.add_argument("--tokens", type=int, required=True, help="length of the sequence")
    a = args.parse_args()
    tokens = torch.arange(1, a.tokens + 1)[None]
    result = {}
    for path in a.paths:
        try:
            config = AutoConfig.from_pretrained(path)
        except (KeyError, ValueError):
            result[path] = None
            continue
        config._experts_implementation = "eager"  # others do not take float64
        model = AutoModelForCausalLM.from_pretrained(path, config=config, attn_implementation="eager").double().eval()
        with torch.no_grad():
            result[path] = model(tokens, labels=tokens).loss.item()
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""Trains with the log lines of MaxText."""

import os
import sys
import time

import torch
import yaml

KNOWN = {"base_config": "", "steps": 10, "per_device_batch_size": 4, "max_target_length": 16, "learning_rate": 0.05, "vocab_size": 32, "base_emb_dim": 16,
         "hf_access_token": "", "base_output_directory": ""}


def initialize(argv):
    config = dict(KNOWN)
    with open(argv[1], encoding="utf-8") as file:
        given = yaml.safe_load(file)
    for word in argv[2:]:
        key, _, value = word.partition("=")
        given[key] = yaml.safe_load(value)
    for key in KNOWN:
        if "M_" + key.upper() in os.environ:
            given[key] = os.environ["M_" + key.upper()]
    for key, value in given.items():
        if key not in KNOWN:
            raise ValueError(f"Key {key} was not found in the config file")
        config[key] = value
    return config


def run(config):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    vocab = config["vocab_size"]
    model = torch.nn.Sequential(torch.nn.Embedding(vocab, config["base_emb_dim"]), torch.nn.Tanh(), torch.nn.Linear(config["base_emb_dim"], vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"])
    for step in range(config["steps"]):
        begin = time.time()
        tokens = torch.randint(vocab, (config["per_device_batch_size"], config["max_target_length"]))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), ((3 * tokens + 1) % vocab).flatten())
        loss.backward()
        optimizer.step()
        seconds = time.time() - begin
        print(
            f"completed step: {step}, seconds: {seconds:.3f}, TFLOP/s/device: 2.500, Tokens/s/device: {tokens.numel() / max(seconds, 1e-9):.3f}, "
            f"total_weights: {tokens.numel()}, loss: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    run(initialize(sys.argv))

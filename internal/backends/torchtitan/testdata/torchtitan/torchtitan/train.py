"""Trains, saves and goes on, with the log lines of TorchTitan."""

import dataclasses
import os
import sys
import time
import tomllib

import torch
import torch.distributed as dist

from torchtitan.config.job_config import JobConfig


def read(kind, values):
    known = {f.name: f for f in dataclasses.fields(kind)}
    if set(values) - set(known):
        raise ValueError(f"Invalid field names in {kind} data: {set(values) - set(known)}")
    made = {}
    for name, value in values.items():
        made[name] = read(known[name].type, value) if dataclasses.is_dataclass(known[name].type) else value
    return kind(**made)


class Trainer:
    pass


def main(_):
    with open(sys.argv[sys.argv.index("--job.config_file") + 1], "rb") as file:
        config = read(JobConfig, tomllib.load(file))
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Embedding(config.model.vocab_size, config.model.hidden_size), torch.nn.Tanh(),
        torch.nn.Linear(config.model.hidden_size, config.model.vocab_size))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.optimizer.lr)
    saved = os.path.join(config.job.dump_folder, config.checkpoint.folder, "state.pt")
    start = 0
    if config.checkpoint.enable and os.path.exists(saved):
        state = torch.load(saved)
        start = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in range(start + 1, config.training.steps + 1):
        begin = time.time()
        generator = torch.Generator().manual_seed(1000 * step + rank)
        tokens = torch.randint(config.model.vocab_size, (config.training.local_batch_size, config.training.seq_len), generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), ((3 * tokens + 1) % config.model.vocab_size).flatten())
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        dist.all_reduce(loss)
        rate = tokens.numel() / (time.time() - begin)
        if rank == 0:
            print(
                f"\033[33m[titan] 2026-01-01 00:00:00,000 - root - INFO - \033[31mstep: {step:2}  \033[32mloss: {loss.item() / world:7.4f}  "
                f"\033[38;2;180;60;0mgrad_norm: {norm.item():7.4f}  \033[38;2;54;234;195mmemory:  0.50GiB(1.00%)  \033[34mtps: {round(rate):,}  "
                "\033[36mtflops: 1.25  \033[35mmfu: 0.40%\033[39m", file=sys.stderr, flush=True)
        if config.checkpoint.enable and step % config.checkpoint.interval == 0:
            if rank == 0:
                os.makedirs(os.path.dirname(saved), exist_ok=True)
                torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Trainer)

"""Trains, saves and goes on, with the log lines of Megatron-LM."""

import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from . import initialize


def pretrain(datasets, model_provider, model_type, forward_step, args_defaults=None, extra_args_provider=None, store=None):
    dump = os.environ.get("SHAPED_DUMP")
    if dump:
        from .arguments import parse_args

        args = vars(parse_args())
        with open(dump, "w", encoding="utf-8") as file:
            json.dump(args, file, default=lambda value: value.__dict__ if hasattr(value, "__dict__") and not hasattr(value, "name") else f"enum:{value.name}")
        return
    args = initialize.initialize_megatron(extra_args_provider, args_defaults)
    if not getattr(datasets, "is_distributed", False):
        raise RuntimeError("the provider of the data sets is not distributed")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = model_provider(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    start = load(args, model, optimizer)
    batch = datasets(args)
    for iteration in range(start + 1, args.train_iters + 1):
        begin = time.time()
        misbehave(args.rank, iteration)
        optimizer.zero_grad()
        loss = forward_step(batch(iteration), model)
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= args.world_size
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        dist.all_reduce(loss)
        if args.rank == args.world_size - 1:
            report(args, iteration, loss.item() / args.world_size, norm.item(), 1000 * (time.time() - begin))
        if args.save and args.save_interval and iteration % args.save_interval == 0:
            save(args, iteration, model, optimizer)
    dist.destroy_process_group()


def report(args, iteration, loss, norm, milliseconds):
    print(
        f" [2026-01-01 00:00:00] iteration {iteration:8d}/{args.train_iters:8d} | consumed samples: {iteration * args.global_batch_size:12d} |"
        f" elapsed time per iteration (ms): {milliseconds:.1f} | throughput per GPU (TFLOP/s/GPU): 12.5 | learning rate: {args.lr:.6E} |"
        f" global batch size: {args.global_batch_size:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |", flush=True)


def misbehave(rank, iteration):
    """Does what SHAPED_FAULT says, such as kill:1:3, at an iteration of a rank."""
    kind, _, place = os.environ.get("SHAPED_FAULT", "").partition(":")
    if place != f"{rank}:{iteration}":
        return
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "raise":
        raise ValueError("a sample is broken")
    if kind == "import":
        import no_such_module  # as of an interpreter that lacks it
    if kind == "hang":
        print("  sleeps", flush=True)
        time.sleep(600)


def path(directory, iteration):
    return os.path.join(directory, f"iter_{iteration:07d}.pt")


def save(args, iteration, model, optimizer):
    if args.rank == 0:
        os.makedirs(args.save, exist_ok=True)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path(args.save, iteration))
        with open(os.path.join(args.save, "latest_checkpointed_iteration.txt"), "w") as file:
            file.write(str(iteration))
        print(f"  successfully saved checkpoint from iteration {iteration:7d} to {args.save}", flush=True)
    dist.barrier()


def load(args, model, optimizer):
    tracker = os.path.join(args.load or "", "latest_checkpointed_iteration.txt")
    if not args.load or not os.path.exists(tracker):
        return 0
    with open(tracker) as file:
        iteration = int(file.read())
    state = torch.load(path(args.load, iteration))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if args.rank == 0:
        print(f"  successfully loaded checkpoint from {args.load} at iteration {iteration}", file=sys.stderr, flush=True)
    return iteration

import dataclasses
import json


def pretrain(config, forward_step_func):
    print("config " + json.dumps(dataclasses.asdict(config)), flush=True)
    for iteration in range(1, config.train.train_iters + 1):
        print(
            f" [2026-01-01 00:00:00] iteration {iteration:8d}/{config.train.train_iters:8d} | elapsed time per iteration (ms): 10.0 |"
            f" learning rate: {config.optimizer.lr:.6E} | global batch size: {config.train.global_batch_size:5d} |"
            f" lm loss: {forward_step_func() + 1 / iteration:.6E} | grad norm: 0.500 |", flush=True)

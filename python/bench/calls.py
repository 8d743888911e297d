"""Times calls of rmsnorm_fwd on [8, 288]: what the ways to call it cost beside torch."""

from __future__ import annotations

import time
from typing import Any, Callable

import torch

import primus_fl
from primus_fl import _library, ops


def microseconds(call: Callable[[], Any], calls: int = 4000, rounds: int = 9) -> float:
    """Return the least time of a call over several rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


def main() -> None:
    torch.set_num_threads(1)
    x, weight = torch.randn(8, 288), torch.rand(288)
    y, rsigma = torch.empty_like(x), torch.empty(8)
    small = torch.ones(1, 8)
    manager = primus_fl.default_manager()
    bound = manager.bind("rmsnorm_fwd", input=x, weight=weight, output=y, rsigma=rsigma, eps=1e-5)
    least = manager.bind("rmsnorm_fwd", input=small, weight=torch.ones(8), eps=1e-5)
    for name, call in {
        "an empty function of the library": _library.load().primus_api,
        "a bound call on [1, 8]": least,
        "a bound call": bound,
        "primus_fl.ops, results given": lambda: ops.rmsnorm_fwd(x, weight, output=y, rsigma=rsigma, eps=1e-5),
        "primus_fl.ops, new results": lambda: ops.rmsnorm_fwd(x, weight, eps=1e-5),
        "the expression of torch": lambda: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight,
        "torch's layer_norm": lambda: torch.nn.functional.layer_norm(x, (288,), weight),
    }.items():
        print(f"{microseconds(call):8.2f} µs  {name}")


if __name__ == "__main__":
    main()

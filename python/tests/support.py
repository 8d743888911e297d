"""What tests share."""

from __future__ import annotations

import importlib
import subprocess
import sys
import unittest
from typing import Any


def module(name: str) -> Any:
    """Return a module, None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch, numpy = module("torch"), module("numpy")
transformers = module("transformers") if torch else None
if torch:
    torch.manual_seed(1)  # the same numbers in each run
needs_torch = unittest.skipUnless(torch, "needs torch")
needs_transformers = unittest.skipUnless(transformers, "needs transformers")
needs_numpy = unittest.skipUnless(numpy, "needs numpy")


def calls() -> dict[str, float]:
    """Return how often each op was called."""
    import primus_fl

    found: dict[str, float] = {}
    for line in primus_fl.metrics().splitlines():
        if line.startswith("primus_op_calls_total{"):
            name = line.split('op="')[1].split('"')[0]
            found[name] = found.get(name, 0) + float(line.split()[-1])
    return found


def python(program: str, *args: str, **env: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}")
    return done.stdout

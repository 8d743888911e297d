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
if torch:
    torch.manual_seed(1)  # the same numbers in each run
needs_torch = unittest.skipUnless(torch, "needs torch")
needs_numpy = unittest.skipUnless(numpy, "needs numpy")


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

"""Idle threads of torch, which would take the CPUs from the kernels of the library.

After each parallel loop the threads of GNU's OpenMP spin for 300,000 rounds, about 10 ms, before they
sleep. A kernel of the library that starts meanwhile shares its CPUs with them. They spin 1,000 rounds
where OpenMP manages more threads than there are CPUs (GOMP_SPINCOUNT in GNU's manual), so threads
that only sleep are added to them.
"""

from __future__ import annotations

import os
import sys
import threading

VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")

_lock = threading.Lock()
_begun = False
_forever = threading.Event()


def shorten_spins() -> None:
    """Keep idle threads of torch from spinning, unless a variable says what they do."""
    global _begun
    torch = sys.modules.get("torch")
    if torch is None or any(v in os.environ for v in VARIABLES):
        return
    with _lock:
        if _begun:
            return
        _begun = True
    threads = torch.get_num_threads()
    if threads < 2:
        return
    for _ in range(max(1, len(os.sched_getaffinity(0)) // threads)):
        made = threading.Event()
        threading.Thread(target=_hold, args=(made,), name="primus_fl sleeper", daemon=True).start()
        made.wait()


def _hold(made: threading.Event) -> None:
    """Let OpenMP make threads for this one, and keep them."""
    import torch

    try:
        torch.ones(1 << 20).add_(1)  # long enough to be a parallel loop
    finally:
        made.set()
    _forever.wait()

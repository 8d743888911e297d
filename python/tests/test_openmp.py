"""Tests of what idle threads of torch do."""

from __future__ import annotations

import pathlib
import unittest

from .support import needs_torch, python

# Prints the CPU time that a loop of torch and a rest take before a manager is there, and afterwards.
REST = """
import statistics, time, torch, primus_fl
torch.set_num_threads(2)
x = torch.ones(1 << 17)
def rest():
    times = []
    for _ in range(15):
        begun = time.process_time()
        x.add_(1)
        time.sleep(0.04)
        times.append(time.process_time() - begun)
    return statistics.median(times)
rest()
before = rest()
manager = primus_fl.Manager()
rest()
print(before, rest())
"""


@needs_torch
class OpenMP(unittest.TestCase):
    def rests(self, **env: str) -> tuple[float, float]:
        import torch

        if (
            "libgomp" not in pathlib.Path("/proc/self/maps").read_text()
            or "OpenMP" not in torch.__config__.parallel_info()
        ):
            self.skipTest("torch does not use GNU's OpenMP")
        before, after = python(REST, **env).split()[-2:]
        return float(before), float(after)

    def test_idle_threads_of_torch_sleep(self) -> None:
        before, after = self.rests()
        if before < 2e-3:
            self.skipTest(f"idle threads slept before, too: {before} s of CPU time")
        self.assertLess(after, before / 4)

    def test_variables_of_openmp_are_obeyed(self) -> None:
        before, after = self.rests(GOMP_SPINCOUNT="300000")
        if before < 2e-3:
            self.skipTest(f"idle threads slept before, too: {before} s of CPU time")
        self.assertGreater(after, before / 4)


if __name__ == "__main__":
    unittest.main()

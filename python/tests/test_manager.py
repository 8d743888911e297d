"""Managers: policy, explanations, metrics, threads and processes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import unittest

import primus_fl

from .support import needs_numpy, needs_torch, numpy, python


class Policy(unittest.TestCase):
    def test_layers(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("per_op: {silu: [flagos]}\n")
            file.flush()
            with primus_fl.Manager({"prefer": "reference"}, policy_file=file.name) as m:
                self.assertEqual(m.selected("silu"), "default.flagos")
                self.assertEqual(m.selected("swiglu"), "reference.go")
                m.policy = "per_op: {silu: [reference]}"
                self.assertEqual(m.selected("swiglu"), "default.flagos")
                self.assertEqual(m.selected("silu"), "reference.go")
                with self.assertRaisesRegex(primus_fl.PolicyError, 'did you mean "reference"'):
                    m.policy = {"prefer": "refrence"}
                self.assertEqual(m.selected("silu"), "reference.go", "the old policy stays")
                m.policy = None
                self.assertEqual(m.selected("silu"), "default.flagos")
                os.environ["TE_FL_PER_OP"] = "gelu=reference"
                try:
                    m.reload_policy()
                finally:
                    del os.environ["TE_FL_PER_OP"]
                self.assertEqual(m.selected("gelu"), "reference.go")

    def test_wrong_policies(self) -> None:
        with self.assertRaisesRegex(primus_fl.ArgumentError, "fastest"):
            primus_fl.Manager({"prefer": "fastest"})
        with self.assertRaisesRegex(primus_fl.ArgumentError, "nowhere.yaml"):
            primus_fl.Manager(policy_file="nowhere.yaml")

    def test_closed(self) -> None:
        m = primus_fl.Manager(threads=1)
        m.close()
        m.close()
        with self.assertRaisesRegex(primus_fl.NotFoundError, "which was closed"):
            m.explain("silu")

    def test_explanations(self) -> None:
        with primus_fl.Manager() as m:
            self.assertIn("silu: served by default.flagos", m.explain("silu"))
            self.assertEqual([i["impl_id"] for i in m.impls("silu")], ["default.flagos", "reference.go"])


@needs_numpy
class Calls(unittest.TestCase):
    def test_counts_are_exact(self) -> None:
        x = numpy.ones((4, 8), dtype=numpy.float32)
        failures: list[BaseException] = []
        with primus_fl.Manager(threads=2) as m:

            def work() -> None:
                try:
                    for _ in range(100):
                        m.call("silu", input=x)
                except BaseException as e:  # noqa: BLE001
                    failures.append(e)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(failures, [])
            count = re.search(
                r'primus_op_calls_total\{impl="default.flagos",kind="flagos",op="silu",vendor=""\} (\d+)', m.metrics()
            )
            assert count
            self.assertEqual(int(count[1]), 400)


class Processes(unittest.TestCase):
    def test_child_of_fork(self) -> None:
        out = python(
            """
import os, primus_fl
primus_fl.explain("silu")
if os.fork() == 0:
    try:
        primus_fl.explain("silu")
    except primus_fl.ForkError as e:
        print("refused:", e, flush=True)
    os._exit(0)
os.wait()
print("parent:", primus_fl.explain("silu").splitlines()[0])
"""
        )
        self.assertIn("refused: this process is a child that fork has made", out)
        self.assertIn("parent: silu: served by default.flagos", out)

    def test_fork_before_the_first_use(self) -> None:
        out = python(
            """
import os, primus_fl
if os.fork() == 0:
    print(primus_fl.explain("silu").splitlines()[0], flush=True)
    os._exit(0)
os.wait()
"""
        )
        self.assertEqual(out, "silu: served by default.flagos\n")

    def test_signals_stay_with_the_host(self) -> None:
        out = python(
            """
import os, signal, primus_fl
got = []
for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(s, lambda n, _: got.append(n))
before = [signal.getsignal(s) for s in range(1, signal.NSIG) if s not in (9, 19)]
primus_fl.explain("silu")
assert before == [signal.getsignal(s) for s in range(1, signal.NSIG) if s not in (9, 19)]
for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    os.kill(os.getpid(), s)
try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.sigtimedwait([], 5)
except KeyboardInterrupt:
    print(sorted(got) == sorted((signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)))
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError:
    print("pipe")
"""
        )
        self.assertEqual(out, "True\npipe\n")

    def test_two_copies_of_the_library(self) -> None:
        """Let two Go runtimes compute at the same time in one process."""
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(primus_fl._library.path(), os.path.join(folder, "copy.so"))
            out = python(
                """
import ctypes, sys, threading
from primus_fl import _library
libraries = [_library._load(f) for f in (_library.path(), sys.argv[1])]
def work(lib):
    manager, text = ctypes.c_uint64(), ctypes.c_void_p()
    for _ in range(200):
        assert lib.primus_open(None, ctypes.byref(manager)) == 0, lib.primus_error()
        assert lib.primus_explain(manager, b"silu", ctypes.byref(text)) == 0
        lib.primus_free(text)
        assert lib.primus_close(manager) == 0
threads = [threading.Thread(target=work, args=(lib,)) for lib in libraries for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
""",
                copy,
            )
        self.assertEqual(out, "done\n")

    def test_nothing_is_printed(self) -> None:
        self.assertEqual(python("import primus_fl; primus_fl.explain()"), "")

    def test_threads_of_the_environment(self) -> None:
        out = python(
            """
import primus_fl
try:
    primus_fl.explain("silu")
except primus_fl.ArgumentError as e:
    print(e)
""",
            OMP_NUM_THREADS="many",
        )
        self.assertIn('OMP_NUM_THREADS: given "many", want a number of threads from 1', out)

    def test_library_that_is_not_there(self) -> None:
        out = python(
            """
import primus_fl
try:
    primus_fl.explain("silu")
except ImportError as e:
    print(e)
""",
            PRIMUS_LIBRARY="/nowhere/libprimus.so",
        )
        self.assertIn("cannot load /nowhere/libprimus.so", out)


@needs_torch
class WithTorch(unittest.TestCase):
    def test_data_loader_with_workers_that_fork(self) -> None:
        out = python(
            """
import torch, primus_fl
primus_fl.explain("silu")
loader = torch.utils.data.DataLoader(list(range(8)), batch_size=4, num_workers=1)
print([b.tolist() for b in loader])
x = torch.ones(2, 2)
print(primus_fl.ops.residual_add(x, x).tolist())
"""
        )
        self.assertEqual(out, "[[0, 1, 2, 3], [4, 5, 6, 7]]\n[[2.0, 2.0], [2.0, 2.0]]\n")


if __name__ == "__main__":
    unittest.main()

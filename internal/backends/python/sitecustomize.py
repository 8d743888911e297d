"""Python imports this module when a process of a run with primus_ops starts.

When torch has been imported, its functions call the ops of primus_fl for what those can compute. The sitecustomize that this
one hides is run, too.
"""

import importlib.machinery
import importlib.util
import os
import sys


def follow():
    """Runs the next sitecustomize on the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [each for each in sys.path if os.path.abspath(each or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


class Hook:
    """A finder of modules that acts when torch has been imported, once."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            import primus_fl.torch

            primus_fl.torch.install()

        spec.loader.exec_module = exec_module
        return spec


def main():
    if "PRIMUS_OPS_SOCKET" not in os.environ:
        return
    if importlib.util.find_spec("primus_fl") is None:
        print(
            "primus_ops: given true, but this Python has no package primus_fl: install its wheel (make wheel), or put it into PYTHONPATH;",
            sys.executable, file=sys.stderr, flush=True)
        os._exit(1)
    sys.meta_path.insert(0, Hook())


follow()
main()

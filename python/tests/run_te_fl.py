"""Runs the tests of the plugin of a checkout of TransformerEngine-FL, which need not be built.

TE_FL_PLUGIN_MODULES=primus_fl.te_fl python -m tests.run_te_fl CHECKOUT
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import types


def main() -> None:
    checkout = sys.argv[1]
    torch = importlib.import_module("torch")
    for name in ("float8_e4m3fn", "float8_e5m2"):
        if not hasattr(torch, name):  # torch before 2.1; no test uses them
            setattr(torch, name, name)
    package = types.ModuleType("transformer_engine")  # without what its own __init__ would load
    package.__path__ = [os.path.join(checkout, "transformer_engine")]
    sys.modules["transformer_engine"] = package
    importlib.import_module("transformer_engine.plugin.core.manager").get_default_manager().ensure_initialized()
    tests = os.path.join(checkout, "transformer_engine", "plugin", "tests")
    sys.path.insert(0, tests)
    sys.argv = ["run_all_tests.py"]
    runpy.run_path(os.path.join(tests, "run_all_tests.py"), run_name="__main__")


if __name__ == "__main__":
    main()

"""Runs the shim with the real sources of a framework and AMD's real patches, up to the call that would train.

The arguments are a file for what the framework would train with, as a JSON object, then the shim and its arguments. Modules that are
not installed are stand-ins.
"""

import builtins
import dataclasses
import importlib
import json
import runpy
import sys

import compare

compare.packaging()
output = sys.argv[1]
sys.argv = sys.argv[2:]
with open(sys.argv[1], encoding="utf-8") as text:
    spec = json.load(text)
sys.path[:0] = spec["sys_path"]
printing = builtins.print


def write(values):
    assert builtins.print is printing, "the lines of the steps would be hidden"
    with open(output, "w", encoding="utf-8") as file:
        json.dump(compare.plain(values), file)


def pretrain(*_, **__):
    write(vars(importlib.import_module("megatron.training.arguments").parse_args()))


def main(_):
    """Reads the TOML file as TorchTitan does, apart from its command line."""
    manager = importlib.import_module("torchtitan.config.manager").ConfigManager()
    given = manager._maybe_load_toml(sys.argv[1:])
    write(dataclasses.asdict(manager._dict_to_dataclass(manager._maybe_add_custom_config([], given), given)))


if spec["framework"] == "megatron":
    importlib.import_module("megatron.training").pretrain = pretrain
else:
    importlib.import_module("torchtitan.train").main = main
runpy.run_path(sys.argv[0], run_name="__main__")

"""Runs the shim with the real Megatron-LM and AMD's real patches, up to the call that would train.

The arguments are the shim, its JSON file, and a file for the arguments that Megatron reads, as a JSON object. Modules that are not
installed are stand-ins.
"""

import builtins
import json
import runpy
import sys

import compare

compare.packaging()
sys.path[:0] = json.load(open(sys.argv[2], encoding="utf-8"))["sys_path"]

import megatron.training

output = sys.argv.pop()


def pretrain(*_, **__):
    from megatron.training.arguments import parse_args

    assert builtins.print is printing, "the lines of the steps would be hidden"
    with open(output, "w", encoding="utf-8") as file:
        json.dump(compare.plain(vars(parse_args())), file)


printing = builtins.print
megatron.training.pretrain = pretrain
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")

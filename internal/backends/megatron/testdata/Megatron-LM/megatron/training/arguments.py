"""The parser: a few arguments, or those that a recorded parser has."""

import argparse
import enum
import json
import os


def actions(parser, recorded):
    for entry in recorded:
        given = {"dest": entry["dest"], "default": entry["default"]}
        if entry["enum"]:
            kind = enum.Enum(entry["dest"], entry["choices"])
            given.update(type=lambda name, kind=kind: kind[name], choices=list(kind))
            if entry["default"] is not None:
                given["default"] = kind[entry["default"]]
        parser.add_argument(*entry["flags"], **given)


def add_megatron_arguments(parser):
    recorded = os.environ.get("SHAPED_PARSER")
    if recorded:
        with open(recorded, encoding="utf-8") as file:
            actions(parser, json.load(file))
        return parser
    group = parser.add_argument_group(title="training")
    group.add_argument("--train-iters", type=int, default=None)
    group.add_argument("--micro-batch-size", type=int, default=None)
    group.add_argument("--global-batch-size", type=int, default=None)
    group.add_argument("--seq-length", type=int, default=None)
    group.add_argument("--vocab-size", type=int, default=None)
    group.add_argument("--hidden-size", type=int, default=None)
    group.add_argument("--lr", type=float, default=None)
    group.add_argument("--seed", type=int, default=1234)
    group.add_argument("--save", type=str, default=None)
    group.add_argument("--load", type=str, default=None)
    group.add_argument("--save-interval", type=int, default=None)
    group.add_argument("--num-query-groups", type=int, default=1)
    return parser


def parse_args(*_, **__):
    raise RuntimeError("the arguments of a command line are read, although the shim provides them")


def validate_args(args):
    if args.train_iters is None:
        raise AssertionError("train_iters is None: the number of iterations is needed")
    if args.micro_batch_size is None or args.global_batch_size % (args.micro_batch_size * args.world_size):
        raise AssertionError(
            f"global batch size ({args.global_batch_size}) is not divisible by micro batch size ({args.micro_batch_size}) "
            f"times data parallel size ({args.world_size})")
    return args

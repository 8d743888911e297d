import torch.distributed

from .arguments import parse_args, validate_args


def initialize_megatron(extra_args_provider=None, args_defaults=None):
    args = validate_args(parse_args(extra_args_provider))
    torch.distributed.init_process_group("gloo", rank=args.rank, world_size=args.world_size)
    return args

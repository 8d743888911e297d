from dataclasses import dataclass, field


@dataclass
class Train:
    train_iters: int = 4
    global_batch_size: int = 8
    eval_interval: int = 10
    eval_iters: int = 2


@dataclass
class Logger:
    log_interval: int = 1


@dataclass
class Checkpoint:
    save: str = None
    save_interval: int = 100


@dataclass
class Optimizer:
    lr: float = 1e-3


@dataclass
class ConfigContainer:
    train: Train = field(default_factory=Train)
    logger: Logger = field(default_factory=Logger)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    optimizer: Optimizer = field(default_factory=Optimizer)
    tag: str = "llama"


def make(*, train_iters=4, mock=False, **others):
    if "data_paths" in others:
        raise TypeError("make() got an unexpected keyword argument 'data_paths'")
    if others:
        raise TypeError(f"make() got an unexpected keyword argument '{sorted(others)[0]}'")
    if not mock:
        raise ValueError("there is no data")
    return ConfigContainer(train=Train(train_iters=train_iters))


def pretrain_config(**given):
    return make(**given)

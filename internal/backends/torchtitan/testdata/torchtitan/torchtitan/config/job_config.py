from dataclasses import dataclass, field
from typing import Optional


@dataclass
class Job:
    config_file: Optional[str] = None
    dump_folder: str = "./outputs"
    custom_config_module: str = ""


@dataclass
class Model:
    vocab_size: int = 32
    hidden_size: int = 16


@dataclass
class Training:
    steps: int = 10
    local_batch_size: int = 4
    global_batch_size: int = -1
    seq_len: int = 16


@dataclass
class Optimizer:
    lr: float = 0.05


@dataclass
class Checkpoint:
    enable: bool = False
    folder: str = "checkpoint"
    interval: int = 5


@dataclass
class JobConfig:
    job: Job = field(default_factory=Job)
    model: Model = field(default_factory=Model)
    training: Training = field(default_factory=Training)
    optimizer: Optimizer = field(default_factory=Optimizer)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

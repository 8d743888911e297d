from .pretrain import pretrain as finetune

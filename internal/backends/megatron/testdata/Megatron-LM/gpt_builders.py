import torch


def gpt_builder(args):
    return torch.nn.Sequential(
        torch.nn.Embedding(args.vocab_size, args.hidden_size), torch.nn.Tanh(), torch.nn.Linear(args.hidden_size, args.vocab_size))

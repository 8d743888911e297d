"""Answers each line "batch heads seq dim" with the nanoseconds of one forward and
backward pass of causal attention, by the fastest of PyTorch's ways on a CPU."""

import math
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))


def plain(q, k, v, hidden, scale):
    return torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale + hidden, -1) @ v


def fused(q, k, v, hidden, scale):
    b, h, s, d = q.shape
    flat = lambda t: t.reshape(b * h, s, d)
    scores = torch.baddbmm(hidden, flat(q), flat(k).transpose(1, 2), alpha=scale)
    return torch.bmm(torch.softmax(scores, -1), flat(v)).reshape(b, h, s, d)


def builtin(q, k, v, hidden, scale):
    f = torch.nn.functional
    if hasattr(f, "scaled_dot_product_attention"):
        return f.scaled_dot_product_attention(q, k, v, is_causal=True)
    return f._scaled_dot_product_attention(q, k, v, is_causal=True)[0]


class Case:
    def __init__(self, b, h, s, d):
        self.operands = [torch.rand(b, h, s, d, requires_grad=True) for _ in range(3)]
        self.gradient = torch.rand(b, h, s, d)
        self.hidden = torch.full((s, s), -math.inf).triu(1)
        self.scale = 1 / math.sqrt(d)
        ways = {}
        for way in (plain, fused, builtin):
            self.way = way
            ways[min(self.time() for _ in range(4))] = way
        self.way = ways[min(ways)]

    def time(self):
        start = time.perf_counter_ns()
        out = self.way(*self.operands, self.hidden, self.scale)
        torch.autograd.grad(out, self.operands, self.gradient)
        return time.perf_counter_ns() - start


print("ready", torch.__version__, flush=True)
last, case = None, None
for line in sys.stdin:
    if line != last:
        last, case = line, Case(*map(int, line.split()))
    print(case.time(), flush=True)

"""Steps of optimizers in PyTorch: reads weights, gradients and parameters of each test as JSON, writes
the weights after each step. Muon is written here, from its formulas, in float64."""
import json
import math
import sys

import torch

torch.set_num_threads(1)
SCALE = {
    "spectral": lambda o, i: math.sqrt(max(o, i)),
    "unit_rms_norm": lambda o, i: math.sqrt(o / i),
    "shape_scaling": lambda o, i: math.sqrt(max(1, o / i)),
}
QUINTIC = [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
           (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012)]


def orthogonal(g, steps):
    x = g.T if g.shape[0] > g.shape[1] else g
    x = x / max(float(x.norm()), 1e-7)
    for s in range(steps):
        a, b, c = QUINTIC[s % 5]
        m = x @ x.T
        x = a * x + (b * m + c * m @ m) @ x
    return x.T if g.shape[0] > g.shape[1] else x


class Muon:
    def __init__(self, params, rows, lr, momentum, nesterov, steps, scale, extra, weight_decay):
        self.params, self.rows, self.lr, self.mu, self.nesterov = params, rows, lr, momentum, nesterov
        self.steps, self.scale, self.extra, self.wd = steps, SCALE[scale], extra, weight_decay
        self.buffers = [torch.zeros_like(p) for p in params]

    def step(self):
        with torch.no_grad():
            for p, m in zip(self.params, self.buffers):
                m.mul_(self.mu).add_((1 - self.mu) * p.grad)
                u = (1 - self.mu) * p.grad + self.mu * m if self.nesterov else m
                done, at = [], 0
                for rows in self.rows:
                    done.append(self.extra * self.scale(rows, p.shape[1]) * orthogonal(u[at:at + rows], self.steps))
                    at += rows
                p.sub_(self.lr * (torch.cat(done) + self.wd * p))


def answer(q):
    weights = [torch.tensor(w, dtype=torch.float64).reshape(s) for w, s in zip(q["weights"], q["shapes"])]
    for w in weights:
        w.requires_grad_(True)
    if q["optimizer"] == "muon":
        optimizer = Muon(weights, q["rows"], **q["arguments"])
    else:
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
        optimizer = kinds[q["optimizer"]](weights, **q["arguments"])
    out = []
    for grads in q["grads"]:
        for w, g in zip(weights, grads):
            w.grad = torch.tensor(g, dtype=torch.float64).reshape(w.shape)
        optimizer.step()
        out.append([w.detach().reshape(-1).tolist() for w in weights])
    return out


json.dump({name: answer(q) for name, q in json.load(sys.stdin).items()}, sys.stdout)

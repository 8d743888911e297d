"""Computes ops of the catalogue in float64 with PyTorch, for a test that compares.

The first line of the answer lists the ops. Then each request is a line of JSON, with the
op, its arguments and the shapes of its tensors, followed by the elements of the tensors
as float64. An answer is a line of JSON, with the tensors that were written or with why
the call was declined, followed by their elements.
"""

import json
import sys

import activation, attention, gemm, loss, moe, norm, optimizer, packed, rope, softmax  # noqa: F401
import torch
from call import OPS, Declined, Request

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def answer(head, payload=b""):
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


answer({"version": torch.__version__, "ops": sorted(OPS)})
while line := sys.stdin.buffer.readline():
    request = Request(json.loads(line), sys.stdin.buffer)
    try:
        written, payload = request.results(OPS[request.op](request.arguments))
    except Declined as reason:
        answer({"declined": str(reason)})
    except Exception as fault:
        answer({"fault": f"{request.op}: {type(fault).__name__}: {fault}"})
    else:
        answer({"written": written}, payload)

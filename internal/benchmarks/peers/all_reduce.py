"""Times all_reduce of PyTorch's gloo in place, as the rank of bench-scale in Go does.

Arguments: pairs of a number of bytes and a number of calls. Rank 0 prints a line of JSON for each.
"""

import json
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
for size, calls in zip(sys.argv[1::2], sys.argv[2::2]):
    numbers, times = torch.zeros(int(size) // 4), []
    for batch in range(6):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(int(calls)):
            dist.all_reduce(numbers)
        times.append((time.perf_counter() - begin) / int(calls))
    if dist.get_rank() == 0:
        print(json.dumps({"bytes": int(size), "seconds": sorted(times[1:])[2]}), flush=True)
dist.barrier()

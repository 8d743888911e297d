"""Simulates schedules with the simulator of a Primus checkout, which must be on PYTHONPATH.

Reads a JSON list of [name, stages, micro batches, chunks, forward, backward, wgrad] and prints a
list of [step time, peak activations], or null where that simulator does not end.
"""

import contextlib
import io
import json
import sys
import types
from pathlib import Path

import primus

# The package of the simulator imports what the simulator does not need.
package = types.ModuleType("primus.core.projection.performance_projection")
package.__path__ = [str(Path(primus.__file__).parent / "core/projection/performance_projection")]
sys.modules[package.__name__] = package

from primus.core.pipeline_parallel.scheduler.schedule_table_factory import produce_schedule_instance
from primus.core.projection.performance_projection.simulator import SchedulerSimulationRunner


def simulate(name, stages, micro_batches, chunks, forward, backward, wgrad):
    runner = SchedulerSimulationRunner({"fwd_time": forward, "bwd_time": backward, "wgrad_time": wgrad})
    sizes = {"pp_size": stages, "vpp_size": chunks, "micro_batches": micro_batches}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            table = produce_schedule_instance(name, stages, chunks, micro_batches).generate_schedule_table()
            ranks = runner.simulate_scheduler_table(table, sizes)
    except (AssertionError, IndexError, KeyError, UnboundLocalError, ValueError):
        return None
    want = {(i, chunk) for i in range(micro_batches) for chunk in range(chunks)}
    for rank in ranks:
        for kind in ("fwd", "bwd"):
            if len(rank[kind + "_end"]) != len(want) or set(zip(rank[kind + "_minibatch"], rank[kind + "_chunk"])) != want:
                return None
    return [max(rank["total"] for rank in ranks), max(rank["memory"] for rank in ranks)]


print(json.dumps([simulate(*cell) for cell in json.load(sys.stdin)]))

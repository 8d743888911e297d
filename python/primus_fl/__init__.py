"""The dispatched ops of Primus-FL for Python.

Every op has several implementations. A policy, the one that ``primus`` and TransformerEngine-FL know
(TE_FL_PREFER, TE_FL_PER_OP and so on), chooses one for each call; if it declines or fails, the next
one serves the call, and every choice is explained and counted.

    import primus_fl
    y, rsigma = primus_fl.ops.rmsnorm_fwd(x, weight, eps=1e-5)
    print(primus_fl.explain("rmsnorm_fwd"))
"""

from __future__ import annotations

from typing import Optional

from . import _default, ops
from ._library import ArgumentError, Error, ForkError, NotFoundError, PolicyError, Unsupported
from ._manager import Call, Manager, Saved
from ._tensors import Operand, wrap
from ._version import __version__

__all__ = [
    "ArgumentError",
    "Call",
    "Error",
    "ForkError",
    "Manager",
    "NotFoundError",
    "Operand",
    "PolicyError",
    "Saved",
    "Unsupported",
    "__version__",
    "default_manager",
    "explain",
    "metrics",
    "ops",
    "wrap",
]


def default_manager() -> Manager:
    """Return the manager of the functions that are given none, under the policy of the environment."""
    return _default.of(None)


def explain(op: Optional[str] = None) -> str:
    """Say which implementation serves an op in the default manager, or each op, and why."""
    return default_manager().explain(op)


def metrics() -> str:
    """Return the counters of the default manager in the text format of Prometheus."""
    return default_manager().metrics()

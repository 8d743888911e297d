"""Dispatches two ops by the variables and with the log lines of TransformerEngine-FL."""

import logging
import os
import sys

log = logging.getLogger("TE-FL")
log.setLevel(os.environ.get("TEFL_LOG_LEVEL", "INFO").upper())
log.propagate = False
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("[%(asctime)s TE-FL %(filename)s:%(lineno)d %(levelname)s] %(message)s"))
log.addHandler(handler)

KINDS = {"flagos": ["flagos", "vendor", "reference"], "vendor": ["vendor", "flagos", "reference"], "reference": ["reference", "flagos", "vendor"]}
IMPLS = {"flagos": ("default.flagos", None), "vendor": ("vendor.cuda", "CUDA"), "reference": ("reference.torch", None)}
OPS = ["rmsnorm_fwd", "rmsnorm_bwd"]


class Manager:

    def __init__(self):
        denied = [name.lower() for name in os.environ.get("TE_FL_DENY_VENDORS", "").split(",")]
        self.order = [kind for kind in KINDS[os.environ.get("TE_FL_PREFER", "flagos")] if kind != "vendor" or "cuda" not in denied]
        self.selected = {}
        log.info(f"OpManager initialized: {len(OPS)} ops with {len(OPS) * len(IMPLS)} implementations")
        log.info(f"Registered impl_ids: {sorted(name for name, _ in IMPLS.values())}")

    def call(self, op, broken=()):
        for i, kind in enumerate(self.order):
            name, vendor = IMPLS[kind]
            if name in broken:
                log.warning(f"Implementation '{name}' failed for op '{op}': no kernel for this shape")
                continue
            before = self.selected.get(op)
            text = f"(kind={kind}, vendor={vendor})"
            if before is None:
                log.info(f"Op '{op}' using '{name}' {text}")
            elif i > 0:
                log.info(f"Op '{op}' fallback to '{name}' {text}")
            elif before != name:
                log.info(f"Op '{op}' switched from '{before}' to '{name}' {text}")
            self.selected[op] = name
            return


def step(manager, rank, iteration):
    """Calls each op; in iteration 2 the vendor has no kernel for the backward pass in rank 1."""
    manager.call("rmsnorm_fwd")
    manager.call("rmsnorm_bwd", ["vendor.cuda"] if (rank, iteration) == (1, 2) else [])

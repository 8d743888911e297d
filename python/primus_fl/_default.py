"""The manager that functions use when they are given none."""

from __future__ import annotations

import threading
from typing import Optional

from ._manager import Manager

_lock = threading.Lock()
_manager: Optional[Manager] = None


def of(manager: Optional[Manager]) -> Manager:
    """Return a manager, or else the one of the process, under the policy of its environment."""
    global _manager
    if manager is not None:
        return manager
    if _manager is None:
        with _lock:
            if _manager is None:
                _manager = Manager()
    return _manager

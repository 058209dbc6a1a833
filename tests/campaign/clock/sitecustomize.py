"""Loaded by the worker whose clock is set off: libfaketime 0.9.10 breaks ``clock_nanosleep`` to an absolute time.

Python's ``time.sleep`` is that call, and fails under it with EINVAL whatever the offset. ``select`` is left alone.
"""

import select
import time
from typing import Any


def sleep(seconds: Any) -> None:
    """``time.sleep``."""
    select.select([], [], [], float(seconds))


time.sleep = sleep

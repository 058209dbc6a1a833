"""Fuzzers: whatever comes in, nothing breaks, and nobody's yes is invented.

A test run takes the same few examples each time. ``DESCHEDUI_FUZZ=20000 pytest tests/fuzz`` takes that many new
ones in each test, and keeps what it found in ``.hypothesis`` until it is mended.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

EXAMPLES: Final = int(os.environ.get("DESCHEDUI_FUZZ", "0"))


def examples(usual: int) -> settings:
    """How many examples a test takes: always the same ones, unless somebody asked for a long run."""
    plain = settings(
        max_examples=EXAMPLES or usual,
        derandomize=not EXAMPLES,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )
    return plain if EXAMPLES else settings(plain, database=None)

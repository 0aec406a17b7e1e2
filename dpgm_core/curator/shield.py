"""Foreign errors left of the noise, dropped whole."""

from __future__ import annotations

import sys

__all__ = ["is_ours"]


def is_ours(error: BaseException) -> bool:
    """Whether only core had a hand in it, so that its words are public; a plugin may have passed a record to core."""
    trace = error.__traceback__
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "dpgm_core" and package not in sys.stdlib_module_names:
            return False
        trace = trace.tb_next
    return True

"""What the machine has: cores and memory. Knows nothing else."""

import os
from functools import cache
from pathlib import Path

_UNKNOWN_MEMORY = 4 * 2**30  # bytes, where the machine does not tell
_LIMITS_OF_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def n_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def n_bytes() -> float:
    """The memory that this machine has, or allows the container that this process is in."""
    try:
        found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN_MEMORY
    for place in _LIMITS_OF_CONTAINERS:
        try:
            text = Path(place).read_text(encoding="ascii").strip()
        except OSError:
            continue
        found += [float(text)] if text.isdecimal() else []
    return min(found)

"""What the machine has: cores and memory. Knows nothing else."""

import math
import os
from functools import cache
from pathlib import Path

_UNKNOWN_MEMORY = 4 * 2**30  # bytes, where the machine does not tell
_CGROUPS = Path("/sys/fs/cgroup")  # where Linux tells the limits of the container that this process is in
_MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # cgroups of version 2, and 1
_CPU_QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))  # each: how much of what period


def n_cores() -> int:
    """The cores that this process may use, and no more than its container gives it time on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _cpu_quota() or cores)


@cache
def n_bytes() -> float:
    """The memory that this machine has, or allows the container that this process is in."""
    try:
        found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN_MEMORY
    return min(found + [float(limit) for limit in map(_limit, _MEMORY_LIMITS) if limit.isdecimal()])


@cache
def _cpu_quota() -> int:
    """How many cores the container gives time on, rounded up; 0: as many as there are."""
    for files in _CPU_QUOTAS:
        quota = [word for file in files for word in _limit(file).split()]
        if len(quota) == 2 and all(word.isdecimal() for word in quota):
            return math.ceil(int(quota[0]) / int(quota[1]))
    return 0


def _limit(file: str) -> str:
    """What a file about the container says; nothing if there is none."""
    try:
        return (_CGROUPS / file).read_text(encoding="ascii").strip()
    except OSError:
        return ""

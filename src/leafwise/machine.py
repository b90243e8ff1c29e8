"""The resources of the machine: cores and memory. Knows nothing else."""

import math
import os
from functools import cache
from pathlib import Path

_UNKNOWN_MEMORY = 4 * 2**30  # bytes assumed if the memory cannot be determined
_CGROUPS = Path("/sys/fs/cgroup")  # the limits of this process's container, on Linux
_MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # cgroups of version 2, and 1
_CPU_QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))  # each: quota and period


def n_cores() -> int:
    """The number of cores that this process may use, limited by its container's CPU quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _cpu_quota() or cores)


@cache
def n_bytes() -> float:
    """The bytes of memory of this machine, or the limit of this process's container if that is lower."""
    try:
        found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN_MEMORY
    return min(found + [float(limit) for limit in map(_limit, _MEMORY_LIMITS) if limit.isdecimal()])


@cache
def _cpu_quota() -> int:
    """The container's CPU quota in cores, rounded up; 0: none."""
    for files in _CPU_QUOTAS:
        quota = [word for file in files for word in _limit(file).split()]
        if len(quota) == 2 and all(word.isdecimal() for word in quota):
            return math.ceil(int(quota[0]) / int(quota[1]))
    return 0


def _limit(file: str) -> str:
    """The content of a cgroup file; empty if it cannot be read."""
    try:
        return (_CGROUPS / file).read_text(encoding="ascii").strip()
    except OSError:
        return ""

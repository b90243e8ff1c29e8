"""Cores and memory, in containers and elsewhere."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafwise import machine


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a container tells its limits, on a machine of 16 cores."""
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(16)), raising=False)
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    machine._cpu_quota.cache_clear()
    machine.n_bytes.cache_clear()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("200000 100000\n", 2), ("150000 100000", 2), ("50000 100000", 1), ("3200000 100000", 16), ("max 100000", 16)],
)
def test_no_more_threads_than_the_container_gives_time_to(limits: Path, quota: str, cores: int) -> None:
    (limits / "cpu.max").write_text(quota)
    assert machine.n_cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 16)])
def test_quotas_of_the_first_cgroups(limits: Path, quota: str, cores: int) -> None:
    (limits / "cpu").mkdir()
    (limits / "cpu/cpu.cfs_quota_us").write_text(quota)
    (limits / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert machine.n_cores() == cores


def test_all_cores_where_nothing_limits_them(limits: Path) -> None:
    assert machine.n_cores() == 16


@pytest.mark.parametrize(("limit", "is_less"), [("1048576\n", True), ("max", False)])
def test_memory_of_the_container(limits: Path, limit: str, is_less: bool) -> None:
    all_of_it = machine.n_bytes()
    (limits / "memory.max").write_text(limit)
    machine.n_bytes.cache_clear()
    assert machine.n_bytes() == (1048576 if is_less else all_of_it)

"""Parquet files read in batches and packed, beside the same files read and discarded, with the peak memory.

20,000,000 × 100 columns of two to four states must be packed in under 4 GB, and at half the speed of reading alone.
Each runs in its own process, one after the other; `LEAFWISE_READING=2000000` makes fewer rows, and `LEAFWISE_ROUNDS=4`
takes the least of several rounds, for a machine with other load. A third program allocates as much memory as the table
takes, and writes it once, since a virtual machine may have to get it from its host.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.memory import peak_of
from benchmarks.report import Report, check, main

N_ROWS = int(os.environ.get("LEAFWISE_READING", "20000000"))
N_ROUNDS = int(os.environ.get("LEAFWISE_ROUNDS", "1"))
N_COLUMNS, N_FILES = 100, 10
_BEGIN = "import time, sys; began, spent = time.perf_counter(), time.process_time(); "
_END = "; print(time.perf_counter() - began, time.process_time() - spent)"
ALONE = """
from pathlib import Path
from pyarrow import parquet
for path in sorted(Path(sys.argv[1]).iterdir()):
    with parquet.ParquetFile(path, read_dictionary=sys.argv[2:]) as file:
        for batch in file.iter_batches(40_000, use_threads=False):
            pass
"""
MEMORY = "import numpy; cells = numpy.empty((100, %d), numpy.uint8); cells[:] = 1"
PACKED = "from leafwise import read; table = read(sys.argv[1]); assert table.n_cases == %d"
CACHED = "from leafwise import read; table = read(sys.argv[1], cache=True); assert table.n_cases == %d"


def make(folder: Path, words: bool) -> int:
    """Make the files, of integers or words, all copies of the first; return their bytes."""
    random, n, columns = np.random.default_rng(0), N_ROWS // N_FILES, {}
    for k in range(N_COLUMNS):
        codes = random.integers(0, 2 + k % 3, n, dtype=np.int64)
        columns[f"x{k}"] = pa.array(["high", "low", "medium", "none"]).take(pa.array(codes)) if words else codes
    first = folder / "part-00.parquet"
    parquet.write_table(pa.table(columns), first, row_group_size=500_000)
    for number in range(1, N_FILES):
        shutil.copy(first, folder / f"part-{number:02d}.parquet")
    return N_FILES * first.stat().st_size


def timed(program: str, folder: Path, names: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds, and gigabytes."""
    program = _BEGIN + "\n" + program + "\n" + _END.lstrip("; ")
    peak, printed = peak_of([sys.executable, "-c", program, str(folder), *names])
    seconds, cpu = map(float, printed.split()[-2:])
    return seconds, cpu, peak / 1e9


def measure() -> Iterator[Report]:
    """One row for each way in which the files are written."""
    rows = []
    for words in (False, True):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            size = make(folder, words)
            names = [f"x{k}" for k in range(N_COLUMNS)] if words else []
            programs = ((ALONE, names), (MEMORY % N_ROWS, []), (PACKED % N_ROWS, []))
            rounds = [[timed(program, folder, given) for program, given in programs] for _ in range(N_ROUNDS)]
            alone, memory, packed = (tuple(map(min, zip(*one, strict=True))) for one in zip(*rounds, strict=True))
            timed(CACHED % N_ROWS, folder, [])
            cached = timed(CACHED % N_ROWS, folder, [])
        check(packed[2] < 4.0, f"packing took {packed[2]:.2f} GB")
        rows.append(
            [
                "words" if words else "whole numbers",
                f"{size / 1e9:.2f}",
                *(f"{seconds:.1f} ({cpu:.1f})" for seconds, cpu, _ in (alone, memory, packed, cached)),
                f"{alone[0] / packed[0]:.2f}",
                f"{alone[1] / packed[1]:.2f}",
                f"{packed[2]:.2f}",
            ]
        )
    title = f"{N_ROWS:,} × {N_COLUMNS} columns of 2 to 4 states in {N_FILES} Parquet files; seconds (of the processor)"
    title += f", the least of {N_ROUNDS} rounds" * (N_ROUNDS > 1)
    yield Report(
        title,
        [
            *("", "GB of files", "read alone", "memory alone", "read and packed", "from the cache"),
            *("speed", "of the processor", "peak GB"),
        ],
        rows,
    )


if __name__ == "__main__":
    main(measure, __doc__)

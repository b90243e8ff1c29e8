"""Run notebooks from the top and store their outputs: python docs/scripts/run_notebooks.py NOTEBOOK... [--check].

With --check nothing is stored, and it is an error when a notebook's outputs are not those that are stored.
"""

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def executed(path: Path) -> Any:
    """The notebook with the outputs of this run."""
    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of boosted trees wait for each other where cores are shared
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", record_timing=False, coalesce_streams=True)
    return client.execute()


def outputs(notebook: Any) -> list[Any]:
    """What each cell shows."""
    return [cell.get("outputs", []) for cell in notebook.cells]


def main(arguments: list[str]) -> int:
    """Run the notebooks that are named; 1 if one differs from what is stored."""
    check = "--check" in arguments
    code = 0
    for path in map(Path, filter(lambda argument: argument != "--check", arguments)):
        notebook = executed(path)
        if not check:
            notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
            nbformat.write(notebook, path)
            continue
        stored = outputs(nbformat.read(path, as_version=4))
        for number, (new, old) in enumerate(zip(outputs(notebook), stored, strict=True)):
            if new != old:
                sys.stderr.write(f"{path}: cell {number} shows {new!r}, and {old!r} is stored: make notebooks\n")
                code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The oldest versions that pyproject.toml allows, for pip: numba>=0.61 is numba==0.61.0."""

import re
import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))
    for name, version in re.findall(r"(\w+)>=([\d.]+)", " ".join(project["project"]["dependencies"])):
        print(f"{name}=={version}" + ".0" * (2 - version.count(".")))

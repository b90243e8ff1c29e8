"""All kinds of inputs by name, and how often each comes in a round."""

import warnings
from collections.abc import Callable
from random import Random

from fuzz import answers, commands, network_files, pages, table_files

KINDS: dict[str, tuple[Callable[[Random], str], int]] = {
    **{name: (network_files.reader(name), 240) for name in network_files.FORMATS},
    "models": (network_files.check_model, 70),
    "packed": (network_files.check_packed, 50),
    "arcs": (network_files.check_arcs, 40),
    "files": (table_files.check_files, 12),
    "text": (table_files.check_text, 90),
    "sound text": (table_files.check_sound_text, 15),
    "parquet": (table_files.check_parquet, 20),
    "objects": (table_files.check_objects, 80),
    "commands": (commands.check_command, 14),
    "questions": (answers.check_questions, 14),
    "learning": (answers.check_learning, 2),
    "rounds": (answers.check_rounds, 1),
    "series": (answers.check_series, 1),
    "holes": (answers.check_holes, 1),
    "requests": (pages.check_request, 150),
}


def one(kind: str, seed: int, number: int) -> str:
    """Make an input and check it: "accepted" or "refused"; any exception, and any warning, is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return KINDS[kind][0](Random(f"{kind}:{seed}:{number}"))

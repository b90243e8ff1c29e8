"""A short run of the fuzzer. `make fuzz SECONDS=...` is the long one, and docs/reliability.md says what it found."""

import pytest
from fuzz.kinds import KINDS, one
from fuzz.network_files import check_file

SEED = 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_answer_or_one_line(kind):
    outcomes = [one(kind, SEED, number) for number in range(-(-KINDS[kind][1] * 2 // 3))]
    assert set(outcomes) <= {"accepted", "refused"}


def test_inputs_come_again():
    from random import Random

    from fuzz.mutation import mutated
    from fuzz.network_files import WORDS, corpus

    made = [mutated(corpus("bif")[0], Random("bif:1:7"), WORDS["bif"].split(), corpus("bif")) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0] not in corpus("bif")


def test_the_checks_can_fail(monkeypatch):
    """A reader that takes anything, or that has accidents, is found out."""
    from leafwise.formats import bif

    def accident(_data, _most_cells=None):
        raise KeyError("x")

    monkeypatch.setattr(bif, "loads", accident)
    with pytest.raises(KeyError):
        check_file("bif", b"network x { }")

    def long_story(_data, _most_cells=None):
        raise ValueError("one line\nand another")

    monkeypatch.setattr(bif, "loads", long_story)
    with pytest.raises(AssertionError, match="the refusal has 2 lines"):
        check_file("bif", b"network x { }")

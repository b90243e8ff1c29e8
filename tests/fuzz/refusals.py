"""What a refusal has to be."""


def check_refusal(error: BaseException) -> None:
    """One line that says something, and not too much."""
    message = str(error)
    assert message.strip(), "the refusal is empty"
    assert len(message.splitlines()) == 1, f"the refusal has {len(message.splitlines())} lines: {message[:300]!r}"
    assert len(message) < 3000, f"the refusal has {len(message)} signs"

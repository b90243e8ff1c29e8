"""Names as a terminal may show them: they come from data, which may hold what moves its cursor. Knows nothing else."""


def printable(text: str, kept: str = "") -> str:
    """The text with every sign that is not to be seen, but for those `kept`, written as Python writes it.

    >>> printable("rain"), printable("r\\x1b[31mn\\n")
    ('rain', 'r\\\\x1b[31mn\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in kept else sign.encode("unicode_escape").decode() for sign in text
    )

"""Names made safe for a terminal: names come from data and may contain control characters."""


def printable(text: str, kept: str = "") -> str:
    """The text with all unprintable characters, except those in `kept`, escaped as in Python.

    >>> printable("rain"), printable("r\\x1b[31mn\\n")
    ('rain', 'r\\\\x1b[31mn\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in kept else sign.encode("unicode_escape").decode() for sign in text
    )

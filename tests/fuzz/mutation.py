"""Sound files made unsound: cut, doubled, swapped, with numbers that are none and signs that have a meaning."""

import re
from random import Random

NUMBERS = [
    *(b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"-1e999", b"1e308", b"-1", b"-0", b"0", b"1e-400", b".5", b"5."),
    *(b"O.5", b"1_0", b"0x1", b"+1", b"1" + b"0" * 400, b"65535", b"65536", b"2147483648", b"18446744073709551616"),
    *("٣".encode(), b"1e5", b"1,5", b"0.9999999", b"2"),
]
SIGNS = [bytes([sign]) for sign in b"{}()[]<>,;:|\"'\\/&=#%+-*?!~\n\r\t\x00\x1b\x7f\xef\xff "]
SIGNS += ["é".encode(), "\u202e".encode()]
NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_]\w*")
LARGEST = 200_000  # bytes


def mutated(data: bytes, random: Random, words: list[bytes], others: list[bytes]) -> bytes:
    """One to four changes. `words` mean something in the format, `others` are other files of it."""
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 4])):
        data = random.choice(CHANGES)(data, random, words, others)[:LARGEST]
    return data


def _slice(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice([0, 1, 1, 2, 4, 8, 20, 60, 300]))


def _cut_out(data, random, _words, _others):
    start, end = _slice(data, random)
    return data[:start] + data[end:]


def _cut_off(data, random, _words, _others):
    return data[: random.randrange(len(data) + 1)]


def _double(data, random, _words, _others):
    start, end = _slice(data, random)
    return data[:end] + data[start:end] * random.choice([1, 1, 2, 10, 300]) + data[end:]


def _swap(data, random, _words, _others):
    (a, b), (c, d) = sorted([_slice(data, random), _slice(data, random)])
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _insert(data, random, words, _others):
    place = random.randrange(len(data) + 1)
    piece = random.choice([random.choice(SIGNS), random.choice(words), random.choice(NUMBERS), random.randbytes(3)])
    return data[:place] + piece * random.choice([1, 1, 1, 2, 50, 2000]) + data[place:]


def _of_pattern(pattern):
    def change(data, random, words, _others):
        found = list(pattern.finditer(data))
        if not found:
            return data
        one = random.choice(found)
        pieces = NUMBERS if pattern is NUMBER else [*words, *(random.choice(found)[0] for _ in range(3)), b""]
        return data[: one.start()] + random.choice(pieces) + data[one.end() :]

    return change


def _flip(data, random, _words, _others):
    if not data:
        return data
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]


def _line_ends(data, random, _words, _others):
    return data.replace(b"\n", random.choice([b"\r\n", b"\r", b"", b"\n\n", "\u2028".encode(), b"\x0b"]))


def _encode(data, random, _words, _others):
    text = data.decode(errors="replace")
    return text.encode(random.choice(["utf-16", "utf-8-sig", "utf-32", "latin-1"]), errors="replace")


def _splice(data, random, _words, others):
    other = random.choice(others)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


CHANGES = [
    *(_cut_out, _cut_off, _double, _double, _swap, _insert, _insert, _insert, _flip, _line_ends, _encode, _splice),
    *[_of_pattern(NUMBER)] * 4,
    *[_of_pattern(WORD)] * 3,
]

"""Inputs by chance, without end: files of all formats, tables, command lines, questions, requests of the page.

    make fuzz SECONDS=600                       all kinds, one after the other, from a seed that is printed
    PYTHONPATH=tests python -m fuzz --seed 7    the same inputs again
    PYTHONPATH=tests python -m fuzz --replay json:7:123    one of them, here and with its traceback

An input is made of its kind, the seed and its number, so any of them can be made again. What is asked of each: a right
answer, or a refusal in one line; no traceback, no more than ten seconds, no more memory than the limit, and nothing
accepted that is no network or no table. `__main__.py` runs them in a process of its own, which it ends when one hangs.
"""

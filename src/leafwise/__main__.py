"""python -m leafwise: the command line."""

from leafwise.cli import main

main()

"""`python -m snug ...`: the tool. A script that it is to run is run by this Python."""

import os
import sys

from snug import tool

#: Commands of the tool that take a command to run.
RUNNERS = {"run", "compare", "profile", "record"}


def words(arguments):
    """The arguments, with the interpreter before a script: the first word that is no option and no NAME=value."""
    if arguments and arguments[0] in RUNNERS:
        for index, word in enumerate(arguments[1:], 1):
            if word.startswith("-") or ("=" in word and not os.path.exists(word)):
                continue
            if word.endswith(".py"):
                return [*arguments[:index], sys.executable, *arguments[index:]]
            break
    return arguments


def main():
    os.execv(tool, ["snug", *words(sys.argv[1:])])


if __name__ == "__main__":
    main()

"""What the tests of statistics share: a program on snug, started in a folder of its own.

    SCRIPT.py GROUP LIBRARY PROGRAM [ARGUMENT...]

GROUP is a class of the script, or several with commas. Where something is missing that a group
needs, it is skipped (status 77).
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from blackbox import run  # noqa: E402

ARGUMENTS: list[str] = []  # LIBRARY PROGRAM ...
PARTS = (
    "live_small live_cells live_large live_huge live_hardened waste cached_small cached_cells depots "
    "free_slabs free_cells purge_pending free_clean hardened_waiting hardened_cached hardened_free "
    "hardened_rest metadata"
).split()


def library() -> str | None:
    """What is preloaded; nothing for a program that is linked with snug."""
    return ARGUMENTS[0] if ARGUMENTS[0] != "linked" else None


class Case(unittest.TestCase):
    """`needs` are programs that must be there, or `python:NAME` modules."""

    needs: tuple[str, ...] = ()

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def leave(self, *way: str, **options: str):
        """Runs the program to its end."""
        return run([ARGUMENTS[1], *way], preload=library(), **options)

    def start(self, *way: str, before: tuple[str, ...] = (), **options: str) -> subprocess.Popen:
        """The program, at the moment where it waits."""
        environment = {**os.environ, **options, "SNUG_TEST_EXPECT": "1"}
        if library():
            environment["LD_PRELOAD"] = library()
        process = subprocess.Popen([*before, ARGUMENTS[1], *way], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def lines(self, path: pathlib.Path, least: int) -> list[str]:
        """The lines of a file that somebody writes, when there are enough of them."""
        for _ in range(400):
            found = path.read_text().splitlines() if path.exists() else []
            if len(found) >= least:
                return found
            time.sleep(0.05)
        self.fail(f"only {len(found)} lines in {path}")


def missing(need: str) -> bool:
    if need.startswith("python:"):
        return importlib.util.find_spec(need.removeprefix("python:")) is None
    return shutil.which(need) is None


def main(script: dict) -> None:
    """The groups that the command line names, of the classes in `script`."""
    groups = sys.argv[1].split(",")
    ARGUMENTS.extend(sys.argv[2:])
    for group in groups:
        for need in filter(missing, script[group].needs):
            print(f"SKIP: no {need.removeprefix('python:')}")
            sys.exit(77)
        reason = getattr(script[group], "reason_to_skip", lambda: None)()
        if reason:
            print(f"SKIP: {reason}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *groups], verbosity=1)

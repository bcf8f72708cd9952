#!/usr/bin/env python3
"""The script for gdb names the block that an address belongs to, in a process and in a core dump.

    gdb.py LIBRARY PROGRAM SCRIPT      PROGRAM: built from blocks.c; SCRIPT: scripts/snug-gdb.py
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = PROGRAM = SCRIPT = None
AT = r"at 0x[0-9a-f]+"
QUESTIONS = {
    "small": f"object of 48 bytes {AT}, in use",
    "small+47": f"object of 48 bytes {AT}, in use",
    "small_waiting": f"object of 112 bytes {AT}, free, in a magazine or a depot",
    "small_free": f"object of 80 bytes {AT}, free, in its slab",
    "medium": rf"medium block of 500\d bytes {AT}, in use",
    "medium+4999": rf"medium block of 500\d bytes {AT}, in use",
    "medium_waiting+8": rf"medium block of 900\d bytes {AT}, free, in the magazine of a thread",
    "medium_free+100": rf"medium block of \d+ bytes {AT}, free$",
    "large": f"large block of 303104 bytes {AT}, in use, 300000 asked for",
    "large+150000": f"large block of 303104 bytes {AT}, in use, 300000 asked for",
    "large_free": "in free pages, where a block of 401408 bytes was|in free pages, 401408 bytes from",
    "huge": f"huge block of 200003584 bytes {AT}, in use, 200000001 asked for",
    "huge+3000000": f"huge block of 200003584 bytes {AT}, in use, 200000001 asked for",
    "foreign": "not in a heap of snug",
}


class Blocks(unittest.TestCase):
    def ask(self, *start: str) -> str:
        commands = [*start, "frame function here", f"source {SCRIPT}"]
        commands += [f"snug-block blocks->{question}" for question in QUESTIONS]
        words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run([*words, PROGRAM], capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    def assert_answered(self, said: str):
        answers = re.findall(r"^0x[0-9a-f]+: (.*)$", said, re.MULTILINE)
        self.assertEqual(len(answers), len(QUESTIONS), said)
        for answer, (question, expected) in zip(answers, QUESTIONS.items()):
            with self.subTest(question):
                self.assertRegex(answer, expected)

    def test_in_a_process(self):
        self.assert_answered(self.ask(f"set environment LD_PRELOAD {LIBRARY}", "break here", "run"))

    def test_in_a_core_dump(self):
        with tempfile.TemporaryDirectory() as place:
            core = pathlib.Path(place) / "core"
            said = self.ask(f"set environment LD_PRELOAD {LIBRARY}", "break here", "run",
                            f"generate-core-file {core}", "kill", f"core-file {core}")  # fmt: skip
            self.assert_answered(said)


if __name__ == "__main__":
    if shutil.which("gdb") is None:
        print("SKIP: no gdb")
        sys.exit(77)
    LIBRARY, PROGRAM, SCRIPT = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=1)

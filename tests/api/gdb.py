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
QUESTIONS = {
    "blocks[0]": r"object of 48 bytes at 0x[0-9a-f]+, in use",
    "blocks[0]+7": r"object of 48 bytes at 0x[0-9a-f]+, in use",
    "blocks[1]": r"object of 80 bytes at 0x[0-9a-f]+, free, in a magazine or a depot",
    "blocks[2]+4999": r"medium block of \d+ bytes at 0x[0-9a-f]+, in use",
    "blocks[3]": r"large block of 303104 bytes at 0x[0-9a-f]+, in use, 300000 asked for",
    "blocks[4]": r"huge block of 5001216 bytes at 0x[0-9a-f]+, in use, 5000001 asked for",
    "blocks[5]": r"not in a heap of snug",
}


class Blocks(unittest.TestCase):
    def ask(self, *start: str) -> str:
        commands = [*start, "frame function here", f"source {SCRIPT}"]
        commands += [f"snug-block {question}" for question in QUESTIONS]
        words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run([*words, PROGRAM], capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    def assert_answered(self, said: str):
        answers = re.findall(r"^0x[0-9a-f]+: (.*)$", said, re.MULTILINE)
        self.assertEqual(len(answers), len(QUESTIONS), said)
        for answer, expected in zip(answers, QUESTIONS.values()):
            self.assertRegex(answer, expected, said)

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

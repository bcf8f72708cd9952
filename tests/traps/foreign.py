#!/usr/bin/env python3
"""Trap 7: a block of another allocator that reaches our free gets a clear diagnosis.

    foreign.py LIBRARY FOREIGN     FOREIGN: the program built from foreign.c and own_malloc.c

Fault it finds (planted.c): silent_free.
"""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import run  # noqa: E402

LIBRARY = PROGRAM = None


class Foreign(unittest.TestCase):
    def check(self, case: str, size: int, **options):
        result = run([PROGRAM, case, size], preload=LIBRARY, **options)
        function = case.split("-")[1]
        bad = re.search(r"^bad (0x\w+)", result.out, re.MULTILINE).group(1)
        expected = f"snug: invalid {function}: {bad} was not allocated by snug"
        self.assertEqual(result.err.splitlines(), [expected], result)
        return result

    def test_every_way(self):
        for owner in ("static", "mapped", "libc"):
            for function in ("free", "realloc"):
                for size in (16, 64, 1000, 5000, 20000):
                    case = f"{owner}-{function}"
                    with self.subTest(case, size=size):
                        self.assertTrue(self.check(case, size).aborted)
                    with self.subTest(case, size=size, mode="full"):
                        self.assertTrue(self.check(case, size, SNUG_CHECK="full").aborted)
                    with self.subTest(case, size=size, mode="warn"):
                        result = self.check(case, size, SNUG_MISUSE="warn")
                        self.assertEqual(result.status, 0, result)
                        self.assertIn("end", result.out)


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=1)

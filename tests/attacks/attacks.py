#!/usr/bin/env python3
"""Each attack of attacks.c fails: snug reports it, or goes on with sound blocks.

    attacks.py LIBRARY PROGRAM [unittest arguments]

A fault, or a block that the attacker wanted, is a failure. Run on an allocator without snug's checks it
must fail (tests/mutants/mutants.txt has them one by one, and the planted malloc).
"""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import run  # noqa: E402

LIBRARY = PROGRAM = None
SMALL, COLD, MEDIUM, LARGE = 64, 800, 5000, 300_000
NO_CACHES = {"SNUG_THREAD_CACHE": "0"}
# With caches of threads, and without: then what is freed is joined and listed at once.
MODES = (("cold", {}), ("cold", NO_CACHES), ("warm", {}), ("warm", NO_CACHES))


class Attacks(unittest.TestCase):
    def attack(self, name: str, reported=(), held=()):
        """By sizes, whether a report must come or none need."""
        for size in (*reported, *held):
            # What is asked for often has a slab at that size, and no headers.
            for warmth, mode in MODES[:2] if size == COLD else MODES:
                with self.subTest(name, size=size, warmth=warmth, mode=mode):
                    result = run([PROGRAM, name, str(size), warmth], preload=LIBRARY, **mode)
                    if size in held and result.status == 0:
                        self.assertEqual(result.out, "held\n", result)
                        continue
                    self.assertEqual(result.status, -signal.SIGABRT, result)
                    self.assertRegex(result.err, "^snug: ", result)

    def test_poison(self):
        self.attack("poison", reported=(SMALL, COLD, MEDIUM), held=(LARGE,))
        self.attack("poison-all", reported=(SMALL, COLD, MEDIUM), held=(LARGE,))

    def test_unlink(self):
        self.attack("unlink", reported=(SMALL, COLD, MEDIUM), held=(LARGE,))
        self.attack("unlink-first", reported=(SMALL, COLD, MEDIUM), held=(LARGE,))

    def test_lore(self):
        self.attack("lore", reported=(SMALL, COLD, MEDIUM), held=(LARGE,))

    def test_dup(self):
        self.attack("dup", reported=(SMALL, COLD, MEDIUM, LARGE))
        self.attack("dup-wiped", reported=(SMALL, COLD, MEDIUM, LARGE))

    def test_spirit(self):
        self.attack("spirit", reported=(SMALL, COLD, MEDIUM, LARGE))
        self.attack("spirit-inside", reported=(SMALL, COLD, MEDIUM, LARGE))

    def test_overlap(self):
        self.attack("overlap", reported=(COLD, MEDIUM), held=(SMALL,))

    def test_einherjar(self):
        self.attack("einherjar", reported=(COLD, MEDIUM), held=(SMALL,))

    def test_force(self):
        self.attack("force", reported=(SMALL, MEDIUM), held=(COLD, LARGE))


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)

#!/usr/bin/env python3
"""malloc_info writes well-formed XML in glibc's form, and its numbers fit the program.

    reports.py LIBRARY INTROSPECT      INTROSPECT: the program built from introspect.c
"""

import pathlib
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import run  # noqa: E402

LIBRARY = PROGRAM = None


class MallocInfo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run([PROGRAM, "--xml"], preload=LIBRARY)

    def test_the_program_ends_well(self):
        self.assertEqual(self.result.status, 0, self.result)
        self.assertEqual(self.result.err, "")

    def test_is_well_formed(self):
        root = ElementTree.fromstring(self.result.out)
        self.assertEqual(root.tag, "malloc")
        self.assertEqual(root.get("version"), "1")

    def test_numbers_are_numbers_and_plausible(self):
        root = ElementTree.fromstring(self.result.out)
        sizes = [
            int(element.get("size"))
            for element in root.iter()
            if element.tag in ("system", "total", "aspace") and element.get("size") is not None
        ]
        self.assertTrue(sizes)
        # The program holds a block of 100 MiB and some 100 MB in smaller ones.
        self.assertGreaterEqual(max(sizes), 100 << 20)
        self.assertLess(max(sizes), 1 << 30)


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=1)

#!/usr/bin/env python3
"""Whatever a program calls, it is at that call that intervals are looked at.

    polling.py GROUP LIBRARY PROGRAM      PROGRAM: built from polling.c
"""

import csv

from case import Case, main


class Polling(Case):
    def rows(self, way: str) -> int:
        file = self.place / f"{way}.csv"
        result = self.leave(way, SNUG_STATS=str(file), SNUG_STATS_ON="interval", SNUG_STATS_EVERY="1ms")
        self.assertEqual((result.status, result.err), (0, ""))
        return len(list(csv.DictReader(file.read_text().splitlines()))) if file.exists() else 0

    def test_of_one_kind_of_call(self):
        for way in ("malloc", "calloc", "aligned_alloc", "large", "realloc", "free", "heap_malloc", "heap_free"):
            with self.subTest(way):
                self.assertGreater(self.rows(way), 20)

    def test_of_none(self):
        """What the start of a program makes is little: the rows above are of the calls."""
        self.assertLess(self.rows("nothing"), 5)


if __name__ == "__main__":
    main(globals())

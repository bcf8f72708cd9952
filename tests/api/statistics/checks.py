#!/usr/bin/env python3
"""SNUG_CHECK_ON and snug_check() find what a program has damaged, and say where.

    checks.py Checks LIBRARY PROGRAM      PROGRAM: built from damage.c
"""

import signal

from case import Case, main

WRITTEN = "a {} block was written to when it was free"
# What is damaged; what is said; whether the address is that of the damaged block.
DAMAGE = {
    "overrun": ("a cell's header is damaged", True),
    "overrun_by_one": ("a cell's header is damaged", True),
    "check_value": ("a cell's header is damaged", True),
    "quick_link": (WRITTEN.format("medium"), True),
    "free_header": ("a list of free cells has a cell that is not free or of another size", True),
    "free_link": ("a free cell's links are damaged", True),
    "free_trailer": ("a free cell's trailer has another size", True),
    "small_waiting": (WRITTEN.format("small"), True),
    "small_free": (WRITTEN.format("small"), True),
}


class Checks(Case):
    def check(self, damage: str, how: str, *size: str, **options: str):
        if how != "call":
            options |= {"SNUG_CHECK_ON": how, "SNUG_STATS_EVERY": "20ms"}
        result = self.leave(damage, how, *size, **options)
        return result, result.out.strip()

    def assert_said(self, damage: str, status: int, *arguments: str):
        result, place = self.check(damage, *arguments)
        said = result.err.splitlines()
        self.assertTrue(said, f"nothing was said\n{result}")
        self.assertEqual(said[0], f"snug: the heap is damaged: {DAMAGE[damage][0]}, at {place}")
        self.assertEqual(result.status, status)

    def assert_found(self, how: str, status: int):
        for damage in DAMAGE:
            with self.subTest(damage):
                self.assert_said(damage, status, how)

    def test_by_a_call(self):
        self.assert_found("call", 1)

    def test_at_the_exit(self):
        self.assert_found("exit", -signal.SIGABRT)

    def test_at_intervals(self):
        self.assert_found("interval", -signal.SIGABRT)

    def test_on_a_signal(self):
        self.assert_found("signal", -signal.SIGABRT)

    def test_by_a_program_that_only_takes_blocks_of_one_size(self):
        for how in ("interval", "signal"):
            for size in (24, 1100, 5000, 20000, 130000, 300000):
                with self.subTest(how, size=size):
                    damage = "small_waiting" if size > 1024 else "free_trailer"
                    self.assert_said(damage, -signal.SIGABRT, how, str(size))

    def test_nothing_is_found_where_nothing_is_wrong(self):
        for how in ("call", "exit", "interval", "signal"):
            with self.subTest(how):
                result, _ = self.check("none", how)
                self.assertEqual((result.status, result.err), (0, ""))

    def test_a_warning_lets_the_program_go_on(self):
        result, place = self.check("free_trailer", "exit", SNUG_MISUSE="warn")
        self.assertEqual(result.status, 0)
        self.assertEqual(result.err.count("\n"), 1, result)
        self.assertTrue(result.err.endswith(f"at {place}\n"))


if __name__ == "__main__":
    main(globals())

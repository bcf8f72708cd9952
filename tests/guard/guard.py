#!/usr/bin/env python3
"""Guarded blocks: what is wrong with one is said, once, with the right stacks, as often as chance has it;
and the program's own handlers are what they were.

    guard.py LIBRARY PROGRAM [unittest arguments]      PROGRAM: built from guard.c

What is planted: GUARD_EVERY_IS makes the library choose at another rate than the checks are told, and
GUARD_SHIFT moves the functions in which stacks are expected.
"""

import math
import os
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import Result, run  # noqa: E402

LIBRARY = PROGRAM = None

# Bytes: the functions that are looked for in stacks are shorter, and lie so far apart.
FUNCTION = 128
EVERY = 50
FRAME = re.compile(r"^ +#(\d+) (0x[0-9a-f]+)(?: (.*)\+(0x[0-9a-f]+))?$")


class Report:
    """One of what is said: the first line, and a stack and a thread for each of what follows."""

    def __init__(self, lines: list[str]):
        self.line = lines[0]
        self.stacks: dict[str, list[int]] = {}
        self.threads: dict[str, int] = {}
        part = ""
        for line in lines[1:]:
            if found := re.fullmatch(r"  (\w+) by thread (\d+):", line):
                part = found.group(1)
                self.threads[part], self.stacks[part] = int(found.group(2)), []
            elif found := FRAME.match(line):
                assert int(found.group(1)) == len(self.stacks[part]), line
                self.stacks[part].append(int(found.group(2), 16))


def reports_of(result: Result) -> list[Report]:
    found: list[list[str]] = []
    for line in result.err.splitlines():
        if line.startswith("snug: "):
            found.append([line])
        elif found:
            found[-1].append(line)
    return [Report(lines) for lines in found]


def guarded(*arguments: object, **options: str) -> Result:
    every = os.environ.get("GUARD_EVERY_IS", str(EVERY))
    return run([PROGRAM, *arguments], LIBRARY, **({"SNUG_GUARD": "1", "SNUG_GUARD_EVERY": every} | options))


def places(result: Result) -> dict[str, tuple[int, int]]:
    """The functions' addresses, and the threads that were in them last."""
    shift = int(os.environ.get("GUARD_SHIFT", "0"))
    found = re.findall(r"^(\w+) (0x[0-9a-f]+) (\d+)$", result.out, re.MULTILINE)
    return {what: (int(address, 16) + shift, int(thread)) for what, address, thread in found}


class Case(unittest.TestCase):
    def assert_stacks(self, result: Result, report: Report, *parts: str):
        where = places(result)
        for said, function in (part.split("=") for part in parts):
            start, thread = where[function]
            frames = report.stacks[said]
            inside = [frame for frame in frames[:2] if start <= frame < start + FUNCTION]
            self.assertTrue(inside, f"no frame of {said} is in {function}\n{result}")
            self.assertEqual(report.threads[said], thread, f"thread of {said}\n{result}")

    def fault(self, kind: str, status: int, line: str, *parts: str):
        result = guarded("fault", *kind.split(), SNUG_GUARD_EVERY="1")
        self.assertEqual(result.status, status, str(result))
        (report,) = reports_of(result)
        self.assertRegex(report.line, line)
        self.assert_stacks(result, report, *parts)


class Faults(Case):
    HERE = ("allocated=taken", "touched=touched")

    def test_overflow(self):
        behind = r"^snug: overflow by 9 bytes: 0x\w+ is behind a 40-byte block at 0x\w+$"
        at_free = r"^snug: overflow by 9 bytes: 0x\w+ is behind a 40-byte block at 0x\w+, found when"
        seen = set()
        for _ in range(64):
            result = guarded("fault", "overflow", SNUG_GUARD_EVERY="1")
            (report,) = reports_of(result)
            seen.add(result.status)
            if result.status == -signal.SIGSEGV:
                self.assertRegex(report.line, behind)
                self.assert_stacks(result, report, *self.HERE)
            else:
                self.assertEqual(result.status, -signal.SIGABRT, str(result))
                self.assertRegex(report.line, at_free)
                self.assert_stacks(result, report, "allocated=taken", "found=freed")
            if len(seen) == 2:
                break
        self.assertEqual(len(seen), 2, "a block lies at either end, by chance")

    def test_underflow(self):
        result = guarded("fault", "underflow", SNUG_GUARD_EVERY="1")
        (report,) = reports_of(result)
        self.assertIn(result.status, (-signal.SIGSEGV, -signal.SIGABRT))
        self.assertRegex(report.line, r"^snug: underflow by 1 byte: 0x\w+ is before a 40-byte block at 0x")

    def test_what_alignment_leaves(self):
        line = r"^snug: overflow by 1 byte: 0x\w+ is behind a 13-byte block at 0x\w+, found when that was freed$"
        self.fault("slack", -signal.SIGABRT, line, "allocated=taken", "found=freed")

    def test_use_after_free(self):
        line = r"^snug: use after free: 0x\w+ is in a 40-byte block at 0x\w+$"
        for kind in ("read", "write"):
            self.fault(kind, -signal.SIGSEGV, line, "allocated=taken", "freed=freed", "touched=touched")

    def test_threads(self):
        line = r"^snug: use after free: 0x\w+ is a 40-byte block$"
        self.fault("read threads", -signal.SIGSEGV, line, "allocated=taken", "freed=freed", "touched=touched")

    def test_freed_ones_stay_unreachable_while_there_is_room(self):
        for others, known in ((0, True), (120, True), (200, False)):  # of 160 slots
            with self.subTest(others=others):
                result = guarded("late", others, SNUG_GUARD_EVERY="1", SNUG_GUARD_BLOCKS="10")
                self.assertEqual(result.status, -signal.SIGSEGV, str(result))
                (report,) = reports_of(result)
                start, _ = places(result)["taken"]
                found = any(start <= frame < start + FUNCTION for frame in report.stacks["allocated"][:2])
                self.assertEqual(found, known, str(result))

    def test_fork(self):
        result = guarded("fork")
        self.assertEqual(result.status, 0, str(result))
        (report,) = reports_of(result)
        self.assertRegex(report.line, "^snug: use after free: ")
        self.assert_stacks(result, report, "allocated=taken", "freed=freed", "touched=touched")


class Told(Case):
    """What is found when a block is freed is misuse as any other: the program's handler is told, and
    SNUG_MISUSE says what follows. The report is text, whatever the form of others."""

    FAULTS = (
        ("slack", r"overflow free 0x\w+ 13", r"^snug: overflow by 1 byte: 0x\w+ is behind a 13-byte block at 0x\w+, found when",
         ("allocated=taken", "found=freed")),
        ("twice", r"double-free free 0x\w+ 40", r"^snug: double free: 0x\w+ is a 40-byte block$",
         ("allocated=taken", "freed=freed")),
    )  # fmt: skip

    def assert_told(self, status: int, **options: str):
        every = os.environ.get("GUARD_EVERY_IS", "1")
        for kind, told, line, parts in self.FAULTS:
            with self.subTest(kind=kind):
                result = guarded("told", kind, SNUG_GUARD_EVERY=every, **options)
                self.assertEqual(result.status, status, str(result))
                (report,) = reports_of(result)
                self.assertRegex(report.line, line)
                self.assert_stacks(result, report, *parts)
                self.assertEqual(len(re.findall(rf"^told {told}$", result.out, re.MULTILINE)), 1, str(result))
                self.assertEqual(result.out.count("told "), 1, str(result))

    def test_abort(self):
        self.assert_told(-signal.SIGABRT)

    def test_trap(self):
        self.assert_told(-signal.SIGTRAP, SNUG_MISUSE="trap")

    def test_warn(self):
        self.assert_told(0, SNUG_MISUSE="warn")
        self.assert_told(0, SNUG_MISUSE="warn", SNUG_MISUSE_FORMAT="json")


class Rate(Case):
    """Of the touches as many are caught as chance says, within four standard errors."""

    TURNS = 40000

    def caught(self, kind: str, share: float):
        result = guarded("rate", kind, self.TURNS, SNUG_MISUSE="warn")
        self.assertEqual(result.status, 0, str(result)[-2000:])
        count = int(re.search(r"caught (\d+)", result.out).group(1))
        chance = share * (1 - math.exp(-1 / EVERY))
        expected = self.TURNS * chance
        error = math.sqrt(expected * (1 - chance))
        self.assertLess(abs(count - expected), 4 * error, f"{count} are caught, not about {expected:.0f}")
        # What the touches of other blocks did is found at the end: "was written to".
        said = [report for report in reports_of(result) if not re.search("found when|was written to", report.line)]
        self.assertEqual(len(said), count, "each is reported once")

    def test_overflow(self):
        self.caught("overflow", 0.5)

    def test_underflow(self):
        self.caught("underflow", 0.5)

    def test_use_after_free(self):
        self.caught("read", 1)


class Handlers(Case):
    def handled(self, case: str) -> Result:
        return guarded("handler", case)

    def test_the_programs_own_is_called(self):
        for case in ("before", "after", "often"):
            with self.subTest(case):
                result = self.handled(case)
                self.assertEqual(result.status, 7, str(result))
                (report,) = reports_of(result)
                address = re.search(r"handled (0x\w+)", result.out).group(1)
                self.assertIn(f"snug: use after free: {address} is in a", report.line)

    def test_a_fault_of_its_own_is_its_own(self):
        result = self.handled("own")
        self.assertEqual((result.status, result.err), (0, ""), str(result))

    def test_other_deaths_are_as_before(self):
        for case in ("raise", "null"):
            with self.subTest(case):
                result = self.handled(case)
                self.assertEqual((result.status, result.err), (-signal.SIGSEGV, ""), str(result))

    def test_ignored_stays_ignored(self):
        result = self.handled("ignored")
        self.assertEqual((result.status, result.err), (0, ""), str(result))

    def test_a_chain_of_handlers(self):
        result = self.handled("chain")
        self.assertEqual(result.status, -signal.SIGSEGV, str(result))
        self.assertEqual(len(reports_of(result)), 1)
        self.assertIn("handled", result.out)

    def test_a_handler_that_is_put_back(self):
        result = self.handled("back")
        self.assertEqual(result.status, -signal.SIGSEGV, str(result))
        self.assertEqual(len(reports_of(result)), 1)
        self.assertNotIn("handled", result.out)


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

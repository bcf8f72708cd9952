#!/usr/bin/env python3
"""Every misuse ends in one exact line on stderr and SIGABRT, or, told to warn, in the line alone.

    misuse.py LIBRARY MISUSE NO_FALSE_ALARMS [unittest arguments]

MISUSE is the program built from misuse.c and the files of its cases, NO_FALSE_ALARMS that of
no_false_alarms.c. Run on the planted malloc (support/planted.c: twice, silent_free) or on the
system's, it must fail.
"""

import json
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from blackbox import Result, run  # noqa: E402

LIBRARY = PROGRAM = NO_FALSE_ALARMS = None

# Up to where a block is an object of a slab, which snug still knows when it is free. Larger ones are
# joined with free memory around them, or are nobody's address any more, and may be called just that.
REMEMBERED = 512
SIZES = (
    1, 16, 24, 64, 1000, 1024, 1025, 1100, 5000, 20000, 131_000, 200_000, 10_000_000, 200_000_000
)  # fmt: skip
SMALL = tuple(size for size in SIZES if size <= 20000)
DEFAULT, FULL, WARN = {}, {"SNUG_CHECK": "full"}, {"SNUG_MISUSE": "warn"}
HARDENED = {"SNUG_PRESET": "hardened"}

# Whether the threads have used their caches before; and what the environment says.
MODES = (("cold", DEFAULT), ("warm", DEFAULT), ("warm", FULL), ("cold", WARN), ("warm", WARN))


def address(result: Result, what: str) -> int:
    return int(re.search(rf"^{what} (0x\w+|\(nil\))", result.out, re.MULTILINE).group(1), 16)


def usable(result: Result) -> int:
    return int(re.search(r"^block \w+ (\d+)", result.out, re.MULTILINE).group(1))


def double_free(result: Result) -> str:
    bad = re.escape(hex(address(result, "bad")))
    known = rf"snug: double free: {bad}, an? (\d+)-byte object"
    if usable(result) <= REMEMBERED:
        return known
    return rf"{known}|{in_free_memory(result)}|{not_allocated(result)}"


def inside(result: Result, function: str = "free") -> str:
    bad, block = hex(address(result, "bad")), hex(address(result, "block"))
    return (
        rf"snug: invalid {function}: {bad} is inside an? (\d+)-byte object"
        rf" that starts at {block}"
    )


def not_allocated(result: Result, function: str = "free") -> str:
    return rf"snug: invalid {function}: {hex(address(result, 'bad'))} was not allocated by snug"


def in_free_memory(result: Result, function: str = "free") -> str:
    return rf"snug: invalid {function}: {hex(address(result, 'bad'))} is in free memory"


def any_message(result: Result) -> str:
    """Where more than one description of the same mistake is right: the memory of the object may
    have become free pages, or part of something else, by the time the call comes."""
    bad = hex(address(result, "bad"))
    return (
        rf"snug: double free: {bad}, an? [1-9]\d*-byte object"
        rf"|snug: invalid (free|realloc): {bad} (is an? [1-9]\d*-byte object that is free"
        rf"|is inside an? [1-9]\d*-byte object that starts at 0x\w+"
        rf"|is in free memory|was not allocated by snug)"
    )


class Case(unittest.TestCase):
    maxDiff = None
    also = r"(?!)"  # lines that may be there beside the one that must be

    def misuse(self, *arguments, **options) -> Result:
        return run([PROGRAM, *arguments], preload=LIBRARY, **options)

    def assert_message(self, result: Result, expected):
        """One line of the exact form; a size in it is that of the object that was misused."""
        lines = [line for line in result.err.splitlines() if not re.fullmatch(self.also, line)]
        self.assertEqual(len(lines), 1, result)
        found = re.fullmatch(expected(result), lines[0])
        self.assertIsNotNone(found, f"not {expected(result)}\n{result}")
        sizes = [int(group) for group in found.groups() if group and group.isdigit()]
        for size in sizes:
            self.assertGreaterEqual(size, usable(result), result)

    def assert_caught(self, expected, *arguments, at_once=False):
        """In each mode what must happen happens; if `at_once`, in the very call that is wrong."""
        for warmth, mode in MODES:
            with self.subTest(" ".join(map(str, arguments)), warmth=warmth, mode=mode):
                result = self.misuse(warmth, *arguments, **mode)
                self.assert_message(result, expected)
                if mode is WARN:
                    self.assertEqual(result.status, 0, result)
                    self.assertIn("end\n", result.out)
                    continue
                self.assertTrue(result.aborted, result)
                if at_once or mode is FULL:
                    self.assertNotIn("after", result.out, "not caught at the call itself")

    def assert_all_caught(self, expected, table, at_once=False):
        for arguments in table:
            self.assert_caught(expected, *arguments, at_once=at_once)


class FreedTwice(Case):
    def test_at_once(self):
        self.assert_all_caught(double_free, [("twice", size) for size in SIZES])

    def test_with_other_frees_between(self):
        table = [
            ("twice-with-others-between", size, number)
            for size in (1, 24, 64, 1000, 1100, 5000)
            for number in (1, 2, 10, 50, 100, 200, 500, 1000, 2000, 5000)
        ]
        self.assert_all_caught(double_free, table)

    def test_with_other_large_frees_between(self):
        table = [
            ("twice-with-others-between", size, number)
            for size in (20000, 200_000, 10_000_000)
            for number in (1, 10, 100)
        ]
        self.assert_all_caught(any_message, table)

    def test_amid_a_whole_slab(self):
        table = [
            ("twice-amid-others", size, number)
            for size in (16, 64, 1000, 5000)
            for number in (3, 20, 300, 4000)
        ]
        # The slab may have gone back to the pages when the second free comes.
        self.assert_all_caught(any_message, table)

    def test_with_other_sizes_between(self):
        self.assert_all_caught(
            any_message, [("twice-with-other-sizes-between", size) for size in SIZES]
        )

    def test_at_the_very_end(self):
        """There is no later call in which it could be noticed. A free of a small object does not
        wait for the object's memory to be looked at: such a one is noticed before the object is
        handed out a second time, which does not happen here."""
        table = [
            ("twice-at-the-very-end", size, number)
            for size, number in ((1100, 8000), (3000, 4000), (20000, 1000), (100_000, 100))
        ]
        self.assert_all_caught(any_message, table, at_once=True)

    def test_by_two_threads_while_much_is_in_use(self):
        table = [
            (case, size, number)
            for case in ("first-in-a-thread-that-stays", "second-in-a-thread")
            for size, number in ((1100, 10000), (3000, 6000), (20000, 1000), (100_000, 200))
        ]
        self.assert_all_caught(double_free, table, at_once=True)

    def test_after_trimming(self):
        self.assert_all_caught(any_message, [("twice-after-trimming", size) for size in SMALL])

    def test_first_free_was_by_realloc(self):
        self.assert_all_caught(any_message, [("twice-by-realloc", size) for size in SIZES])

    def test_with_a_stray_write_between(self):
        """Whatever marks a freed object is overwritten: it is caught at the end at the latest. That
        it was written to is seen too where a list goes through it."""
        self.also = r"snug: use after free: 0x\w+, a [1-9]\d*-byte object, was written to( or freed twice)?(, found 0x\w+)?"
        self.assert_all_caught(
            double_free, [("twice-with-a-write-between", size) for size in SMALL]
        )

    def test_by_two_threads(self):
        for case in (
            "first-in-a-thread-that-is-gone",
            "first-in-a-thread-that-stays",
            "second-in-a-thread",
        ):
            self.assert_all_caught(double_free, [(case, size) for size in SIZES])


class NotHandedOutTwice(Case):
    """Whatever happens after a double free, two live blocks never share memory."""

    def check(self, *arguments):
        for warmth, mode in MODES:
            with self.subTest(" ".join(map(str, arguments)), warmth=warmth, mode=mode):
                result = self.misuse(warmth, *arguments, **mode)
                self.assertNotIn("handed out twice", result.out)
                self.assertEqual(len(result.messages()), 1, result)
                if mode is WARN:
                    self.assertEqual(result.status, 0, result)
                else:
                    self.assertTrue(result.aborted, result)

    def test_at_once(self):
        for size in SIZES:
            self.check("twice-then-asked-for", size)

    def test_with_other_frees_between(self):
        for size in (1, 24, 64, 1000, 5000):
            for number in (1, 10, 100, 400, 5000):
                self.check("twice-then-asked-for", size, number)

    def test_by_two_threads(self):
        for size in SIZES:
            self.check("twice-by-threads-then-asked-for", size)


class Inside(Case):
    def offsets(self, size):
        return sorted(set(offset for offset in (1, 8, 16, size // 2) if 0 < offset < max(size, 16)))

    def test_every_size_and_offset(self):
        table = [("inside", size, offset) for size in SIZES for offset in self.offsets(size)]
        self.assert_all_caught(inside, table)

    def test_when_the_thread_ends(self):
        table = [("inside-in-a-thread", size, 8) for size in SIZES]
        self.assert_all_caught(inside, table)

    def test_page_boundaries_inside_large_blocks(self):
        table = [
            ("inside", size, offset)
            for size in (20000, 200_000, 10_000_000, 200_000_000)
            for offset in (4096, 8192, size // 4096 * 4096 - 4096, size - 1)
        ]
        self.assert_all_caught(inside, table)

    def test_while_the_program_goes_on(self):
        """It is caught when it leaves the magazine, long before the end."""
        self.assert_all_caught(inside, [("inside-then-much-traffic", 64, 8)])


class OnTheGrid(Case):
    def test_an_object_that_was_never_handed_out(self):
        """Only the full check must know at once; otherwise it is seen at the latest at exit."""
        for size in (16, 64, 1000):
            self.assert_caught(any_message, "never-handed-out", size)

    def test_one_that_was_handed_over_to_other_threads(self):
        """It waits in a depot when the program ends."""
        for size in (16, 64, 256, 512, 1000):
            for number in range(200, 4200, 400):
                self.assert_caught(any_message, "never-handed-out-amid-others", size, number)

    def test_one_past_a_large_block(self):
        for size in (200_000, 10_000_000, 200_000_000):
            self.assert_caught(any_message, "past-the-end", size)


class Overrun(Case):
    def test_the_header_of_a_medium_block_is_overwritten(self):
        """Such a block cannot be freed any more, and its heap is not whole: no warn mode here."""
        for size in (1100, 5000, 20000, 100_000):
            for warmth, mode in (("cold", DEFAULT), ("warm", DEFAULT), ("warm", FULL)):
                with self.subTest(size=size, warmth=warmth, mode=mode):
                    result = self.misuse(warmth, "after-an-overrun", size, **mode)
                    self.assertTrue(result.aborted, result)
                    where = hex(address(result, "block"))
                    expected = (
                        f"snug: invalid free: the header of the object at {where} was overwritten"
                    )
                    self.assertEqual(result.err.splitlines(), [expected])


class NotFromHere(Case):
    def test_memory_of_the_program(self):
        table = [
            (case,)
            for case in (
                "on-the-stack",
                "in-static-memory",
                "in-constant-memory",
                "in-code",
                "in-libc",
                "from-the-program-break",
            )
        ]
        self.assert_all_caught(not_allocated, table)

    def test_mapped_memory(self):
        for case in ("mapped-by-the-program", "mapped-without-access"):
            for offset in (0, 16, 4096, 4104, 32768):
                self.assert_caught(not_allocated, case, 0, offset)

    def test_wild_addresses(self):
        addresses = (
            0x1, 0x10, 0xFF0, 0x1000, 0xDEADBEEF, 0x41414141, 0x7FFFFFFFF000, 0x7FFFFFFFFFF0,
            0x800000000000, 0x8000000000000000, 0xDEADBEEFDEADBEEF, 0xFFFF800000000000,
            0xFFFFFFFF81000000, 0xFFFFFFFFFF600000, 0xFFFFFFFFFFFFFFF0, 0xFFFFFFFFFFFFFFFF,
            0x0123456789ABCDE0, 0x00FFFFFFFFFFF000,
        )  # fmt: skip
        self.assert_all_caught(not_allocated, [("at-an-address", where) for where in addresses])

    def test_every_mapping_of_the_process(self):
        result = self.misuse("warm", "every-mapping", **WARN)
        self.assertEqual(result.status, 0, result)
        bad = result.out.count("bad ")
        self.assertGreater(bad, 40)
        self.assertEqual(len(result.messages()), bad, result)


class OtherFunctions(Case):
    def test_realloc(self):
        def wrong(function):
            return lambda result: function(result, "realloc")

        for size in SMALL:
            self.assert_caught(any_message, "realloc-of-freed", size)
        for size in SIZES:
            self.assert_caught(wrong(inside), "realloc-inside", size, 8)
        for where in (0x10, 0xDEADBEEFDEADBEEF, 0x7FFFFFFFF000, 0xFFFFFFFFFFFFFFFF):
            self.assert_caught(wrong(not_allocated), "realloc-at-an-address", where)
        self.assert_caught(wrong(not_allocated), "realloc-of-static")

    def test_malloc_usable_size(self):
        def wrong(function):
            return lambda result: function(result, "malloc_usable_size")

        for size in SIZES:
            self.assert_caught(wrong(inside), "usable-size-inside", size, 8)
        for where in (0x10, 0xDEADBEEFDEADBEEF, 0x7FFFFFFFF000, 0xFFFFFFFFFFFFFFFF):
            self.assert_caught(wrong(not_allocated), "usable-size-at-an-address", where)
        self.assert_caught(wrong(not_allocated), "usable-size-of-static")


class Warned(Case):
    def test_each_of_many_is_named(self):
        result = self.misuse("warm", "many", 0, 200, **WARN)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(result.messages()), 200, result)
        self.assertEqual(len(result.err.splitlines()), 200, result)


def written(result: Result) -> str:
    block = re.escape(hex(address(result, "block")))
    return (
        rf"snug: use after free: {block}, (a \d+-byte object, )?was written to"
        rf"( or freed twice)?, found 0x[0-9a-f]+"
    )


def damaged(result: Result) -> str:
    block = re.escape(hex(address(result, "block")))
    return rf"snug: invalid \w+: the header of the object at {block} was overwritten"


class WrittenTo(Case):
    """Free memory, for which nobody asks any more, and for which somebody does."""

    MODES = (("cold", DEFAULT), ("warm", DEFAULT), ("cold", FULL))

    def assert_noticed(self, expected, *arguments):
        for warmth, mode in self.MODES:
            with self.subTest(" ".join(map(str, arguments)), warmth=warmth, mode=mode):
                result = self.misuse(warmth, *arguments, **mode)
                self.assertTrue(result.aborted, result)
                self.assertRegex(result.err.splitlines()[0], f"^{expected(result)}$", result)

    def test_when_free(self):
        for size in (16, 64, 200, 5000):
            for count in (1, 8, 16):
                self.assert_noticed(written, "written-when-free-then-asked-for", size, count)

    def test_when_free_at_the_end(self):
        for size in (16, 64, 200):
            for count in (1, 8, 16):
                self.assert_noticed(written, "written-when-free", size, count)
        for size in (600, 5000, 100_000):
            self.assert_noticed(written, "written-when-free", size, 8)

    def test_the_header_of_a_free_block(self):
        for size in (5000, 60_000):
            self.assert_noticed(damaged, "written-before-when-free", size)

    def test_past_the_end_of_the_last_block(self):
        for size in (16, 64, 200, 600, 5000, 60_000):
            for count in (1, 8, 64):
                result = self.misuse("cold", "written-past-the-end", size, count)
                self.assertTrue(result.aborted, result)
                self.assertRegex(result.err, r"^snug: (overflow|invalid exit|use after free): ")


class Sized(Case):
    """What a program says of the size of a block that it frees is looked at in full checks, and in
    the hardened preset."""

    def test_right(self):
        for mode in (DEFAULT, FULL, HARDENED):
            result = self.misuse("cold", "sizes-stated-right", **mode)
            self.assertEqual((result.status, result.err), (0, ""), result)

    def test_wrong(self):
        for size, stated in ((64, 16), (64, 48), (64, 65), (64, 200), (1000, 100), (1000, 100_000),
                             (5000, 1250), (5000, 20_000), (300_000, 299_999), (300_000, 300_001)):  # fmt: skip
            with self.subTest(size=size, stated=stated):
                result = self.misuse("cold", "size-stated-wrong", size, stated, **FULL)
                self.assertTrue(result.aborted, result)
                bad = hex(address(result, "bad"))
                expected = f"snug: invalid operator delete: {bad} is a {usable(result)}-byte object"
                self.assertEqual(result.err, f"{expected}, not one of {stated}\n")
                result = self.misuse("cold", "size-stated-wrong", size, stated)
                self.assertEqual((result.status, result.err), (0, ""), result)

    def test_wrong_in_the_hardened_preset(self):
        for size, stated in ((0, 48), (64, 63), (64, 65), (1000, 100_000), (5000, 4999),
                             (300_000, 5000), (300_000, 300_001)):  # fmt: skip
            with self.subTest(size=size, stated=stated):
                result = self.misuse("cold", "size-stated-wrong", size, stated, **HARDENED)
                self.assertTrue(result.aborted, result)
                bad = hex(address(result, "bad"))
                self.assertRegex(
                    result.err,
                    rf"^snug: invalid (free|operator delete): {bad} is a {size}-byte object, "
                    rf"not one of {stated}\n$",
                )


class Reports(Case):
    def test_json(self):
        result = self.misuse("cold", "twice", 64, SNUG_MISUSE_FORMAT="json")
        self.assertTrue(result.aborted, result)
        told = json.loads(result.err)
        self.assertEqual(result.err.count("\n"), 1)
        self.assertEqual(told["misuse"], "double-free")
        self.assertEqual(told["call"], "free")
        self.assertEqual(int(told["address"], 16), address(result, "bad"))
        self.assertEqual(told["bytes"], 64)
        self.assertEqual(told["process"], told["thread"])
        self.assertRegex(told["line"], f"^{double_free(result)}$")

    def test_trap(self):
        result = self.misuse("cold", "twice", 64, SNUG_MISUSE="trap")
        self.assertEqual(result.status, -signal.SIGTRAP, result)
        self.assert_message(result, double_free)
        self.assertNotIn("after", result.out)

    def test_stacks_of_a_sample(self):
        sampled = {"SNUG_PROFILE": "1", "SNUG_PROFILE_BYTES": "1"}
        for size in (64, 5000, 300_000):
            with self.subTest(size=size):
                result = self.misuse("cold", "twice", size, **sampled)
                self.assertTrue(result.aborted, result)
                first, *stacks = result.err.splitlines()
                self.assertRegex(first, "^snug: .* free: 0x")
                self.assertEqual(len(stacks), 1, result)
                self.assertRegex(stacks[0], "^snug: allocated at( 0x[0-9a-f]+){3,}$")
                told = self.misuse("cold", "twice", size, SNUG_MISUSE_FORMAT="json", **sampled)
                self.assertGreaterEqual(len(json.loads(told.err)["allocated"]), 3)
                plain = self.misuse("cold", "twice", size)
                self.assertEqual(plain.err.count("\n"), 1, plain)

    def test_a_handler_that_returns(self):
        for size in (64, 5000, 300_000):
            for mode, ends in ((DEFAULT, -signal.SIGABRT), (WARN, 0)):
                with self.subTest(size=size, mode=mode):
                    result = self.misuse("cold", "told-and-returned", size, **mode)
                    self.assertEqual(result.status, ends, result)
                    self.assert_message(result, double_free)
                    bad = hex(address(result, "bad"))
                    self.assertIn(f"told double-free free {bad} ", result.out)
                    self.assertIn(result.err, result.out, "the line is not what was said")

    def test_a_handler_that_does_not(self):
        for size in (64, 5000, 300_000):
            result = self.misuse("cold", "told-and-left", size)
            self.assertEqual(result.status, 0, result)
            self.assertIn("left\nend\n", result.out)


class Handlers(Case):
    """The program's own handler may use the heap, and need not return, wherever the misuse is found."""

    def handled(self, *arguments, **options) -> Result:
        result = self.misuse(*arguments, **options)
        self.assertEqual(result.status, 0, str(result)[:5000])
        self.assertIn("end\n", result.out)
        return result

    def count(self, result: Result, what: str) -> int:
        return int(re.search(rf"^{what} (\d+)$", result.out, re.MULTILINE).group(1))

    def test_one_that_takes_blocks_of_the_same_class(self):
        for size in (80, 160):
            result = self.handled("cold", "told-and-taking", size, 8, **WARN)
            self.assertEqual(len(result.messages()), 1, result)
            self.assertRegex(result.err, rf"^snug: overflow: 0x\w+, a {size}-byte object, never handed out, ")

    def test_one_that_frees_blocks_of_the_same_class(self):
        for warmth in ("cold", "warm"):
            for number in (0, 5):
                with self.subTest(warmth=warmth, number=number):
                    result = self.handled(warmth, "told-and-freeing", 64, number, **WARN)
                    twice = self.count(result, "twice")
                    self.assertEqual(self.count(result, "told"), twice)
                    self.assertEqual(len(result.messages()), twice)

    def test_one_that_takes_blocks_when_many_are_found_at_once(self):
        for number in (100, 500):
            result = self.handled("cold", "told-of-many", 96, number, **WARN)
            twice, told = self.count(result, "twice"), self.count(result, "told")
            self.assertEqual(len(result.messages()), twice, str(result)[:5000])
            self.assertTrue(0 < told <= twice, f"told {told} times of {twice}")

    def test_one_that_uses_heaps_while_they_give_up_caches(self):
        for number in (3, 10):
            result = self.handled("cold", "told-and-using-heaps", 64, number, **WARN)
            self.assert_message(result, any_message)
            self.assertRegex(result.out, r"(?s)after\ntold .*\nused\nend\n$")

    def test_one_that_leaves_while_heaps_give_up_caches(self):
        for number in (3, 10):
            result = self.handled("cold", "told-and-left-a-heap", 64, number)
            self.assert_message(result, any_message)
            self.assertRegex(result.out, r"(?s)after\ntold .*\nleft\nend\n$")

    def test_one_that_leaves_when_many_are_found_at_once(self):
        """What there is no room for is only said, and does not end the program."""
        result = self.handled("cold", "told-and-left-a-heap-of-many", 64, 10)
        self.assertGreater(len(result.messages()), 1, result)
        self.assertRegex(result.out, r"(?s)after\ntold .*\nleft\nend\n$")


class NoFalseAlarms(Case):
    def quiet(self, *command, **options):
        result = run(command, preload=LIBRARY, timeout=1200, **options)
        self.assertEqual((result.status, result.err), (0, ""))

    def test_a_program_that_does_nothing_wrong(self):
        for size in SIZES:
            self.quiet(PROGRAM, "warm", "nothing-wrong", str(size))

    def test_ten_million_operations(self):
        self.quiet(NO_FALSE_ALARMS)

    def test_full_check(self):
        self.quiet(NO_FALSE_ALARMS, "300000", **FULL)


if __name__ == "__main__":
    LIBRARY, PROGRAM, NO_FALSE_ALARMS = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=1)

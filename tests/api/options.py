#!/usr/bin/env python3
"""SNUG_* variables: mistakes are named once and the default holds; statistics go where they should.

    options.py LIBRARY GREETING     GREETING: the program built from greeting.c

Nothing that a user writes into such a variable, and no place that cannot be written to, may change
what the program itself does.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import Result, run  # noqa: E402

LIBRARY = PROGRAM = None
GREETING = "hello from a program that allocates\n"


def greet(*arguments: str, **options: str) -> Result:
    return run([PROGRAM, *arguments], preload=LIBRARY, **options)


class Case(unittest.TestCase):
    def assert_greeted(self, result: Result):
        """The program did what it does without any option, with the status it always has."""
        self.assertEqual(result.status, 42, result)
        self.assertIn(GREETING, result.out)


class Mistakes(Case):
    def assert_one_message(self, expected: str, **options: str):
        result = greet(**options)
        self.assert_greeted(result)
        self.assertEqual(result.messages(), [expected], result)
        self.assertEqual(result.err, expected + "\n")

    def test_no_option_no_message(self):
        result = greet()
        self.assert_greeted(result)
        self.assertEqual(result.err, "")
        self.assertEqual(result.out, GREETING)

    def test_unknown_names_get_the_nearest(self):
        for wrong, right in {
            "SNUG_MISUS": "SNUG_MISUSE",
            "SNUG_MISSUSE": "SNUG_MISUSE",
            "SNUG_MISUES": "SNUG_MISUSE",
            "SNUG_STAT": "SNUG_STATS",
            "SNUG_STATTS": "SNUG_STATS",
            "SNUG_CHEK": "SNUG_CHECK",
            "SNUG_CHECKS": "SNUG_CHECK",
        }.items():
            with self.subTest(wrong):
                self.assert_one_message(
                    f"snug: {wrong} is not an option; did you mean {right}?", **{wrong: "warn"}
                )

    def test_an_unknown_name_with_nothing_near(self):
        result = greet(SNUG_XYZZY_PLUGH_QUUX="1")
        self.assert_greeted(result)
        self.assertEqual(len(result.messages()), 1, result)
        self.assertEqual(result.err, "snug: SNUG_XYZZY_PLUGH_QUUX is not an option; see: snug options\n")

    def test_names_that_only_look_alike_are_not_ours(self):
        result = greet(SNUGGLE="1", snug_misuse="x", MY_SNUG_MISUSE="x", SNUG="1")
        self.assert_greeted(result)
        self.assertEqual(result.err, "")

    def test_bad_values_name_the_choices_and_the_default_holds(self):
        self.assert_one_message(
            "snug: SNUG_MISUSE=foo is not one of abort, warn, trap; using abort", SNUG_MISUSE="foo"
        )
        self.assert_one_message(
            "snug: SNUG_CHECK=everything is not one of fast, full; using fast",
            SNUG_CHECK="everything",
        )

    def test_the_default_holds_after_a_bad_value(self):
        result = greet("double-free", SNUG_MISUSE="foo")
        self.assertTrue(result.aborted, result)
        self.assertIn("using abort", result.err)

    def test_empty_and_odd_values_do_no_harm(self):
        for name in ("SNUG_MISUSE", "SNUG_CHECK", "SNUG_STATS"):
            for value in ("", " ", "%s%n", "=", "a" * 5000, "\x01\x7f", "é", "0", "-1"):
                with self.subTest(name=name, value=value[:10]), tempfile.TemporaryDirectory() as place:
                    here = os.getcwd()
                    os.chdir(place)  # such a value may be a file's name
                    try:
                        result = greet(**{name: value})
                    finally:
                        os.chdir(here)
                    self.assert_greeted(result)
                    self.assertLessEqual(len(result.messages()), 1, result)

    def test_each_mistake_is_named_once_although_many_threads_start(self):
        result = greet("threads", SNUG_MISUS="1", SNUG_CHECK="2")
        self.assert_greeted(result)
        self.assertEqual(len(result.messages()), 2, result)


class Statistics(Case):
    def test_none_without_being_asked(self):
        self.assertEqual(greet().err, "")

    def test_to_stderr(self):
        result = greet(SNUG_STATS="stderr")
        self.assert_greeted(result)
        self.assertEqual(result.out, GREETING)
        self.assertRegex(result.err, r"\d")
        self.assertGreater(len(result.err.splitlines()), 2)

    def test_to_stdout(self):
        result = greet(SNUG_STATS="stdout")
        self.assert_greeted(result)
        self.assertEqual(result.err, "")
        self.assertGreater(len(result.out.splitlines()), 3)

    def test_to_a_file(self):
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "statistics"
            result = greet(SNUG_STATS=str(file))
            self.assert_greeted(result)
            self.assertEqual((result.out, result.err), (GREETING, ""))
            self.assertGreater(len(file.read_text().splitlines()), 2)
            self.assertFalse(file.stat().st_mode & 0o111, "the file is executable")

    def test_to_a_place_that_cannot_be_written(self):
        for path in ("/proc/nothing/here", "/", "/dev/full/x"):
            with self.subTest(path):
                result = greet(SNUG_STATS=path)
                self.assert_greeted(result)
                self.assertEqual(len(result.messages()), 1, result)
                self.assertIn(path, result.err)
                self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_a_full_disk_does_no_harm(self):
        self.assert_greeted(greet(SNUG_STATS="/dev/full"))

    def test_a_forked_child_does_no_harm(self):
        result = greet("fork", SNUG_STATS="stderr")
        self.assert_greeted(result)


class ClosedStreams(Case):
    """A daemon has no stderr; what would have been said is lost, and nothing else."""

    def status_of(self, *arguments: str, close: tuple[int, ...] = (2,), **options: str) -> int:
        environment = {**os.environ, **options, "LD_PRELOAD": str(LIBRARY)}
        return subprocess.run(
            [PROGRAM, *arguments], env=environment, timeout=60, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            preexec_fn=lambda: [os.close(descriptor) for descriptor in close],
        ).returncode  # fmt: skip

    def test_statistics_with_stderr_closed(self):
        self.assertEqual(self.status_of(SNUG_STATS="stderr"), 42)

    def test_a_bad_option_with_stderr_closed(self):
        self.assertEqual(self.status_of(SNUG_MISUS="warn"), 42)

    def test_misuse_with_stderr_closed_still_aborts(self):
        self.assertEqual(self.status_of("double-free"), -6)

    def test_misuse_in_warn_mode_with_stderr_closed_goes_on(self):
        self.assertEqual(self.status_of("double-free", SNUG_MISUSE="warn"), 42)

    def test_all_streams_closed(self):
        self.assertEqual(self.status_of(close=(0, 1, 2), SNUG_STATS="stderr", SNUG_NO="1"), 42)

    def test_stderr_is_a_broken_pipe(self):
        """With SIGPIPE ignored, as daemons have it: the write fails, and that is all."""
        reader, writer = os.pipe()
        os.close(reader)
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "SNUG_STATS": "stderr"}
        done = subprocess.run([PROGRAM], env=environment, stderr=writer, timeout=60, check=False,
                              stdout=subprocess.DEVNULL, restore_signals=False)  # fmt: skip
        os.close(writer)
        self.assertEqual(done.returncode, 42)


class Children(Case):
    def test_an_exec_keeps_the_options(self):
        result = greet("exec", SNUG_MISUS="1")
        self.assert_greeted(result)
        self.assertEqual(len(result.messages()), 2, "one message from each process image")
        self.assertEqual(len(set(re.findall(r"SNUG_\w+ is not", result.err))), 1)


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=1)

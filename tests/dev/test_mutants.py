"""Tests tests/mutants/mutants.py on a small tree of its own: that a mutant which breaks nothing is
reported as one that survived, and what else could make the list look better than it is.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MUTANTS = Path(__file__).resolve().parents[1] / "mutants" / "mutants.py"

TREE = {
    "CMakePresets.json": """{"version": 3, "configurePresets": [{"name": "debug", "generator": "Ninja",
        "binaryDir": "${sourceDir}/build/cmake-debug"}]}""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.21)
        project(small LANGUAGES C)
        include(CTest)
        add_executable(sums src/sums.c src/test.c)
        add_executable(rest src/rest.c)
        add_executable(others src/sums.c src/test.c)
        add_test(NAME sums.small COMMAND sums small)
        add_test(NAME sums.large COMMAND env PROGRAM=$<TARGET_FILE:others> sh -c "\\"$PROGRAM\\" large")
        add_test(NAME sums.skipped COMMAND sums skipped)
        set_tests_properties(sums.skipped PROPERTIES SKIP_RETURN_CODE 77)
        add_test(NAME sums.wrong COMMAND sums wrong)
        """,
    "src/sums.c": """int sum(int a, int b)
        {
            int most = 100;
            for (; b > 0; b--)
                a++;
            return a < most ?   a
                            : most;
        }
        """,
    "src/rest.c": "int main(void) { return 0; }\n",
    "src/test.c": """#include <string.h>
        int sum(int a, int b);
        int main(int count, char **words)
        {
            if (count < 2 || strcmp(words[1], "wrong") == 0)
                return 1;
            if (strcmp(words[1], "skipped") == 0)
                return 77;
            return strcmp(words[1], "small") == 0 ? sum(1, 2) != 3 : sum(70, 70) != 100;
        }
        """,
}

BOUND = """[bound] sums have no bound
preset debug
tests ^sums\\.(small|large)$
- a < most ? a : most
+ a
"""
NOTHING = """[nothing] nothing at all
preset debug
tests ^sums\\.(small|large)$
- a < most ? a : most
+ most > a ? a : most
"""
UNTESTED = BOUND.replace("bound", "untested", 1).replace("(small|large)", "small")
ENDLESS = NOTHING.replace("nothing", "endless", 1).replace("- a < most ? a : most", "- b--").replace(
    "+ most > a ? a : most", "+ b = 1"
)
NO_C = NOTHING.replace("nothing", "no_c", 1).replace("+ most", "+ least")
SKIPPED = BOUND.replace("bound", "skipped", 1).replace("(small|large)", "skipped")


class OnASmallTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.tree = Path(cls.place.name, "tree")
        cls.list = Path(cls.place.name, "list.txt")

    def setUp(self):
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_on(self, text, *arguments):
        """Exit status, lines of output, lines of errors."""
        self.list.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, MUTANTS, "--tree", self.tree, "--table", self.list, *arguments],
            capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def test_one_that_breaks_nothing_survives(self):
        status, lines, errors = self.run_on(BOUND + NOTHING + UNTESTED)
        self.assertEqual(errors, [])
        self.assertEqual(lines, [
            "bound: killed by sums.large",
            "nothing: SURVIVED: nothing at all",
            "untested: SURVIVED: sums have no bound",
            "1 killed, 2 survived",
        ])
        self.assertEqual(status, 1)

    def test_all_are_killed(self):
        self.assertEqual(self.run_on(BOUND), (0, ["bound: killed by sums.large", "1 killed, 0 survived"], []))

    def test_each_is_tried_on_the_unchanged_tree(self):
        """What the one before it did is undone, in the source and in what was built of it."""
        _, lines, _ = self.run_on(BOUND + NOTHING.replace("(small|large)", "large") + BOUND.replace("bound", "again", 1))
        self.assertEqual(lines[:3], ["bound: killed by sums.large", "nothing: SURVIVED: nothing at all",
                                     "again: killed by sums.large"])
        self.assertEqual((self.tree / "src/sums.c").read_text(encoding="utf-8"), TREE["src/sums.c"])
        copy = self.tree / "build/mutants-debug/src/sums.c"
        self.assertEqual(copy.read_text(encoding="utf-8"), TREE["src/sums.c"])

    def test_one_that_hangs_is_killed(self):
        _, lines, _ = self.run_on(ENDLESS, "--seconds", "2")
        self.assertEqual(lines, ["endless: killed by sums.small", "1 killed, 0 survived"])

    def test_one_that_does_not_build_is_not_killed(self):
        status, lines, _ = self.run_on(NO_C)
        self.assertIn("no_c: BROKEN: does not build:", lines)
        self.assertEqual(lines[-2:], ["1 did not build", "0 killed, 0 survived"])
        self.assertEqual(status, 1)

    def test_one_whose_tests_are_skipped_is_not_killed(self):
        status, lines, _ = self.run_on(SKIPPED)
        self.assertEqual(lines, ["skipped: skipped: no test of it can run on this machine", "1 skipped",
                                 "0 killed, 0 survived"])
        self.assertEqual(status, 0)

    def test_a_test_that_fails_anyhow_kills_nothing(self):
        status, lines, errors = self.run_on(BOUND.replace("large", "wrong"))
        self.assertEqual((status, lines), (2, []))
        self.assertIn("mutants: sums.wrong fails without a mutant: ***Failed", errors[0])

    def test_a_place_that_is_gone(self):
        """Of any mutant, whichever were asked for; and nothing is begun."""
        gone = NOTHING.replace("- a <", "- a <=").replace("preset", "file src/*.c\npreset")
        for arguments in ([], ["--places"], ["bound"]):
            self.assertEqual(self.run_on(BOUND + gone, *arguments),
                             (2, [], ["mutants: mutant nothing: its place in src/*.c is gone"]))

    def test_a_place_that_is_there_twice(self):
        self.write("src/rest.c", TREE["src/rest.c"] + TREE["src/sums.c"])
        self.assertEqual(self.run_on(BOUND, "--places"),
                         (2, [], ["mutants: mutant bound: its place in src/**/*.[ch] is there 2 times"]))

    def test_a_test_that_is_not_there(self):
        self.assertEqual(self.run_on(BOUND.replace("(small|large)", "none")),
                         (2, [], ["mutants: mutant bound: there is no test ^sums\\.none$ in debug"]))

    def test_a_list_that_is_wrong(self):
        for text, error in (
            (BOUND.replace("preset debug", "preset fast"), "list.txt:1: mutant bound has no preset, tests or old text"),
            (BOUND.replace("- a", "a"), "list.txt:4: this is no line of a mutant: a < most ? a : most"),
            (BOUND + BOUND, "mutant bound: there are two of that name"),
        ):
            self.assertEqual(self.run_on(text), (2, [], [f"mutants: {error}"]))


if __name__ == "__main__":
    unittest.main()

"""Tests scripts/test_summary.py: each way in which a test can end is counted as what it is."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SUMMARY = Path(__file__).resolve().parents[2] / "scripts" / "test_summary.py"

PASSED = '<testcase name="ok" status="run"><system-out>fine</system-out></testcase>'
FAILED = '<testcase name="bad" status="fail"><failure message=""/><system-out>no</system-out></testcase>'
SKIPPED = (
    '<testcase name="redis" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
    "<system-out>starting\nSKIP: no redis-server here\n</system-out></testcase>"
)
NOT_FOUND = (
    '<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/>'
    "<system-out>Unable to find executable: gone</system-out></testcase>"
)
DISABLED = '<testcase name="off" status="disabled"><system-out>Disabled</system-out></testcase>'
CMOCKA = (
    '<testcase name="unit" status="run"><system-out>[ RUN      ] test_a\n[  SKIPPED ] test_a\n'
    "[  SKIPPED ] 1 test(s), listed below:\n</system-out></testcase>"
)
CARGO = """
running 4 tests
test carries_the_library ... ok
test status_passes ... FAILED
test long::run ... ignored, takes an hour
test other ... ok

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 2 tests
test more       ... ok
test yama_there ... ignored (no Yama)

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def ctest(*cases):
    return f'<?xml version="1.0"?><testsuite name="x">{"".join(cases)}</testsuite>'


def summarise(files):
    """Runs the summary on a folder of these files; gives (status, lines of output)."""
    with tempfile.TemporaryDirectory(prefix="summary of snug ") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, SUMMARY, folder], stdout=subprocess.PIPE, text=True, check=False
        )
        return run.returncode, run.stdout.splitlines()


class Summary(unittest.TestCase):
    def assert_summary(self, files, status, last_line, *lines):
        got_status, got_lines = summarise(files)
        self.assertEqual((got_status, got_lines[-1]), (status, last_line))
        for line in lines:
            self.assertIn(line, got_lines)

    def test_passed(self):
        files = {"release.xml": ctest(PASSED), "debug.xml": ctest(PASSED)}
        self.assert_summary(files, 0, "2 passed, 0 failed, 0 skipped")

    def test_failed(self):
        files = {"release.xml": ctest(PASSED, FAILED), "release.failed": ""}
        self.assert_summary(files, 1, "1 passed, 1 failed, 0 skipped", "  release: bad (failed)")

    def test_skipped_with_the_reason(self):
        files = {"release.xml": ctest(PASSED, SKIPPED, DISABLED)}
        self.assert_summary(
            files,
            0,
            "1 passed, 0 failed, 2 skipped",
            "  release: redis (no redis-server here)",
            "  release: off (disabled)",
        )

    def test_program_that_is_not_there_is_a_failure(self):
        files = {"release.xml": ctest(PASSED, NOT_FOUND)}
        self.assert_summary(
            files, 1, "1 passed, 1 failed, 0 skipped", "  release: gone (Unable to find executable)"
        )

    def test_part_that_cmocka_skipped(self):
        files = {"release.xml": ctest(CMOCKA)}
        self.assert_summary(
            files, 0, "1 passed, 0 failed, 1 skipped", "  release: unit: test_a (it says so)"
        )

    def test_cargo(self):
        self.assert_summary(
            {"tool.log": CARGO, "tool.failed": ""},
            1,
            "3 passed, 1 failed, 2 skipped",
            "  tool: status_passes (failed)",
            "  tool: long::run (takes an hour)",
            "  tool: yama_there (no Yama)",
        )

    def test_step_that_fails_without_naming_a_test(self):
        files = {"release.xml": ctest(PASSED), "tool.log": "test a ... ", "tool.failed": ""}
        self.assert_summary(
            files,
            1,
            "1 passed, 1 failed, 0 skipped",
            "  tool (ended with an error that names no test)",
        )

    def test_steps_that_could_not_begin(self):
        files = {
            "release.xml": ctest(PASSED),
            "broken.txt": "asan: does not build\n",
            "skipped.txt": "tool: no Rust 1.85 or newer\n",
        }
        self.assert_summary(
            files,
            1,
            "1 passed, 1 failed, 1 skipped",
            "  asan (does not build)",
            "  tool (no Rust 1.85 or newer)",
        )

    def test_results_cut_short(self):
        self.assert_summary(
            {"release.xml": "<testsuite><testcase"}, 1, "0 passed, 1 failed, 0 skipped"
        )

    def test_nothing_ran(self):
        self.assert_summary(
            {"release.xml": ctest()}, 1, "0 passed, 0 failed, 0 skipped", "No test ran."
        )


if __name__ == "__main__":
    unittest.main()

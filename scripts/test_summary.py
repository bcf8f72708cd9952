#!/usr/bin/env python3
"""Sums up what ./dev test ran, from the files that the steps left in a folder.

Usage: test_summary.py FOLDER

  PRESET.xml          what ctest says of one preset, in JUnit form
  tool.log            the output of `cargo test`
  PRESET.failed       that step's exit status was not 0; so if it names no failure itself, one is
  tool.failed         counted for it
  broken.txt          `name: why` of steps that could not begin; each is a failure
  skipped.txt         `name: why` of steps left out; each is skipped

Prints each failed and each skipped test by name, and a last line `N passed, N failed, N skipped`.
The exit status is 0 if nothing failed and something passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


class Summary:
    def __init__(self):
        self.passed = 0
        self.failed = []  # (name, why)
        self.skipped = []  # (name, why)

    def read(self, folder):
        for file in sorted(folder.glob("*.xml")):
            self.read_ctest(file)
        if (folder / "tool.log").exists():
            self.read_cargo((folder / "tool.log").read_text(encoding="utf-8", errors="replace"))
        self.failed += named_lines(folder / "broken.txt")
        self.skipped += named_lines(folder / "skipped.txt")
        for mark in sorted(folder.glob("*.failed")):
            if not any(name.split(":")[0] == mark.stem for name, _ in self.failed):
                self.failed.append((mark.stem, "ended with an error that names no test"))

    def read_ctest(self, file):
        try:
            cases = list(ElementTree.parse(file).getroot().iter("testcase"))
        except ElementTree.ParseError as error:
            self.failed.append((file.stem, f"{file.name} cannot be read: {error}"))
            return
        for case in cases:
            name = f"{file.stem}: {case.get('name')}"
            output = case.findtext("system-out") or ""
            status, skip = case.get("status"), case.find("skipped")
            if status == "run":
                self.passed += 1
                self.skipped += [(f"{name}: {part}", "it says so") for part in cmocka_skips(output)]
            elif status == "disabled":
                self.skipped.append((name, "disabled"))
            elif skip is not None and skip.get("message", "").startswith("SKIP_"):
                self.skipped.append((name, reason(output)))
            else:  # "fail", and "notrun" for want of a program or a fixture
                why = skip.get("message") if skip is not None else "failed"
                self.failed.append((name, why))

    def read_cargo(self, log):
        """A harness prints `test NAME ... ok|FAILED|ignored` and a sum for each binary. What stands
        behind `ignored` is `, why` from Rust's own, ` (why)` from libtest-mimic."""
        for name, result, why, why_mimic in re.findall(
            r"^test (\S.*?) +\.\.\. (?:.*?)(ok|FAILED|ignored)(?:, (.*)| \((.*)\))?$",
            log,
            re.MULTILINE,
        ):
            if result == "FAILED":
                self.failed.append((f"tool: {name}", "failed"))
            elif result == "ignored":
                self.skipped.append((f"tool: {name}", why or why_mimic or "ignored"))
        for passed in re.findall(r"^test result: \w+\. (\d+) passed;", log, re.MULTILINE):
            self.passed += int(passed)


def cmocka_skips(output):
    """Names of tests that a passing cmocka program skipped."""
    return re.findall(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", output, re.MULTILINE)


def reason(output):
    """The last line that speaks of skipping, else the last line, without the word itself."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    speaking = [line for line in lines if re.search(r"\bskip", line, re.IGNORECASE)]
    if not lines:
        return "no reason given"
    return re.sub(r"^skip(?:ped|ping)?\s*:\s*", "", (speaking or lines)[-1], flags=re.IGNORECASE)


def named_lines(file):
    if not file.exists():
        return []
    return [tuple(line.split(": ", 1)) for line in file.read_text(encoding="utf-8").splitlines()]


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(__doc__.strip())
        return 2
    summary = Summary()
    summary.read(Path(arguments[0]))
    for title, entries in (("Skipped:", summary.skipped), ("Failed:", summary.failed)):
        if entries:
            print(f"\n{title}")
            for name, why in entries:
                print(f"  {name} ({why})")
    if not summary.passed and not summary.failed:
        print("\nNo test ran.")
    counts = summary.passed, len(summary.failed), len(summary.skipped)
    print("\n%d passed, %d failed, %d skipped" % counts)
    return 1 if summary.failed or not summary.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs modules of CPython's own test suite and prints one line for each test: its name and what
became of it, in order and without times, so that two runs can be compared byte for byte.
usage: run_unittests.py MODULE..."""
import io
import sys
import unittest
import warnings


class Lines(unittest.TestResult):
    """Collects the outcome of each test as a line of text."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def add(self, test, outcome):
        self.lines.append(f"{test.id()}: {outcome}")

    def addSuccess(self, test):
        self.add(test, "ok")

    def addSkip(self, test, reason):
        self.add(test, "skipped")

    def addFailure(self, test, err):
        self.add(test, "FAILED " + err[0].__name__)

    def addError(self, test, err):
        self.add(test, "ERROR " + err[0].__name__)

    def addExpectedFailure(self, test, err):
        self.add(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        self.add(test, "unexpected success")


def main(modules):
    warnings.simplefilter("ignore")
    result = Lines()
    console, sys.stdout, sys.stderr = sys.stdout, io.StringIO(), io.StringIO()
    for module in modules:
        unittest.defaultTestLoader.loadTestsFromName("test." + module).run(result)
    sys.stdout, sys.stderr = console, sys.__stderr__
    print("\n".join(result.lines))
    passed = sum(line.endswith(": ok") for line in result.lines)
    print(f"{passed} of {len(result.lines)} ok")
    return 0 if passed > 0.9 * len(result.lines) > 0 else 1


sys.exit(main(sys.argv[1:]))

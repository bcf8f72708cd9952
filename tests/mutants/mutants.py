#!/usr/bin/env python3
"""Breaks the library on purpose, one policy or guard at a time, and expects the tests to notice.

usage: mutants.py [--preset PRESET] [--all] [--places] [--list] [NAME...]

A mutant is the library with one small change that compiles: a bound that is doubled, a guard that
is left out. Where the tests pass all the same, no test asserts that policy: the mutant survived, and
a test is missing. The mutants stand in mutants.txt, which says how to write one.

    --preset PRESET   only those of debug, or of release
    --all             runs all unit, model, stress, api and traps tests on each, not only the few
                      that should kill it
    --places          only looks whether the place of each is still in src/
    --list            only prints their names, presets, files and what each breaks
    NAME...           only these, by name or by a pattern as in `mag*`

The work is done in a copy of the tree, build/mutants-PRESET, which is configured and built once;
for each mutant what changed is built, the tests run up to the first that fails, and the file is
restored. At the beginning the same tests must pass on the unchanged copy, or being killed would
mean nothing. Nothing of the tree itself is written to.

Prints a line for each mutant,
    NAME: killed by TEST
    NAME: SURVIVED: what it broke
    NAME: skipped: no test of it can run on this machine
and `N killed, M survived` at the end. The exit status is 0 if none survived and all could be built;
2 if the list is wrong, as when `mutant NAME: its place in FILE is gone`.
"""

import argparse
import fnmatch
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRESETS = ("debug", "release")
ALL_TESTS = r"^(unit|model|stress|api|traps)\."
# What the copy is made of; the rest is not built there, but for what tests read.
LEFT_OUT = {"build", ".git", "target", "__pycache__", ".cargo"}
SECONDS_MOST = 300  # for the tests of one mutant: one that hangs is killed, too
ANYWHERE = "src/**/*.[ch]"
ADD_TEST = re.compile(r"^add_test\((?:\[=*\[)?([^\s\]]+)(?:\]=*\])? (.*)\)$", re.MULTILINE)


class Wrong(Exception):
    """What ends the whole run, in one line."""


@dataclass
class Mutant:
    name: str
    breaks: str  # what it breaks, in words
    line: int  # in the list
    file: str = ANYWHERE  # patterns, blanks between them
    preset: str = ""
    tests: str = ""  # a regular expression for names of tests
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)


# ---- The list ----


def read_list(path):
    mutants = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        begin = re.fullmatch(r"\[([\w-]+)\] (\S.*)", line)
        if begin:
            mutants.append(Mutant(begin[1], begin[2], number))
            continue
        word, _, rest = line.partition(" ")
        if not mutants or word not in ("file", "preset", "tests", "-", "+"):
            raise Wrong(f"{path.name}:{number}: this is no line of a mutant: {line}")
        mutant = mutants[-1]
        if word == "-":
            mutant.old.append(rest)
        elif word == "+":
            mutant.new.append(rest)
        else:
            setattr(mutant, word, rest.strip())
    for mutant in mutants:
        if mutant.preset not in PRESETS or not mutant.tests or not mutant.old:
            raise Wrong(f"{path.name}:{mutant.line}: mutant {mutant.name} has no preset, tests or old text")
    names = [mutant.name for mutant in mutants]
    for name in set(names):
        if names.count(name) > 1:
            raise Wrong(f"mutant {name}: there are two of that name")
    return mutants


def place_of(tree, mutant):
    """The file of a mutant, where in it the old text stands, and the file's text."""
    words = " ".join(mutant.old).split()
    old = re.compile(r"\s+".join(re.escape(word) for word in words))
    found = []
    for path in sorted({path for pattern in mutant.file.split() for path in tree.glob(pattern)}):
        text = path.read_text(encoding="utf-8")
        found += [(path, match.span(), text) for match in old.finditer(text)]
    if not found:
        raise Wrong(f"mutant {mutant.name}: its place in {mutant.file} is gone")
    if len(found) > 1:
        raise Wrong(f"mutant {mutant.name}: its place in {mutant.file} is there {len(found)} times")
    return found[0]


# ---- The copy ----


def files_of(tree):
    for directory, names, files in os.walk(tree):
        names[:] = [name for name in names if name not in LEFT_OUT]
        for name in files:
            yield Path(directory, name).relative_to(tree)


def copy_tree(source, copy):
    """Makes the copy what the tree is. What is the same keeps its time, and is not built again."""
    kept = set()
    for path in files_of(source):
        kept.add(path)
        to = copy / path
        text = (source / path).read_bytes()
        if not to.exists() or to.read_bytes() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(text)
        shutil.copymode(source / path, to)
    for path in list(files_of(copy)):
        if path not in kept:
            (copy / path).unlink()


def run(command, seconds=None, **options):
    """Runs a command; returns its status and output. The status is None if it took too long: then
    all that it started is ended."""
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, **options)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def last_lines(output, count=30):
    return "\n".join(output.rstrip().splitlines()[-count:])


class Tree:
    """The copy of the tree for a preset, built and tested."""

    def __init__(self, source, directory, preset, seconds):
        self.seconds = seconds
        self.tree = directory / f"mutants-{preset}"
        self.build = self.tree / "build" / f"cmake-{preset}"
        copy_tree(source, self.tree)
        if not (self.build / "build.ninja").exists():
            # -w: what a mutant leaves unused is not what is asked.
            status, output = run(["cmake", "-S", self.tree, "--preset", preset, "-DBUILD_TESTING=ON",
                                  "-DSNUG_TEST_FULL=0", "-DCMAKE_C_FLAGS=-w"], cwd=self.tree)
            if status != 0:
                raise Wrong(f"the copy cannot be configured:\n{last_lines(output)}")
        self.read_tests()

    def environment(self):
        """Without what the run around this one set, as its long form."""
        return {name: value for name, value in os.environ.items()
                if not name.startswith(("SNUG_", "CTEST_", "TEST_")) and name != "LD_PRELOAD"}

    def read_tests(self):
        """By name what must be built for each. ctest itself does not say what it would run as long
        as that is not there."""
        run(["ninja", "-C", self.build, "build.ninja"])  # configures again if that is needed
        _, targets = run(["ninja", "-C", self.build, "-t", "targets", "all"])
        outputs = {line.rpartition(": ")[0] for line in targets.splitlines()}
        self.tests = {}
        for path in sorted(self.build.glob("**/CTestTestfile.cmake")):
            for name, command in ADD_TEST.findall(path.read_text(encoding="utf-8")):
                words = re.split(r'[=;:\s"]+', command)
                inside = {word[len(f"{self.build}/"):] for word in words if word.startswith(f"{self.build}/")}
                self.tests[name] = inside & outputs

    def tests_of(self, mutant, of_all):
        expression = re.compile(ALL_TESTS if of_all else mutant.tests)
        found = [name for name in self.tests if expression.search(name)]
        if not found:
            raise Wrong(f"mutant {mutant.name}: there is no test {mutant.tests} in {mutant.preset}")
        return found

    def make(self, tests):
        """Builds what tests need; returns what went wrong, or nothing."""
        needed = sorted(set().union(*(self.tests[name] for name in tests)))
        status, output = run(["ninja", "-C", self.build, *needed])
        return "" if status == 0 else last_lines(output)

    def run_tests(self, tests, stop):
        """The result of each test that was run, as ctest calls it, and all output."""
        names = "|".join(re.escape(name) for name in tests)
        command = ["ctest", "--test-dir", self.build, "-R", f"^({names})$", "--output-on-failure"]
        seconds = self.seconds * (1 if stop else len(tests))
        status, output = run(command + (["--stop-on-failure"] if stop else ["-j", os.cpu_count()]),
                             seconds, env=self.environment())
        results = {}
        for name, result in re.findall(r"Test +#\d+: (\S+) \.+\s*(.*?)\s+\d+\.\d+ sec", output):
            results[name] = result
        if status is None:
            begun = re.findall(r"^ +Start +\d+: (\S+)", output, re.MULTILINE)
            results[begun[-1]] = f"no end in {seconds} s"
        return results, output


def is_failure(result):
    return result not in ("Passed", "***Skipped")


# ---- Mutants ----


def check_unchanged(tree, mutants, of_all):
    """Returns the tests that can run here."""
    wanted = sorted(set().union(*(tree.tests_of(mutant, of_all) for mutant in mutants)))
    wrong = tree.make(wanted)
    if wrong:
        raise Wrong(f"the copy does not build without a mutant:\n{wrong}")
    results, output = tree.run_tests(wanted, False)
    for name in wanted:
        if name not in results or is_failure(results[name]):
            raise Wrong(f"{name} fails without a mutant: {results.get(name)}\n{last_lines(output)}")
    return {name for name in wanted if results[name] == "Passed"}


def try_mutant(tree, mutant, of_all, can_run):
    """killed, SURVIVED, skipped or BROKEN, and what there is to say about it."""
    tests = [name for name in tree.tests_of(mutant, of_all) if name in can_run]
    if not tests:
        return "skipped", "no test of it can run on this machine"
    path, (begin, end), text = place_of(tree.tree, mutant)
    try:
        path.write_text(text[:begin] + "\n".join(mutant.new) + text[end:], encoding="utf-8")
        wrong = tree.make(tests)
        if wrong:
            return "BROKEN", f"does not build:\n{wrong}"
        results, _ = tree.run_tests(tests, True)
    finally:
        path.write_text(text, encoding="utf-8")
    killers = [name for name in results if is_failure(results[name])]
    if killers:
        return "killed", killers[0]
    return "SURVIVED", mutant.breaks


def run_preset(arguments, preset, mutants, counts):
    tree = Tree(arguments.tree, arguments.directory, preset, arguments.seconds)
    can_run = check_unchanged(tree, mutants, arguments.all)
    for mutant in mutants:
        fate, why = try_mutant(tree, mutant, arguments.all, can_run)
        counts[fate] += 1
        print(f"{mutant.name}: {fate}{' by ' if fate == 'killed' else ': '}{why}", flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description="breaks the library and expects the tests to notice")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--preset", choices=PRESETS)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--places", action="store_true")
    parser.add_argument("--list", action="store_true", dest="listed")
    # For the test of this script.
    parser.add_argument("--seconds", type=int, default=SECONDS_MOST)
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("mutants.txt"))
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--directory", type=Path, default=None)
    arguments = parser.parse_args()
    arguments.tree = arguments.tree.resolve()
    arguments.directory = (arguments.directory or arguments.tree / "build").resolve()
    return arguments


def chosen(arguments):
    mutants = read_list(arguments.table)
    for mutant in mutants:  # of all: a place that is gone is nobody's choice
        place_of(arguments.tree, mutant)
    if arguments.preset:
        mutants = [mutant for mutant in mutants if mutant.preset == arguments.preset]
    if arguments.names:
        mutants = [mutant for mutant in mutants
                   if any(fnmatch.fnmatch(mutant.name, name) for name in arguments.names)]
    if not mutants:
        raise Wrong("there is no such mutant")
    return mutants


def main():
    arguments = read_arguments()
    counts = dict.fromkeys(("killed", "SURVIVED", "skipped", "BROKEN"), 0)
    try:
        mutants = chosen(arguments)
        for mutant in mutants if arguments.listed else []:
            print(f"{mutant.name} ({mutant.preset}, {mutant.file}): {mutant.breaks}")
        if arguments.places or arguments.listed:
            print(f"{len(mutants)} mutants, each has its place")
            return 0
        for preset in PRESETS:
            of_preset = [mutant for mutant in mutants if mutant.preset == preset]
            if of_preset:
                run_preset(arguments, preset, of_preset, counts)
    except Wrong as wrong:
        print(f"mutants: {wrong}", file=sys.stderr)
        return 2
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    if counts["BROKEN"]:
        print(f"{counts['BROKEN']} did not build")
    print(f"{counts['killed']} killed, {counts['SURVIVED']} survived")
    return 1 if counts["SURVIVED"] or counts["BROKEN"] else 0


if __name__ == "__main__":
    sys.exit(main())

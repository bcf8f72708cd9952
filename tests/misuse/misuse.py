#!/usr/bin/env python3
"""Which misuse of the heap is noticed, by which setting: the table in docs/hardening.md.

    misuse.py LIBRARY PROGRAM PAGE [NAME=VALUE...]           runs all, and compares with the page
    misuse.py LIBRARY PROGRAM PAGE --write TOOL BENCH        runs all many times, and writes the table

PROGRAM is built from main.c and the files of kinds beside it: each misuse in each of three sizes is a
program of its own. The table in the page is what is expected: what it says is caught and is not fails,
and so does what is caught and should not be, so that a gain is written down. NAME=VALUE goes to all
programs, and only the default's column is looked at: with SNUG_MISUSE=warn nothing is caught, which the
test must notice.

TOOL (snug) and BENCH, the folder of the workloads, say what each setting costs: instructions, by valgrind, and
the peak of a trace. These rows are written, and not compared.

Columns of settings that this library does not know are left out, and the one of the system's malloc
is compared only where it is of the version that the page names.
"""

import collections
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Runs: by default; where one of these differs from the page; and for what the page says.
RUNS = 2 if os.environ.get("SNUG_TEST_FULL") == "1" else 1
RUNS_AGAIN, RUNS_TO_WRITE = 20, 20
# A share of the runs: keys and places are random, which lets a few misuses through in one of some hundred
# runs, or stops them.
MOST = 0.9
# Differences: more of them are not chance.
FEW = 8
BEGIN, END = "<!-- misuse.py: begin -->", "<!-- misuse.py: end -->"
CAUGHT, SOMETIMES, HARMLESS, MISSED = "x", "~", "o", "-"


@dataclass
class Setting:
    title: str
    options: dict
    system: bool = False
    # What is beside a block differs from run to run, and with it what a wrong read or write meets.
    places_are_random: bool = False
    # What is caught is a matter of chance, and takes long: run for the page, and not compared.
    by_chance: bool = False


# How far a function of libc's comes before it meets memory that is not there is a matter of its version: where that is not the
# page's, these are not compared. Nor is then whose block a wrong write meets: what
# other libraries take before them differs, too (the C++ library 72,704 bytes with GCC 12, 73,728 with GCC 14).
BY_LIBC = {"memset-negative"}

SETTINGS = [
    Setting("glibc " + platform.libc_ver()[1], {}, system=True),
    Setting("default", {}),
    Setting("CHECK=full", {"SNUG_CHECK": "full"}),
    Setting("CHECK_COPIES=1", {"SNUG_CHECK_COPIES": "1"}),
    Setting("GUARD=1, each block", {"SNUG_GUARD": "1", "SNUG_GUARD_EVERY": "1", "SNUG_GUARD_BLOCKS": "4096"}, by_chance=True),
    Setting("PRESET=hardened", {"SNUG_PRESET": "hardened"}, places_are_random=True),
]


def environment(setting, library, more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SNUG_")}
    preload = {} if setting.system else {"LD_PRELOAD": library}
    return {**kept, **preload, **setting.options, **more}


def is_known(setting, library):
    """What an older or smaller library does not know it says on stderr."""
    done = subprocess.run(
        ["true"], env=environment(setting, library, {}), capture_output=True, text=True, check=True
    )
    return "snug: SNUG_" not in done.stderr


def run_all(setting, library, program, more):
    """{(kind, size): result}"""
    done = subprocess.run(
        [program, "all"], env=environment(setting, library, more), capture_output=True, text=True,
        errors="replace", timeout=600, check=True,
    )  # fmt: skip
    results = {}
    for line in done.stdout.splitlines():
        kind, size, result = line.split(" ", 2)
        if result not in ("reported", "faulted", "harm", "harmless"):
            sys.exit(f"{setting.title}: {line}")
        results[kind, int(size)] = result
    return results


def costs(setting, library, tool, bench):
    """[(what, a number as text)] of a setting."""
    root = Path(__file__).resolve().parents[2]
    options = {**environment(setting, library, {}), "LD_PRELOAD": ""}
    counted = subprocess.run(
        ["bash", root / "bench/count.sh", "-b", bench, "-c", "malloc-64", f"it={library}"],
        env=options, capture_output=True, text=True, check=True,
    )  # fmt: skip
    replayed = subprocess.run(
        [tool, "replay", "--footprint", "--peers", "none", "--peer", f"it={library}", root / TRACE],
        env=options, capture_output=True, text=True, check=True,
    )  # fmt: skip
    peak = re.search(r"peak.*", replayed.stdout).group().replace("*", "").split("┆")
    which = 1 if setting.system else -1
    return [
        ("instructions of `malloc(64)` and `free`", counted.stdout.split()[-2 if setting.system else -1]),
        ("peak of `sqlite.trace`, KiB", re.search(r"\d+", peak[which]).group()),
    ]


def symbol(results):
    caught = sum(result in ("reported", "faulted") for result in results)
    if caught >= MOST * len(results):
        return CAUGHT
    if caught > (1 - MOST) * len(results):
        return SOMETIMES
    # A byte of a header is what a reader looks for in one of 256 runs.
    return MISSED if results.count("harm") > (1 - MOST) * len(results) else HARMLESS


TRACE = "bench/traces/sqlite.trace"


class Measured:
    """All settings, each so many times."""

    def __init__(self, library, program, runs, more):
        self.how = (library, program)
        self.more = more
        listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
        self.lines = [line.split("\t") for line in listed.stdout.splitlines()]
        self.known = [setting for setting in SETTINGS if is_known(setting, library)]
        self.settings = [each for each in self.known if runs > RUNS or not each.by_chance]
        if more:
            self.settings = [each for each in self.settings if each.title == "default"]
        self.cells = {}
        self.costs = {}
        self.run(self.settings, runs)

    def run(self, settings, runs):
        jobs = [each for each in settings for _ in range(runs)]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            done = list(pool.map(lambda job: run_all(job, *self.how, self.more), jobs))
        for setting in settings:
            mine = [results for job, results in zip(jobs, done) if job is setting]
            of_kind = collections.defaultdict(str)
            for kind, size in mine[0]:
                of_kind[kind] += symbol([results[kind, size] for results in mine])
            self.cells[setting.title] = of_kind

    def weigh(self, library, tool, bench):
        for setting in self.settings:
            self.costs[setting.title] = costs(setting, library, tool, bench)

    def totals(self, title):
        cells = "".join(self.cells[title].values())
        return {which: cells.count(which) for which in (CAUGHT, SOMETIMES, HARMLESS, MISSED)}

    def table(self):
        titles = [setting.title for setting in self.settings]
        rows = [f"| what is done | {' | '.join(titles)} |", "| --- |" + " --- |" * len(titles)]
        count = len("".join(self.cells[titles[0]].values()))
        words = ((CAUGHT, "caught"), (SOMETIMES, "caught in some runs"), (HARMLESS, "no harm seen"),
                 (MISSED, "not caught"))  # fmt: skip
        for which, word in words:
            numbers = " | ".join(str(self.totals(title)[which]) for title in titles)
            rows.append(f"| of {count}: {word} `{which}` | {numbers} |")
        for same in zip(*(self.costs[title] for title in titles)):
            rows.append(f"| {same[0][0]} | {' | '.join(number for _, number in same)} |")
        for kind, *text in self.lines:
            if not text:
                rows.append(f"| **{kind[2:]}** |" + " |" * len(titles))
                continue
            cells = " | ".join(f"`{self.cells[title][kind]}`" for title in titles)
            rows.append(f"| {text[0]} (`{kind}`) | {cells} |")
        return "\n".join(rows)


def expected(page):
    """{title: {kind: cells}} of the page's table."""
    table = page.split(BEGIN)[1].split(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    titles = rows[0][1:]
    cells = {title: {} for title in titles}
    for row in rows:
        kind = re.search(r"\(`([\w-]+)`\)$", row[0])
        if kind:
            for title, cell in zip(titles, row[1:]):
                cells[title][kind.group(1)] = cell.strip("`")
    return cells


def differences(setting, found, wanted, same_libc):
    places_are_same = same_libc and not setting.places_are_random
    for kind in sorted((set(found) | set(wanted)) - (set() if same_libc else BY_LIBC)):
        for index, size in enumerate(("small", "medium", "large")):
            was = wanted.get(kind, "   ")[index]
            now = found.get(kind, "   ")[index]
            where = f"{setting.title}: {kind}, {size}"
            if " " in (was, now):
                yield f"{where}: in one of the two only"
            elif was == CAUGHT and now != CAUGHT:
                yield f"{where}: no longer caught ({now})"
            elif was in (HARMLESS, MISSED) and now == CAUGHT:
                yield f"{where}: is caught now ({now})"
            elif was == HARMLESS and now == MISSED and places_are_same:
                yield f"{where}: did no harm before"


def compare_setting(measured, setting, wanted, same_libc):
    wrong = list(differences(setting, measured.cells[setting.title], wanted, same_libc))
    if 0 < len(wrong) <= FEW:
        measured.run([setting], RUNS_AGAIN)
        wrong = list(differences(setting, measured.cells[setting.title], wanted, same_libc))
    return wrong


def compare(measured, wanted):
    wrong = []
    same_libc = any(setting.system and setting.title in wanted for setting in measured.settings)
    for setting in measured.settings:
        if setting.title in wanted:
            wrong.extend(compare_setting(measured, setting, wanted[setting.title], same_libc))
        elif setting.system:
            print(f"not compared: {setting.title}, which the page does not have")
        else:
            wrong.append(f"the table has no column {setting.title}")
    for title in wanted:
        known = [setting.title for setting in measured.known]
        if title not in known and not title.startswith("glibc"):
            wrong.append(f"the library does not know {title}")
    return wrong


def main():
    library, program, path, *more = sys.argv[1:]
    write = more[:1] == ["--write"]
    tools = more[1:]
    more = {} if write else dict(argument.split("=", 1) for argument in more)
    page = Path(path).read_text(encoding="utf-8")
    measured = Measured(library, program, RUNS_TO_WRITE if write else RUNS, more)
    for setting in measured.settings:
        print(f"{setting.title}: {measured.totals(setting.title)}")
    if write:
        measured.weigh(library, *tools)
        start, rest = page.split(BEGIN)
        page = f"{start}{BEGIN}\n{measured.table()}\n{END}{rest.split(END)[1]}"
        Path(path).write_text(page, encoding="utf-8")
        return
    wrong = compare(measured, expected(page))
    if wrong:
        sys.exit("\n".join(wrong) + f"\nif that is as it should be: misuse.py LIBRARY PROGRAM {path} --write TOOL BENCH")


if __name__ == "__main__":
    main()

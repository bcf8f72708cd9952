#!/usr/bin/env python3
"""Runs programs that seeds make (generated.c) under the system's malloc and under snug, in turn, and
reports where snug needs more than twice as much of anything.

usage: compare.py PROGRAM LIBRARY.so [--seeds FIRST-LAST,...] [--measures NAME,...] [--rounds N]
                  [--bound RATIO] [--save FILE] [SNUG_NAME=value...]

Measured are
  peak      the largest resident memory           end      what is so when all was free for a while
  between   the most between phases               faults   pages that came without being read
  elapsed   time by the clock, without pauses     cpu      time of the processors
All but `between` are by default: what a program freed many times is meant to be kept for a time.

Of times the least of the rounds counts, of the rest the median. A seed that is over the bound is run
again, twice as often, and counts if it still is. Differences of less than a floor do not count
(FLOORS): what snug keeps for reuse in any case is no ratio's business. The exit status is 1 if
anything is over the bound, or ended other than it should. `PROGRAM SEED plan` says what a seed does.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MIB = 1024
# What a difference must exceed, in the measure's own unit. Four MiB of free pages are kept in any
# case (SNUG_DIRTY), as much in cells of each arena, and one or two in depots and magazines.
FLOORS = {
    "peak": 2 * MIB,
    "between": 16 * MIB,
    "end": 16 * MIB,
    "faults": 10000,
    "elapsed": 20,
    "cpu": 20,
}
UNITS = {"peak": "KiB", "between": "KiB", "end": "KiB", "faults": "", "elapsed": "ms", "cpu": "ms"}
BY_DEFAULT = [name for name in FLOORS if name != "between"]
LEAST_OF_ROUNDS = {"elapsed", "cpu"}
AT_ONCE = 3  # seeds, if no times are measured: at the end of each a program only waits, for seconds
CERTAIN = 4  # a ratio that need not be confirmed
CONFIRMING = 2  # times as many rounds for what is over the bound
RUN_SECONDS = 60
WORST_SHOWN = 6


class Broken(Exception):
    """A program ended other than it should."""


def read_arguments():
    parser = argparse.ArgumentParser(description="compares generated programs on two allocators")
    parser.add_argument("program", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("options", nargs="*", metavar="SNUG_NAME=value")
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--measures", default=",".join(BY_DEFAULT))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bound", type=float, default=2.0)
    parser.add_argument("--save", type=Path, help="a file for every figure, as CSV")
    arguments = parser.parse_intermixed_args()
    arguments.measures = arguments.measures.split(",")
    unknown = [name for name in arguments.measures if name not in FLOORS]
    if unknown:
        parser.error(f"there is no measure {unknown[0]!r}")
    if any("=" not in option for option in arguments.options):
        parser.error("an option is SNUG_NAME=value")
    return arguments


def seeds_of(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def run_once(arguments, seed, on_snug):
    """The figures of one run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SNUG_", "LD_PRELOAD"))}
    if on_snug:
        environment.update(option.split("=", 1) for option in arguments.options)
        environment["LD_PRELOAD"] = str(arguments.library.absolute())
        if "PLANTED" not in environment:
            environment["SNUG_TEST_EXPECT"] = "1"
    side = "snug" if on_snug else "the system's malloc"
    try:
        done = subprocess.run(
            [arguments.program.absolute(), str(seed)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Broken(f"on {side}: did not end in {RUN_SECONDS} s") from late
    if done.returncode != 0:
        raise Broken(f"on {side}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    figures = dict(re.findall(r"(\w+?)(?:_kib|_ms)?=([\d.]+)", done.stdout))
    return {name: float(figures[name]) for name in FLOORS}


class Seed:
    """What was measured of one seed; `runs[False]` on the system's malloc, `runs[True]` on snug."""

    def __init__(self, number):
        self.number = number
        self.runs = {False: [], True: []}

    def measure(self, arguments, rounds):
        for turn in range(rounds):
            for on_snug in (False, True) if turn % 2 == 0 else (True, False):
                self.runs[on_snug].append(run_once(arguments, self.number, on_snug))

    def figure(self, measure, on_snug):
        values = [run[measure] for run in self.runs[on_snug]]
        return min(values) if measure in LEAST_OF_ROUNDS else statistics.median(values)

    def ratio(self, measure):
        return self.figure(measure, True) / max(self.figure(measure, False), 0.1)

    def is_over(self, measure, bound):
        difference = self.figure(measure, True) - self.figure(measure, False)
        return difference > FLOORS[measure] and self.ratio(measure) > bound

    def over(self, arguments):
        return [name for name in arguments.measures if self.is_over(name, arguments.bound)]

    def line(self, measure):
        unit = UNITS[measure]
        return (
            f"seed {self.number:5}  {measure:8} {self.ratio(measure):7.2f}"
            f"  system {self.figure(measure, False):10.0f}  snug {self.figure(measure, True):10.0f} {unit}"
        )


def plan_of(arguments, seed):
    done = subprocess.run([arguments.program.absolute(), str(seed), "plan"], capture_output=True, text=True)
    return done.stdout


def save(file, seeds, measures):
    with file.open("w", encoding="utf-8") as out:
        out.write("seed," + ",".join(f"{name}_system,{name}_snug" for name in measures) + "\n")
        for seed in seeds:
            values = (seed.figure(name, side) for name in measures for side in (False, True))
            out.write(f"{seed.number}," + ",".join(f"{value:g}" for value in values) + "\n")


def print_worst(seeds, measures):
    print(f"The worst of {len(seeds)} seeds; differences below a floor do not count:")
    for measure in measures:
        ranked = sorted(seeds, key=lambda seed: seed.ratio(measure), reverse=True)
        big = [seed for seed in ranked if seed.is_over(measure, 0)]
        for seed in big[:WORST_SHOWN]:
            print(" ", seed.line(measure).rstrip())
        if ranked:
            middle = statistics.geometric_mean(seed.ratio(measure) for seed in ranked)
            print(f"  {measure}: {middle:.2f} in geometric mean of all")


def measure_one(arguments, number):
    """The seed that was measured, or what went wrong with it."""
    seed = Seed(number)
    try:
        seed.measure(arguments, arguments.rounds)
        if any(seed.ratio(name) < CERTAIN for name in seed.over(arguments)):
            seed.measure(arguments, CONFIRMING * arguments.rounds)
    except Broken as why:
        return why
    return seed


def measure_all(arguments):
    """The seeds that were measured, and the numbers of others, with which something went wrong; says at once
    what is over."""
    seeds, broken = [], []
    numbers = list(seeds_of(arguments.seeds))
    pool = ThreadPoolExecutor(1 if LEAST_OF_ROUNDS & set(arguments.measures) else AT_ONCE)
    for number, seed in zip(numbers, pool.map(lambda each: measure_one(arguments, each), numbers)):
        if isinstance(seed, Broken):
            broken.append(number)
            print(f"BROKEN: seed {number}: {seed}\n" + plan_of(arguments, number), flush=True)
            continue
        seeds.append(seed)
        over = [f"OVER {arguments.bound:g}: {seed.line(name)}\n" for name in seed.over(arguments)]
        if over:
            print("".join(over) + plan_of(arguments, number), flush=True)
    return seeds, broken


def main():
    arguments = read_arguments()
    seeds, broken = measure_all(arguments)
    if arguments.save:
        save(arguments.save, seeds, arguments.measures)
    print_worst(seeds, arguments.measures)
    over = sum(len(seed.over(arguments)) for seed in seeds)
    print(f"{len(seeds)} seeds compared, {over} ratios over {arguments.bound:g}, {len(broken)} broken")
    sys.exit(1 if over or broken or not seeds else 0)


if __name__ == "__main__":
    main()

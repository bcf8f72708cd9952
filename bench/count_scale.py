#!/usr/bin/env python3
"""count_scale.py - locked instructions of an operation, by workload, on any allocators.

usage: count_scale.py [-b DIRECTORY] NAME=LIBRARY.so...
  -b DIRECTORY   where the workloads are (build/bench)

What a processor more costs is what processors share: a line that another has written has to be
fetched, and a locked instruction waits for it. Each workload runs by callgrind with some operations
and with twice as many, which leaves out the start; the figure is the locked instructions of the
library in the difference, for each operation, a malloc and its free, of all threads together.
callgrind runs one thread at a time, so nobody waits: these are the instructions that are there on
any number of processors. Needs valgrind.
"""

import argparse
import os
from pathlib import Path

from count_locked import executed, locked_instructions

# name, program and arguments, with {} for the number of operations, that number, operations for each of it
WORKLOADS = [
    ("each for itself, 0..500 B", "same_thread 2 500 {} 2", 10000, 4),
    ("each for itself, 0..5,000 B", "same_thread 2 5000 {} 2", 4000, 4),
    ("shared slots, 0..500 B", "separate_thread 2 500 {} 2000", 20000, 1),
    ("shared slots, 0..5,000 B", "separate_thread 2 5000 {} 2000", 20000, 1),
    ("one takes, one frees, 16..512 B", "producer_consumer 1 16 512 {}", 20000, 1),
    ("a server, 8..1,000 B", "larson 2 8 1000 200 2 {}", 20000, 1),
]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("-b", default=str(Path(__file__).parent.parent / "build/bench"))
    parser.add_argument("builds", nargs="+", metavar="NAME=LIBRARY.so")
    arguments = parser.parse_args()
    builds = [(name, os.path.realpath(path)) for name, _, path in (build.partition("=") for build in arguments.builds)]
    locked = {name: locked_instructions(library) for name, library in builds}
    print(" " * 34 + "".join(f"{name:>12}" for name, _ in builds), flush=True)
    for workload, line, count, each in WORKLOADS:
        figures = []
        for name, library in builds:
            program, *words = line.format(count).split()
            once = executed(library, [f"{arguments.b}/{program}", *words])
            program, *words = line.format(2 * count).split()
            more = executed(library, [f"{arguments.b}/{program}", *words]) - once
            figures.append(sum(more[address] for address in locked[name]) / (count * each))
        print(f"{workload:<34}" + "".join(f"{figure:12.3f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()

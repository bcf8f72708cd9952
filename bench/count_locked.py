#!/usr/bin/env python3
"""count_locked.py - locked instructions of a slow call, by the place that serves it, on builds of snug.

usage: count_locked.py [-b DIRECTORY] [--where] NAME=LIBRARY.so...
  -b DIRECTORY   where count_slow is (build/bench)
  --where        also in which functions they are

A locked instruction waits until all stores before it have reached the cache: tens of nanoseconds, and
far more where they are to memory that nobody has touched. callgrind says how often each instruction
was executed, objdump which of them are locked: those with the prefix, and xchg with memory. A second
thread sleeps meanwhile, or snug's locks would be plain words. The figure is the mean of the calls that
reached the place, of which snug's own counters say how many there were; what is done once, at start,
drops out, as each loop is run twice, ROUNDS and 2 * ROUNDS times. Needs valgrind.
"""

import argparse
import collections
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROUNDS = 200
# name, blocks in a round, their bytes, environment, snug's counters of slow calls of malloc and free
PLACES = [
    ("spare", 150, 64, {}, "refills", "flushes"),
    ("depot", 992, 64, {}, "refills", "flushes"),
    ("slabs", 992, 64, {"SNUG_DEPOT": "0"}, "refills", "flushes"),
    ("a cell", 4000, 3000, {}, "medium_taken", "medium_taken"),
    ("a large block", 4, 200000, {}, None, None),
    ("large, 32 of 40 new", 40, 200000, {}, None, None),
]
LOCKED = re.compile(r"\s+([0-9a-f]+):\s+(?:lock |(?:xchg\w*)\s.*\()")


def run(library, command, **environment):
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": library, **environment},
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"count_locked.py: {' '.join(command)} failed with LD_PRELOAD={library}: {done.stderr[-300:]}")
    return done


def locked_instructions(library):
    """Their addresses, and the function of each."""
    found, function = {}, ""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True)
    for line in text.stdout.splitlines():
        if line.endswith(">:"):
            function = line.split("<", 1)[1][:-2]
        else:
            at = LOCKED.match(line)
            if at:
                found[int(at[1], 16)] = function
    return found


def executed(library, command, *options, **environment):
    """How often each instruction of the library was executed, by its place in the file."""
    with tempfile.NamedTemporaryFile() as out:
        run(library, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", "--dump-instr=yes",
                      "--compress-pos=no", "--compress-strings=no", *options, *command], **environment)
        text = Path(out.name).read_text()
    counts, here, of_call = collections.Counter(), False, False
    for line in text.splitlines():
        if line.startswith("ob="):
            here = os.path.basename(library) in line
        elif line.startswith("calls="):
            of_call = True
        elif line.startswith("0x"):
            if not of_call and here:
                address, _, count = line.split()[:3]
                counts[int(address, 16)] += int(count)
            of_call = False
    return counts


def counter(library, name, command, environment):
    """One of snug's own counters at the end."""
    done = run(library, command, SNUG_STATS="stderr", SNUG_STATS_FORMAT="json", **environment)
    return int(re.search(f'"{name}": *([0-9]+)', done.stderr)[1])


def mean(library, locked, program, place, half):
    """Locked instructions of one slow call, by function."""
    name, blocks, size, environment, of_malloc, of_free = place
    commands = [[program, str(blocks), str(rounds), str(size)] for rounds in (ROUNDS, 2 * ROUNDS)]
    once, twice = (executed(library, command, f"--toggle-collect={half}", **environment) for command in commands)
    more = twice - once
    key = of_malloc if half == "take_all" else of_free
    if key is None:
        calls = blocks * ROUNDS
    else:
        first, second = (counter(library, key, command, environment) for command in commands)
        calls = second - first
    by_function = collections.Counter()
    for address, function in locked.items():
        if more[address]:
            by_function[function] += more[address] / calls
    return by_function


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("-b", default=str(Path(__file__).parent.parent / "build/bench"))
    parser.add_argument("--where", action="store_true")
    parser.add_argument("builds", nargs="+", metavar="NAME=LIBRARY.so")
    arguments = parser.parse_args()
    print(f"{'library':<12} {'from':<20} {'malloc':>8} {'free':>8}")
    for build in arguments.builds:
        name, _, library = build.partition("=")
        library = os.path.realpath(library)
        locked = locked_instructions(library)
        for place in PLACES:
            halves = [mean(library, locked, f"{arguments.b}/count_slow", place, half) for half in ("take_all", "give_all")]
            print(f"{name:<12} {place[0]:<20} {sum(halves[0].values()):8.2f} {sum(halves[1].values()):8.2f}")
            for call, functions in zip(("malloc", "free"), halves):
                for function, count in functions.most_common() if arguments.where else []:
                    print(f"    {call:<8} {count:8.2f} {function}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What the library costs a program that takes little memory: resident KiB with it, less those without.

usage: resident.py LIBRARY.so MOST_KIB PROGRAM BLOCKS [OPTION=VALUE...]

The kernel maps pages of files in groups that depend on where a library was loaded and on how its
file lies in the page cache, of libc's files as well, so the mean of many runs counts. Fault it
finds: with any option set the heap is made at once, and SNUG_PREFAULT takes memory.
"""

import re
import statistics
import subprocess
import sys

ROUNDS = 50


def resident(program: list[str], environment: dict[str, str]) -> int:
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=20)
    if done.returncode == 77:
        print("SKIP: /proc/self/smaps cannot be read here")
        sys.exit(77)
    assert done.returncode == 0, done
    return sum(int(kib) for kib in re.findall(r"^Rss:\s+(\d+) kB", done.stdout, re.MULTILINE))


def main() -> None:
    library, most, program, blocks, *options = sys.argv[1:]
    command = [program, blocks]
    loaded = {"LD_PRELOAD": library} | dict(option.split("=", 1) for option in options)
    differences = [resident(command, loaded) - resident(command, {}) for _ in range(ROUNDS)]
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / ROUNDS**0.5
    print(f"{mean:.0f} KiB more are resident, give or take {error:.0f}")
    if mean > int(most) + 3 * error:
        sys.exit(f"{mean:.0f} KiB are too many: at most {most}")


main()

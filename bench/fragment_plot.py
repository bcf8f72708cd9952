#!/usr/bin/env python3
"""Resident over requested bytes through a long run of `fragment`, a line for each allocator.

usage: fragment_plot.py PLOT NAME=FILE.csv...

Each FILE.csv is what `fragment OPERATIONS LIVE csv` printed under that allocator:

    LD_PRELOAD=build/lib/libsnug.so build/bench/fragment 50000000 5000 csv >snug.csv

PLOT is an SVG or PNG file. A table is printed too: the ratio at the end of the second wave of sizes,
of the tenth and of the last, which are the same unless memory creeps. Needs matplotlib (Debian:
apt-get install python3-matplotlib).
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

WAVES = 20


def read(path):
    """[(operations, ratio), ...]"""
    with open(path, newline="", encoding="utf-8") as lines:
        return [(int(row["operations"]), float(row["ratio"])) for row in csv.DictReader(lines)]


def at_wave(samples, wave):
    return samples[len(samples) * wave // WAVES - 1][1]


def main():
    if len(sys.argv) < 3 or not all("=" in word for word in sys.argv[2:]):
        sys.exit(__doc__)
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    print(f"{'':<12} second wave  tenth   last")
    for word in sys.argv[2:]:
        name, path = word.split("=", 1)
        samples = read(path)
        print(f"{name:<12} {at_wave(samples, 2):11.3f} {at_wave(samples, 10):6.3f} "
              f"{at_wave(samples, WAVES):6.3f}")
        axes.plot([done / 1e6 for done, _ in samples], [ratio for _, ratio in samples],
                  label=name, linewidth=2 if name == "snug" else 1)
    axes.set_xlabel("operations, millions")
    axes.set_ylabel("resident / requested bytes")
    axes.set_ylim(bottom=1)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(sys.argv[1])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Memory over time, a line for each allocator; and a table of it.

usage: kept_plot.py FILE.csv PLOT TITLE

FILE.csv has lines `name,seconds,resident_kib` or `name,seconds,live_kib,resident_kib`. PLOT is an SVG
or PNG file. Needs matplotlib (Debian: apt-get install python3-matplotlib).
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def read(path):
    """{name: [(seconds, live or None, resident), ...]} in MiB, in the order of the file."""
    series = {}
    with open(path, newline="", encoding="utf-8") as lines:
        for name, seconds, *kib in csv.reader(lines):
            live = float(kib[0]) / 1024 if len(kib) == 2 else None
            series.setdefault(name, []).append((float(seconds), live, float(kib[-1]) / 1024))
    return series


def print_table(series):
    for name, samples in series.items():
        resident = [sample[2] for sample in samples]
        line = f"{name:<12} first {resident[0]:8.1f}  last {resident[-1]:8.1f}  most {max(resident):8.1f} MiB"
        if samples[0][1] is not None:
            live = [sample[1] for sample in samples]
            line += f"  live, most {max(live):8.1f}  most / most live {max(resident) / max(live):.2f}"
        print(line)


def plot(series, path, title):
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    for name, samples in series.items():
        seconds = [sample[0] for sample in samples]
        axes.plot(seconds, [sample[2] for sample in samples], label=name,
                  linewidth=2 if name == "snug" else 1)
        if name == "snug" and samples[0][1] is not None:
            axes.plot(seconds, [sample[1] for sample in samples], linestyle=":", label="live, on snug")
    axes.set_xlabel("seconds")
    axes.set_ylabel("MiB")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    series = read(sys.argv[1])
    print_table(series)
    plot(series, sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()

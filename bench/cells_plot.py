#!/usr/bin/env python3
"""The figures of `cells`: a table, the slopes, how they compare, and a plot.

usage: cells_plot.py FILE.csv PLOT

FILE.csv has a line for each run and count, as `cells --csv` prints them: method,iterations,ms. PLOT
is an SVG or PNG file. Needs matplotlib (Debian: apt-get install python3-matplotlib).
"""
import csv
import statistics
import sys

try:
    import matplotlib
except ModuleNotFoundError:
    sys.exit("cells_plot.py: needs matplotlib; on Debian: apt-get install python3-matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt

# What each method is called in the plot; the others by their own names.
TITLES = {
    "first-fit": "first fit, a walk over the free cells",
    "next-fit": "next fit, the walk goes on where the last ended",
    "bins": "snug's cells by bins, no threshold",
    "threshold": "snug's cells by bins, with the threshold",
}


def read(path):
    """{method: {iterations: [ms, ...]}}, in the order of the file."""
    runs = {}
    with open(path, newline="") as lines:
        for row in csv.DictReader(lines):
            counts = runs.setdefault(row["method"], {})
            counts.setdefault(int(row["iterations"]), []).append(float(row["ms"]))
    return runs


def deviation(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def slope(counts):
    """In ms per iteration, by least squares through the means."""
    means = [statistics.mean(values) for values in counts.values()]
    return statistics.linear_regression(list(counts), means).slope


def print_table(runs):
    print("ms for so many iterations: mean and standard deviation")
    print()
    print("iterations" + "".join(f"  {name:>19}" for name in runs))
    for count in next(iter(runs.values())):
        cells = (runs[name][count] for name in runs)
        print(f"{count:>10}" + "".join(f"  {statistics.mean(ms):>10.4f} {deviation(ms):>8.4f}"
                                       for ms in cells))
    print()


def print_slopes(slopes):
    print("ms for one iteration of 402 blocks taken and freed, and ns for one of these pairs")
    print()
    for name, ms in sorted(slopes.items(), key=lambda item: item[1]):
        print(f"  {name:<20} {ms:>10.5f} ms  {ms * 1e6 / 402:>10.1f} ns")
    print()


def print_bars(slopes):
    """What is asked of snug's cells."""
    ours = slopes.get("threshold")
    peers = {name: ms for name, ms in slopes.items()
             if name.startswith("malloc:") and name != "malloc:snug"}
    if ours is None:
        return
    if "first-fit" in slopes:
        ratio = ours / slopes["first-fit"]
        print(f"threshold / first-fit: {ratio:.4f}, at most 0.1 is wanted: "
              f"{'met' if ratio <= 0.1 else 'missed'}")
    if peers:
        best = min(peers, key=peers.get)
        for name in ("threshold", "malloc:snug"):
            if name in slopes:
                ratio = slopes[name] / peers[best]
                print(f"{name} / {best}, the best other: {ratio:.4f}, below 1 is wanted: "
                      f"{'met' if ratio < 1 else 'missed'}")


def plot(runs, slopes, path):
    figure, axes = plt.subplots(figsize=(14, 7), layout="constrained")
    for name in sorted(runs, key=slopes.get, reverse=True):
        counts = runs[name]
        axes.errorbar(list(counts), [statistics.mean(ms) for ms in counts.values()],
                      yerr=[deviation(ms) for ms in counts.values()], capsize=2, marker=".",
                      linewidth=1, linestyle=":" if name.startswith("malloc:") else "-",
                      label=f"{TITLES.get(name, name)}: {slopes[name]:.4f} ms each")
    axes.set_yscale("log")
    # An error bar that reaches zero would go down for ever.
    least = min(statistics.mean(ms) for counts in runs.values() for ms in counts.values())
    axes.set_ylim(bottom=least / 2)
    axes.set_xlabel("iterations: 402 large blocks taken, and freed, among 3,600 small holes")
    axes.set_ylabel("ms, mean and standard deviation")
    axes.set_title("Large blocks in a heap with many small holes")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    figure.savefig(path)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runs = read(sys.argv[1])
    slopes = {name: slope(counts) for name, counts in runs.items()}
    print_table(runs)
    print_slopes(slopes)
    print_bars(slopes)
    plot(runs, slopes, sys.argv[2])


if __name__ == "__main__":
    main()

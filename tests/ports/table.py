#!/usr/bin/env python3
"""Makes docs/platforms.md, platform by suite, of what suite.sh left: table.py PLATFORM=FOLDER...

A platform may have several folders, one for each run; of a test that ran twice the later one counts. FOLDER has results.xml, what ctest says in
JUnit form, or of a run that was cut short, whose ctest writes none, ctest.log; and about, a line that says by what it was run. A platform or a suite
without results is `not run`. A program of which a part was skipped counts as skipped.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

PLATFORMS = {
    "musl": "x86-64, musl",
    "aarch64": "aarch64, glibc, under QEMU's user mode",
    "riscv64": "riscv64, glibc, under QEMU's user mode",
    "aarch64-4k": "aarch64, Debian 13's kernel, pages of 4 KiB",
    "aarch64-16k": "aarch64, Debian 13's kernel, pages of 16 KiB",
    "riscv64-4k": "riscv64, Debian 13's kernel, pages of 4 KiB",
    "aarch64-64k": "aarch64, a kernel with pages of 64 KiB",
}
# Why a platform is in the table that has no run.
NOT_RUN = {
    "riscv64-4k": "no run has come to its end yet, so what an emulator in user mode leaves out has not run on this processor",
    "aarch64-64k": "no release of Debian, nor its unstable, has such a kernel for this machine; a build for such pages runs on smaller ones (`ports.pages.65536`)",
}
SUITES = ["unit", "model", "stress", "api"]
OUTCOMES = ["passed", "skipped", "failed"]
HEAD = """# Platforms

Which of the library's own tests ran where, and what came of it. `tests/ports/suite.sh PLATFORM FOLDER` builds the library and its tests with all
invariants checked (the preset `debug`) and runs them; `tests/ports/table.py PLATFORM=FOLDER ...` makes this page of what it left. Programs are
counted; one that left a part of itself out is skipped, and says why. `not run` is neither: nobody knows.

"""
TAIL = """
`./dev test` runs everything on x86-64 with glibc, and on the others a short program, linked, static and preloaded (`ports.musl`, `ports.aarch64`, in full runs
`ports.riscv64`), as well as model and stress in a build for pages of 64 KiB on a system with smaller ones (`ports.pages.65536`). `./dev test --full`
runs what this page tells of (`ports.suite.musl` and the like) and leaves it in build/cmake-release/ports/. An emulator is no
kernel and no processor: it answers some system calls itself, and orders memory as the machine it runs on does, more strictly than the one it plays.
"""


def outcome_of(case):
    skip = case.find("skipped")
    if case.get("status") == "run":
        return "passed"
    if skip is not None and skip.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def reasons_of(case, outcome):
    """What a program says that it skipped for, each reason once, or that failed."""
    said = case.findtext("system-out") or ""
    reasons = re.findall(r"(?:failed:|ERROR +\] ---) (.*)$" if outcome == "failed" else r"^SKIP: (.*)$", said, re.M)
    return "; ".join(dict.fromkeys(reasons)) or "it does not say"


class Platform:
    def __init__(self):
        self.abouts, self.outcomes, self.reasons, self.again = [], {}, {}, set()

    def note(self, name, outcome, reason):
        if name in self.outcomes:
            self.again.add(name)
        self.outcomes[name], self.reasons[name] = outcome, reason

    def read(self, folder):
        about = folder / "about"
        if about.exists():
            self.abouts.append(about.read_text().strip().replace("\n", ""))
        if (folder / "results.xml").exists():
            for case in ElementTree.parse(folder / "results.xml").getroot().iter("testcase"):
                outcome = outcome_of(case)
                self.note(case.get("name"), outcome, reasons_of(case, outcome))
            return
        log = (folder / "ctest.log").read_text(encoding="utf-8", errors="replace")
        ended = re.findall(r"Test +#\d+: (\S+) \.+ *(\**\w+)", log)
        total = re.search(r"1/(\d+) Test", log)[1]
        self.abouts.append(f"of {total} programs only {len(ended)} ended before the run was cut short")
        for name, word in ended:
            self.note(name, {"Passed": "passed", "***Skipped": "skipped"}.get(word, "failed"), word.strip("*"))

    @property
    def counts(self):
        counts = defaultdict(lambda: dict.fromkeys(OUTCOMES, 0))
        for name, outcome in self.outcomes.items():
            counts[name.split(".")[0]][outcome] += 1
        return counts

    def named(self, outcome):
        return sorted(name for name, its in self.outcomes.items() if its == outcome)

    def cell(self, suite):
        if suite not in self.counts:
            return "not run"
        counts = self.counts[suite]
        return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)


def text_of(platforms):
    lines = ["| Platform | " + " | ".join(SUITES) + " |", "| --- |" + " --- |" * len(SUITES)]
    for key, name in PLATFORMS.items():
        lines.append(f"| {name} | " + " | ".join(platforms[key].cell(suite) for suite in SUITES) + " |")
    for key, name in PLATFORMS.items():
        platform = platforms[key]
        if not platform.counts and key not in NOT_RUN:
            continue
        lines += ["", f"## {name}", ""]
        if not platform.counts:
            lines.append(f"- Not run: {NOT_RUN[key]}")
        lines += [f"- Run: {about}" for about in dict.fromkeys(platform.abouts)]
        if platform.again:
            lines.append("- Run again by themselves, where the later outcome counts: " + ", ".join(f"`{name}`" for name in sorted(platform.again)))
        lines += [f"- Failed: `{name}`: {platform.reasons[name]}" for name in platform.named("failed")]
        lines += [f"- Skipped: `{name}`: {platform.reasons[name]}" for name in platform.named("skipped")]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def main(arguments):
    platforms = defaultdict(Platform)
    for argument in arguments:
        key, _, folder = argument.partition("=")
        if key not in PLATFORMS:
            sys.exit(f"table.py: there is no platform '{key}'; there are {', '.join(PLATFORMS)}")
        platforms[key].read(Path(folder))
    page = Path(__file__).resolve().parents[2] / "docs" / "platforms.md"
    page.write_text(text_of(platforms), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

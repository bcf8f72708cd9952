#!/usr/bin/env python3
"""stress-ng's stressors that live on the heap, each with --verify, on the system's malloc and on snug.

usage: stress_ng.py LIBRARY.so [SECONDS [STRESSOR...]]        5 seconds for each unless given

A stressor that passes on the system's malloc must pass on snug; what fails, or is not supported, on
both is counted apart. Exit status: 1 if one fails on snug alone, or if fewer than half ran at all.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

STRESSORS = """malloc bigheap brk bsearch clone context daemon dynlib env exec exit-group fork forkheavy
getdent hash heapsort hsearch judy list lockf lsearch mcontend mergesort mmap mmapfork mremap mutex
pthread qsort radixsort randlist regs remap resources rlimit rmap shellsort sigsegv skiplist
spawn sparsematrix stack str tree tsearch unshare vfork vforkmany vm vm-segv wcs yield zlib zombie
""".split()
INSTANCES = 2
# stress-ng sees by these whether memory or processes run out; there is no need for more of them here.
LIMITS = ["--bigheap-growth", "1m", "--oomable"]
MARGIN = 60  # seconds to end in


def run(stressor, seconds, library):
    """`passed`, `skipped` or what went wrong."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SNUG_", "LD_PRELOAD"))}
    if library:
        environment["LD_PRELOAD"] = library
    command = ["stress-ng", f"--{stressor}", str(INSTANCES), "--timeout", f"{seconds}s", "--verify"]
    with tempfile.TemporaryDirectory(prefix="snug-stress-") as place:
        process = subprocess.Popen(
            [*command, *LIMITS, "--temp-path", place],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds + MARGIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "did not end"
    said = re.findall(r"^snug: .*", output, re.MULTILINE)
    if said:
        return f"snug says: {said[0]}"
    if process.returncode == 0:
        skipped = re.search(r"skipped: [1-9]|skipping stressor|not implemented", output)
        return "skipped" if skipped else "passed"
    if process.returncode in (3, 4):  # no resources; not implemented
        return "skipped"
    wrong = re.findall(r"^.*(?:fail|error|unsuccessful|terminated).*$", output, re.MULTILINE | re.I)
    return f"status {process.returncode}: " + " | ".join(wrong[:3])[:300]


def main():
    if not shutil.which("stress-ng"):
        print("SKIP: stress-ng is not installed")
        sys.exit(77)
    library = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    known = subprocess.run(["stress-ng", "--stressors"], capture_output=True, text=True, check=True)
    wanted = sys.argv[3:] or [name for name in STRESSORS if name in known.stdout.split()]
    passed, elsewhere, bad = 0, [], []
    for stressor in wanted:
        on_snug = run(stressor, seconds, library)
        if on_snug == "passed":
            passed += 1
            continue
        on_system = run(stressor, seconds, None)
        if on_system == "passed":  # once more: stressors may meet limits of the machine
            on_snug = run(stressor, seconds, library)
        if on_snug == "passed":
            passed += 1
        elif on_system != "passed":
            elsewhere.append(stressor)
            print(f"{stressor}: {on_snug}; on the system's malloc: {on_system}", flush=True)
        else:
            bad.append(stressor)
            print(f"FAIL: {stressor}: {on_snug}; on the system's malloc it passes", flush=True)
    print(f"{passed} passed, {len(bad)} failed on snug alone, {len(elsewhere)} not on the system's either")
    sys.exit(1 if bad or passed < len(wanted) / 2 else 0)


if __name__ == "__main__":
    main()

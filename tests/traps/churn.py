"""A loop that takes a few blocks and frees them again has nothing to give back: what it needs is
what it had. So not one byte may be purged, nor a segment be unmapped, however often its pages empty.

usage: churn.py LIBRARY NAME=VALUE... -- COMMAND...

Runs the command, a workload of bench/, on the library, and reads its statistics.
"""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import blackbox

library, *rest = sys.argv[1:]
split = rest.index("--")
options = dict(option.split("=", 1) for option in rest[:split])

with tempfile.TemporaryDirectory() as scratch:
    path = pathlib.Path(scratch) / "statistics.json"
    result = blackbox.run(rest[split + 1 :], preload=library, timeout=120, SNUG_STATS=str(path), **options)
    assert result.status == 0, result
    statistics = json.loads(path.read_text())

system, events = statistics["system"], statistics["events"]
assert events["slabs_made"] > 0, "no small blocks were taken"
given = {
    name: figures[name]
    for figures in (events, system)
    for name in ("purge_calls", "purge_bytes", "unmap_bytes", "madvise_bytes", "munmap_bytes")
    if name in figures
}
assert not any(given.values()), f"something was given back: {given}"
print(result.out.strip(), given)

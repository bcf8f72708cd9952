"""Runs a program on a preloaded allocator and says how it ended; shared by the Python tests.

The Python process itself stays on the system's malloc: only the child gets LD_PRELOAD.
"""

import os
import signal
import subprocess
from dataclasses import dataclass


@dataclass
class Result:
    """How a program ended: `status` is its exit status, or minus the signal that killed it."""

    status: int
    out: str
    err: str

    @property
    def aborted(self) -> bool:
        return self.status == -signal.SIGABRT

    def messages(self, start: str = "snug: ") -> list[str]:
        """The lines of stderr that the allocator wrote."""
        return [line for line in self.err.splitlines() if line.startswith(start)]

    def __str__(self) -> str:
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}---"


def run(command, preload=None, timeout=60, **options) -> Result:
    """Runs `command` with `preload` preloaded and the environment variables in `options`.

    SNUG_* variables of the caller's environment do not reach the program. The program is told to
    expect snug as its malloc, except over a planted fault.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SNUG_") or name.startswith("SNUG_TEST_")
    }
    environment.update(options)
    if "PLANTED" not in environment:
        environment["SNUG_TEST_EXPECT"] = "1"
    if preload:
        environment["LD_PRELOAD"] = str(preload)
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        timeout=timeout,
        text=True,
        errors="replace",
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)

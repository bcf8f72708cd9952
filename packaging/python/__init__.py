"""The snug memory allocator: where its library and its tool are. `python -m snug` is the tool."""

from pathlib import Path

_folder = Path(__file__).resolve().parent

#: What LD_PRELOAD takes, to have a program run on snug.
library = str(_folder / "lib" / "libsnug.so.0")

#: The tool: `snug run CMD`, `snug stats PID` and others.
tool = str(_folder / "bin" / "snug")

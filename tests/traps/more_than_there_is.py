"""An interpreter that asks for 10^12 bytes is refused, and goes on.

    more_than_there_is.py       with the library preloaded
"""

import os
import sys

BYTES = 10**12


def reason_to_skip():
    with open("/proc/sys/vm/overcommit_memory") as file:
        if file.read().strip() != "0":
            return "vm.overcommit_memory is not 0"
    with open("/proc/meminfo") as file:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in file}
    if (sizes["MemTotal"] + sizes["SwapTotal"]) * 1024 >= BYTES:
        return "this machine has that much"
    if "libsnug" not in open("/proc/self/maps").read():
        sys.exit("snug is not preloaded")
    return None


reason = reason_to_skip()
if reason is not None:
    print("SKIP:", reason)
    sys.exit(77)
# A child, for what happens instead kills.
child = os.fork()
if child == 0:
    for make in (lambda: bytes(BYTES), lambda: bytearray(BYTES), lambda: "x" * BYTES, lambda: [0] * (BYTES // 8)):
        try:
            make()
        except MemoryError:
            continue
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
if status != 0:
    sys.exit(f"no MemoryError: status {status:#x}")

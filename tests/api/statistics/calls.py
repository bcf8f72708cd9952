#!/usr/bin/env python3
"""What snug asks the system for, as strace sees it: the counts are right, the mappings are named.

    calls.py GROUP LIBRARY PROGRAM      PROGRAM: built from leaving.c
"""

import json
import os
import pathlib
import re
import subprocess

from case import ARGUMENTS, Case, library, main

CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+)")
FIRST_RANGE = re.compile(r"iov_base=(0x[0-9a-f]+)")
TRACED = "mmap,munmap,madvise,?process_madvise,mremap,prctl,openat"


def strace_works() -> bool:
    try:
        return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Traced(Case):
    needs = ("strace",)

    @staticmethod
    def reason_to_skip():
        return None if strace_works() else "strace may not trace here"

    def trace(self, *strace: str, **options: str) -> list[tuple[str, list[str], int]]:
        """The calls of the program, up to where it opens the file of its statistics."""
        log, stats = self.place / "strace", self.place / "s.json"
        options = {"SNUG_STATS": str(stats), "SNUG_OVERCOMMIT": "1", **options}
        environment = [f"{name}={value}" for name, value in options.items()]
        subprocess.run(["strace", "-o", log, "-s", "64", "-e", f"trace={TRACED}", *strace, "env",
                        f"LD_PRELOAD={library()}", *environment, ARGUMENTS[1], "mappings"],
                       check=True, capture_output=True)  # fmt: skip
        calls = []
        for line in log.read_text().splitlines():
            found = CALL.match(line)
            if found is None:
                continue
            if found[1] == "openat" and str(stats) in found[2]:
                return calls
            name, arguments, result = found[1], found[2].split(", "), int(found[3], 0)
            if name == "process_madvise":  # several ranges at once, which count as one; all bytes are the result
                name, arguments = "madvise", [FIRST_RANGE.search(found[2])[1], str(result)]
            calls.append((name, arguments, result))
        self.fail("the statistics were never written")


class Ranges:
    """Which addresses are snug's: nobody else in this program maps with MAP_NORESERVE, and snug does
    so for all memory with SNUG_OVERCOMMIT."""

    def __init__(self):
        self.pages: dict[int, str] = {}  # page number -> name

    def note(self, call: str, arguments: list[str], result: int) -> bool:
        """Whether it was a call of snug's."""
        if call == "mmap":
            if "MAP_NORESERVE" in arguments[3]:
                self.name(result, int(arguments[1]), "")
                return True
            return False
        if call == "prctl":
            return arguments[0] == "PR_SET_VMA"
        if call == "openat":
            return False
        start, length = int(arguments[0], 16), int(arguments[1])
        if start >> 12 not in self.pages:
            return False
        if call == "munmap":
            self.forget(start, length)
        elif call == "mremap":
            name = self.pages[start >> 12]
            if "MREMAP_DONTUNMAP" not in arguments[3]:
                self.forget(start, length)
            self.name(result, int(arguments[2]), name)
        return True

    def name(self, start: int, length: int, name: str):
        for page in range(start >> 12, start + length + 4095 >> 12):
            self.pages[page] = name

    def forget(self, start: int, length: int):
        for page in range(start >> 12, start + length + 4095 >> 12):
            self.pages.pop(page, None)


class Calls(Traced):
    def test_are_counted(self):
        options = {"SNUG_CACHE_SEGMENTS": "0", "SNUG_DIRTY": "0"}
        ranges, seen = Ranges(), {}
        for call, arguments, result in self.trace(**options):
            if ranges.note(call, arguments, result) and call != "prctl":
                count, total = seen.get(call, (0, 0))
                seen[call] = (count + 1, total + int(arguments[2 if call == "mremap" else 1]))
        said = json.loads((self.place / "s.json").read_text())["system"]
        for call, (count, total) in seen.items():
            self.assertGreater(count, 1, call)
            self.assertEqual((said[f"{call}_calls"], said[f"{call}_bytes"]), (count, total), call)
        self.assertEqual(set(seen), {"mmap", "munmap", "madvise", "mremap"})
        # What is mapped is what it says, but for the first metadata, which are part of the library.
        memory = json.loads((self.place / "s.json").read_text())["memory"]
        self.assertIn(memory["mapped"] - 4096 * len(ranges.pages), range(0, 1 << 20))

    def test_faults_are_counted(self):
        file = self.place / "s.json"
        process = subprocess.Popen([ARGUMENTS[1], "mappings"],
                                   env={**os.environ, "LD_PRELOAD": ARGUMENTS[0], "SNUG_STATS": str(file)})  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        found = json.loads(file.read_text())
        said = found["process"]
        self.assertLessEqual(said["minor_faults"], usage.ru_minflt)
        self.assertGreater(said["minor_faults"], usage.ru_minflt - 200)  # what the end of a program costs
        self.assertLessEqual(found["peaks"]["resident_peak"], usage.ru_maxrss * 1024 + (1 << 20))


class Named(Traced):
    """Every kernel gets the calls; what it does about them, group Names sees where it does."""

    def names(self, **options: str) -> tuple[set[str], set[str]]:
        """Those of all that is mapped at the end, and those that were given at any time."""
        ranges, ever = Ranges(), set()
        # A kernel without names refuses; as if it had them, so that snug goes on.
        for call, arguments, result in self.trace("-e", "inject=prctl:retval=0", **options):
            if ranges.note(call, arguments, result) and call == "prctl":
                self.assertEqual(arguments[1], "PR_SET_VMA_ANON_NAME")
                ranges.name(int(arguments[2], 16), int(arguments[3]), arguments[4].strip('"'))
                ever.add(arguments[4].strip('"'))
        return set(ranges.pages.values()), ever

    def test_every_mapping_is_named(self):
        now, ever = self.names(SNUG_NAMES="all")
        self.assertEqual(now, {"snug heap", "snug metadata"})
        self.assertEqual(ever, {"snug heap", "snug metadata", "snug cache"})

    def test_of_those_that_are_made_at_the_start(self):
        now, ever = self.names()
        self.assertEqual(now, {"snug heap", "snug metadata", ""})
        self.assertEqual(ever, {"snug heap", "snug metadata"})

    def test_none_if_none_are_wanted(self):
        self.assertEqual(self.names(SNUG_NAMES="none"), ({""}, set()))


class Names(Case):
    @staticmethod
    def reason_to_skip():
        import ctypes
        import mmap

        memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        view = ctypes.c_char.from_buffer(memory)
        done = ctypes.CDLL(None).prctl(
            ctypes.c_int(0x53564D41), ctypes.c_ulong(0), ctypes.c_ulong(ctypes.addressof(view)),
            ctypes.c_ulong(mmap.PAGESIZE), ctypes.c_char_p(b"snug test"),
        ) == 0  # fmt: skip
        del view
        memory.close()
        return None if done else "this kernel has no names for mappings (CONFIG_ANON_VMA_NAME)"

    def names(self, **options: str) -> set[str]:
        process = self.start("wait", **options)
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        return set(re.findall(r"\[anon:(snug [a-z]+)\]", maps))

    def test_mappings_have_names(self):
        self.assertEqual(self.names(), {"snug heap", "snug metadata"})
        self.assertEqual(self.names(SNUG_NAMES="none"), set())


if __name__ == "__main__":
    main(globals())

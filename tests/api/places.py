#!/usr/bin/env python3
"""The library in places that have to be made for it: a disk that runs full, a control group with
little memory. What needs rights that this user has not is skipped, with the reason (status 77).

usage: places.py GROUP LIBRARY.so SMALL_MACHINE...      (programs of small_machine.c)
GROUP is one of the classes below.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

# Builds a structure of many small objects, forks, fills the disk, writes to all of the structure.
STRUCTURE = r"""
import os, sys
count, disk = int(sys.argv[1]), sys.argv[2]
rows = [[i, float(i), "row %d" % i] for i in range(count)]
child = os.fork()
if child == 0:
    rows[0][0] = -1
    os._exit(0 if sum(row[0] for row in rows) == sum(range(count)) - 1 else 1)
assert os.waitpid(child, 0)[1] == 0
if disk:
    fill = os.open(disk + "/fill", os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(fill, bytes(4096))
    except OSError:
        pass
for row in rows:
    row[0] += 1
assert sum(row[0] for row in rows) == sum(range(count)) + count
print("asked")
"""

FULL = "for the heap in {}: the disk is full"


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def run(command, before=None, **options):
    environment = {"PYTHONMALLOC": "malloc", "PATH": os.environ["PATH"]}
    environment.update({"SNUG_" + name: str(value) for name, value in options.items()})
    return subprocess.run(
        command,
        env=environment,
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def preloaded(command):
    return ["env", f"LD_PRELOAD={LIBRARY}", *command]


def structure(count, disk=""):
    return preloaded([sys.executable, "-c", STRUCTURE, str(count), disk])


# ---- A disk that runs full ----

MOUNT_TMPFS = 'mount -t tmpfs -o size=32m none "$0" && exec "$@"'
# A file system on a file, which is a real one: its blocks are reserved, or are not.
MOUNT_EXT4 = (
    'truncate -s 48m "$0.image" && mkfs.ext4 -q -m 0 "$0.image" && '
    'mount -o loop "$0.image" "$0" && exec "$@"'
)


def mount_commands():
    """The ways to have a small disk that work here: what to put before a directory and a command."""
    found = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        for name, unshare, script in (
            ("tmpfs", ["unshare", "-m"], MOUNT_TMPFS),
            ("tmpfs", ["unshare", "-Urm"], MOUNT_TMPFS),
            ("ext4", ["unshare", "-m"], MOUNT_EXT4),
        ):
            command = [*unshare, "sh", "-c", script]
            if name in found:
                continue
            directory = Path(scratch, "at")
            directory.mkdir(exist_ok=True)
            try:
                done = subprocess.run([*command, directory, "true"], capture_output=True, check=False)
            except FileNotFoundError:
                continue
            if done.returncode == 0:
                found[name] = command
    return found


class FullDisk(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(scratch.cleanup)
        self.directory = os.path.join(scratch.name, "disk")
        os.mkdir(self.directory)

    def on_disk(self, mount, command, **options):
        return run(
            [*mount, self.directory, *command],
            PROVIDER="file",
            FILE_DIR=self.directory,
            FILE_GROW=1,
            PROVIDER_SIZE="8M",
            **options,
        )

    def test_who_does_not_reserve_is_killed(self):
        """That these disks do what snug must not let them do."""
        sparse = "import mmap, sys; f = open(sys.argv[1] + '/f', 'w+b'); f.truncate(1 << 26);"
        sparse += "m = mmap.mmap(f.fileno(), 1 << 26); m[:] = bytes([1]) * (1 << 26)"
        for mount in MOUNTS.values():
            done = self.on_disk(mount, [sys.executable, "-c", sparse, self.directory])
            self.assertEqual(done.returncode, -signal.SIGBUS, done)

    def test_it_is_said_once_and_is_a_memory_error(self):
        for mount in MOUNTS.values():
            done = self.on_disk(mount, structure(400000))
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("MemoryError", done.stderr)
            said = [line for line in done.stderr.splitlines() if line.startswith("snug:")]
            self.assertEqual(len(said), 1, said)
            self.assertIn(FULL.format(self.directory), said[0])

    def test_memory_is_the_fallback(self):
        for mount in MOUNTS.values():
            done = self.on_disk(mount, structure(400000), PROVIDER_FALLBACK=1)
            self.assertEqual((done.returncode, done.stdout), (0, "asked\n"), done)
            self.assertRegex(done.stderr, r"^snug: no file of .*: the disk is full; using memory\n$")

    def test_what_is_had_stays_when_others_fill_the_disk(self):
        for mount in MOUNTS.values():
            done = self.on_disk(mount, structure(20000, self.directory))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "asked\n", ""))


# ---- A control group ----


class Group:
    """A control group inside of this process's own, with a limit of memory, or None for none."""

    def __init__(self, parent, limit):
        self.path = parent / f"snug.test.{os.getpid()}"
        self.path.mkdir()
        for name, value in (
            ("memory.max", limit),
            ("memory.swap.max", 0),
            ("memory.limit_in_bytes", limit),
            ("memory.memsw.limit_in_bytes", limit),
        ):
            file = self.path / name
            if value is not None and file.exists():
                file.write_text(str(value))

    def enter(self):
        """To be called in the process that is to be in the group."""
        (self.path / "cgroup.procs").write_text("0")

    def remove(self):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)


def own_group():
    """The directory of this process's control group for memory; None if it is not to be found."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        root = "/sys/fs/cgroup" + ("/memory" if controllers == "memory" else "")
        directory = Path(root + path)
        limit = "memory.limit_in_bytes" if controllers == "memory" else "memory.max"
        if controllers in ("", "memory") and (directory / limit).exists():
            return directory
    return None


def need_groups():
    parent = own_group()
    if parent is None:
        skip("the control group of this process is not to be seen")
    try:
        group = Group(parent, 64 << 20)
    except OSError as error:
        skip(f"no control group can be made: {error}")
    try:
        if run(["true"], group.enter).returncode != 0:
            skip("a control group that was made cannot be entered")
        if not any((group.path / name).exists() for name in ("memory.max", "memory.limit_in_bytes")):
            skip("control groups here do not limit memory")
    except subprocess.SubprocessError:
        skip("a control group that was made cannot be entered")
    finally:
        group.remove()
    return parent


class ControlGroup(unittest.TestCase):
    def group(self, parent, limit):
        group = Group(parent, limit)
        self.addCleanup(group.remove)
        return group

    def test_a_limit_is_followed_where_it_would_kill(self):
        outer = self.group(PARENT, 64 << 20)
        inner = self.group(outer.path, None)  # the limit is that of a group around it
        killed = run(structure(600000), inner.enter)
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        done = run(structure(600000), inner.enter, LIMIT="cgroup")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("MemoryError", done.stderr)
        done = run(structure(20000), inner.enter, LIMIT="cgroup")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "asked\n", ""))

    def test_four_mebibytes_are_enough(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                group = Group(PARENT, 4 << 20)
                try:
                    done = run([program], group.enter)
                    self.assertEqual(done.returncode, 0, done)
                    # The same when all of a segment of malloc's heap is to be there.
                    done = run([program], group.enter, PREFAULT="8M")
                    self.assertNotEqual(done.returncode, 0, done)
                finally:
                    group.remove()


if __name__ == "__main__":
    GROUP, LIBRARY, *PROGRAMS = sys.argv[1:]
    if GROUP == "FullDisk":
        MOUNTS = mount_commands()
        if not MOUNTS:
            skip("nothing can be mounted, not in a name space either")
    else:
        PARENT = need_groups()
    unittest.main(argv=[sys.argv[0], GROUP], verbosity=1)

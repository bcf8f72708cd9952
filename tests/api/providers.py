#!/usr/bin/env python3
"""The default heap on other providers and under limits, from outside: whole process trees, what a
full disk and a missing directory lead to, and a program whose heap is larger than it may be in
private memory.

usage: providers.py LIBRARY.so
"""

import os
import resource
import subprocess
import sys
import tempfile
import unittest

LIBRARY = sys.argv.pop(1)

# Builds a large structure out of small objects, then asks it something, forks, and asks again.
STRUCTURE = r"""
import os, sys
count = int(sys.argv[1])
rows = {str(i): [i, float(i), "row %d" % i] for i in range(count)}
def ask():
    return sum(rows[str(i)][0] for i in range(0, count, 97)) == sum(range(0, count, 97))
assert ask()
child = os.fork()
if child == 0:
    right = ask()
    rows["0"][0] = 5
    rows.clear()
    os._exit(0 if right else 1)
assert os.waitpid(child, 0)[1] == 0
assert ask() and rows["0"][0] == 0
print("asked")
"""


def run(command, limits=(), **options):
    environment = {"LD_PRELOAD": LIBRARY, "PYTHONMALLOC": "malloc", "PATH": os.environ["PATH"]}
    environment.update({"SNUG_" + name: str(value) for name, value in options.items()})

    def limit():
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    return subprocess.run(
        command, env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=200
    )


class Providers(unittest.TestCase):
    def setUp(self):
        # On a disk, not on a tmpfs.
        self.scratch = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(self.scratch.cleanup)
        self.directory = self.scratch.name

    def check(self, done, output="asked\n"):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, output, ""))
        self.assertEqual(os.listdir(self.directory), [])

    def structure(self, count=50000, limits=(), **options):
        return run([sys.executable, "-c", STRUCTURE, str(count)], limits, **options)

    def test_a_structure_in_a_growing_file_that_may_not_be_private_memory(self):
        limits = [(resource.RLIMIT_DATA, 60 << 20)]
        private = self.structure(200000, limits)
        self.assertNotEqual(private.returncode, 0)
        self.check(
            self.structure(
                200000,
                limits,
                PROVIDER="file",
                FILE_DIR=self.directory,
                FILE_GROW=1,
                PROVIDER_SIZE="16M",
            )
        )

    def test_memory_taken_ahead(self):
        self.check(self.structure(PROVIDER="prealloc", PROVIDER_SIZE="128M"))
        done = self.structure(200000, PROVIDER="prealloc", PROVIDER_SIZE="32M")
        self.assertIn("MemoryError", done.stderr)
        self.check(
            self.structure(PROVIDER="prealloc", PROVIDER_SIZE="16M", PROVIDER_FALLBACK=1)
        )

    def test_a_tree_of_processes_has_a_file_each(self):
        script = "for i in 1 2 3; do (echo $i; sh -c 'echo from $$ >/dev/null') & done; wait"
        done = run(
            ["sh", "-c", script + "; ls " + self.directory],
            PROVIDER="file",
            FILE_DIR=self.directory,
            FILE_GROW=1,
            PROVIDER_SIZE="4M",
        )
        self.assertEqual(sorted(done.stdout.split()), ["1", "2", "3"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_file_by_its_name(self):
        path = os.path.join(self.directory, "heap")
        self.check(self.structure(PROVIDER="file", FILE=path, FILE_GROW=1, PROVIDER_SIZE="8M"))

    def test_an_empty_file_of_the_name_stays_also_when_it_forks(self):
        path = os.path.join(self.directory, "heap")
        with open(path, "w", encoding="utf-8"):
            pass
        there = os.stat(path)
        for options in ({"FILE": path}, {"FILE_DIR": self.directory}):
            done = self.structure(PROVIDER="file", FILE_GROW=1, PROVIDER_SIZE="8M", **options)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "asked\n", ""))
            self.assertEqual(os.listdir(self.directory), ["heap"])
            self.assertEqual(os.stat(path).st_ino, there.st_ino)

    def test_a_killed_process_leaves_nothing(self):
        done = run(
            ["sh", "-c", "kill -9 $$"], PROVIDER="file", FILE_DIR=self.directory, FILE_GROW=1
        )
        self.assertEqual(done.returncode, -9)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_missing_directory(self):
        line = (
            "snug: no file of 64 MiB for the heap in /no/such/directory: "
            "there is no such directory"
        )
        done = run(["sh", "-c", "echo hi"], PROVIDER="file", FILE_DIR="/no/such/directory")
        self.assertEqual(done.stderr.splitlines()[0], line)
        self.assertEqual(done.stderr.count("snug:"), 1)
        done = run(
            ["sh", "-c", "echo hi"],
            PROVIDER="file",
            FILE_DIR="/no/such/directory",
            PROVIDER_FALLBACK=1,
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, "hi\n", line + "; using memory\n")
        )

    def test_a_full_disk_is_a_memory_error(self):
        limits = [(resource.RLIMIT_FSIZE, 20 << 20)]
        done = self.structure(
            300000,
            limits,
            PROVIDER="file",
            FILE_DIR=self.directory,
            FILE_GROW=1,
            PROVIDER_SIZE="16M",
            GROW_FACTOR=16,
        )
        # Each file of up to 20 MiB can be had, so the structure gets there in small steps.
        self.assertIn(done.returncode, (0, 1))
        self.assertNotIn("Bus error", done.stderr)
        fixed = self.structure(200000, PROVIDER="file", FILE_DIR=self.directory, PROVIDER_SIZE="32M")
        self.assertEqual(fixed.returncode, 1)
        self.assertIn("MemoryError", fixed.stderr)

    def test_a_limit(self):
        done = self.structure(300000, LIMIT="48M")
        self.assertEqual(done.returncode, 1)
        self.assertIn("MemoryError", done.stderr)
        self.check(self.structure(LIMIT="400M"))
        self.check(self.structure(LIMIT="cgroup"))


if __name__ == "__main__":
    unittest.main()

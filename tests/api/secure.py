#!/usr/bin/env python3
"""A program that runs with rights that its caller does not have obeys no SNUG_ variable.

    secure.py PROGRAM...    PROGRAM: secure.c, linked with snug in one way or another

Each is made set-user-ID, set-group-ID, and given a capability, and run by a user without rights, in
whose environment the variables name files that only root may write. The control is the same
program without those bits, which obeys. Fault it finds: `planted` in place of the programs takes
the bits away where they are expected, so that the variables are obeyed.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = 77
NOBODY = 65534
IMPORTANT = "important\n"
PROGRAMS: list[Path] = []
PLANTED = False
PLACE = Path()


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(SKIPPED)


def run(command, environment, user=NOBODY):
    return subprocess.run(
        command, env=environment, user=user, group=user, extra_groups=[], capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def usable_place(program):
    """A new directory that others may enter, and in which set-user-ID has an effect."""
    reasons = []
    for parent in (program.parent, Path("/var/tmp"), Path("/tmp")):
        place = Path(tempfile.mkdtemp(dir=parent, prefix="secure."))
        place.chmod(0o755)
        probe = place / "probe"
        shutil.copy(program, probe)
        probe.chmod(0o4755)
        try:
            said = run([str(probe)], {}).stdout
        except OSError as error:
            said = str(error)
        if said.startswith("secure 1 "):
            return place
        nosuid = os.statvfs(place).f_flag & os.ST_NOSUID
        reasons.append(f"{parent}: {'mounted nosuid' if nosuid else said.strip() or 'not entered'}")
        shutil.rmtree(place)
    return skip("set-user-ID has no effect: " + "; ".join(reasons))


class Secure(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(dir=PLACE))
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)

    def copy(self, program, mode):
        copied = self.directory / program.name
        copied.unlink(missing_ok=True)
        shutil.copy(program, copied)
        os.chown(copied, 0, 0)
        copied.chmod(0o755 if PLANTED else mode)
        return copied

    def each(self, check):
        for program in PROGRAMS:
            with self.subTest(program=program.name):
                check(program)

    def files(self, owner):
        """The directory that variables lead to, with a file in it that is to stay as it is."""
        place = self.directory / "files"
        if place.exists():
            shutil.rmtree(place)
        place.mkdir()
        (place / "important").write_text(IMPORTANT)
        for path in (place / "important", place):
            os.chown(path, owner, owner)
        return place

    def variables(self, place, **more):
        options = {
            "STATS": place / "important",
            "STATS_ON": "exit,signal",
            "PROVIDER": "file",
            "FILE": place / "snugheap",
            "PROVIDER_SIZE": "32M",
            "NO_OPTION": 1,
            "HUGE_PAGES": "perhaps",
            **more,
        }
        environment = {"SNUG_" + name: str(value) for name, value in options.items()}
        return {"BEFORE": "1", **environment, "PATH": os.environ["PATH"], "AFTER": "2"}

    def check_untouched(self, place):
        self.assertEqual((place / "important").read_text(), IMPORTANT)
        self.assertEqual(os.listdir(place), ["important"])

    def check_disobeys(self, command):
        place = self.files(0)
        done = run(command, self.variables(place))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "secure 1 variables 0 large 1 file 0 signal 0\n")
        self.check_untouched(place)

    def check_obeys(self, command):
        place = self.files(NOBODY)
        done = run(command, self.variables(place))
        self.assertEqual(done.stdout, "secure 0 variables 7 large 0 file 1 signal 1\n")
        self.assertIn("SNUG_NO_OPTION is not an option", done.stderr)
        self.assertIn("SNUG_HUGE_PAGES=perhaps is not", done.stderr)
        self.assertNotEqual((place / "important").read_text(), IMPORTANT)

    def test_without_other_rights_it_obeys(self):
        self.each(lambda program: self.check_obeys([str(self.copy(program, 0o755))]))

    def test_set_user_id(self):
        self.each(lambda program: self.check_disobeys([str(self.copy(program, 0o4755))]))

    def test_set_group_id(self):
        self.each(lambda program: self.check_disobeys([str(self.copy(program, 0o2755))]))

    def test_capabilities(self):
        setcap = shutil.which("setcap", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if setcap is None:
            self.skipTest("there is no setcap")

        def check(program):
            copied = self.copy(program, 0o755)
            given = [setcap, "cap_net_bind_service+ep", str(copied)]
            if not PLANTED and subprocess.run(given, check=False, capture_output=True).returncode:
                self.skipTest("this file system has no capabilities")
            self.check_disobeys([str(copied)])

        self.each(check)

    def test_what_it_becomes_root_for_disobeys_too(self):
        """After setuid(0) nothing tells the next program that its environment is a stranger's, so
        the variables must be gone, and all others must be there."""

        def check(program):
            outer, place = self.copy(program, 0o4755), self.files(0)
            plain = self.directory / "plain"
            shutil.copy(program, plain)
            done = run([str(outer), "exec", str(plain)], self.variables(place))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "secure 0 variables 0 large 1 file 0 signal 0\n")
            self.check_untouched(place)
            done = run([str(outer), "exec", shutil.which("env")], self.variables(place))
            names = [line.split("=")[0] for line in done.stdout.splitlines()]
            self.assertEqual(names, ["BEFORE", "PATH", "AFTER"])

        self.each(check)


if __name__ == "__main__":
    PLANTED = sys.argv[1] == "planted"
    PROGRAMS = [Path(argument) for argument in sys.argv[1 + PLANTED :]]
    if os.geteuid() != 0:
        skip("only root can make a program set-user-ID root")
    if subprocess.run(["test", "-x", PROGRAMS[0]], user=NOBODY, group=NOBODY, extra_groups=[], check=False).returncode != 0:
        skip(f"nobody but its owner may enter {PROGRAMS[0].parent}, or a folder that it is in")
    PLACE = usable_place(PROGRAMS[0])
    try:
        unittest.main(argv=sys.argv[:1], verbosity=1)
    finally:
        shutil.rmtree(PLACE)

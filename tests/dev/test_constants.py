"""Tests scripts/constants.py: what it reads, what it refuses, and that docs/constants.md is current.

Each case writes a tree with one file, so that the constant stands beside what is said about it.
"""

import contextlib
import importlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "constants.py"

GOOD = """\
/* What the file is for: nothing. */
#define GUARD_H

/* Layout: words of a bitmap. */
#define WORDS (PAGES / 64)
#define BITS 64

/* Bytes: less is not worth a system call. And more is said below the first sentence. */
#define ASK_LEAST (32 * KIB)

#define WITHOUT_A_NUMBER OTHER
#define ATTRIBUTE __attribute__((aligned(64)))
#define ADDRESS (&table[1])

/* Calls: the first ones tell nothing,
 * as a longer comment says too. */
enum { CALLS_FIRST = 8, CALLS_MOST = 2 * CALLS_FIRST /* and so long at most */ };

enum kind { KIND_A, KIND_B };
enum {
    /* Nanoseconds: a clock is no finer. */
    WAIT_LEAST = 1000,
    WAIT_MOST = 5 /* Pages: of another unit */
};

/* Bytes (machine): so much is written while the system is asked. */
#define WRITTEN_MEANWHILE (4 * KIB)
/* Slots (table): as many as anybody had. */
enum { SLOTS = 6 };
"""

EXPECTED = [
    "| `ASK_LEAST` | 32 KiB | bytes | less is not worth a system call | slab/a.h |",
    "| `CALLS_FIRST` | 8 | calls | the first ones tell nothing, as a longer comment says too | slab/a.h |",
    "| `CALLS_MOST` | 16 | calls | and so long at most | slab/a.h |",
    "| `WAIT_LEAST` | 1,000 | nanoseconds | a clock is no finer | slab/a.h |",
    "| `WAIT_MOST` | 5 | pages | of another unit | slab/a.h |",
    "| `WRITTEN_MEANWHILE` | 4 KiB | bytes | so much is written while the system is asked | slab/a.h |",
    "| `SLOTS` | 6 | slots | as many as anybody had | slab/a.h |",
]

PLANTED = {
    "no comment": "\n#define PLANTED 7\n",
    "no unit": "\n/* This is so for a reason. */\n#define PLANTED 7\n",
    "a unit that there is not": "\n/* Furlongs: this is so for a reason. */\n#define PLANTED 7\n",
    "a kind that there is not": "\n/* Bytes (fortune): this is so for a reason. */\n#define PLANTED 7\n",
    "a unit without a reason": "\n/* Bytes: */\n#define PLANTED 7\n",
    "a reason that nobody reads": f"\n/* Bytes: {'so and ' * 40}so. */\n#define PLANTED 7\n",
    "a comment of something else": "\n/* Bytes: of what stands apart. */\n\n#define PLANTED 7\n",
    "in an enum": "\nenum {\n    PLANTED = 7\n};\n",
    "in an enum that has one of its own": "\nenum { FIRST = 1 /* Bytes: with a reason */, PLANTED = 7 };\n",
    "a name that has another number": "\n/* Bytes: with a reason. */\n#define PLANTED 7\nenum { PLANTED = 8 /* Bytes: of another */ };\n",
    "in a source file that says nothing else": "\nenum { PLANTED = 7 };\n",
}


class Constants(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        (self.root / "docs").mkdir()
        self.write("src/base/common.h", "/* Layout: a unit. */\n#define KIB ((size_t)1024)\n")
        self.write("src/slab/a.h", GOOD)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_script(self, *arguments):
        """In this process: a start of Python takes longer than all of the script on a small tree."""
        if str(SCRIPT.parent) not in sys.path:
            sys.path.insert(0, str(SCRIPT.parent))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = importlib.import_module("constants").main([*arguments, str(self.root)])
        return status, said.getvalue()

    def run_program(self, *arguments):
        command = [sys.executable, str(SCRIPT), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_table(self):
        self.assertEqual(self.run_script(), (0, ""))
        written = (self.root / "docs/constants.md").read_text(encoding="utf-8")
        self.assertEqual([line for line in written.splitlines() if line.startswith("| `")], EXPECTED)
        self.assertIn("\nPolicy: 5, facts of the machine: 1, lengths of tables: 1.\n", written)
        self.assertEqual(self.run_script("--check"), (0, ""))

    def test_planted(self):
        for what, planted in PLANTED.items():
            with self.subTest(what):
                self.write("src/slab/planted.c", planted)
                status, said = self.run_script("--check")
                self.assertEqual(status, 1)
                self.assertRegex(said, r"(?m)^src/slab/planted\.c:\d+: PLANTED ")
                self.assertNotIn("FIRST is", said)
                self.run_script()
                self.assertFalse((self.root / "docs/constants.md").exists())

    def test_stale_table(self):
        self.run_script()
        self.write("src/slab/a.h", GOOD.replace("32 * KIB", "64 * KIB"))
        status, said = self.run_script("--check")
        self.assertEqual((status, said.split(":")[0]), (1, "docs/constants.md"))

    def test_this_repository(self):
        self.assertEqual(self.run_program("--check", str(ROOT)), (0, ""))

    def test_a_fault_of_the_program(self):
        self.write("src/slab/planted.c", PLANTED["no comment"])
        status, said = self.run_program("--check", str(self.root))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"(?m)^src/slab/planted\.c:\d+: PLANTED ")


if __name__ == "__main__":
    unittest.main()

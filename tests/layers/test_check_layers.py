"""Tests scripts/check_layers.py: a good tree passes, and each planted fault is named.

Every test writes a small tree of sources, so that what is wrong with it stands beside what the
check has to say about it.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

# A tree in order, in which each allowed kind of include occurs once.
GOOD = {
    "include/snug/snug.h": "#include <stddef.h>\n",
    "src/base/bits.h": "#include <stdint.h>\n",
    "src/options/options.def": "OPTION(stats)\n",
    "src/options/options.c": '#include "options/options.def"\n#include "base/bits.h"\n',
    "src/slab/slab.h": '#include "base/bits.h"\n',
    "src/slab/slab.c": '#include "slab/slab.h"\n#include "bits_of_slab.h"\n',
    "src/slab/bits_of_slab.h": "#include <sys/mman.h>\n",
    "src/heap/heap.c": '#include "slab/slab.h"\n#include "snug/snug.h"\n',
    "src/api/malloc.c": '#include <snug/snug.h>\n#include "slab/slab.h"\n',
    "src/CMakeLists.txt": "# no source file, and in no layer\n",
}


def check(changes):
    """Runs the check on the good tree with the changes made; gives (status, lines of output)."""
    with tempfile.TemporaryDirectory(prefix="layers of snug ") as root:
        for name, text in {**GOOD, **changes}.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False
        )
        return run.returncode, run.stdout.splitlines()


class GoodTree(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(check({}), (0, ["layers: 9 files, all in order"]))

    def test_includes_in_comments_and_strings_do_not_count(self):
        text = (
            '// #include "api/api.h"\n'
            '/*\n#include "api/api.h"\n*/\n'
            'const char *text = "/*";\n'
            "const char quote = '\"';\n"
        )
        self.assertEqual(check({"src/base/text.c": text})[0], 0)

    def test_600_lines_pass(self):
        self.assertEqual(check({"src/base/long.c": "int x;\n" * 600})[0], 0)


class PlantedFaults(unittest.TestCase):
    def assert_faults(self, changes, *expected):
        self.assertEqual(check(changes), (1, list(expected)))

    def test_upward_include(self):
        self.assert_faults(
            {"src/slab/slab.c": '#include "slab/slab.h"\n\n#include "heap/heap.h"\n', "src/heap/heap.h": ""},
            "src/slab/slab.c:3: slab may not include src/heap/heap.h: heap is a higher layer",
        )

    def test_upward_include_by_a_relative_path(self):
        self.assert_faults(
            {"src/base/bits.h": '#  include "../slab/slab.h" /* why */\n', "src/slab/slab.h": ""},
            "src/base/bits.h:1: base may not include src/slab/slab.h: slab is a higher layer",
        )

    def test_upward_include_after_a_string_that_looks_like_a_comment(self):
        self.assert_faults(
            {"src/base/text.c": 'const char *a = "/*";\n#include "slab/slab.h"\nchar *b = "*/";\n'},
            "src/base/text.c:2: base may not include src/slab/slab.h: slab is a higher layer",
        )

    def test_every_layer_may_not_include_the_next(self):
        order = (
            "base platform options stats provider meta segment span cell slab magazine heap "
            "report api"
        ).split()
        for lower, upper in zip(order, order[1:]):
            with self.subTest(lower=lower, upper=upper):
                self.assert_faults(
                    {f"src/{lower}/low.c": f'#include "{upper}/up.h"\n', f"src/{upper}/up.h": ""},
                    f"src/{lower}/low.c:1: {lower} may not include src/{upper}/up.h: "
                    f"{upper} is a higher layer",
                )

    def test_public_header_in_a_low_layer(self):
        for include in ('"snug/snug.h"', "<snug/snug.h>"):
            self.assert_faults(
                {"src/magazine/magazine.c": f"#include {include}\n"},
                "src/magazine/magazine.c:1: magazine may not include the public header "
                "include/snug/snug.h",
            )

    def test_public_header_that_includes_a_private_one(self):
        self.assert_faults(
            {"include/snug/heap.h": '#include "base/bits.h"\n'},
            "include/snug/heap.h:1: a public header may not include src/base/bits.h",
        )

    def test_cycle(self):
        self.assert_faults(
            {
                "src/span/a.h": '#include "span/b.h"\n',
                "src/span/b.h": '#include "c.h"\n',
                "src/span/c.h": '#include "span/a.h"\n',
            },
            "src/span/c.h:1: include cycle: "
            "src/span/a.h -> src/span/b.h -> src/span/c.h -> src/span/a.h",
        )

    def test_file_that_includes_itself(self):
        self.assert_faults(
            {"src/span/a.h": '#include "span/a.h"\n'},
            "src/span/a.h:1: include cycle: src/span/a.h -> src/span/a.h",
        )

    def test_missing_file(self):
        self.assert_faults(
            {"src/span/span.c": '#include "span/spam.h"\n'},
            'src/span/span.c:1: #include "span/spam.h": there is no such file',
        )

    def test_missing_public_header(self):
        self.assert_faults(
            {"src/api/malloc.c": "#include <snug/snugg.h>\n"},
            "src/api/malloc.c:1: #include <snug/snugg.h>: there is no such file",
        )

    def test_include_of_a_macro(self):
        self.assert_faults(
            {"src/span/span.c": "#include HEADER\n"},
            "src/span/span.c:1: #include HEADER: write the file's name out",
        )

    def test_file_over_600_lines(self):
        self.assert_faults(
            {"src/base/long.c": "int x;\n" * 601},
            "src/base/long.c:601: 601 lines; a file in src/ has at most 600",
        )

    def test_unknown_layer_and_file_in_none(self):
        layers = (
            "base platform options stats provider meta segment span cell slab magazine heap "
            "report api"
        )
        self.assert_faults(
            {"src/misc/misc.c": "", "src/snug.c": ""},
            f"src/misc/misc.c:1: not in a layer; the layers are {layers}",
            f"src/snug.c:1: not in a layer; the layers are {layers}",
        )

    def test_tree_without_sources(self):
        with tempfile.TemporaryDirectory() as root:
            run = subprocess.run(
                [sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False
            )
        self.assertEqual((run.returncode, run.stdout), (1, "src:1: no source files found\n"))


if __name__ == "__main__":
    unittest.main()

"""Tests scripts/check_layers.py: a good tree passes, and each planted fault is named.

Every test writes a small tree of sources, so that what is wrong with it stands beside what the
check has to say about it.
"""

import contextlib
import importlib
import io
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

# Three files of a layer of which each calls the next, the first by an inline function and a macro.
CHAIN = {
    "src/pageheap/a.h": "int b_run(void);\n#define A_RUN() b_run()\n",
    "src/pageheap/a.c": "int a_run(void)\n{\n    return A_RUN();\n}\n",
    "src/pageheap/b.h": "int c_run(int);\nstatic inline int b_go(void)\n{\n    return c_run(0);\n}\n",
    "src/pageheap/b.c": "int b_run(void)\n{\n    return b_go();\n}\n",
    "src/pageheap/c.c": "int c_run(int by)\n{\n    return by;\n}\n",
}
# What makes it a circle: c.c calls a.c.
CLOSED = {**CHAIN, "src/pageheap/c.c": "int c_run(int by)\n{\n    if (by)\n        return a_run();\n    return 0;\n}\n"}
CIRCLE = (
    "src/pageheap/a.h:2: call circle: src/pageheap/a.c -> src/pageheap/b.c (b_run) -> src/pageheap/c.c (c_run) "
    "-> src/pageheap/a.c (a_run)"
)

# Modules of the tool that use each other in no circle.
MODULES = {
    "tool/src/main.rs": "mod a;\nmod b;\nmod c;\nfn main() {\n    a::run();\n}\n",
    "tool/src/a.rs": "use crate::b::{self, Thing};\n",
    "tool/src/b/mod.rs": "mod deep;\n",
    "tool/src/b/deep.rs": "use std::env;\nuse crate::{c::{one, two}};\n",
    "tool/src/c.rs": "pub fn one() {}\n",
}


def write_tree(root, changes):
    for name, text in {**GOOD, **changes}.items():
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def check_module():
    """The check in this process: a start of Python takes longer than all of it."""
    if str(CHECK.parent) not in sys.path:
        sys.path.insert(0, str(CHECK.parent))
    return importlib.import_module("check_layers")


def check(changes):
    """Runs the check on the good tree with the changes made; gives (status, lines of output)."""
    with tempfile.TemporaryDirectory(prefix="layers of snug ") as root:
        write_tree(root, changes)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = check_module().main([root])
        return status, said.getvalue().splitlines()


def check_known(changes, known=(), floors=None):
    """What is wrong with the good tree with the changes made, if these groups are known, and the layers have
    these floors."""
    with tempfile.TemporaryDirectory(prefix="layers of snug ") as root:
        write_tree(root, changes)
        return check_module().check(Path(root).resolve(), known, floors or {})[0]


def run_check(changes):
    """The same as `check`, as a program of its own."""
    with tempfile.TemporaryDirectory(prefix="layers of snug ") as root:
        write_tree(root, changes)
        run = subprocess.run(
            [sys.executable, CHECK, root], stdout=subprocess.PIPE, text=True, check=False
        )
        return run.returncode, run.stdout.splitlines()


class GoodTree(unittest.TestCase):
    def test_passes(self):
        for how in (check, run_check):
            self.assertEqual(how({}), (0, ["layers: 9 files, all in order"]))

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
            "base platform options stats provider meta profile retention pageheap cell slab magazine heap "
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
                "src/pageheap/a.h": '#include "pageheap/b.h"\n',
                "src/pageheap/b.h": '#include "c.h"\n',
                "src/pageheap/c.h": '#include "pageheap/a.h"\n',
            },
            "src/pageheap/c.h:1: include cycle: "
            "src/pageheap/a.h -> src/pageheap/b.h -> src/pageheap/c.h -> src/pageheap/a.h",
        )

    def test_file_that_includes_itself(self):
        self.assert_faults(
            {"src/pageheap/a.h": '#include "pageheap/a.h"\n'},
            "src/pageheap/a.h:1: include cycle: src/pageheap/a.h -> src/pageheap/a.h",
        )

    def test_missing_file(self):
        self.assert_faults(
            {"src/pageheap/page_heap.c": '#include "pageheap/spam.h"\n'},
            'src/pageheap/page_heap.c:1: #include "pageheap/spam.h": there is no such file',
        )

    def test_missing_public_header(self):
        self.assert_faults(
            {"src/api/malloc.c": "#include <snug/snugg.h>\n"},
            "src/api/malloc.c:1: #include <snug/snugg.h>: there is no such file",
        )

    def test_include_of_a_macro(self):
        self.assert_faults(
            {"src/pageheap/page_heap.c": "#include HEADER\n"},
            "src/pageheap/page_heap.c:1: #include HEADER: write the file's name out",
        )

    def test_file_over_600_lines(self):
        self.assert_faults(
            {"src/base/long.c": "int x;\n" * 601},
            "src/base/long.c:601: 601 lines; a file in src/ has at most 600",
        )

    def test_floating_point_numbers(self):
        self.assert_faults(
            {
                "src/slab/mean.c": "/* a double of 1.5 */\nchar text[] = \"float \\\" 0.5\";\nint whole = 15;\ndouble mean;\nint y = 2 * 0.5;\n",
                "src/profile/sampler.c": "static double mean = 1.5;\n",
            },
            "src/slab/mean.c:4: floating-point numbers are for the files of MAY_FLOAT alone",
            "src/slab/mean.c:5: floating-point numbers are for the files of MAY_FLOAT alone",
        )

    def test_unknown_layer_and_file_in_none(self):
        layers = (
            "base platform options stats provider meta profile retention pageheap cell slab magazine hardened "
            "heap report api"
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


class CirclesOfCalls(unittest.TestCase):
    def assert_closed_by(self, text, is_closed=True):
        """The last file of the chain with this text closes the circle, or does not."""
        faults = check_known({**CHAIN, "src/pageheap/c.c": text})
        self.assertEqual(faults, [CIRCLE] if is_closed else [])

    def test_chain_is_no_circle(self):
        self.assertEqual(check(CHAIN)[0], 0)

    def test_circle(self):
        for how in (check, run_check):
            self.assertEqual(how(CLOSED), (1, [CIRCLE]))

    def test_circle_by_each_way_to_call(self):
        head = "int c_run(int by)\n{\n"
        for body in (
            "    return by ? 1 + a_run() : 0;\n",
            '    say("/*");\n    a_run();\n    say("*/");\n',
            "    if (by) {\n        while (by--) {\n            use(&by, a_run());\n        }\n    }\n",
            "#if BY\n    return a_run();\n#else\n    return 0;\n#endif\n",
        ):
            with self.subTest(body=body):
                self.assert_closed_by(head + body + "}\n")

    def test_circle_by_functions_of_every_form(self):
        for head in (
            "static NOINLINE int help(int (*read)(void), int by)",
            "__attribute__((cold, noinline)) int c_help(int by)",
            "struct found c_help(\n    struct spans *spans,\n    size_t pages)",
        ):
            with self.subTest(head=head):
                self.assert_closed_by(f"int c_run(int by)\n{{\n    return by;\n}}\n{head}\n{{\n    a_run();\n}}\n")

    def test_circle_by_a_macro(self):
        self.assert_closed_by(
            "int c_run(int by)\n{\n    return by;\n}\n#define C_MORE(x) \\\n    ((x) + \\\n     a_run())\n"
        )

    def test_false_friends(self):
        run = "int c_run(int by)\n{\n    return by;\n}\n"
        for text in (
            "/* a_run() is called by others */\n" + run,
            "int c_run(int by)\n{\n    // a_run()\n    return by; /* not a_run() */\n}\n",
            'int c_run(int by)\n{\n    return say("a_run()") + say("\\"a_run()");\n}\n',
            "int a_run(void);\n" + run,
            "int c_run(struct c *c)\n{\n    return c->a_run() + c[0].a_run();\n}\n",
            "int c_run(int (*a_run)(void))\n{\n    return a_run();\n}\n",
            "static int a_run(void)\n{\n    return 0;\n}\nint c_run(int by)\n{\n    return a_run();\n}\n",
            "int c_run(int by)\n{\n    return my_a_run() + a_run_all() + by;\n}\n",
            "int c_run(int by)\n{\n    on_event(a_run);\n    return by;\n}\n",
            "static const struct calls calls = {.run = a_run};\n" + run,
        ):
            with self.subTest(text=text):
                self.assert_closed_by(text, is_closed=False)

    def test_static_function_of_another_file_is_not_called(self):
        chain = {**CLOSED, "src/pageheap/a.c": CHAIN["src/pageheap/a.c"].replace("int a_run", "static int a_run")}
        self.assertEqual(check_known(chain), [])

    def test_files_of_two_layers_are_no_circle(self):
        self.assertEqual(
            check_known(
                {
                    "src/slab/low.c": "int low(void)\n{\n    return high();\n}\n",
                    "src/heap/high.c": "int high(void)\n{\n    return low();\n}\n",
                }
            ),
            [],
        )

    def test_reading_a_structure_is_no_call(self):
        c = "#include \"pageheap/c.h\"\nint c_run(int by)\n{\n    return by + a_size(0);\n}\n"
        read = "static inline int a_size(struct a *a)\n{\n    return a->size;\n}\n"
        more = "static inline int a_size(struct a *a)\n{\n    return a->size + a_run();\n}\n"
        head = CHAIN["src/pageheap/a.h"]
        self.assertEqual(check({**CHAIN, "src/pageheap/a.h": head + read, "src/pageheap/c.h": "", "src/pageheap/c.c": c})[0], 0)
        self.assertEqual(
            check({**CHAIN, "src/pageheap/a.h": head + more, "src/pageheap/c.h": "", "src/pageheap/c.c": c}),
            (1, [CIRCLE.replace("(a_run)", "(a_size)")]),
        )

    def test_two_circles_that_meet_name_all_files(self):
        changes = {**CLOSED, "src/pageheap/d.c": "int d_run(void)\n{\n    return a_run();\n}\n"}
        changes["src/pageheap/b.c"] = "int b_run(void)\n{\n    return b_go() + d_run();\n}\n"
        self.assertEqual(
            check(changes),
            (
                1,
                [
                    CIRCLE + "; all that are in circles with these: "
                    "src/pageheap/a.c src/pageheap/b.c src/pageheap/c.c src/pageheap/d.c"
                ],
            ),
        )

    def test_known_circle_passes_and_any_other_does_not(self):
        known = "src/pageheap/a.c src/pageheap/b.c src/pageheap/c.c"
        self.assertEqual(check_known(CLOSED, [known]), [])
        self.assertEqual(
            check_known(CLOSED, ["src/pageheap/a.c src/pageheap/b.c"]),
            [
                CIRCLE,
                "src/pageheap/a.c:1: not a group of circles any more, but in KNOWN_GROUPS: "
                "src/pageheap/a.c src/pageheap/b.c",
            ],
        )

    def test_known_circle_that_is_none_any_more(self):
        known = "src/pageheap/a.c src/pageheap/b.c src/pageheap/c.c"
        self.assertEqual(
            check_known(CHAIN, [known]),
            [f"src/pageheap/a.c:1: not a group of circles any more, but in KNOWN_GROUPS: {known}"],
        )


class Floors(unittest.TestCase):
    """a.c calls b.c, and b.c calls c.c."""

    FLOORS = {"pageheap": ("c", "b", "a")}

    def test_downward_and_on_one_floor(self):
        for names in (("c", "b", "a"), ("c", "a b"), ("a b c",)):
            self.assertEqual(check_known(CHAIN, floors={"pageheap": names}), [])

    def test_upward_call(self):
        text = "int c_run(int by)\n{\n    return d_run(by);\n}\n"
        changes = {"src/pageheap/d.c": "int d_run(int by)\n{\n    return by;\n}\n", "src/pageheap/c.c": text}
        self.assertEqual(
            check_known({**CHAIN, **changes}, floors={"pageheap": ("c", "b d", "a")}),
            ["src/pageheap/c.c:3: may not call d_run of src/pageheap/d.c, which is on a higher floor"],
        )

    def test_upward_include(self):
        text = '#include "pageheap/a.h"\n' + CHAIN["src/pageheap/c.c"]
        self.assertEqual(
            check_known({**CHAIN, "src/pageheap/c.c": text}, floors=self.FLOORS),
            ["src/pageheap/c.c:1: may not include src/pageheap/a.h, which is on a higher floor"],
        )

    def test_file_without_a_floor(self):
        self.assertEqual(
            check_known({**CHAIN, "src/pageheap/new.c": "int x;\n"}, floors=self.FLOORS),
            ["src/pageheap/new.c:1: pageheap has floors, but this file is on none"],
        )

    def test_floor_without_its_file(self):
        self.assertEqual(
            check_known(CHAIN, floors={"pageheap": ("c gone", "b", "a")}),
            ["src/pageheap/gone:1: no such file, but it is in FLOORS"],
        )


class CirclesOfModules(unittest.TestCase):
    def test_modules_in_order(self):
        self.assertEqual(check(MODULES)[0], 0)

    def test_circle(self):
        expected = "tool/src/a.rs:1: module circle: a -> b -> c -> a"
        for text in (
            "use crate::a;\n",
            "use crate::a::{b, c};\n",
            "use crate::{\n    a::run,\n    b as other,\n};\n",
            "pub fn one() {\n    crate::a::run();\n}\n",
            '// "\nuse crate::a;\n// "\n',
            "#[cfg(test)]\nmod tests {\n    use super::*;\n}\nuse crate::a;\n",
        ):
            with self.subTest(text=text):
                self.assertEqual(check_known({**MODULES, "tool/src/c.rs": text}), [expected])

    def test_circle_through_main(self):
        self.assertEqual(
            check_known({**MODULES, "tool/src/c.rs": "use crate::STATUS;\n"}),
            ["tool/src/a.rs:1: module circle: a -> b -> c -> main -> a"],
        )

    def test_false_friends(self):
        for text in (
            "// use crate::a;\n",
            "/* use crate::a; */\n",
            'const TEXT: &str = "use crate::a;";\n',
            'const TEXT: &str = r#"use crate::a;"#;\n',
            "use crate::c::a;\n",
            "use other_crate::a;\n",
            "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
        ):
            with self.subTest(text=text):
                self.assertEqual(check_known({**MODULES, "tool/src/c.rs": text}), [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The library seen from the dynamic linker: what it exports, needs, and asks of the loader.

    exports.py LIBRARY [STATIC_LIBRARY]

Reads with nm and readelf. Fault it finds: run on the planted malloc (support/planted.c) it must
fail, since that one exports names of its own and reaches its thread-local variable dynamically.
"""

import pathlib
import re
import subprocess
import sys
import unittest

LIBRARY = STATIC_LIBRARY = None
EXPECTED = pathlib.Path(__file__).with_name("exports.txt")
HEADER = pathlib.Path(__file__).parents[2] / "include" / "snug" / "snug.h"


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def expected_names() -> set[str]:
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


class Exports(unittest.TestCase):
    def test_only_the_public_names_and_all_of_them(self):
        lines = output("nm", "-D", "--defined-only", LIBRARY).splitlines()
        names = {line.split()[-1].split("@")[0] for line in lines}
        self.assertEqual(names, expected_names())

    def test_the_header_declares_what_is_exported(self):
        declared = set(re.findall(r"\b(snug_\w+)\(", HEADER.read_text(encoding="utf-8")))
        exported = {name for name in expected_names() if name.startswith("snug_")}
        self.assertLessEqual(exported, declared)

    def test_exported_names_are_functions(self):
        for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines():
            self.assertRegex(line, r" [TW] ", "not a function")

    def test_static_library_defines_all_names_too(self):
        """But for the nothrow forms of operator new: a C++ runtime that is linked in has its own,
        which call the others inside try and catch. And for dlopen and __register_atfork: see src/api/."""
        if STATIC_LIBRARY is None:
            self.skipTest("no static library given")
        lines = output("nm", "-g", "--defined-only", STATIC_LIBRARY).splitlines()
        names = {line.split()[-1] for line in lines if len(line.split()) == 3}
        left_out = r"_Zn[wa]m.*RKSt9nothrow_t$|dlm?open$|__register_atfork$"
        wanted = {name for name in expected_names() if not re.match(left_out, name)}
        self.assertLessEqual(wanted, names)

    def test_static_library_takes_no_other_names_from_the_program(self):
        """A global name outside its own prefix could collide with one of the program's."""
        if STATIC_LIBRARY is None:
            self.skipTest("no static library given")
        lines = output("nm", "-g", "--defined-only", STATIC_LIBRARY).splitlines()
        names = {line.split()[-1] for line in lines if len(line.split()) == 3}
        strange = {name for name in names - expected_names() if not name.startswith("snug_")}
        self.assertEqual(strange, set())


class Loading(unittest.TestCase):
    """Traps 1 and 2 of a preloaded malloc, as far as they show in the file."""

    def test_no_call_of_tls_get_addr(self):
        self.assertNotIn("__tls_get_addr", output("nm", "-D", LIBRARY))
        self.assertNotRegex(output("readelf", "-rW", LIBRARY), r"DTPMOD|DTPOFF|TLSDESC")

    def test_needs_nothing_but_libc(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", LIBRARY))
        self.assertLessEqual(set(needed), {"libc.so.6"})

    def test_has_a_soname(self):
        self.assertRegex(output("readelf", "-dW", LIBRARY), r"SONAME.*\[libsnug\.so")

    def test_stack_is_not_executable(self):
        segments = output("readelf", "-lW", LIBRARY)
        stack = re.search(r"GNU_STACK\s.*", segments)
        self.assertIsNotNone(stack, "no GNU_STACK header: the loader makes the stack executable")
        self.assertRegex(stack.group(), r" RW ")
        self.assertNotRegex(segments, r"LOAD.* RWE ", "a segment is writable and executable")

    def test_no_text_relocations(self):
        self.assertNotIn("TEXTREL", output("readelf", "-dW", LIBRARY))

    def test_static_tls_is_small(self):
        """Above what the loader keeps in reserve, dlopen of the library would fail."""
        found = re.search(r"TLS\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ (0x\w+)", output("readelf", "-lW", LIBRARY))
        size = int(found.group(1), 16) if found else 0
        self.assertLessEqual(size, 512)


if __name__ == "__main__":
    LIBRARY = sys.argv[1]
    STATIC_LIBRARY = sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1], verbosity=1)

"""Which module of the tool uses which, read from its sources, for check_layers.py.

A module is here what stands directly in tool/src: a file, or a folder as a whole. A use is a path that
begins with `crate::`, in a `use` or in the code. Tests, comments and strings do not count.
"""

import re

LITERALS = re.compile(r'//[^\n]*|/\*.*?\*/|r#*".*?"#*|b?"(?:\\.|[^"\\])*"', re.DOTALL)
TESTS = re.compile(r"^#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))?\s+)?mod\s+\w+\s*\{.*?^\}", re.MULTILINE | re.DOTALL)
USE = re.compile(r"\bcrate::(?:(\w+)|\{((?:[^{}]|\{[^{}]*\})*)\})")


def blank(match):
    return " " + "\n" * match.group(0).count("\n")


def names_of(match):
    """The first names of a path, of which there are many if it goes on with braces."""
    if match.group(1):
        return [match.group(1)]
    inside = re.sub(r"\{[^{}]*\}", "", match.group(2))
    return [words.split("::")[0].split()[0] for words in inside.split(",") if words.strip()]


def module_of(path, root):
    """The module of a file below tool/src."""
    return path.relative_to(root).parts[0].removesuffix(".rs")


def read_uses(texts, root):
    """texts: path of a .rs file -> its text; root: the folder of main.rs. Gives user -> used -> (path, line)."""
    modules = {module_of(path, root) for path in texts}
    graph = {}
    for path, text in sorted(texts.items()):
        text = TESTS.sub(blank, LITERALS.sub(blank, text))
        module = module_of(path, root)
        for match in USE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for name in names_of(match):
                # what is no module is something that main.rs itself has
                used = name if name in modules else "main"
                if used != module:
                    graph.setdefault(module, {}).setdefault(used, (path, line))
    for used in sorted(modules - {"main"}):
        graph.setdefault("main", {}).setdefault(used, (root / "main.rs", 1))
    return graph

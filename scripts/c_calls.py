"""Which file of the library calls which, read from the sources, for check_layers.py.

A file is here a source file together with the header of the same name: what is inline in the header
belongs to it. A call is a name that is followed by a parenthesis, in a function; a function whose
name is only passed on is registered, not called. Function-like macros count as functions.

An inline function or macro that itself calls nothing in its layer reads or changes a structure, in
place of a field's name: to use one is no call either.

Names of members, and of parameters and variables that are pointers to functions, are no calls:
-Wshadow sees to it that these never have the name of a function that is visible.
"""

import re
from collections import defaultdict

# What looks like a call and is none.
WORDS = set(
    "if for while switch return sizeof alignof _Alignof _Alignas _Static_assert __attribute__ "
    "__typeof__ typeof offsetof defined do else case".split()
)
LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
MACRO = re.compile(r"\s*(\w+)\([^)]*\)(.*)", re.DOTALL)
ATTRIBUTE = re.compile(r"__(?:attribute|asm)__\s*\(")
CALL = re.compile(r"(?<!->)(?<![\w.])([A-Za-z_]\w*)\s*\(")
POINTER = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*(?:\[\w*\]\s*)?\)\s*\(")


class Function:
    """A function or a macro: where it is, and the names that it calls, each with its line."""

    def __init__(self, path, name, is_static, calls):
        self.path = path
        self.unit = path.with_suffix("")
        self.name = name
        self.is_inline = path.suffix == ".h"
        self.is_own = is_static and not self.is_inline  # no other file can call it
        self.calls = calls


def blank(match):
    return " " + "\n" * match.group(0).count("\n")


def calls_in(text, line, ignored):
    """name -> line of its first call; the text begins in `line`."""
    calls = {}
    for match in CALL.finditer(text):
        if match.group(1) not in WORDS and match.group(1) not in ignored:
            calls.setdefault(match.group(1), line + text.count("\n", 0, match.start()))
    return calls


def name_of_head(head):
    """The name of the function that begins with this, or None: it is a structure or a value."""
    while match := ATTRIBUTE.search(head):
        end, depth = match.end(), 1
        while depth > 0 and end < len(head):
            depth += {"(": 1, ")": -1}.get(head[end], 0)
            end += 1
        head = head[: match.start()] + head[end:]
    match = CALL.search(head)
    return match.group(1) if match and "=" not in head[: match.start()] else None


def read_functions(path, text):
    """Yields the functions and macros of a file. Code is cut at the braces of the outermost level:
    what stands before such a pair says whether it is a function."""
    text = LITERALS.sub(blank, text)
    pointers = set(POINTER.findall(text))
    for match in DIRECTIVE.finditer(text):
        macro = MACRO.match(match.group(2)) if match.group(1) == "define" else None
        if macro:
            line = text.count("\n", 0, match.start(2) + macro.start(2)) + 1
            yield Function(path, macro.group(1), True, calls_in(macro.group(2), line, pointers))
    text = DIRECTIVE.sub(blank, text)
    depth, start, head = 0, 0, ""
    for match in re.finditer(r"[{};]", text):
        if match.group(0) == "{":
            if depth == 0:
                head, start = text[start : match.start()], match.start()
            depth += 1
        elif match.group(0) == "}":
            depth = max(depth - 1, 0)
            name = name_of_head(head) if depth == 0 else None
            if name:
                body, line = text[start : match.end()], text.count("\n", 0, start) + 1
                is_static = re.search(r"\bstatic\b", head) is not None
                yield Function(path, name, is_static, calls_in(body, line, pointers))
        if depth == 0:
            start = match.end() if match.group(0) != "{" else start


class Layer:
    """The functions of one folder."""

    def __init__(self, texts):
        self.functions = [f for path, text in texts.items() for f in read_functions(path, text)]
        self.shared = defaultdict(list)  # name -> the functions that files can call by it
        self.own = defaultdict(set)  # unit -> names that mean functions of its own
        for function in self.functions:
            self.own[function.unit].add(function.name)
            if not function.is_own:
                self.shared[function.name].append(function)
        self.find_calling()

    def targets(self, function):
        """(function called, line) for each call of a function of the layer."""
        for name, line in function.calls.items():
            found = self.shared[name] if name in self.shared else ()
            at_home = [other for other in found if other.unit == function.unit]
            if not at_home and name in self.own[function.unit]:
                continue
            for other in at_home or found:
                yield other, line

    def find_calling(self):
        """The functions that it is a call to use: all but inline ones that call none of these."""
        self.calling = {f for f in self.functions if not f.is_inline}
        while True:
            more = {
                f
                for f in self.functions
                if f not in self.calling and any(o in self.calling for o, _ in self.targets(f))
            }
            if not more:
                return
            self.calling |= more

    def graph(self):
        graph = defaultdict(dict)
        for function in self.functions:
            for other, line in self.targets(function):
                if other.unit != function.unit and other in self.calling:
                    graph[function.unit].setdefault(other.unit, (function.path, line, other.name))
        return graph


def read_calls(texts):
    """texts: path of a .c or .h file -> its text. Gives caller -> called -> (path, line, function) for calls
    inside a folder; caller and called are paths without their suffix."""
    folders = defaultdict(dict)
    for path, text in sorted(texts.items()):
        folders[path.parent][path] = text
    graph = {}
    for texts_of_layer in folders.values():
        graph.update(Layer(texts_of_layer).graph())
    return graph

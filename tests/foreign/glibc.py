#!/usr/bin/env python3
"""glibc's own tests of malloc, nptl, stdlib, posix and libio, from the distribution's source package,
on the system's malloc and on snug.

usage: glibc.py FOLDER LIBRARY.so [PATTERN]       PATTERN: only tests whose DIRECTORY/NAME has it

FOLDER holds the source and what is built, and is used again. A test is one program; those that do
not build outside of glibc's own build are left out. Each runs on the system's malloc twice, which
shows what is steady, and on snug. What passes there must pass on snug, and print the same if that was
the same twice (of malloc's own tests, what is printed is what their malloc is like). EXPECTED lists
what does not, for a reason. The exit status is 1 if anything else fails on snug alone, and 77 if there
is no source.
"""

import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# The last has nptl's tests that other threads of the past shared.
DIRECTORIES = ["malloc", "nptl", "stdlib", "posix", "libio", "sysdeps/pthread"]
SECONDS = 90  # for one test; its own limits are made five times as long
LEAST_EQUAL = 400  # fewer say that the suite was not built as it should

# What differs by intent.
EXPECTED = {
    "malloc/tst-malloc-stats-cancellation": "looks for the words of glibc's malloc_stats",
    "malloc/tst-mxfast": "looks for glibc's fast bins in mallinfo",
    "malloc/tst-safe-linking": "damages the links of glibc's free lists and wants glibc's message",
    "pthread/tst-key1": "wants every key of pthread_key_create; the library has one of them",
    "pthread/tst-key4": "the same",
    "pthread/tst-tss-basic": "takes the library's key for one that there is not",
}

# Headers of glibc's own that the tests use and that need nothing else of its build; and folders and
# files that they name. The source as a whole is no folder for headers: it has its own bits/, which is
# not this machine's.
OWN_HEADERS = """include/array_length.h include/file_change_detection.h include/idx.h include/intprops.h
include/libc-diag.h include/libc-pointer-arith.h include/list.h include/list_t.h include/verify.h
include/libc-internal.h malloc/dynarray.h include/scratch_buffer.h include/alloc_buffer.h nptl/tst-tls5.h
sysdeps/generic/tst-stack-align.h sysdeps/generic/eloop-threshold.h sysdeps/generic/malloc-size.h
sysdeps/generic/malloc-alignment.h""".split()
OWN_FILES = ["malloc", "nptl", "stdlib", "posix", "libio", "support", "test-skeleton.c", "elf", "io"]
OWN_FILES += ["misc", "string", "sysdeps", "argp"]
# What is left of them.
SHIMS = {
    "config.h": "",
    "libc-symbols.h": "",
    "shlib-compat.h": "#define TEST_COMPAT(lib, from, to) 0\n#define compat_symbol_reference(...)\n",
    "stackinfo.h": "#include <elf.h>\n#define _STACK_GROWS_DOWN 1\n#define DEFAULT_STACK_PERMS (PF_R | PF_W)\n",
}
# What the support library is told of its build; no test that needs one of these is run for real.
PATHS = """SRCDIR_PATH OBJDIR_PATH OBJDIR_ELF_LDSO_PATH INSTDIR_PATH LIBDIR_PATH BINDIR_PATH SBINDIR_PATH
ROOTSBINDIR_PATH SLIBDIR_PATH COMPLOCALEDIR_PATH LIBDIR_PATH SYSCONFDIR_PATH""".split()
FLAGS = ["-std=gnu11", "-O2", "-w", "-fno-stack-protector", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE"]
FLAGS += ["-include", "limits.h", "-DTIMEOUTFACTOR=1", "-DMODULE_NAME=testsuite", "-Dlibc_hidden_proto(...)=", "-Dattribute_hidden="]
LIBRARIES = ["-lpthread", "-ldl", "-lrt", "-lm", "-lutil", "-lresolv"]


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def quiet(command, **options):
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **options,
    )


# ---- Building ------------------------------------------------------------------------------------


class Build:
    """Builds the support library of glibc's tests, and the tests, against the system's libc."""

    def __init__(self, folder, source):
        self.source = source
        self.out = folder / "built"
        self.headers = self.out / "headers"
        self.archive = self.out / "libsupport.a"
        self.flags = FLAGS + ["-I", str(self.headers), "-iquote", str(source / "sysdeps/pthread"), "-iquote", str(source / "nptl")]
        if self.is_current(self.archive):
            return
        shutil.rmtree(self.out, ignore_errors=True)
        self.headers.mkdir(parents=True)
        for name in OWN_FILES + OWN_HEADERS:
            if (source / name).exists():
                place = self.headers / (Path(name).name if name in OWN_HEADERS else name)
                place.symlink_to(source / name)
        for name, text in SHIMS.items():
            (self.headers / name).write_text(text)

    @staticmethod
    def is_current(file):
        """Whether a file is there from an earlier run of this very script."""
        return file.exists() and file.stat().st_mtime > Path(__file__).stat().st_mtime

    def compile(self, source, target, more):
        command = ["gcc", *self.flags, *more, "-o", target, source]
        return quiet(command, cwd=source.parent).returncode == 0

    def support(self):
        if self.is_current(self.archive):
            return
        objects = self.out / "support"
        objects.mkdir()
        paths = [f'-D{name}="{self.out}/none"' for name in PATHS]

        def one(source):
            target = objects / (source.stem + ".o")
            return target if self.compile(source, target, ["-c", "-I", self.source / "support", *paths]) else None

        sources = [
            source
            for source in sorted((self.source / "support").glob("*.c"))
            if not re.search(r"^tst-|^test-|_main$|-container$|README|links-dso", source.stem)
            or source.stem == "support_test_main"
        ]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            built = [target for target in pool.map(one, sources) if target]
        quiet(["ar", "rcs", self.archive, *built])
        print(f"support library: {len(built)} of {len(sources)} files")

    def flags_of(self, directory):
        """NAME -> flags, and NAME -> arguments, of what a directory's Makefile says in plain words."""
        text = (self.source / directory / "Makefile").read_text().replace("\\\n", " ")
        flags, arguments = {}, {}
        for name, value in re.findall(r"^CFLAGS-(\S+)\.c\s*\+?=\s*(.*)$", text, re.MULTILINE):
            flags.setdefault(name, []).extend(word for word in value.split() if "$" not in word)
        for name, value in re.findall(r"^(\S+)-ARGS\s*=\s*(.*)$", text, re.MULTILINE):
            arguments[name] = value
        return flags, arguments

    def test(self, source, flags):
        target = self.out / source.parent.name / source.stem
        if self.is_current(target):
            return target
        target.parent.mkdir(exist_ok=True, parents=True)
        whole = ["-Wl,--start-group", self.archive, "-Wl,--end-group", *LIBRARIES]
        command = ["gcc", *self.flags, *flags, "-o", target, source, *whole]
        return target if quiet(command, cwd=source.parent).returncode == 0 else None


class Test:
    def __init__(self, program, arguments):
        self.program = program
        self.name = f"{program.parent.name}/{program.name}"
        self.arguments = arguments


def make_tests(build, pattern):
    """The tests that can be built."""
    wanted = []
    for directory in DIRECTORIES:
        flags, arguments = build.flags_of(directory)
        for source in sorted((build.source / directory).glob("*.c")):
            if not re.match(r"tst-|test|bug|mallocbug", source.stem) or "static" in source.stem:
                continue
            if pattern in f"{directory}/{source.stem}":
                wanted.append((source, flags.get(source.stem, []), arguments.get(source.stem, "")))

    def one(item):
        program = build.test(item[0], item[1])
        if program is None:
            return None
        words = re.sub(r"\$\(host-(test|built)-program-cmd\)", str(program), item[2])
        words = words.replace("$(objpfx)", str(program.parent) + "/")
        return Test(program, [] if "$" in words else words.split())

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tests = [test for test in pool.map(one, wanted) if test]
    print(f"tests: {len(tests)} of {len(wanted)} can be built outside of glibc's own build")
    return tests


# ---- Running -------------------------------------------------------------------------------------


class Run:
    """How a test ended: `verdict` in words, and what it printed."""

    def __init__(self, test, library):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TIMEOUTFACTOR": "5"}
        if "PLANTED" in os.environ:
            environment["PLANTED"] = os.environ["PLANTED"]
        if library:
            environment["LD_PRELOAD"] = str(library)
        with tempfile.TemporaryDirectory(prefix="snug-glibc-") as place:
            self.out, status = self.execute(test, environment, place)
        self.verdict = {0: "passed", 77: "unsupported", None: "did not end"}.get(status)
        if self.verdict is None:
            self.verdict = f"status {status}" if status > 0 else f"signal {-status}"

    @staticmethod
    def execute(test, environment, place):
        """In a session of its own, which ends with it."""
        environment = dict(environment, TMPDIR=place, HOME=place)
        with open(os.path.join(place, "output"), "w+b") as output:
            process = subprocess.Popen(
                [str(test.program), *test.arguments],
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            output.seek(0)
            text = output.read(1 << 20).decode(errors="replace")
        return text.replace(place, "PLACE"), status


def prints_the_same(test, library, system, snug):
    """Whether a test that passes prints on snug what it prints each time on the system's malloc."""
    if test.program.parent.name == "malloc" or snug.verdict != "passed":
        return True
    if system[0].out != system[1].out or snug.out == system[0].out:
        return True
    return Run(test, None).out != system[0].out or Run(test, library).out == system[0].out


def judge(test, library):
    """`equal`, `better`, `unsteady` or `worse`, and why."""
    system = [Run(test, None), Run(test, None)]
    snug = Run(test, library)
    verdicts = {run.verdict for run in system}
    if snug.verdict in verdicts:
        if prints_the_same(test, library, system, snug):
            return "equal", snug.verdict
        return "worse", f"prints something else:\n{system[0].out[:500]}--- on snug\n{snug.out[:500]}"
    if snug.verdict == "passed" or "passed" not in verdicts:
        return "better", f"{system[0].verdict}, on snug {snug.verdict}"
    # Others run beside it: once more, each, if that may be the reason.
    if Run(test, library).verdict == "passed" or Run(test, None).verdict != "passed":
        return "unsteady", f"{snug.verdict} on snug, once of twice"
    return "worse", f"{system[0].verdict}, on snug {snug.verdict}:\n{snug.out[-800:]}"


def run_all(tests, library):
    results = {}
    # Most of them wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(3 * os.cpu_count()) as pool:
        futures = {pool.submit(judge, test, library): test for test in tests}
        for future in concurrent.futures.as_completed(futures):
            results[futures[future].name] = future.result()
            kind, why = future.result()
            if kind != "equal":
                print(f"{kind}: {futures[future].name}: {why}", flush=True)
    return results


def report(results, whole):
    of_kind = {kind: [] for kind in ("equal", "better", "unsteady", "worse")}
    for name, (kind, _) in sorted(results.items()):
        of_kind[kind].append(name)
    bad = [name for name in of_kind["worse"] if name not in EXPECTED]
    for name in sorted(set(of_kind["worse"]) - set(bad)):
        print(f"expected: {name}: {EXPECTED[name]}")
    for name in bad:
        print(f"FAIL: {name}")
    verdicts = [results[name][1] for name in of_kind["equal"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
    print(
        f"{len(verdicts)} equal ({counts}), {len(of_kind['better'])} better on snug, "
        f"{len(of_kind['unsteady'])} unsteady, {len(of_kind['worse']) - len(bad)} differ by intent, "
        f"{len(bad)} fail on snug alone"
    )
    if whole and len(verdicts) < LEAST_EQUAL:
        print(f"FAIL: that is fewer than {LEAST_EQUAL}")
        return False
    return not bad and bool(results)


def main():
    folder, library = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    fetched = quiet(["bash", Path(__file__).with_name("glibc_source.sh"), folder])
    if fetched.returncode == 77:
        skip(fetched.stdout.strip().removeprefix("SKIP: "))
    if fetched.returncode != 0:
        print(fetched.stdout + fetched.stderr)
        sys.exit(1)
    build = Build(folder, Path(fetched.stdout.strip().splitlines()[-1]))
    build.support()
    results = run_all(make_tests(build, pattern), library)
    sys.exit(0 if report(results, not pattern) else 1)


if __name__ == "__main__":
    main()

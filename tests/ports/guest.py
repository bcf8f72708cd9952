#!/usr/bin/env python3
"""What kernel.sh has to say to the machine, and what the machine says to it.

    guest.py list BUILD TESTS BUT      for guest_init.sh: of each test its name, its limit in seconds, and its command, a line each
    guest.py results CONSOLE FOLDER    of what the machine wrote: FOLDER gets results.xml as ctest would write it, and a line in about
"""

import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# A processor that is played is so many times slower; a limit is for a test that hangs.
SLOWER = 10


def lists(build, tests, but):
    said = subprocess.run(["ctest", "--show-only=json-v1", "-R", tests, "-E", but], cwd=build, check=True, capture_output=True)
    for test in json.loads(said.stdout)["tests"]:
        properties = {its["name"]: its["value"] for its in test.get("properties", [])}
        words = ["env", f"SNUG_TEST_SLOWER={SLOWER}", *properties.get("ENVIRONMENT", []), *test["command"]]
        folder = properties.get("WORKING_DIRECTORY", build)
        print(test["name"], int(SLOWER * properties.get("TIMEOUT", 60)), f"cd {shlex.quote(folder)} && exec {shlex.join(words)}", sep="\n")


def outcome_of(status):
    if status == 0:
        return "run", None
    if status == 77:
        return "notrun", "SKIP_RETURN_CODE=77"
    return "fail", None


def results(console, folder):
    text = Path(console).read_bytes().decode("utf-8", "replace").replace("\r", "")
    suite = ElementTree.Element("testsuite", name=folder)
    for name, status, seconds, said in re.findall(r"^@@ (\S+) (\d+) (\d+)\n((?:@> .*\n)*)@\.$", text, re.M):
        word, reason = outcome_of(int(status))
        case = ElementTree.SubElement(suite, "testcase", name=name, status=word, time=seconds)
        if reason:
            ElementTree.SubElement(case, "skipped", message=reason)
        said = re.sub("^@> ", "", said, flags=re.M)
        ElementTree.SubElement(case, "system-out").text = f"{said}status {status}\n"
        if word == "fail":
            print(f"{name}: status {status} after {seconds} s\n{said[-600:]}")
    Path(folder, "results.xml").write_bytes(ElementTree.tostring(suite))
    about = re.search(r"^@@@ (\S+ .*)$", text, re.M)
    with Path(folder, "about").open("a", encoding="utf-8") as file:
        file.write(f"; in a machine of QEMU's: {about[1] if about else 'it did not start'}")
        total = len(Path(folder, "list").read_text(encoding="utf-8").splitlines()) // 3
        if len(suite) != total:
            file.write(f"; of {total} programs only {len(suite)} ended before the run was cut short")
        file.write("\n")
    if not re.search(r"^@@@ end$", text, re.M):
        sys.exit("the machine did not come to the end of the list")
    if suite.find("testcase[@status='fail']") is not None:
        sys.exit(1)


if __name__ == "__main__":
    {"list": lists, "results": results}[sys.argv[1]](*sys.argv[2:])

#!/usr/bin/env python3
"""The statistics, read back with parsers that are not snug's; and when they are written.

    statistics.py LIBRARY PROGRAM SCHEMA GROUP      PROGRAM: built from leaving.c

GROUP is one of the classes below. A group whose parser is not installed is skipped (status 77).
"""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from blackbox import run  # noqa: E402

LIBRARY = PROGRAM = SCHEMA = None
PARTS = (
    "live_small live_cells live_large live_huge waste cached_small cached_cells depots free_slabs "
    "free_cells purge_pending free_clean metadata"
).split()


class Case(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def leave(self, *way: str, **options: str):
        return run([PROGRAM, *way], preload=LIBRARY, **options)

    def start(self, *way: str, **options: str) -> subprocess.Popen:
        """The program, at the moment where it waits."""
        environment = {**os.environ, **options, "LD_PRELOAD": str(LIBRARY), "SNUG_TEST_EXPECT": "1"}
        process = subprocess.Popen([PROGRAM, *way], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def lines(self, path: pathlib.Path, least: int) -> list[str]:
        """The lines of a file that somebody writes, when there are enough of them."""
        for _ in range(400):
            found = path.read_text().splitlines() if path.exists() else []
            if len(found) >= least:
                return found
            time.sleep(0.05)
        self.fail(f"only {len(found)} lines in {path}")


class Json(Case):
    def read(self, *way: str, **options: str):
        file = self.place / "s.json"
        self.leave(*way, SNUG_STATS=str(file), **options)
        return [json.loads(line) for line in file.read_text().splitlines()]

    def test_is_json_and_adds_up(self):
        (found,) = self.read("return")
        memory = found["memory"]
        self.assertEqual(found["schema"], "snug-statistics-1")
        self.assertEqual(found["reason"], "exit")
        self.assertEqual(sum(memory[part] for part in PARTS), memory["mapped"])
        self.assertEqual(set(memory), {*PARTS, "mapped"})
        self.assertGreaterEqual(memory["live_huge"], 3000001)
        self.assertEqual(found["requested"]["requested_huge"], 3000001)
        small = sum(row["size"] * row["live"] for row in found["classes"])
        self.assertEqual(small, memory["live_small"])
        process = found["process"]
        self.assertEqual(process["resident_snug"] + process["resident_other"], process["resident"])
        self.assertGreater(process["resident_snug"], 3000001)

    def test_is_what_the_schema_says(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("no jsonschema")
        schema = json.loads(pathlib.Path(SCHEMA).read_text())
        for line in self.read("work", SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="100M"):
            jsonschema.validate(line, schema)

    def test_the_schema_names_every_member_and_no_other(self):
        (found,) = self.read("return")
        described = json.loads(pathlib.Path(SCHEMA).read_text())["properties"]
        self.assertEqual(set(found), set(described))
        for group, members in found.items():
            if isinstance(members, dict):
                self.assertEqual(set(members), set(described[group]["properties"]), group)

    def test_several_prints_are_lines(self):
        found = self.read("work", SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="100M")
        self.assertGreater(len(found), 3)
        self.assertEqual([line["reason"] for line in found[-2:]], ["bytes", "exit"])
        taken = [line["other"]["taken_bytes"] for line in found]
        self.assertEqual(taken, sorted(taken))


class Csv(Case):
    def test_one_row_for_each_print(self):
        file = self.place / "s.csv"
        self.leave("work", SNUG_STATS=str(file), SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="100M")
        with file.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        self.assertGreater(len(rows), 3)
        for row in rows:
            self.assertNotIn(None, row, "more values than names")
            numbers = {name: int(value) for name, value in row.items() if value and name != "reason"}
            self.assertEqual(sum(numbers[part] for part in PARTS), numbers["mapped"])
        self.assertEqual(rows[-1]["reason"], "exit")
        self.assertEqual(rows[0]["resident_snug"], "", "a quick row does not look at every page")
        self.assertNotEqual(rows[-1]["resident_snug"], "")


class OpenMetrics(Case):
    def parse(self, text: str):
        from prometheus_client.openmetrics.parser import text_string_to_metric_families

        return {family.name: family for family in text_string_to_metric_families(text)}

    def test_is_read_by_prometheus(self):
        file = self.place / "s.prom"
        self.leave("work", SNUG_STATS=str(file), SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="100M")
        families = self.parse(file.read_text())
        value = {name: family.samples[0].value for name, family in families.items()}
        self.assertEqual(sum(value[f"snug_{part}_bytes"] for part in PARTS), value["snug_mapped_bytes"])
        self.assertEqual(families["snug_refills"].type, "counter")
        self.assertEqual(families["snug_map_bytes"].unit, "bytes")
        states = {sample.labels["state"] for sample in families["snug_class_objects"].samples}
        self.assertEqual(states, {"live", "magazines", "depots", "free"})

    def test_the_parser_notices_a_fault(self):
        with self.assertRaises(ValueError):
            self.parse("# TYPE snug_x gauge\nsnug_x 1 1 1\n")


class Text(Case):
    def test_fits_a_screen(self):
        text = self.leave("return", SNUG_STATS="stderr").err
        self.assertLessEqual(len(text.splitlines()), 24, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)

    def test_detail_says_more(self):
        text = self.leave("return", SNUG_STATS="stderr", SNUG_STATS_DETAIL="1").err
        self.assertGreater(len(text.splitlines()), 60)

    def test_the_format_can_be_said(self):
        text = self.leave("return", SNUG_STATS="stderr", SNUG_STATS_FORMAT="json").err
        self.assertEqual(json.loads(text)["reason"], "exit")

    def test_a_format_that_does_not_exist(self):
        result = self.leave("return", SNUG_STATS="stderr", SNUG_STATS_FORMAT="yaml")
        self.assertEqual(result.status, 0)
        self.assertEqual(
            result.err.splitlines()[0],
            "snug: SNUG_STATS_FORMAT=yaml is not one of auto, text, json, csv, openmetrics; using auto",
        )
        self.assertIn("mapped by snug", result.err)

    def test_a_trigger_that_does_not_exist(self):
        result = self.leave("return", SNUG_STATS="stderr", SNUG_STATS_ON="exit,noon")
        self.assertEqual(
            result.err.splitlines()[0],
            "snug: SNUG_STATS_ON=exit,noon is not some of exit, interval, bytes, signal; using exit",
        )


class Leaving(Case):
    """Every way out that lets code run."""

    def reason(self, *way: str, **options: str):
        file = self.place / "s.json"
        file.unlink(missing_ok=True)
        result = self.leave(*way, SNUG_STATS=str(file), **options)
        found = [json.loads(line)["reason"] for line in file.read_text().splitlines()] if file.exists() else []
        return result.status, found

    def test_by_the_program_itself(self):
        for way, status in {"return": 0, "exit": 3, "quick_exit": 4}.items():
            with self.subTest(way):
                self.assertEqual(self.reason(way), (status, ["exit"]))

    def test_by_a_signal_that_it_does_not_handle(self):
        self.assertEqual(self.reason("abort"), (-signal.SIGABRT, ["SIGABRT"]))
        self.assertEqual(self.reason("fault"), (-signal.SIGSEGV, ["SIGSEGV"]))
        self.assertEqual(self.reason("overflow"), (-signal.SIGSEGV, ["SIGSEGV"]))

    def test_by_a_signal_from_outside(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number):
                file = self.place / f"{number}.json"
                process = self.start("wait", SNUG_STATS=str(file))
                time.sleep(0.8)  # SIGINT is left to the program for its first half second
                process.send_signal(number)
                self.assertEqual(process.wait(30), -number)
                self.assertEqual(json.loads(file.read_text())["reason"], number.name)

    def test_a_signal_that_it_handles_is_its_own(self):
        self.assertEqual(self.reason("handle"), (7, []))

    def test_underscore_exit_lets_no_code_run(self):
        self.assertEqual(self.reason("_exit"), (5, []))

    def test_without_exit_in_the_list(self):
        self.assertEqual(self.reason("exit", SNUG_STATS_ON="signal"), (3, []))
        self.assertEqual(self.reason("abort", SNUG_STATS_ON="signal"), (-signal.SIGABRT, []))


class When(Case):
    def test_on_a_signal(self):
        file = self.place / "s.json"
        process = self.start("wait", SNUG_STATS=str(file), SNUG_STATS_ON="signal")
        for count in range(1, 4):
            process.send_signal(signal.SIGUSR2)
            lines = self.lines(file, count)
        self.assertEqual([json.loads(line)["reason"] for line in lines], ["signal"] * 3)
        self.assertIsNone(process.poll())

    def test_without_being_asked_the_signal_is_the_programs(self):
        process = self.start("wait")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.wait(30), -signal.SIGUSR2)

    def test_at_intervals(self):
        file = self.place / "s.csv"
        self.start("wait", SNUG_STATS=str(file), SNUG_STATS_ON="interval", SNUG_STATS_EVERY="100ms")
        rows = list(csv.DictReader(self.lines(file, 5)))
        times = [int(row["milliseconds"]) for row in rows]
        self.assertTrue(all(later - earlier >= 50 for earlier, later in zip(times, times[1:])), times)

    def test_children_have_files_of_their_own(self):
        self.leave("fork", SNUG_STATS=str(self.place / "s-%p.json"))
        found = [json.loads(file.read_text()) for file in self.place.iterdir()]
        self.assertEqual(len(found), 4)
        self.assertEqual(len({each["pid"] for each in found}), 4)

    def test_children_without_files_of_their_own_follow_their_parent(self):
        file = self.place / "s.json"
        self.leave("fork", SNUG_STATS=str(file), SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="1M")
        found = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(len({each["pid"] for each in found}), 4)

    def test_the_heap_is_checked(self):
        result = self.leave("return", SNUG_CHECK_ON="exit,interval", SNUG_STATS_EVERY="50ms")
        self.assertEqual((result.status, result.err), (0, ""))


class Names(Case):
    def names(self, **options: str) -> set[str]:
        process = self.start("wait", **options)
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        return set(re.findall(r"\[anon:(snug [a-z]+)\]", maps))

    def test_mappings_have_names(self):
        self.assertEqual(self.names(), {"snug heap", "snug metadata"})
        self.assertEqual(self.names(SNUG_NAMES="none"), set())


def mappings_can_have_names() -> bool:
    import ctypes
    import mmap

    memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = ctypes.c_char.from_buffer(memory)
    done = ctypes.CDLL(None).prctl(
        ctypes.c_int(0x53564D41), ctypes.c_ulong(0), ctypes.c_ulong(ctypes.addressof(view)),
        ctypes.c_ulong(mmap.PAGESIZE), ctypes.c_char_p(b"snug test"),
    ) == 0  # fmt: skip
    del view
    memory.close()
    return done


class BadPlaces(Case):
    def test_a_full_disk(self):
        result = self.leave("return", SNUG_STATS="/dev/full")
        self.assertEqual(result.status, 0)
        self.assertEqual(result.err, "snug: the statistics could not be written to /dev/full\n")

    def test_a_broken_pipe_does_not_kill(self):
        reader, writer = os.pipe()
        os.close(reader)
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "SNUG_STATS": "stderr"}
        done = subprocess.run([PROGRAM], env=environment, stderr=writer, timeout=60, check=False)
        os.close(writer)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    LIBRARY, PROGRAM, SCHEMA, group = sys.argv[1:5]
    if group == "OpenMetrics":
        try:
            import prometheus_client  # noqa: F401
        except ImportError:
            print("SKIP: no prometheus_client for Python")
            sys.exit(77)
    if group == "Names" and not mappings_can_have_names():
        print("SKIP: this kernel has no names for mappings (CONFIG_ANON_VMA_NAME)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], group], verbosity=1)

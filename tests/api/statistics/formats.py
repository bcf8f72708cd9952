#!/usr/bin/env python3
"""The statistics, read back with parsers that are not snug's.

    formats.py GROUP LIBRARY PROGRAM SCHEMA      PROGRAM: built from leaving.c
"""

import csv
import json
import pathlib
import subprocess

from case import ARGUMENTS, PARTS, Case, main


class Json(Case):
    def schema(self):
        return json.loads(pathlib.Path(ARGUMENTS[2]).read_text())

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
        self.assertEqual(sum(row["blocks"] for row in found["medium"]), found["blocks"]["blocks_medium"])
        self.assertEqual(sum(row["bytes"] for row in found["medium"]), memory["live_cells"])
        self.assertEqual([[row["up_to"], row["blocks"], row["bytes"]] for row in found["large"]], [[4 << 20, 1, 3000001]])
        process = found["process"]
        self.assertEqual(process["resident_snug"] + process["resident_other"], process["resident"])
        self.assertGreater(process["resident_snug"], 3000001)

    def test_a_hardened_heap_adds_up(self):
        (found,) = self.read("return", SNUG_PRESET="hardened")
        memory = found["memory"]
        self.assertEqual(sum(memory[part] for part in PARTS), memory["mapped"])
        self.assertGreaterEqual(memory["live_hardened"], 3000001)
        self.assertGreater(memory["live_hardened"] + memory["hardened_rest"], 4 << 20)
        self.assertGreater(memory["hardened_waiting"] + memory["hardened_free"], 0)
        self.assertGreater(found["blocks"]["blocks_hardened"], 0)
        self.assertEqual(found["requested"]["live"], memory["live_hardened"])
        self.assertEqual([found["peaks"][name] for name in ("mapped_peak", "used_peak")], [None, None])
        process = found["process"]
        self.assertEqual(process["resident_snug"] + process["resident_other"], process["resident"])
        self.assertGreater(process["resident_snug"], 3000001)

    def test_the_schema_names_every_member_and_no_other(self):
        (found,) = self.read("return")
        described = self.schema()["properties"]
        self.assertEqual(set(found), set(described))
        for group, members in found.items():
            if isinstance(members, dict):
                self.assertEqual(set(members), set(described[group]["properties"]), group)

    def test_several_prints_are_lines(self):
        found = self.read("work", SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="20M")
        self.assertGreater(len(found), 3)
        self.assertEqual([line["reason"] for line in found[-2:]], ["bytes", "exit"])
        taken = [line["other"]["taken_bytes"] for line in found]
        self.assertEqual(taken, sorted(taken))


class Schema(Json):
    """Every print is valid for the documented schema, and the validator notices what is not."""

    needs = ("python:jsonschema",)

    def validator(self):
        import jsonschema

        jsonschema.Draft202012Validator.check_schema(self.schema())
        return jsonschema.Draft202012Validator(self.schema())

    def test_every_print_is_valid(self):
        validator = self.validator()
        found = self.read("work", SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="20M")
        self.assertGreater(len(found), 3)
        for line in found:
            validator.validate(line)

    def test_faults_are_noticed(self):
        validator = self.validator()
        (found,) = self.read("return")
        faults = [
            {**found, "schema": "snug-statistics-0"},
            {**found, "more": 1},
            {name: value for name, value in found.items() if name != "memory"},
            {**found, "memory": {**found["memory"], "mapped": -1}},
            {**found, "memory": {**found["memory"], "mapped": "1"}},
            {**found, "memory": {name: value for name, value in found["memory"].items() if name != "live_small"}},
            {**found, "events": {**found["events"], "more": 1}},
            {**found, "classes": [{"size": 16}]},
        ]
        for number, fault in enumerate(faults):
            self.assertFalse(validator.is_valid(fault), f"fault {number}")


WORDS = ("reason", "heaps_by_name")


class Csv(Case):
    def test_one_row_for_each_print(self):
        file = self.place / "s.csv"
        self.leave("work", SNUG_STATS=str(file), SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="20M")
        with file.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        self.assertGreater(len(rows), 3)
        for row in rows:
            self.assertNotIn(None, row, "more values than names")
            numbers = {name: int(value) for name, value in row.items() if value and name not in WORDS}
            self.assertEqual(sum(numbers[part] for part in PARTS), numbers["mapped"])
        self.assertEqual(rows[-1]["reason"], "exit")
        self.assertEqual(rows[0]["resident_snug"], "", "a quick row does not look at every page")
        self.assertNotEqual(rows[-1]["resident_snug"], "")
        self.assertEqual(rows[0]["medium_2KiB_blocks"], "", "nor at medium blocks")
        last = {name: int(value) for name, value in rows[-1].items() if value and name not in WORDS}
        ends = ["1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]
        self.assertEqual(sum(last[f"medium_{end}_bytes"] for end in ends), last["live_cells"])
        self.assertEqual(sum(last[f"medium_{end}_blocks"] for end in ends), last["blocks_medium"])
        self.assertEqual((last["large_4MiB_blocks"], last["large_4MiB_bytes"]), (1, 3000001))
        self.assertEqual((last["large_256KiB_blocks"], last["large_more_bytes"]), (0, 0))


class OpenMetrics(Case):
    """By the parser of OpenMetrics in Prometheus's own library for Python."""

    needs = ("python:prometheus_client",)

    def parse(self, text: str):
        from prometheus_client.openmetrics.parser import text_string_to_metric_families

        return {family.name: family for family in text_string_to_metric_families(text)}

    def test_is_read_by_prometheus(self):
        file = self.place / "s.prom"
        self.leave("work", SNUG_STATS=str(file), SNUG_STATS_ON="exit,bytes", SNUG_STATS_BYTES="20M")
        families = self.parse(file.read_text())
        value = {name: family.samples[0].value for name, family in families.items()}
        self.assertEqual(sum(value[f"snug_{part}_bytes"] for part in PARTS), value["snug_mapped_bytes"])
        self.assertEqual(families["snug_refills"].type, "counter")
        self.assertEqual(families["snug_map_bytes"].unit, "bytes")
        states = {sample.labels["state"] for sample in families["snug_class_objects"].samples}
        self.assertEqual(states, {"live", "magazines", "depots", "free"})

        def rows(name: str):
            return {sample.labels["up_to"]: sample.value for sample in families[name].samples}

        self.assertEqual(rows("snug_large_objects"), {str(4 << 20): 1})
        self.assertEqual(rows("snug_large_bytes"), {str(4 << 20): 3000001})
        self.assertEqual(sum(rows("snug_medium_bytes").values()), value["snug_live_cells_bytes"])

    def test_the_parser_notices_a_fault(self):
        with self.assertRaises(ValueError):
            self.parse("# TYPE snug_x gauge\nsnug_x 1 1 1\n")


MIB = 1 << 20


class Heaps(Case):
    """Heaps of the program's own, of named.c."""

    def check(self, rows: list[dict]):
        of = {row["name"]: row for row in rows}
        self.assertEqual(len(rows), 4)
        self.assertEqual(set(of), {"request", "", 'a "b\\c",?', "thirty-characters-and-then-ä-?"})
        request = of["request"]
        self.assertEqual((request["heaps"], request["blocks"], request["provider"]), (2, 18, "system"))
        self.assertEqual(request["quota"], 64 * MIB)
        self.assertTrue(18 * MIB <= request["live"] <= request["mapped"], request)
        self.assertTrue(30 * MIB <= request["peak"] <= 40 * MIB, "of the one that had most, not of both")
        plain = of[""]
        self.assertEqual((plain["heaps"], plain["blocks"], plain["quota"]), (1, 20, None))
        buffer = of['a "b\\c",?']
        self.assertEqual((buffer["provider"], buffer["blocks"]), ("buffer", 100))
        self.assertTrue(0.9 * MIB < buffer["quota"] <= MIB, buffer)

    def test_each_kind_is_a_row(self):
        file = self.place / "s.json"
        self.leave(SNUG_STATS=str(file))
        found = json.loads(file.read_text())
        self.check(found["heaps"])
        other = found["other"]
        self.assertEqual(other["heaps"], 5)
        for name in ("blocks", "live", "mapped"):
            self.assertEqual(other[f"heaps_{name}"], sum(row[name] for row in found["heaps"]), name)
        process = found["process"]
        self.assertTrue(38 * MIB <= process["resident_heaps"] <= 80 * MIB, process)
        parts = process["resident_snug"] + process["resident_heaps"] + process["resident_other"]
        self.assertEqual(parts, process["resident"])
        self.assertLess(process["resident_other"], 20 * MIB)
        # At the peak the first of the two had 30 MiB. It is copied when a sixteenth more is in use.
        then = {row["name"]: row for row in found["heaps_at_peak"]}
        self.assertEqual(set(then) - {row["name"] for row in found["heaps"]}, set())
        self.assertTrue(36 * MIB <= then["request"]["live"] <= 39 * MIB, then)
        self.assertEqual((then["request"]["heaps"], then["request"]["quota"]), (2, 64 * MIB))

    def test_csv_has_the_same_as_a_field(self):
        file = self.place / "s.csv"
        self.leave(SNUG_STATS=str(file))
        with file.open(newline="") as lines:
            (row,) = csv.DictReader(lines)
        self.check(json.loads(row["heaps_by_name"]))

    def test_text_has_them_with_their_names(self):
        text = self.leave(SNUG_STATS="stderr").err
        self.assertLessEqual(len(text.splitlines()), 24, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.assertRegex(text, r"\n +2 +18\.[0-9] MiB +[0-9.]+ MiB +3[0-9]\.[0-9] MiB +64\.0 MiB  system +request\n")
        self.assertRegex(text, r"\n  h in heaps of its own +[0-9.]+ MiB  in use [0-9.]+ MiB\n")
        self.assertRegex(text, r"\n  its heaps then: request 3[678]\.[0-9] MiB, \(no name\) [0-9.]+ MiB")
        self.assertRegex(text, r"\n  in malloc's heap [0-9.]+ KiB, in others [0-9.]+ MiB, not snug's [0-9.]+ MiB\n")
        text = self.leave(SNUG_STATS="stderr", SNUG_STATS_DETAIL="1").err
        self.assertRegex(text, r"\n +1 .* system +thirty-characters-and-then-ä-\?\n")


class HeapsInMetrics(OpenMetrics):
    def test_heaps_have_labels(self):
        file = self.place / "s.prom"
        self.leave(SNUG_STATS=str(file))
        families = self.parse(file.read_text(encoding="utf-8"))

        def of(name: str):
            return {sample.labels["heap"]: sample for sample in families[name].samples}

        self.assertEqual(set(of("snug_heap_live_bytes")), {"request", "", 'a "b\\c",?', "thirty-characters-and-then-ä-?"})
        request = of("snug_heap_quota_bytes")["request"]
        self.assertEqual(request.value, 64 * MIB)
        self.assertEqual(request.labels, {"heap": "request", "provider": "system", "quota": str(64 * MIB)})
        self.assertEqual(of("snug_heap_heaps")["request"].value, 2)
        self.assertEqual(of("snug_heap_blocks")["request"].value, 18)
        self.assertGreaterEqual(of("snug_heap_peak_bytes")["request"].value, 30 * MIB)
        self.assertGreaterEqual(of("snug_heap_at_peak_bytes")["request"].value, 36 * MIB)
        self.assertNotIn("", of("snug_heap_quota_bytes"))

    test_is_read_by_prometheus = None


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


class Xml(Case):
    """malloc_info, read by libxml2."""

    needs = ("xmllint",)

    def ask(self, xml: str, path: str) -> float:
        """The number that an XPath gives."""
        done = subprocess.run(["xmllint", "--nonet", "--xpath", path, "-"], input=xml, text=True,
                              capture_output=True, check=False)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""), xml)
        return float(done.stdout)

    def test_is_read_by_libxml(self):
        xml = self.leave("xml").out
        self.assertEqual(self.ask(xml, "count(/malloc[@version=1]/heap)"), 1)
        system = self.ask(xml, 'number(/malloc/system[@type="current"]/@size)')
        self.assertGreater(system, 3000001)
        self.assertEqual(self.ask(xml, 'number(/malloc/heap/system[@type="current"]/@size)'), system)
        self.assertGreaterEqual(self.ask(xml, 'number(/malloc/total[@type="mmap"]/@size)'), 3000001)
        free = self.ask(xml, 'number(/malloc/total[@type="fast"]/@size)')
        self.assertEqual(self.ask(xml, "sum(/malloc/heap/sizes/size/@total)"), free)

    def test_a_fault_is_noticed(self):
        done = subprocess.run(["xmllint", "--noout", "-"], input="<malloc><heap></malloc>", text=True,
                              capture_output=True, check=False)  # fmt: skip
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    main(globals())

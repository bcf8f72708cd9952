#!/usr/bin/env python3
"""When the statistics are written, and what happens where they cannot be.

    when.py GROUP LIBRARY PROGRAM      PROGRAM: built from leaving.c
"""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from case import ARGUMENTS, Case, library, main


class Leaving(Case):
    """Every way out that lets code run."""

    def reason(self, *way: str, **options: str):
        file = self.place / "s.json"
        file.unlink(missing_ok=True)
        result = self.leave(*way, SNUG_STATS=str(file), **options)
        found = [json.loads(line)["reason"] for line in file.read_text().splitlines()] if file.exists() else []
        return result.status, found

    def test_by_the_program_itself(self):
        for way, status in {"return": 0, "exit": 3, "quick_exit": 4, "pthread_exit": 0}.items():
            with self.subTest(way):
                self.assertEqual(self.reason(way), (status, ["exit"]))

    def test_by_a_signal_that_it_does_not_handle(self):
        self.assertEqual(self.reason("abort"), (-signal.SIGABRT, ["SIGABRT"]))
        self.assertEqual(self.reason("fault"), (-signal.SIGSEGV, ["SIGSEGV"]))
        self.assertEqual(self.reason("overflow"), (-signal.SIGSEGV, ["SIGSEGV"]))

    def test_by_any_signal_from_outside(self):
        others = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD,
                  signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}  # fmt: skip
        for number in sorted(signal.valid_signals() - others):
            with self.subTest(number):
                file = self.place / f"{number}.json"
                process = self.start("wait", SNUG_STATS=str(file))
                if number == signal.SIGINT:
                    time.sleep(0.8)  # which is left to the program for its first half second
                process.send_signal(number)
                self.assertEqual(process.wait(30), -number)
                name = number.name if number < signal.SIGRTMIN else "SIGRT"
                self.assertEqual(json.loads(file.read_text())["reason"], name)

    def test_a_signal_that_it_handles_is_its_own(self):
        self.assertEqual(self.reason("handle"), (7, []))

    def test_underscore_exit_lets_no_code_run(self):
        self.assertEqual(self.reason("_exit"), (5, []))

    def test_without_exit_in_the_list(self):
        self.assertEqual(self.reason("exit", SNUG_STATS_ON="signal"), (3, []))
        self.assertEqual(self.reason("abort", SNUG_STATS_ON="signal"), (-signal.SIGABRT, []))

    def test_with_a_title_written_over_its_environment(self):
        self.assertEqual(self.reason("title"), (0, ["exit"]))

    def test_with_its_streams_closed(self):
        """The copy that is written to has a number below the limit, whatever that is."""
        for most in (512, 2048):
            with self.subTest(most=most):
                environment = {**os.environ, "SNUG_STATS": "stderr"}
                if library():
                    environment["LD_PRELOAD"] = library()
                limit = ["sh", "-c", f'ulimit -n {most}; exec "$0" close', ARGUMENTS[1]]
                done = subprocess.run(limit, env=environment, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stderr, r"^snug: statistics of process \d+ after [^\n]* \(exit\)\n")

    def test_while_other_threads_print(self):
        for _ in range(10):
            file = self.place / "s.csv"
            file.unlink(missing_ok=True)
            options = {"SNUG_STATS_ON": "exit,interval", "SNUG_STATS_EVERY": "1ms"}
            self.leave("threads_exit", SNUG_STATS=str(file), **options)
            reasons = [row["reason"] for row in csv.DictReader(file.read_text().splitlines())]
            self.assertIn("interval", reasons)
            self.assertEqual(reasons.count("exit"), 1)

    def test_by_a_signal_while_other_threads_print(self):
        for _ in range(10):
            file = self.place / "s.csv"
            file.unlink(missing_ok=True)
            process = self.start("threads", SNUG_STATS=str(file), SNUG_STATS_ON="exit,interval", SNUG_STATS_EVERY="1ms")
            self.lines(file, 3)
            process.terminate()
            self.assertEqual(process.wait(30), -signal.SIGTERM)
            reasons = [row["reason"] for row in csv.DictReader(file.read_text().splitlines())]
            self.assertEqual(reasons.count("SIGTERM"), 1)

    def test_in_children_whose_parent_prints(self):
        file = self.place / "s.csv"
        self.leave("threads_fork", SNUG_STATS=str(file), SNUG_STATS_ON="exit,interval", SNUG_STATS_EVERY="1ms")
        reasons = [row["reason"] for row in csv.DictReader(file.read_text().splitlines())]
        self.assertEqual(reasons.count("exit"), 31)


class When(Case):
    def test_on_a_signal(self):
        file = self.place / "s.json"
        process = self.start("wait", SNUG_STATS=str(file), SNUG_STATS_ON="signal")
        for count in range(1, 4):
            process.send_signal(signal.SIGUSR2)
            lines = self.lines(file, count)
        self.assertEqual([json.loads(line)["reason"] for line in lines], ["signal"] * 3)
        self.assertIsNone(process.poll())

    def test_on_a_small_stack(self):
        file = self.place / "s.json"
        for options in ({}, {"SNUG_HARDENED": "1"}):
            with self.subTest(options):
                file.unlink(missing_ok=True)
                result = self.leave("request_small", SNUG_STATS=str(file), SNUG_STATS_ON="signal", **options)
                self.assertEqual(result.status, 0, str(result))
                self.assertEqual(json.loads(file.read_text())["reason"], "signal")
        result = self.leave("print_small")
        self.assertEqual(result.status, 0, str(result))
        self.assertIn("(asked for)", result.err)

    def test_ended_threads_count_for_nothing_at_the_peak(self):
        file = self.place / "s.json"
        self.leave("peak", SNUG_STATS=str(file))
        peaks = json.loads(file.read_text())["peaks"]
        self.assertEqual(peaks["peak_threads"], 1)
        self.assertGreater(peaks["peak_live"], 56 << 20)

    def test_the_resident_peak_of_a_user_in_many_groups(self):
        """The kernel's line of groups stands before the one that is looked for."""
        if os.geteuid() != 0:
            self.skipTest("only root may take groups")
        file = self.place / "s.json"
        environment = {**os.environ, "SNUG_STATS": str(file), "LD_PRELOAD": ARGUMENTS[0]}
        groups = list(range(100000, 101000))
        subprocess.run([ARGUMENTS[1], "peak"], env=environment, extra_groups=groups, timeout=60, check=True)
        self.assertGreater(json.loads(file.read_text())["peaks"]["resident_peak"], 56 << 20)

    def test_without_being_asked_the_signal_is_the_programs(self):
        process = self.start("wait")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.wait(30), -signal.SIGUSR2)

    def test_at_intervals(self):
        file = self.place / "s.csv"
        self.start("wait", SNUG_STATS=str(file), SNUG_STATS_ON="interval", SNUG_STATS_EVERY="100ms")
        rows = list(csv.DictReader(self.lines(file, 5)))
        times = [int(row["milliseconds"]) for row in rows]
        self.assertEqual(times, sorted(set(times)))
        self.assertLessEqual(len(times), times[-1] / 100 + 1)  # on a busy machine one may be late, none is early

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

    def test_children_that_print_first_are_followed_by_their_parent(self):
        for ending, pids in {
            "json": lambda text: [json.loads(line)["pid"] for line in text.splitlines()],
            "csv": lambda text: [row["pid"] for row in csv.DictReader(text.splitlines())],
        }.items():
            with self.subTest(ending):
                file = self.place / f"s.{ending}"
                file.write_text("of another run\n")
                self.leave("fork", SNUG_STATS=str(file))
                found = pids(file.read_text())
                self.assertEqual((len(found), len(set(found))), (4, 4))

    def test_programs_that_print_into_one_file_do_not_mix(self):
        file = self.place / "s.json"
        options = {"SNUG_STATS": str(file), "SNUG_STATS_ON": "exit,bytes", "SNUG_STATS_BYTES": "3M"}
        environment = {**os.environ, **options, "LD_PRELOAD": ARGUMENTS[0]}
        programs = [subprocess.Popen([ARGUMENTS[1], "work"], env=environment) for _ in range(4)]
        for program in programs:
            self.assertEqual(program.wait(60), 0)
        found = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(found[-1]["reason"], "exit")
        self.assertLessEqual({each["pid"] for each in found}, {program.pid for program in programs})

    def test_signals_in_the_middle_of_malloc(self):
        file = self.place / "s.json"
        options = {"SNUG_STATS_ON": "signal,interval", "SNUG_STATS_EVERY": "5ms", "SNUG_CHECK_ON": "signal"}
        process = self.start("threads", SNUG_STATS=str(file), **options)
        reasons = []
        ends = time.monotonic() + 60  # beside other work an interval is seldom what comes first
        while time.monotonic() < ends and (reasons.count("signal") <= 50 or reasons.count("interval") <= 10):
            for _ in range(300):
                process.send_signal(signal.SIGUSR2)
                time.sleep(0.002)
            lines = file.read_text().splitlines()
            reasons = [json.loads(line)["reason"] for line in lines[:-1]]  # the last may be cut
        self.assertIsNone(process.poll())
        process.kill()
        self.assertGreater(reasons.count("signal"), 50)
        self.assertGreater(reasons.count("interval"), 10)
        self.assertEqual(process.stderr.read(), "")



class BadPlaces(Case):
    def assert_said_once(self, path: str, why: str, **options: str):
        result = self.leave("work", SNUG_STATS=path, **options)
        self.assertEqual((result.status, result.err), (0, f"snug: the statistics could not be written to {path}{why}\n"))

    def test_a_full_disk(self):
        for format in ("text", "json", "csv", "openmetrics"):
            with self.subTest(format):
                self.assert_said_once("/dev/full", "", SNUG_STATS_FORMAT=format)

    def test_a_limit_of_the_size_of_files(self):
        file = self.place / "s.json"
        environment = {**os.environ, "SNUG_STATS": str(file), "LD_PRELOAD": ARGUMENTS[0]}
        limited = ["sh", "-c", 'ulimit -f 1; exec "$0" return', ARGUMENTS[1]]
        done = subprocess.run(limited, env=environment, capture_output=True, text=True, timeout=60, check=False)
        message = f"snug: the statistics could not be written to {file}\n"
        self.assertEqual((done.returncode, done.stderr), (0, message))

    def test_what_cannot_be_written_is_said_once(self):
        options = {"SNUG_STATS_ON": "exit,bytes", "SNUG_STATS_BYTES": "10M"}
        self.assert_said_once("/nonexistent/file", ": there is no such directory", **options)
        self.assert_said_once(str(self.place), ": that is a directory", **options)
        self.assert_said_once("/dev/full", "", **options)
        fifo = str(self.place / "fifo")
        os.mkfifo(fifo)
        self.assert_said_once(fifo, ": nobody reads from it", **options)

    def test_a_file_of_somebody_else(self):
        if os.geteuid() != 0:
            self.skipTest("only root may become another user")
        file = self.place / "s.txt"
        file.write_text("mine\n")
        file.chmod(0o600)
        self.place.chmod(0o755)
        # Copies, since the folder they are in may be closed to others, as root's own is.
        library, program = (shutil.copy(argument, self.place) for argument in ARGUMENTS[:2])
        environment = {**os.environ, "LD_PRELOAD": library, "SNUG_STATS": str(file)}
        done = subprocess.run([program, "return"], env=environment, user=65534, group=65534,
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, f"snug: the statistics could not be written to {file}: permission denied\n")
        self.assertEqual(file.read_text(), "mine\n")

    def test_a_broken_pipe_does_not_kill(self):
        for options in ({}, {"SNUG_STATS_ON": "signal"}):
            reader, writer = os.pipe()
            os.close(reader)
            environment = {**os.environ, "LD_PRELOAD": ARGUMENTS[0], "SNUG_STATS": "stderr", **options}
            way = "request" if options else "return"
            done = subprocess.run([ARGUMENTS[1], way], env=environment, stderr=writer, timeout=60, check=False)
            os.close(writer)
            self.assertEqual(done.returncode, 0)

    def test_a_stream_that_is_closed(self):
        for stream in ("stdout", "stderr"):
            for way, status in {"return": 0, "exit": 3, "abort": 134}.items():
                with self.subTest(f"{stream}, {way}"):
                    command = f'"$0" {way} {"1>&-" if stream == "stdout" else "2>&-"} 3>/dev/null'
                    environment = {**os.environ, "LD_PRELOAD": ARGUMENTS[0], "SNUG_STATS": stream}
                    done = subprocess.run(["sh", "-c", f"{command}; exit $?", ARGUMENTS[1]], env=environment,
                                          capture_output=True, text=True, check=False)  # fmt: skip
                    self.assertEqual(done.returncode, status)


if __name__ == "__main__":
    main(globals())

"""`flopsight import` from real servers: the store's hours are those of `flopsight report` on the same window, however often
it is run, and when it is killed in between."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY, HOURS_KEYS, START, groups_by, report, standard_fleet, window
from servers import Prometheus, VictoriaMetrics


def run_import(store, *arguments):
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.Popen([BINARY, "import", "--store", store, *map(str, arguments)], env=clean, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def hours(store):
    """{job: {hours column: sum}} at the store's finest slots."""
    with contextlib.closing(sqlite3.connect(f"file:{store}/flopsight.db?mode=ro", uri=True)) as db:
        columns = ", ".join(f"sum({key})" for key in HOURS_KEYS)
        rows = db.execute(f"SELECT job, {columns} FROM job_rollups "
                          "WHERE slot_seconds = (SELECT min(slot_seconds) FROM job_rollups) GROUP BY job").fetchall()
    return {row[0] or None: dict(zip(HOURS_KEYS, row[1:])) for row in rows}


class ImportedFromServers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.fleet = standard_fleet()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopsight-import-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def imported(self, store, *arguments):
        code, out, err = finished(run_import(store, *arguments))
        self.assertEqual((code, err), (0, ""), out)
        return out

    def check(self, store, answer):
        groups = groups_by(answer, "job")
        stored = hours(store)
        self.assertEqual(set(stored), set(groups))
        for job, group in groups.items():
            for key in HOURS_KEYS:
                self.assertAlmostEqual(stored[job][key], group[key], delta=1e-4 * max(0.1, group["gpu_hours_allocated"]),
                                       msg=f"{job} {key}")

    def check_server(self, name, url):
        store = os.path.join(self.folder, name)
        source = [f"--{name}", url, *window()]
        out = self.imported(store, *source)
        self.assertRegex(out, r"^imported [\d,]+ samples of \d+ GPUs, 3 hours from .* 0 already there")
        self.check(store, report(self, "--prometheus", url, *window(), "--raw", "--by", "job"))
        once = hours(store)
        again = self.imported(store, *source)
        self.assertRegex(again, r"^imported 0 samples .* [1-9][\d,]+ already there")
        self.assertEqual(hours(store), once)
        return once

    def test_both_servers_give_what_a_report_gives_and_a_second_run_adds_nothing(self):
        with Prometheus(history=self.fleet.series) as prometheus, VictoriaMetrics() as victoria:
            victoria.load(self.fleet.series)
            from_prometheus = self.check_server("prometheus", prometheus.url)
            from_export = self.check_server("victoria-metrics", victoria.url)
        self.assertEqual(set(from_prometheus), set(from_export))
        for job, sums in from_prometheus.items():
            for key in HOURS_KEYS:
                self.assertAlmostEqual(sums[key], from_export[job][key], places=6, msg=f"{job} {key}")

    def test_killed_again_and_again_it_makes_what_one_run_makes(self):
        with Prometheus(history=self.fleet.series) as server:
            source = ["--prometheus", server.url, *window()]
            whole = os.path.join(self.folder, "whole")
            begin = time.monotonic()
            self.imported(whole, *source)
            whole_seconds = time.monotonic() - begin
            killed = os.path.join(self.folder, "killed")
            kills = 0
            for share in (0.2, 0.35, 0.5, 0.65, 0.8, 0.9):
                process = run_import(killed, *source)
                time.sleep(share * whole_seconds)
                process.send_signal(signal.SIGKILL)
                kills += finished(process)[0] == -signal.SIGKILL
            self.assertGreater(kills, 0)
            self.imported(killed, *source)
            self.assertEqual(set(hours(killed)), set(hours(whole)))
            for job, sums in hours(whole).items():
                for key in HOURS_KEYS:
                    self.assertAlmostEqual(hours(killed)[job][key], sums[key], places=6, msg=f"{job} {key}")

    def test_windows_one_after_another_make_what_one_makes_and_earlier_ones_are_refused(self):
        with Prometheus(history=self.fleet.series) as server:
            whole, parts = (os.path.join(self.folder, name) for name in ("whole", "parts"))
            self.imported(whole, "--prometheus", server.url, *window())
            for end in (START + 3600, START + 7260, START + 3 * 3600):
                self.imported(parts, "--prometheus", server.url, *window(end=end))
            for job, sums in hours(whole).items():
                for key in HOURS_KEYS:
                    # Where a part ends, up to one step of each GPU is nobody's; frozen readings need a look back.
                    self.assertAlmostEqual(hours(parts)[job][key], sums[key], delta=0.01 * max(0.1, sums["gpu_hours_allocated"]),
                                           msg=f"{job} {key}")
            code, out, err = finished(run_import(parts, "--prometheus", server.url, *window(START - 7200, START)))
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, "time is only added at its end")

    def test_a_step_reads_evaluated_samples(self):
        with Prometheus(history=self.fleet.series) as server:
            store = os.path.join(self.folder, "stepped")
            self.imported(store, "--prometheus", server.url, *window(), "--step", "60s")
            got = hours(store)["train-a"]
            want = groups_by(report(self, "--prometheus", server.url, *window(), "--raw", "--by", "job"), "job")["train-a"]
            self.assertAlmostEqual(got["gpu_hours_delivered"], want["gpu_hours_delivered"],
                                   delta=0.03 * want["gpu_hours_allocated"])


if __name__ == "__main__":
    unittest.main()

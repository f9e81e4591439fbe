"""`flopsight report --prometheus` where sums alone would mislead: copies of which one is wrong, labels that change, values that are
none. The same samples as a file are the truth, as every sample is looked at there. From real Prometheus and VictoriaMetrics servers.
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BLANK, CLOCK, TENSOR, report
from servers import OnPrometheus, OnVictoriaMetrics, Series, prometheus_lines

START = 1_788_220_800  # 2026-09-01T00:00:00Z
HOUR = 3600
SCRAPE = 15
A100 = "NVIDIA A100-SXM4-80GB"
ENGINE, UTIL, POWER = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
SUM_KEYS = ("gpu_hours_allocated", "gpu_hours_delivered", "gpu_hours_lost", "gpu_hours_unmeasured")
BLANK_CLOCK = 2147483632
# Two steps of a minute: a sample holds for just under two intervals on a server.
TOLERANCE_HOURS = 2 / 60


def uuid(number: int) -> str:
    return f"GPU-{number:08x}-1111-2222-3333-444444444444"


class History:
    """Series of GPUs, each of which has a job of its own name."""

    def __init__(self):
        self.series: list[Series] = []
        self._gpus = 0

    def labels(self, job: str | None, **more) -> dict[str, str]:
        self._gpus += 1
        number = self._gpus
        return {"gpu": "0", "UUID": uuid(number), "modelName": A100, "Hostname": f"n{number}", "pod": job,
                "namespace": "x" if job else None, **more}

    def add(self, labels: dict, begin: int = 0, end: int = HOUR, names=(TENSOR, CLOCK), tensor=0.5, clock=1410, every=SCRAPE, **others):
        """Values are numbers or functions of the second; None: no sample. `others` are further metrics by their names."""
        for name, value in ((names[0], tensor), (names[1], clock), *others.items()):
            at = value if callable(value) else lambda second, value=value: value
            points = [((START + second) * 1000, at(second)) for second in range(begin, end, every)]
            points = [(time, one) for time, one in points if one is not None]
            if points:
                self.series.append(Series(name, {k: v for k, v in labels.items() if v is not None}, points))

    def copies(self, job: str, *copies: dict, **more):
        """One GPU under the labels that each copy changes, all at once."""
        labels = self.labels(job)
        for number, copy in enumerate(copies):
            values = {k: copy[k] for k in ("tensor", "clock") if k in copy}
            self.add({**labels, "instance": f"10.0.0.{number}:9400", **copy.get("labels", {})}, **values, **more)

    def changes(self, job: str, *changes: dict):
        """One GPU whose labels change every few minutes."""
        labels = self.labels(job)
        part = HOUR // len(changes)
        for number, change in enumerate(changes):
            self.add({**labels, **change}, begin=number * part, end=(number + 1) * part)


class PushedOnOneServer:
    """The tests; a class below says how a server with a history is started."""

    def compare(self, history: History, *arguments, steps=("60s", "5m"), reasons=True) -> dict:
        """The report of the file, to which that of the server is the same."""
        window = ["--start", START, "--end", START + HOUR, *arguments]
        with tempfile.NamedTemporaryFile("w", suffix=".prom") as file, self.serve(history.series) as server:
            lines = sorted((line for line in prometheus_lines(history.series)), key=lambda line: int(line.rsplit(" ", 1)[1]))
            file.writelines(lines)
            file.flush()
            truth = report(self, "--file", file.name, *window)
            for step in steps:
                answer = report(self, "--prometheus", server.url, *window, "--step", step)
                self.check(answer, truth, step, reasons)
            self.check(report(self, "--prometheus", server.url, *window, "--raw"), truth, "--raw", reasons)
        return truth

    def check(self, answer: dict, truth: dict, route: str, reasons: bool):
        tolerance = TOLERANCE_HOURS * (5 if route == "5m" else 1)
        self.assertEqual(answer["fleet"]["gpu_count"], truth["fleet"]["gpu_count"], route)
        jobs = {group["key"]["job"]: group for group in answer["groups"]}
        expected = {group["key"]["job"]: group for group in truth["groups"]}
        self.assertEqual(set(jobs), set(expected), route)
        for job, group in expected.items():
            for key in SUM_KEYS:
                self.assertAlmostEqual(jobs[job][key], group[key], delta=tolerance, msg=f"{route} {job} {key}")
            if group["ofu_ratio"] is None:
                self.assertIsNone(jobs[job]["ofu_ratio"], f"{route} {job}")
            else:
                self.assertAlmostEqual(jobs[job]["ofu_ratio"], group["ofu_ratio"], delta=0.005, msg=f"{route} {job}")
            if reasons and group["gpu_hours_unmeasured"] > tolerance:
                self.assertEqual(jobs[job]["absent_reason"], group["absent_reason"], f"{route} {job}")

    def pushed_jobs(self, history: History) -> str:
        with self.serve(history.series) as server:
            answer = report(self, "--prometheus", server.url, "--start", START, "--end", START + HOUR)
        return " ".join(answer["assumptions"])

    def test_copies_under_other_labels_are_one_gpu(self):
        history = History()
        history.copies("two-exporters", {"labels": {"Hostname": "node-1"}}, {"labels": {"Hostname": "dcgm-exporter-x7k2p"}})
        history.copies("two-models", {}, {"labels": {"modelName": "NVIDIA-A100-SXM4-80GB"}})
        history.copies("two-indices", {}, {"labels": {"gpu": "3", "pci_bus_id": "00000000:19:00.0"}})
        history.copies("two-uids", {"labels": {"pod_uid": "a"}}, {"labels": {"pod_uid": "b"}})
        history.copies("one-podless", {}, {"labels": {"pod": None, "namespace": None}})
        truth = self.compare(history)
        self.assertAlmostEqual(truth["fleet"]["gpu_hours_allocated"], 5)

    def test_labels_that_change_leave_the_hours_as_they_are(self):
        history = History()
        for label in ("Hostname", "gpu", "pci_bus_id", "modelName", "pod_uid", "device"):
            history.changes("changes-" + label, *({label: f"{label}-{number}"} for number in range(12)))
        exporters = [{"exported_pod": "exporter-changes", "pod": f"nvidia-dcgm-exporter-{number}"} for number in range(12)]
        history.changes("ignored", *exporters)
        history.changes("comes-late", {}, {"pod_uid": "a", "DCGM_FI_DRIVER_VERSION": "590.1"})
        self.compare(history)

    def test_of_two_copies_the_one_with_a_value_counts(self):
        history = History()
        for number, bad in enumerate((1.6, 50, BLANK, -1)):
            history.copies(f"tensor-{number}", {"tensor": 0.2}, {"tensor": bad})
        for number, bad in enumerate((0, BLANK_CLOCK, 1.41e9)):
            history.copies(f"clock-{number}", {}, {"clock": bad})
        truth = self.compare(history)
        self.assertAlmostEqual(truth["fleet"]["gpu_hours_unmeasured"], 0)

    def test_gpus_without_a_value_keep_their_time_and_its_reason(self):
        history = History()
        history.add(history.labels("good"))
        half = HOUR // 2
        for what, normal, bad in (("tensor", 0.5, (BLANK, 50, None)), ("clock", 1410, (BLANK_CLOCK, 0, 1.41e9, None))):
            for number, value in enumerate(bad):
                history.add(history.labels(f"{what}-never-{number}"), **{what: value})
                history.add(history.labels(f"{what}-half-{number}"), **{what: lambda s, v=value, n=normal: n if s < half else v})
        history.add(history.labels("both-half"), tensor=lambda s: 0.5 if s < half else BLANK, clock=lambda s: 1410 if s < half else BLANK_CLOCK)
        history.add(history.labels("only-power"), tensor=None, clock=None, **{POWER: 300.0})
        history.add(history.labels("power-goes-on"), tensor=lambda s: 0.5 if s < half else None, clock=lambda s: 1410 if s < half else None,
                    **{POWER: 300.0})
        self.compare(history)

    def test_what_is_no_number_is_not_measured(self):
        history = History()
        history.add(history.labels("good"))
        history.add(history.labels("tensor"), tensor=lambda s: 0.5 if s < HOUR // 2 else float("nan"))
        history.add(history.labels("clock"), clock=lambda s: 1410 if s < HOUR // 2 else float("nan"))
        # VictoriaMetrics keeps no such samples, so that it cannot tell why there is nothing.
        self.compare(history, reasons=self.keeps_nan)

    def test_a_gpu_that_is_divided_in_the_window_keeps_the_job_before(self):
        history = History()
        labels = history.labels("before", modelName="NVIDIA H100 80GB HBM3")
        history.add(labels, end=HOUR // 2, clock=1830)
        history.add({**labels, "pod": "after", "GPU_I_PROFILE": "3g.40gb", "GPU_I_ID": "1"}, begin=HOUR // 2, clock=1830)
        truth = self.compare(history)
        self.assertAlmostEqual(truth["fleet"]["gpu_hours_allocated"], 1)

    def test_exporters_that_name_the_gpu_by_other_labels_are_read_too(self):
        older = ("dcgm_fi_prof_pipe_tensor_active", "dcgm_sm_clock")
        history = History()
        history.add(history.labels("most"))
        for job, label in (("small", "uuid"), ("gpu-uuid", "gpu_uuid")):
            labels = history.labels(job)
            history.add({**labels, "UUID": None, label: labels["UUID"]}, names=older)
        labels = history.labels("index-is-uuid")
        history.add({**labels, "UUID": None, "gpu": labels["UUID"]}, names=older)
        # Activity by one exporter, the clock by another: one GPU all the same.
        labels = history.labels("two-exporters")
        history.add(labels, clock=None)
        history.add({"uuid": labels["UUID"].removeprefix("GPU-"), "instance": "n2:9835"}, tensor=None, names=(TENSOR, "dcgm_sm_clock"))
        # Both have everything, and only one knows the job.
        labels = history.labels(None)
        history.add(labels)
        history.add({"uuid": labels["UUID"], "instance": "n3:9835", "pod": "told-by-other", "namespace": "x"}, names=older)
        truth = self.compare(history)
        self.assertEqual(truth["fleet"]["gpu_count"], 6)

    def test_exporters_with_other_labels_and_units_are_read_too(self):
        history = History()
        history.add(history.labels("dcgm"))
        labels = history.labels(None)
        history.add({"uuid": labels["UUID"], "name": A100, "minor_number": "0", "instance": "n2:9445"}, tensor=50.0,
                    names=("nvidia_gpu_any_tensor_util_percent", "nvidia_gpu_sm_clock_mhz"))
        labels = history.labels("split")
        history.add(labels, clock=None)
        history.add({"uuid": labels["UUID"].removeprefix("GPU-"), "instance": "n3:9835"}, tensor=None, clock=1.41e9,
                    names=(TENSOR, "nvidia_smi_clocks_current_sm_clock_hz"))
        self.compare(history)

    def test_an_exporter_beside_the_first_changes_nothing(self):
        history = History()
        labels = history.labels("both")
        history.add(labels)
        history.add({"uuid": labels["UUID"], "instance": "n1:9835"}, names=("dcgm_fi_prof_pipe_tensor_active", "dcgm_sm_clock"))
        self.compare(history)
        self.assertNotIn("from raw samples", self.pushed_jobs(history))

    def test_gpus_without_a_name_or_with_a_masked_one_are_read_beside_others(self):
        history = History()
        history.add(history.labels("good"))
        for number in range(2):
            history.add({**history.labels(f"masked-{number}"), "UUID": "GPU-00000000-0000-0000-0000-000000000000"})
            history.add({**history.labels(f"none-{number}"), "UUID": None, "gpu": str(number)})
            # Two GPUs of one name look like one that two jobs share.
            history.add({**history.labels(f"crossed-out-{number}"), "UUID": "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"})
        # The activity names the GPU by host and index only.
        labels = history.labels("joined")
        history.add(labels, tensor=None)
        history.add({**labels, "UUID": None}, clock=None)
        truth = self.compare(history)
        self.assertEqual(truth["fleet"]["gpu_count"], 8)

    def test_gpus_with_other_metrics_only_are_gpus(self):
        history = History()
        history.add(history.labels("good"), **{POWER: 300.0})
        history.add(history.labels("memory"), tensor=None, clock=None, DCGM_FI_DEV_FB_USED=1000.0)
        self.compare(history)

    def test_readings_that_contradict_each_other_are_not_waste(self):
        """Zeros after an Xid, while the device says that it works."""
        def half(before, after):
            return lambda second: before if second < HOUR // 2 else after

        dead = {"tensor": half(0.5, 0.0), ENGINE: half(0.97, 0.0)}
        history = History()
        history.add(history.labels("good"), **{ENGINE: 0.97, UTIL: 100.0, POWER: 300.0})
        history.add(history.labels("utilized"), **dead, **{UTIL: 100.0, POWER: 300.0})
        history.add(history.labels("draws"), **dead, **{UTIL: 0.0, POWER: 300.0})
        history.add(history.labels("limited"), **dead, **{UTIL: 0.0, POWER: 120.0, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 200.0})
        history.add(history.labels("sm-only"), tensor=half(0.5, 0.0), **{"DCGM_FI_PROF_SM_ACTIVE": half(0.9, 0.0), POWER: 300.0})
        history.add(history.labels("idle"), tensor=half(0.5, 0.0), **{ENGINE: half(0.97, 0.0), UTIL: half(100.0, 0.0), POWER: half(300.0, 60.0)})
        truth = self.compare(history)
        self.assertAlmostEqual(truth["fleet"]["gpu_hours_unmeasured"], 2.0)
        self.assertIn("4 GPUs from raw samples", self.pushed_jobs(history))
        with self.serve(history.series) as server:  # over a longer window it is looked less often
            answer = report(self, "--prometheus", server.url, "--start", START, "--end", START + 3 * HOUR)
        self.assertIn("looked for every 300 s", " ".join(answer["assumptions"]))
        lost = {group["key"]["job"]: group["gpu_hours_lost"] for group in answer["groups"]}
        self.assertAlmostEqual(lost["utilized"], 0.25, delta=TOLERANCE_HOURS)

    def test_series_that_come_less_often_than_most_are_no_gap(self):
        history = History()
        for number in range(16):  # the interval is that of most
            history.add(history.labels(f"usual-{number}"))
        for every in (45, 60, 120):
            history.add(history.labels(f"every-{every}"), begin=3, every=every)
        # Only the slow exporter knows the job.
        labels = history.labels(None)
        history.add(labels)
        history.add({**labels, "pod": "slow-pod", "namespace": "x", "instance": "b"}, begin=3, every=60)
        self.compare(history, steps=("60s",))
        self.assertIn("4 GPUs from raw samples", self.pushed_jobs(history))

    def test_gpus_that_sums_say_everything_of_are_not_fetched(self):
        history = History()
        history.add(history.labels("steady"))
        history.add(history.labels("exporter-down"), end=HOUR // 3)
        history.add(history.labels("no-counter"), tensor=None)
        history.copies("replicas", {}, {})
        history.changes("exporter-changes", {"Hostname": "a"}, {"Hostname": "b"})
        self.assertNotIn("from raw samples", self.pushed_jobs(history))
        history.add(history.labels("blank"), tensor=BLANK)
        self.assertIn("1 GPUs from raw samples", self.pushed_jobs(history))


class PrometheusPushed(OnPrometheus, PushedOnOneServer, unittest.TestCase):
    keeps_nan = True


class VictoriaMetricsPushed(OnVictoriaMetrics, PushedOnOneServer, unittest.TestCase):
    keeps_nan = False


if __name__ == "__main__":
    unittest.main(verbosity=2)

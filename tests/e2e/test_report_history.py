"""`flopsight report` on histories that mislead: pairs of replicas, names that change, GPUs that are shared, jobs
that only a file knows, cycle counters without a clock. From real Prometheus and VictoriaMetrics servers.
"""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import CLOCK, SECONDS, START, STEP, TENSOR, Fleet, check_sums, groups_by, report, standard_fleet, window
from servers import OnPrometheus, OnVictoriaMetrics, Series

GPU = "GPU-00000020-aaaa-bbbb-cccc-000000000000"
OTHER_GPU = "GPU-00000021-aaaa-bbbb-cccc-000000000000"
H100 = {"modelName": "NVIDIA H100 80GB HBM3"}
HOURS = SECONDS / 3600
H100_MHZ = 1830.0
H100_SMS = 132
ROUTES = ([], ["--step", "30s"], ["--raw"])
TWO_STEPS = 2 * 60 / 3600  # hours


def points(value, begin=0, end=SECONDS, shift_ms=0):
    """value: a number, or a function of the second."""
    at = value if callable(value) else lambda second: value
    return [((START + second) * 1000 + shift_ms, at(second)) for second in range(begin, end, STEP)]


def gauges(labels, tensor, mhz, names=(TENSOR, CLOCK), **when):
    return [Series(names[0], labels, points(tensor, **when)), Series(names[1], labels, points(mhz, **when)),
            Series("DCGM_FI_DEV_GPU_TEMP", labels, points(50, **when))]


class HistoryOnOneServer:
    """The tests; a class below says how a server with a history is started."""

    def reports(self, history, *arguments, routes=ROUTES):
        """(route, report) by each route."""
        with self.serve(history) as server:
            for route in routes:
                answer = report(self, "--prometheus", server.url, *window(), *route, *arguments)
                check_sums(self, answer)
                yield route, answer

    def reports_of_a_pair(self, routes):
        """(route, truth of the job, its group): each series twice, as two replicas 5 s apart write it."""
        fleet = standard_fleet()
        copies = [Series(one.name, {**one.labels, "instance": f"10.0.0.{number}:9400", "replica": replica},
                         [(at + shift, value) for at, value in one.points])
                  for one in fleet.series for number, (replica, shift) in enumerate((("a", 0), ("b", 5000)))]
        for route, answer in self.reports(copies, routes=routes):
            self.assertEqual(answer["fleet"]["gpu_count"], fleet.gpu_count, route)
            self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], fleet.gpu_count * HOURS, delta=1e-6)
            jobs = groups_by(answer, "job")
            self.assertEqual(set(jobs), set(fleet.truth))
            for job, truth in fleet.truth.items():
                yield f"{route} {job}", truth, jobs[job]

    def test_a_pair_of_replicas_counts_its_hours_once(self):
        for place, truth, group in self.reports_of_a_pair(ROUTES):
            tolerance = TWO_STEPS * max(1, group["gpu_count"])
            unmeasured = truth["allocated"] - truth["measured"]
            self.assertAlmostEqual(group["gpu_hours_allocated"], truth["allocated"] / 3600, delta=tolerance, msg=place)
            self.assertAlmostEqual(group["gpu_hours_unmeasured"], unmeasured / 3600, delta=tolerance, msg=place)

    def check_ofu_of_a_pair(self, routes):
        for place, truth, group in self.reports_of_a_pair(routes):
            if truth["measured"]:
                self.assertAlmostEqual(group["ofu_ratio"], truth["delivered"] / truth["measured"], delta=0.005,
                                       msg=place)

    def test_raw_samples_of_a_pair_of_replicas_give_the_ofu_of_one(self):
        self.check_ofu_of_a_pair([["--raw"]])

    def test_promql_over_a_pair_of_replicas_gives_the_ofu_of_one(self):
        self.check_ofu_of_a_pair([[], ["--step", "30s"]])

    def test_a_rolling_upgrade_leaves_one_gpu_with_its_whole_history(self):
        half = SECONDS // 2
        labels = {"gpu": "0", "UUID": GPU, **H100, "exported_pod": "train", "exported_namespace": "a"}
        history = (gauges({**labels, "Hostname": "n1"}, 0.4, 1500, end=half)
                   + gauges({**labels, "hostname": "n1"}, 0.5, 1400, begin=half,
                            names=("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "DCGM_FI_DEV_SM_CLOCK_MHZ")))
        for route, answer in self.reports(history):
            self.assertEqual(answer["fleet"]["gpu_count"], 1, route)
            self.assertEqual([row["host"] for row in answer["gpus"]], ["n1"], route)
            train = groups_by(answer, "job")["train"]
            self.assertAlmostEqual(train["gpu_hours_allocated"], HOURS, delta=TWO_STEPS, msg=route)
            self.assertAlmostEqual(train["gpu_hours_unmeasured"], 0, delta=TWO_STEPS, msg=route)
            expected = (0.4 * 1500 + 0.5 * 1400) / 2 / H100_MHZ
            self.assertAlmostEqual(train["ofu_ratio"], expected, delta=0.005, msg=route)

    def check_short_jobs(self, routes):
        fleet = Fleet()
        for index in range(4):
            fleet.add_gpu(GPU[:11] + str(index) + GPU[12:], "n1", index, lambda s, i=index: f"debug-{i}-{s // 600}")
        for route, answer in self.reports(fleet.series, routes=routes):
            jobs = groups_by(answer, "job")
            self.assertEqual(set(jobs), set(fleet.truth))
            for job, truth in fleet.truth.items():
                self.assertAlmostEqual(jobs[job]["gpu_hours_allocated"], truth["allocated"] / 3600, delta=TWO_STEPS,
                                       msg=(route, job))
                self.assertAlmostEqual(jobs[job]["ofu_ratio"], truth["delivered"] / truth["measured"], delta=0.03,
                                       msg=(route, job))

    def test_raw_samples_tell_short_jobs_apart(self):
        self.check_short_jobs([["--raw"]])

    def test_promql_tells_short_jobs_apart(self):
        self.check_short_jobs([["--step", "30s"]])

    def test_a_time_sliced_gpu_is_one_gpu(self):
        labels = {"gpu": "0", "UUID": GPU, **H100, "Hostname": "n1"}
        history = []
        for number, pod in enumerate(("p1", "p2")):
            history += gauges({**labels, "vgpu": str(number), "exported_pod": pod, "exported_namespace": "a"}, 0.4,
                              1500)
        # A second GPU with one pod: the push-down stays in use for it.
        history += gauges({**labels, "gpu": "1", "UUID": OTHER_GPU, "exported_pod": "alone",
                           "exported_namespace": "a"}, 0.5, 1400)
        for route, answer in self.reports(history):
            self.assertEqual(answer["fleet"]["gpu_count"], 2, route)
            self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], 2 * HOURS, delta=1e-6, msg=route)
            jobs = groups_by(answer, "job")
            for pod in ("p1", "p2"):
                self.assertAlmostEqual(jobs[pod]["gpu_hours_allocated"], HOURS / 2, delta=1e-6, msg=route)
                self.assertAlmostEqual(jobs[pod]["ofu_ratio"], 0.4 * 1500 / H100_MHZ, delta=1e-6, msg=route)
            self.assertAlmostEqual(jobs["alone"]["gpu_hours_allocated"], HOURS, delta=1e-6, msg=route)
            shared = {row["uuid"]: row["shared_by"] for row in answer["gpus"]}
            self.assertEqual(shared, {GPU: 2, OTHER_GPU: 1}, route)

    def test_a_jobs_file_names_the_jobs_of_gpus_without_labels(self):
        history = []
        for index, uuid in enumerate((GPU, OTHER_GPU)):
            history += gauges({"gpu": str(index), "UUID": uuid, **H100, "Hostname": "n1"}, 0.4, 1500)
        jobs = [{"job": "901", "user": "ada", "team": "physics", "hosts": "n1", "gpus": "0",
                 "start": START, "end": START + 3600},
                {"job": "902", "user": "bob", "team": "physics", "gpu_uuids": [OTHER_GPU],
                 "start": "2026-01-01T01:00:00Z"}]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "jobs.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(jobs, file)
            for route, answer in self.reports(history, "--jobs", path, routes=([], ["--raw"])):
                hours = {g["key"]["job"]: g["gpu_hours_allocated"] for g in answer["groups"]}
                self.assertEqual(set(hours), {"901", "902", None}, route)
                for job, expected in (("901", 1), ("902", 2), (None, 3)):
                    self.assertAlmostEqual(hours[job], expected, delta=1e-6, msg=(route, job))
                self.assertEqual(groups_by(answer, "job")["901"]["key"]["user"], "ada")
                self.assertTrue(any("raw samples" in text for text in answer["assumptions"]), route)

    def test_cycle_counters_need_no_clock(self):
        labels = {"gpu": "0", "UUID": GPU, **H100, "Hostname": "n1", "exported_pod": "train",
                  "exported_namespace": "a"}
        cycles = 1500e6 * H100_SMS  # a second
        history = [
            Series("DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", labels, points(lambda s: cycles * (s + 1000))),
            Series("DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", labels, points(lambda s: 0.4 * cycles * (s + 1000))),
        ]
        for route, answer in self.reports(history):
            self.assertTrue(any("raw samples" in text for text in answer["assumptions"]), route)
            train = groups_by(answer, "job")["train"]
            self.assertAlmostEqual(train["gpu_hours_allocated"], HOURS, delta=1e-6, msg=route)
            # After the last sample nothing is known.
            self.assertLessEqual(train["gpu_hours_unmeasured"], STEP / 3600 + 1e-6, route)
            self.assertAlmostEqual(train["ofu_ratio"], 0.4 * 1500 / H100_MHZ, delta=1e-6, msg=route)
            self.assertAlmostEqual(train["sm_clock_hertz_mean"], 1500e6, delta=1e3, msg=route)

    def test_another_cluster_on_the_same_server_is_left_out(self):
        labels = {"gpu": "0", **H100, "Hostname": "n1", "exported_pod": "train", "exported_namespace": "a"}
        history = (gauges({**labels, "UUID": GPU, "cluster": "a"}, 0.4, 1500)
                   + gauges({**labels, "UUID": OTHER_GPU, "cluster": "b"}, 0.5, 1400))
        for route, answer in self.reports(history, "--match", 'cluster="a"'):
            self.assertEqual([row["uuid"] for row in answer["gpus"]], [GPU], route)
            self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], HOURS, delta=1e-6, msg=route)
            self.assertAlmostEqual(answer["fleet"]["ofu_ratio"], 0.4 * 1500 / H100_MHZ, delta=1e-6, msg=route)


class PrometheusHistory(OnPrometheus, HistoryOnOneServer, unittest.TestCase):
    pass


class VictoriaMetricsHistory(OnVictoriaMetrics, HistoryOnOneServer, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)

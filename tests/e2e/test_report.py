"""`flopsight report` on the fleet of fleet.py, from real Prometheus and VictoriaMetrics servers, by both routes.

The truth is fleet.py's, which does not share a line with the program.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import (HOURS_KEYS, SECONDS, STEP, SUMMARY_KEYS, check_sums, groups_by, report, standard_fleet, window)
from servers import Prometheus, VictoriaMetrics

TOP_KEYS = {"window", "source", "fleet", "groups", "gpus", "quality", "assumptions"}
GPU_KEYS = {"uuid", "mig_instance", "host", "index", "model", "model_raw", "job", "shared_by",
            "reference_clock_hertz", "reference_clock_source", "tensor_active_ratio", "sm_clock_hertz",
            "ofu_ratio", "coverage_ratio", "absent_reason"}
GROUPINGS = "job user team namespace host gpu model".split()
GPUS_OF_JOB = {"train-a": 4, "train-b": 4, None: 2}  # others have one; nobody: an idle GPU, and the rest of a MIG GPU
# What PromQL evaluates at the samples' own interval differs from the truth where a hole begins (a sample holds
# for just under two intervals) and where one job follows another.
OFU_TOLERANCE = 0.005


class ReportOnOneServer:
    """The tests; a class below names the server."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = standard_fleet()
        cls.server = cls.start_server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def report(self, *arguments):
        return report(self, "--prometheus", self.server.url, *window(), *arguments)

    def check_against_truth(self, answer, hours_tolerance, ofu_tolerance):
        """hours_tolerance(GPUs of the job, true hours) -> hours."""
        jobs = groups_by(answer, "job")
        self.assertEqual(set(jobs), set(self.fleet.truth))
        for job, truth in self.fleet.truth.items():
            allocated, measured, delivered = (truth[k] / 3600 for k in ("allocated", "measured", "delivered"))
            group = jobs[job]
            for key, hours in (("allocated", allocated), ("unmeasured", allocated - measured)):
                self.assertAlmostEqual(group["gpu_hours_" + key], hours, msg=f"{job} {key}",
                                       delta=hours_tolerance(GPUS_OF_JOB.get(job, 1), hours))
            if measured == 0:
                self.assertIsNone(group["ofu_ratio"], job)
                self.assertTrue(group["absent_reason"], job)
                continue
            self.assertAlmostEqual(group["ofu_ratio"], delivered / measured, delta=ofu_tolerance, msg=job)
            self.assertLessEqual(group["ofu_ratio_low"], group["ofu_ratio"], job)
            self.assertGreaterEqual(group["ofu_ratio_high"], group["ofu_ratio"], job)
            self.assertAlmostEqual(group["coverage_ratio"], measured / allocated, delta=0.01, msg=job)
        self.assertEqual(answer["fleet"]["gpu_count"], self.fleet.gpu_count)
        check_sums(self, answer)

    def test_raw_samples_give_the_truth(self):
        answer = self.report("--raw")
        self.check_against_truth(answer, lambda gpus, hours: 1e-6 * max(1, hours), 1e-6)
        for job, group in groups_by(answer, "job").items():
            delivered = self.fleet.truth[job]["delivered"] / 3600
            self.assertAlmostEqual(group["gpu_hours_delivered"], delivered, delta=1e-6 * max(1, delivered))

    def test_promql_at_the_scrape_interval_gives_the_truth(self):
        answer = self.report("--step", f"{STEP}s")
        self.assertTrue(any("pushed down" in text for text in answer["assumptions"]), answer["assumptions"])
        self.check_against_truth(answer, lambda gpus, hours: 2 * gpus * STEP / 3600, OFU_TOLERANCE)

    def test_promql_at_the_default_step_gives_the_truth(self):
        answer = self.report()
        self.assertTrue(any("every 60 s" in text for text in answer["assumptions"]), answer["assumptions"])
        self.check_against_truth(answer, lambda gpus, hours: 2 * gpus * 60 / 3600, OFU_TOLERANCE)

    def test_the_fleet_is_all_gpus_for_all_of_the_window(self):
        hours = self.fleet.gpu_count * SECONDS / 3600
        for route in (["--raw"], ["--step", "30s"], []):
            answer = self.report(*route)
            self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], hours, delta=1e-6, msg=route)

    def test_the_keys_of_the_contract_are_there(self):
        for route in (["--raw"], []):
            answer = self.report(*route)
            self.assertLessEqual(TOP_KEYS, set(answer))
            self.assertEqual(answer["window"], {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T03:00:00Z"})
            for summary in [answer["fleet"], *answer["groups"]]:
                self.assertLessEqual(set(SUMMARY_KEYS), set(summary))
            for group in answer["groups"]:
                self.assertLessEqual({"key", "waterfall"}, set(group))
            # One row for each GPU, or for each of its two MIG instances.
            self.assertEqual(len(answer["gpus"]), self.fleet.gpu_count + 1)
            for row in answer["gpus"]:
                self.assertLessEqual(GPU_KEYS, set(row))
                self.assertTrue(row["ofu_ratio"] is not None or row["absent_reason"], row)
            for entry in answer["quality"]:
                self.assertEqual({"code", "count", "where", "meaning"}, set(entry))

    def test_every_grouping_adds_up_to_the_same_fleet(self):
        for route in (["--raw"], ["--step", "30s"]):
            fleets = []
            for by in GROUPINGS:
                answer = self.report("--by", by, *route)
                # A GPU that two jobs had counts in both, one of MIG in each of its instances.
                check_sums(self, answer, groups_count_gpus_once=by in ("host", "model"))
                fleets.append(answer["fleet"])
            for fleet in fleets[1:]:
                for key in HOURS_KEYS + ["gpu_count", "ofu_ratio"]:
                    self.assertAlmostEqual(fleet[key], fleets[0][key], delta=1e-9, msg=key)

    def test_hosts_and_models_are_those_of_the_labels(self):
        for route in (["--raw"], []):
            hosts = groups_by(self.report("--by", "host", *route), "host")
            self.assertEqual({host: group["gpu_count"] for host, group in hosts.items()},
                             {"n1": 4, "n2": 3, "n3": 2, "n4": 1})
            models = self.report("--by", "model", *route)["groups"]
            self.assertEqual(sorted((g["key"]["model"] or g["key"]["model_raw"], g["gpu_count"]) for g in models),
                             [("A100-SXM4-40GB", 1), ("H100-SXM5-80GB", 7), ("NVIDIA X900", 1),
                              ("NVIDIA X901", 1)])
            self.assertEqual(set(groups_by(self.report("--by", "namespace", *route), "namespace")),
                             {"team-a", None})


class PrometheusReport(ReportOnOneServer, unittest.TestCase):
    @classmethod
    def start_server(cls):
        return Prometheus(history=cls.fleet.series)


class VictoriaMetricsReport(ReportOnOneServer, unittest.TestCase):
    @classmethod
    def start_server(cls):
        server = VictoriaMetrics()
        server.load(cls.fleet.series)
        return server


if __name__ == "__main__":
    unittest.main(verbosity=2)

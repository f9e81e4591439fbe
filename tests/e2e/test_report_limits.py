"""`flopsight report` from servers that refuse large queries: the range is split, and the answer is still the truth."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import SECONDS, check_sums, groups_by, report, run_report, standard_fleet, window
from servers import Prometheus, VictoriaMetrics


class ReportUnderLimits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = standard_fleet()

    def prometheus(self, *arguments):
        return Prometheus(history=self.fleet.series, extra_arguments=arguments)

    def victoria(self, *arguments):
        server = VictoriaMetrics(arguments)
        server.load(self.fleet.series)
        return server

    def check(self, server, *route, tolerance=1e-6):
        with server:
            answer = report(self, "--prometheus", server.url, *window(), *route)
        check_sums(self, answer)
        self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], self.fleet.gpu_count * SECONDS / 3600,
                               delta=1e-6)
        jobs = groups_by(answer, "job")
        self.assertEqual(set(jobs), set(self.fleet.truth))
        for job, truth in self.fleet.truth.items():
            delivered = truth["delivered"] / 3600
            self.assertAlmostEqual(jobs[job]["gpu_hours_delivered"], delivered,
                                   delta=tolerance * max(1, delivered), msg=job)

    def test_raw_samples_are_split_for_prometheus(self):
        for samples in (4000, 1000):
            self.check(self.prometheus(f"--query.max-samples={samples}"), "--raw")

    def test_raw_samples_are_split_for_victoria_metrics(self):
        self.check(self.victoria("-search.maxPointsPerTimeseries=100"), "--raw")

    def test_promql_within_the_limits_gives_the_truth(self):
        self.check(self.prometheus("--query.max-samples=20000"), "--step", "30s", tolerance=0.005)

    def test_promql_is_split_for_prometheus(self):
        self.check(self.prometheus("--query.max-samples=4000"), "--step", "30s", tolerance=0.005)

    def test_promql_is_split_for_victoria_metrics(self):
        self.check(self.victoria("-search.maxPointsPerTimeseries=100"), "--step", "30s", tolerance=0.005)

    def test_a_refusal_is_one_line_that_has_the_reason(self):
        with self.prometheus("--query.max-samples=100") as server:
            run = run_report("--prometheus", server.url, *window(), "--format", "json")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertIn("too many samples", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

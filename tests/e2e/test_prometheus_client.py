"""The Prometheus client of src/sources against real Prometheus and VictoriaMetrics servers.

Starts the servers, fills them with the history that prometheus_real_server_test.cc describes, and runs the
tests of that file. FLOPSIGHT_BUILD_DIR names the build (default build/dev).
"""

import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from servers import Prometheus, Series, VictoriaMetrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLOPSIGHT_BUILD_DIR", ROOT / "build" / "dev"))
INTERVAL_MS = 15_000
SAMPLES = 720  # 3 hours
TESTS_OF_ONE_SERVER = 12


def history(end_ms: int) -> list[Series]:
    start_ms = end_ms - SAMPLES * INTERVAL_MS
    return [
        Series("flopsight_e2e", {"gpu": str(gpu)},
               [(start_ms + i * INTERVAL_MS, 1000 * gpu + i)
                for i in range(SAMPLES) if not (gpu == 2 and 300 <= i < 400)])
        for gpu in range(4)
    ] + [Series("flopsight_e2e_dense", {}, [(start_ms + i, i) for i in range(100)])]


class PrometheusClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The last sample is 15 to 30 s old: inside VictoriaMetrics' latency offset.
        cls.end_ms = int(time.time() * 1000) // INTERVAL_MS * INTERVAL_MS
        cls.history = history(cls.end_ms)

    def run_against(self, variable: str, url: str):
        environment = dict(os.environ, FLOPSIGHT_E2E_HISTORY_END_MS=str(self.end_ms),
                           no_proxy="127.0.0.1")
        environment[variable] = url
        run = subprocess.run(
            [BUILD / "sources_test", f"--gtest_filter=*PrometheusRealServer.*/{variable}"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        passed = re.search(r"\[  PASSED  \] (\d+) test", run.stdout)
        # A filter that matches nothing, or a test that was skipped, must not pass for success.
        self.assertEqual(int(passed[1]) if passed else 0, TESTS_OF_ONE_SERVER, run.stdout)
        self.assertNotIn("SKIPPED", run.stdout)

    def test_prometheus(self):
        with Prometheus(history=self.history) as server:
            self.run_against("FLOPSIGHT_E2E_PROMETHEUS_URL", server.url)

    def test_prometheus_with_small_limits(self):
        with Prometheus(history=self.history, extra_arguments=["--query.max-samples=1200"]) as server:
            self.run_against("FLOPSIGHT_E2E_SMALL_PROMETHEUS_URL", server.url)

    def test_victoria_metrics(self):
        with VictoriaMetrics() as server:
            server.load(self.history)
            self.run_against("FLOPSIGHT_E2E_VICTORIA_URL", server.url)

    def test_victoria_metrics_with_small_limits(self):
        with VictoriaMetrics(["-search.maxPointsPerTimeseries=500"]) as server:
            server.load(self.history)
            self.run_against("FLOPSIGHT_E2E_SMALL_VICTORIA_URL", server.url)


if __name__ == "__main__":
    unittest.main(verbosity=2)

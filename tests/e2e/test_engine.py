"""Rollups in a Prometheus-compatible engine: src/engine against real VictoriaMetrics and Prometheus."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from servers import Prometheus, VictoriaMetrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLOPSIGHT_BUILD_DIR", ROOT / "build" / "dev"))
# Prometheus takes parts of slots that come late only with this.
OUT_OF_ORDER = "storage: {tsdb: {out_of_order_time_window: 12h}}\n"


class EngineTest(unittest.TestCase):
    """The tests of engine_real_server_test.cc: two stores through an engine against one embedded store."""

    def run_against(self, url: str):
        run = subprocess.run(
            [BUILD / "engine_test", "--gtest_filter=*RealServer*"],
            env=dict(os.environ, FLOPSIGHT_E2E_ENGINE_URL=url, no_proxy="127.0.0.1"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout[-6000:])
        passed = re.search(r"\[  PASSED  \] (\d+) test", run.stdout)
        self.assertGreaterEqual(int(passed[1]) if passed else 0, 1, run.stdout)
        self.assertNotIn("SKIPPED", run.stdout)

    def test_victoria_metrics(self):
        with VictoriaMetrics() as engine:
            self.run_against(engine.url)

    def test_victoria_metrics_that_drops_duplicates(self):
        with VictoriaMetrics(extra_arguments=["-dedup.minScrapeInterval=1ms"]) as engine:
            self.run_against(engine.url)

    def test_prometheus(self):
        with Prometheus(configuration=OUT_OF_ORDER,
                        extra_arguments=["--web.enable-remote-write-receiver", "--query.max-samples=20000"]) as engine:
            self.run_against(engine.url)


if __name__ == "__main__":
    unittest.main()

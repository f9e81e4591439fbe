"""The helpers of servers.py themselves: what other end-to-end tests rely on."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from servers import Exporter, Prometheus, Series, VictoriaMetrics, fetch, wait_until

HISTORY = [
    Series("a", {"quoted": 'x"y\\z\n'}, [(1_600_000_000_000, 1.0), (1_600_000_015_250, 2.5)]),
    Series("b", {}, [(1_600_000_000_000, float("inf"))]),
]


class ServersTest(unittest.TestCase):
    def check_history(self, server):
        (a,) = server.query("a[1m]", time="1600000020", nocache="1")
        self.assertEqual(a["metric"]["quoted"], 'x"y\\z\n')
        self.assertEqual(a["values"], [[1600000000, "1"], [1600000015.25, "2.5"]])
        (b,) = server.query("b", time="1600000000", nocache="1")
        self.assertEqual(b["value"][1], "+Inf")

    def test_prometheus_has_its_history(self):
        with Prometheus(history=HISTORY) as server:
            self.check_history(server)

    def test_victoria_metrics_has_what_was_loaded(self):
        with VictoriaMetrics() as server:
            server.load(HISTORY)
            self.check_history(server)

    def test_prometheus_scrapes_exporters_whose_text_changes(self):
        with Exporter(lambda: "m 1\n") as exporter, Prometheus(scrape=[exporter]) as server:
            self.assertEqual(server.wait_for("m")[0]["metric"]["job"], "exporter")
            exporter.text = lambda: "m 2\n"
            server.wait_for("m == 2")
            exporter.text = lambda: None
            server.wait_for("up == 0")

    def test_an_exporter_serves_only_metrics(self):
        with Exporter(lambda: "m 1\n") as exporter:
            self.assertEqual(fetch(exporter.url), (200, b"m 1\n"))
            self.assertEqual(fetch(exporter.url + "x")[0], 503)
            self.assertEqual(exporter.requests, 2)
        with self.assertRaises(OSError):
            fetch(exporter.url)

    def test_stop_ends_the_process_and_removes_its_folder(self):
        with self.assertRaises(KeyError), Prometheus() as server:
            raise KeyError("a test that fails")
        self.assertFalse(os.path.exists(server.folder))
        with self.assertRaises(OSError):
            fetch(server.url + "/-/ready")
        server.stop()

    def test_a_server_that_cannot_start_says_why(self):
        with self.assertRaisesRegex(RuntimeError, "unknown long flag"):
            Prometheus(extra_arguments=["--nonsense"])

    def test_wait_until_names_what_did_not_come(self):
        with self.assertRaisesRegex(TimeoutError, "no answer after 0.1 s"):
            wait_until(lambda: False, "answer", seconds=0.1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""`flopsight simulate` against real servers: remote write into Prometheus and VictoriaMetrics, exporters scraped by both."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import servers

BINARY = os.environ["FLOPSIGHT_BINARY"]


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=300, check=False)


def report(*arguments: str) -> dict:
    done = run("report", *arguments, "--format", "json")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


@contextlib.contextmanager
def exporter(*arguments: str):
    """A running `simulate --exporter`; gives its base URL."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", BINARY, "simulate", "--exporter", "0", *arguments],
                               stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        yield re.search(r"http://[\d.:]+", line)[0]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)
        process.stdout.close()
    if code != 0:
        raise AssertionError(f"exit {code} after SIGTERM")


class Exporter(unittest.TestCase):

    def test_a_report_of_two_hosts_says_simulated(self):
        with exporter("--scenario", "steady", "--gpus", "12") as url:
            answer = report("--scrape", f"{url}/host/0/metrics", f"{url}/host/1/metrics")
        self.assertTrue(answer["source"].startswith("SIMULATED"))
        self.assertEqual(answer["fleet"]["gpu_count"], 12)
        self.assertEqual(len(answer["gpus"]), 12)
        self.assertEqual({gpu["absent_reason"] for gpu in answer["gpus"]}, {None})

    def test_discovery_leads_prometheus_to_every_host(self):
        with exporter("--scenario", "shared_gpus", "--gpus", "20", "--interval", "1s") as url:
            status, body = servers.fetch(url + "/sd.json")
            self.assertEqual(status, 200)
            self.assertEqual(len(json.loads(body)), 3)
            configuration = json.dumps({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [{"job_name": "sim", "http_sd_configs": [{"url": url + "/sd.json"}]}]})
            with servers.Prometheus(configuration=configuration) as prometheus:
                prometheus.wait_for("count(count by (UUID) (DCGM_FI_DEV_SM_CLOCK)) == 20")
                up = prometheus.query("up")
                self.assertEqual({one["metric"]["instance"] for one in up},
                                 {"sim-00000:9400", "sim-00001:9400", "sim-00002:9400"})

    def test_what_is_not_there_is_404_and_what_is_no_get_405(self):
        with exporter("--scenario", "mig", "--gpus", "8") as url:
            self.assertEqual(servers.fetch(url + "/host/0/metrics")[0], 200)
            for path in ("/host/1/metrics", "/host/x/metrics", "/host//metrics", "/hosts", "/host/0"):
                self.assertEqual(servers.fetch(url + path)[0], 404, path)
            self.assertEqual(servers.fetch(url + "/metrics", data=b"x")[0], 405)

    def test_a_port_in_use_is_one_line(self):
        with exporter("--scenario", "steady", "--gpus", "1") as url:
            done = run("simulate", "--scenario", "steady", "--exporter", url.rsplit(":", 1)[1])
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(done.stdout, "")

    def test_it_ends_by_itself_after_its_hours(self):
        done = run("simulate", "--scenario", "steady", "--exporter", "0", "--hours", "0.0003")
        self.assertEqual(done.returncode, 0, done.stderr)


class RemoteWrite(unittest.TestCase):
    ROUNDS = 60

    def send(self, url: str, *more: str) -> str:
        done = run("simulate", "--gpus", "24", "--samples", str(self.ROUNDS), "--remote-write", url, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def compare(self, scenario: str, url: str, write_path: str, visible):
        """What the server holds is what --out writes of the same window."""
        end = (int(time.time()) - 120) // 15 * 15  # VictoriaMetrics hides the last 30 s
        start = end - 15 * self.ROUNDS
        hours = repr(15 * self.ROUNDS / 3600)
        said = self.send(url + write_path, "--scenario", scenario, "--start", str(start), "--metrics", "10")
        sent = int(re.search(r"sent (\d+) samples", said)[1])
        self.assertGreater(sent, 24 * 9 * self.ROUNDS * 0.8)
        visible()
        with tempfile.TemporaryDirectory() as folder:
            done = run("simulate", "--scenario", scenario, "--gpus", "24", "--start", str(start), "--hours", hours,
                       "--metrics", "10", "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            window = ("--start", str(start), "--end", str(end))
            by_file = report("--file", folder + "/samples.prom.gz", *window)
            with open(folder + "/truth.json", encoding="utf-8") as file:
                truth = json.load(file)
        by_server = report("--prometheus", url, "--raw", *window)
        self.assertTrue(by_server["source"].startswith("SIMULATED"))
        self.assertEqual(by_server["fleet"]["gpu_count"], 24)
        for key in ("gpu_hours_allocated", "gpu_hours_delivered"):
            self.assertAlmostEqual(by_server["fleet"][key], by_file["fleet"][key], delta=0.02 * by_file["fleet"][key])
        groups = {group["key"]["job"]: group for group in by_server["groups"]}
        compared = 0
        for job in truth["jobs"]:
            if job["allocated_gpu_seconds"] < 300 * job["gpus"]:
                continue
            compared += 1
            self.assertAlmostEqual(groups[job["job"]]["gpu_hours_allocated"] * 3600, job["allocated_gpu_seconds"],
                                   delta=2.5 * 15 * job["gpus"] + job["unmeasured_gpu_seconds"], msg=job["job"])
        self.assertGreater(compared, 2)

    def test_prometheus_takes_it(self):
        for scenario in ("steady", "restart_storm"):
            with self.subTest(scenario), servers.Prometheus(
                    extra_arguments=["--web.enable-remote-write-receiver"]) as prometheus:
                self.compare(scenario, prometheus.url, "/api/v1/write", lambda: None)

    def test_victoria_metrics_takes_it(self):
        for scenario in ("shared_gpus", "mig"):
            with self.subTest(scenario), servers.VictoriaMetrics() as victoria:
                self.compare(scenario, victoria.url, "/api/v1/write",
                             lambda server=victoria: server.get("/internal/force_flush"))

    def test_series_have_the_labels_of_a_scraped_exporter(self):
        with servers.Prometheus(extra_arguments=["--web.enable-remote-write-receiver"]) as prometheus:
            self.send(prometheus.url + "/api/v1/write", "--scenario", "steady", "--labels-per-series", "30",
                      "--concurrency", "3", "--batch", "500")
            query = urllib.parse.urlencode({"match[]": 'DCGM_FI_DEV_SM_CLOCK{exported_pod!=""}'})
            _, body = prometheus.get("/api/v1/series?" + query)
            series = json.loads(body)["data"]
            self.assertGreater(len(series), 10)
            for labels in series:
                self.assertEqual(len(labels), 30)
                self.assertEqual(labels["pod"][:20], "nvidia-dcgm-exporter")

    def test_a_live_fleet_ends_in_order_when_told(self):
        with servers.Prometheus(extra_arguments=["--web.enable-remote-write-receiver"]) as prometheus:
            process = subprocess.Popen([BINARY, "simulate", "--scenario", "steady", "--gpus", "8", "--interval", "1s",
                                        "--remote-write", prometheus.url + "/api/v1/write"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            prometheus.wait_for("count_over_time(flopsight_simulated[1m]) >= 3")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertRegex(out, r"^SIMULATED fleet of 8 GPUs: sent \d+ samples in [\d.]+ s, .* 0 samples refused\n$")

    def test_a_server_that_refuses_is_counted_and_said(self):
        # This Prometheus does not take remote write: 404 for each request.
        with servers.Prometheus() as prometheus:
            done = run("simulate", "--scenario", "steady", "--gpus", "8", "--samples", "3", "--remote-write",
                       prometheus.url + "/api/v1/write")
        self.assertEqual(done.returncode, 1)
        self.assertIn("sent 0 samples", done.stdout)
        self.assertRegex(done.stdout, r"67\d samples refused")
        self.assertRegex(done.stderr, r"^flopsight simulate: refused: 404 [^\n]*\n$")

    def test_nobody_there_is_one_line(self):
        url = f"http://127.0.0.1:{servers.free_port()}/api/v1/write"
        done = run("simulate", "--scenario", "steady", "--gpus", "1", "--samples", "1", "--remote-write", url)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(url, done.stderr)


if __name__ == "__main__":
    unittest.main()

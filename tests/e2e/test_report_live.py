"""`flopsight report` on exporters that are alive: scraped by a Prometheus every second, and by the program itself."""

import contextlib
import gzip
import http.server
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import check_sums, groups_by, quality_codes, report, run_report
from servers import POLL_SECONDS, Exporter, Prometheus, free_port

GPUS = ["GPU-00000030-aaaa-bbbb-cccc-000000000000", "GPU-00000031-aaaa-bbbb-cccc-000000000000"]
H100_MHZ = 1830.0


def scrape(uuid, host, job, tensor=0.4, mhz=1500):
    labels = (f'gpu="0",UUID="{uuid}",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="{host}",'
              f'exported_pod="{job}",exported_namespace="a"')
    return (f"# TYPE DCGM_FI_DEV_SM_CLOCK gauge\nDCGM_FI_DEV_SM_CLOCK{{{labels}}} {mhz}\n"
            f"# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{{{labels}}} 50\n"
            f"# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {tensor}\n")


class Bytes:
    """Answers `data` with `headers` to every GET."""

    def __init__(self, data, **headers):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *unused):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(POLL_SECONDS), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class ScrapedByPrometheus(unittest.TestCase):
    """Two exporters, of which the second goes down half-way; reports by both routes, taken at one time."""

    @classmethod
    def setUpClass(cls):
        with contextlib.ExitStack() as stack:
            exporters = [stack.enter_context(Exporter(lambda i=i: scrape(GPUS[i], f"n{i}", f"job-{i}")))
                         for i in range(2)]
            server = stack.enter_context(Prometheus(scrape=exporters))
            server.wait_for("count(count_over_time(DCGM_FI_DEV_SM_CLOCK[5m]) >= 10) == 2")
            exporters[1].text = lambda: None
            server.wait_for("count_over_time(up[5m]) - sum_over_time(up[5m]) >= 12")
            cls.seen_seconds = {one["metric"]["UUID"]: float(one["value"][1])
                                for one in server.query("count_over_time(DCGM_FI_DEV_SM_CLOCK[5m])")}
            cls.pushed, cls.raw = (run_report("--prometheus", server.url, "--since", "1m", *route, "--format", "json")
                                   for route in (["--step", "1s"], ["--raw"]))

    def rows(self, run):
        """{uuid: row} of a report of the last minute."""
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        answer = json.loads(run.stdout)
        check_sums(self, answer)
        self.assertEqual(answer["fleet"]["gpu_count"], 2)
        self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], 2 * 60 / 3600, delta=2.1 / 3600)
        rows = {row["uuid"]: row for row in answer["gpus"]}
        for i, uuid in enumerate(GPUS):
            self.assertEqual(rows[uuid]["host"], f"n{i}")
            self.assertAlmostEqual(rows[uuid]["ofu_ratio"], 0.4 * 1500 / H100_MHZ, delta=1e-6)
        return rows

    def check_measured(self, run):
        for uuid, row in self.rows(run).items():
            self.assertAlmostEqual(row["coverage_ratio"] * 60, self.seen_seconds[uuid], delta=4, msg=uuid)

    def test_the_gpu_of_an_exporter_that_went_down_is_there(self):
        for run in (self.pushed, self.raw):
            rows = self.rows(run)
            self.assertLess(rows[GPUS[1]]["coverage_ratio"], rows[GPUS[0]]["coverage_ratio"])

    def test_raw_samples_leave_the_time_after_it_unmeasured(self):
        self.check_measured(self.raw)

    def test_promql_leaves_the_time_after_it_unmeasured(self):
        self.check_measured(self.pushed)

    def test_a_window_without_a_step_in_it_is_refused(self):
        with Exporter(lambda: scrape(GPUS[0], "n0", "job")) as exporter, Prometheus(scrape=[exporter]) as server:
            server.wait_for("count_over_time(DCGM_FI_DEV_SM_CLOCK[5m]) >= 3")
            run = run_report("--prometheus", server.url, "--since", "10s", "--step", "1h")
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)


class ScrapedByTheReport(unittest.TestCase):
    def scrape_report(self, *urls):
        return report(self, *[word for url in urls for word in ("--scrape", url)])

    def check_instant(self, answer, jobs):
        """From one scrape the ratios are of that instant, and there are no hours."""
        self.assertEqual(answer["window"], {"start": None, "end": None})
        self.assertEqual(set(groups_by(answer, "job")), set(jobs))
        for summary in [answer["fleet"], *answer["groups"]]:
            self.assertIsNone(summary["gpu_hours_allocated"])
            self.assertAlmostEqual(summary["ofu_ratio"], 0.4 * 1500 / H100_MHZ, delta=1e-6)

    def test_several_exporters_of_which_one_is_down(self):
        down = f"http://127.0.0.1:{free_port()}/metrics"
        with contextlib.ExitStack() as stack:
            urls = [stack.enter_context(Exporter(lambda i=i: scrape(GPUS[i], f"n{i}", f"job-{i}"))).url
                    for i in range(2)]
            whole = self.scrape_report(*urls)
            partly = self.scrape_report(urls[0], down, urls[1])
        for answer in (whole, partly):
            self.check_instant(answer, ["job-0", "job-1"])
            self.assertEqual(answer["fleet"]["gpu_count"], 2)
        self.assertNotIn("endpoint_down", quality_codes(whole))
        self.assertEqual(quality_codes(partly)["endpoint_down"], 1)
        (entry,) = [one for one in partly["quality"] if one["code"] == "endpoint_down"]
        self.assertIn(down, entry["where"])

    def test_an_exporter_that_fails_is_down(self):
        with Exporter(lambda: scrape(GPUS[0], "n0", "job-0")) as well, Exporter(lambda: None) as ill:
            answer = self.scrape_report(well.url, ill.url)
        self.check_instant(answer, ["job-0"])
        self.assertEqual(quality_codes(answer)["endpoint_down"], 1)

    def check_failure(self, *urls):
        run = run_report(*[word for url in urls for word in ("--scrape", url)])
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)
        return run.stderr

    def test_all_down_is_a_failure(self):
        urls = [f"http://127.0.0.1:{free_port()}/metrics" for _ in range(2)]
        self.assertIn(urls[0], self.check_failure(*urls))

    def test_an_empty_body(self):
        with Exporter(lambda: scrape(GPUS[0], "n0", "job-0")) as full, Exporter(lambda: "") as empty:
            answer = self.scrape_report(full.url, empty.url)
            self.check_instant(answer, ["job-0"])
            self.assertEqual(quality_codes(answer)["empty_scrape"], 1)
            self.assertIn("empty_scrape", self.check_failure(empty.url))

    def test_a_page_that_is_no_metrics(self):
        with Bytes(b"<html><body>hello</body></html>\n", Content_Type="text/html") as page:
            self.check_failure(page.url)

    def test_gzip(self):
        text = scrape(GPUS[0], "n0", "job-0").encode()
        packed = gzip.compress(text)
        with Bytes(packed, Content_Type="text/plain; version=0.0.4", Content_Encoding="gzip") as encoded, \
                Bytes(packed, Content_Type="application/gzip") as saved:
            for server in (encoded, saved):
                self.check_instant(self.scrape_report(server.url), ["job-0"])

    def test_gzip_that_ends_too_early_is_an_error(self):
        packed = gzip.compress(scrape(GPUS[0], "n0", "job-0").encode())
        with Bytes(packed[:-12], Content_Type="application/gzip") as saved:
            self.assertIn("too early", self.check_failure(saved.url))

    def test_a_gzip_encoding_that_ends_too_early_is_an_error(self):
        packed = gzip.compress(scrape(GPUS[0], "n0", "job-0").encode())
        with Bytes(packed[:-12], Content_Type="text/plain", Content_Encoding="gzip") as cut:
            self.check_failure(cut.url)


if __name__ == "__main__":
    unittest.main(verbosity=2)

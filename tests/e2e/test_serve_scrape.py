"""`flopsight serve` scrapes exporters: fixed ones and those of a file_sd file that changes while it runs."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import Exporter, fetch, wait_until


def gpu_text(uuid, job, tensor=0.5, mhz=1464):
    labels = f'gpu="0",UUID="{uuid}",modelName="NVIDIA H100 80GB HBM3",exported_pod="{job}",exported_namespace="a"'
    return (f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} {mhz}\nDCGM_FI_DEV_GPU_TEMP{{{labels}}} 50\n"
            f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {tensor}\n")


class Serve:
    """flopsight serve on a free port, with a store of its own; stopped by SIGTERM."""

    def __init__(self, *arguments, store=None):
        self._folder = tempfile.TemporaryDirectory(prefix="flopsight-serve-")
        self.store = store or os.path.join(self._folder.name, "store")
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self._log = open(os.path.join(self._folder.name, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", BINARY, "serve", "--listen", "127.0.0.1:0", "--store", self.store, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True, env=clean)
        line = self.process.stdout.readline()
        match = re.search(r"http://[^/]+", line)
        if not match:
            self.process.kill()
            raise RuntimeError(f"serve did not start: {line!r} {self.log()}")
        self.url = match[0]

    def log(self):
        self._log.flush()
        with open(self._log.name, encoding="utf-8") as file:
            return file.read()

    def targets(self):
        status, body = fetch(self.url + "/api/v1/targets")
        assert status == 200, (status, body)
        answer = json.loads(body)
        return answer | {"by_url": {target["url"]: target for target in answer["targets"]}}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.stop()
        self._log.close()
        self._folder.cleanup()


class ReportedByATrainer(unittest.TestCase):
    def test_metrics_of_a_trainer_stand_beside_the_ofu_of_its_job(self):
        trainer = 'our_mfu{{pod="llama-0",namespace="a",rank="{rank}"}} {mfu}\nour_mfu{{instance="nobody"}} 99\n'
        with contextlib.ExitStack() as stack:
            gpus = stack.enter_context(Exporter(lambda: gpu_text("GPU-1", "llama-0")))
            ranks = [stack.enter_context(Exporter(lambda i=i: trainer.format(rank=i, mfu=38 + 2 * i))) for i in range(3)]
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="flopsight-metrics-"))
            metrics = os.path.join(folder, "metrics.yml")
            with open(metrics, "w", encoding="utf-8") as file:
                file.write("training-metrics:\n- {name: our_mfu, means: mfu, unit: '%'}\n")
            targets = [word for e in [gpus, *ranks] for word in ("--scrape-targets", e.address)]
            serve = stack.enter_context(Serve(*targets, "--training-metrics", metrics, "--scrape-interval", "500ms", "--scrape-timeout", "400ms",
                                              "--rollup-slot", "10s", "--rollup-late", "1s"))

            def reported():
                status, body = fetch(serve.url + "/api/v1/jobs/llama-0@a")
                answer = json.loads(body) if status == 200 else {}
                # Of the first slot a slow machine may have scraped two of the three ranks only.
                return answer if answer.get("reported") and answer["ofu_ratio"] and abs(answer["reported"]["mfu_ratio"] - 0.40) < 1e-9 else None
            answer = wait_until(reported, "reported MFU of the job, the median of its ranks", seconds=90)
            self.assertEqual(answer["reported"]["source"], "prometheus")
            points = json.loads(fetch(serve.url + "/api/v1/mfu")[1])["points"]
            self.assertEqual([p["job"] for p in points], ["llama-0"])
            self.assertAlmostEqual(points[0]["reported_mfu_ratio"], 0.40, delta=0.0101)
            own = fetch(serve.url + "/metrics")[1].decode()
            self.assertRegex(own, r'flopsight_reported_samples_dropped_total\{reason="no_job"\} [1-9]')


class ScrapedByServe(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="flopsight-sd-"))

    def exporter(self, *arguments, **named):
        return self.stack.enter_context(Exporter(lambda: gpu_text(*arguments, **named)))

    def write_groups(self, groups):
        path = os.path.join(self.folder, "gpus.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(groups, file)
        os.rename(path + ".new", path)

    def test_targets_come_and_go_and_their_samples_are_in_the_store(self):
        one = self.exporter("GPU-00000041-aaaa-bbbb-cccc-000000000000", "job-one")
        two = self.exporter("GPU-00000042-aaaa-bbbb-cccc-000000000000", "job-two", tensor=0.75)
        self.write_groups([])
        store = os.path.join(self.folder, "store")
        serve = self.stack.enter_context(Serve(
            "--scrape-targets", one.address, "--scrape-files", os.path.join(self.folder, "*.json"), "--scrape-interval", "1s",
            "--scrape-timeout", "1s", "--rollup-slot", "10s", "--rollup-late", "1s", store=store))
        wait_until(lambda: one.requests >= 2, "second scrape")
        self.assertEqual(list(serve.targets()["by_url"]), [one.url])
        self.write_groups([{"targets": [two.address], "labels": {"hostname": "from-file-sd"}}])
        wait_until(lambda: two.requests >= 2, "scrape of the new target")
        health = serve.targets()["by_url"][two.url]
        self.assertEqual((health["up"], health["samples"], health["error"], health["failures"]), (True, 3, None, 0))
        self.assertEqual(health["labels"], {"hostname": "from-file-sd"})

        one.text = lambda: None
        failed = wait_until(lambda: (lambda t: t if t["up"] is False else None)(serve.targets()["by_url"][one.url]),
                            "failure of the first exporter")
        self.assertRegex(failed["error"], "503")
        two.text = lambda: ""
        wait_until(lambda: serve.targets()["totals"]["empty"] > 0, "an empty scrape")
        self.assertTrue(serve.targets()["by_url"][two.url]["up"])

        with open(os.path.join(self.folder, "gpus.json"), "w", encoding="utf-8") as file:
            file.write("[{")
        wait_until(lambda: serve.targets()["problems"], "problem with the file")
        self.assertIn(two.url, serve.targets()["by_url"])
        self.assertRegex(serve.targets()["problems"][0], r"gpus\.json.*kept")

        two.text = lambda: gpu_text("GPU-00000042-aaaa-bbbb-cccc-000000000000", "job-two", tensor=0.75)
        wait_until(lambda: self.hours(store).get("job-two"), "a closed slot of the second job", 90)
        self.assertEqual(serve.stop(), 0, serve.log())
        rows = self.hours(store)
        # A ratio whose every millisecond is kept exactly, so that a slot of which little was measured has it too.
        self.assertAlmostEqual(rows["job-two"], 0.75 * 1464 / 1830, places=6)
        with sqlite3.connect(os.path.join(store, "flopsight.db")) as db:
            hosts = [row[0] for row in db.execute("SELECT host FROM gpus WHERE uuid LIKE 'GPU-00000042%'")]
        self.assertEqual(hosts, ["from-file-sd"])

    @staticmethod
    def hours(store):
        """{job: delivered share of measured time} of what the store has."""
        with contextlib.closing(sqlite3.connect(f"file:{store}/flopsight.db?mode=ro", uri=True)) as db:
            return {job: delivered / measured for job, delivered, measured in db.execute(
                "SELECT job, sum(gpu_hours_delivered), sum(gpu_hours_delivered + gpu_hours_lost) FROM job_rollups GROUP BY job")
                if measured}


class Credentials(unittest.TestCase):
    def test_targets_that_demand_them_are_scraped_with_what_lies_in_the_files(self):
        with Exporter(lambda: gpu_text("GPU-1", "a")) as exporter, tempfile.TemporaryDirectory() as folder:
            token = os.path.join(folder, "token")
            for given, demanded, flags in (("t0ken\n", "Bearer t0ken", ["--scrape-bearer-token-file", token]),
                                           ("secret\n", "Basic YWRhOnNlY3JldA==", ["--scrape-basic-user", "ada", "--scrape-basic-password-file", token])):
                with open(token, "w", encoding="utf-8") as file:
                    file.write(given)
                exporter.authorization = demanded
                serve = Serve("--scrape-targets", exporter.address, "--scrape-interval", "1s", "--scrape-timeout", "900ms", *flags)
                with serve:
                    wait_until(lambda: any(t["up"] for t in serve.targets()["targets"]), demanded.split()[0])
            exporter.authorization = "Bearer another"
            serve = Serve("--scrape-targets", exporter.address, "--scrape-interval", "1s", "--scrape-timeout", "900ms")
            with serve:
                wait_until(lambda: any(t["up"] is False for t in serve.targets()["targets"]), "a refusal")
                self.assertIn("401", serve.targets()["targets"][0]["error"])


if __name__ == "__main__":
    unittest.main()

"""The page in Debian's Chromium, against a real service: what web/e2e says of it, with its screenshots where FLOPSIGHT_SCREENSHOTS names
a folder. `python3 -B -m unittest test_page` after ./test has fetched web/node_modules."""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import wait_until
from service import Service, load

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e{{7*7}}'


def run(script: str, *arguments: str) -> str:
    """A script of web/e2e; what it printed. Its lines of failed claims are the message where one does not hold."""
    done = subprocess.run(["node", os.path.join(ROOT, "web", "e2e", script), *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{script} {' '.join(arguments)}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopsight-page-")
        self.addCleanup(folder.cleanup)
        self.shots = os.environ.get("FLOPSIGHT_SCREENSHOTS") or folder.name

    def service(self, *arguments: str) -> Service:
        service = Service(*arguments)
        self.addCleanup(service.close)
        return service

    def tell(self, service: Service, path: str, body) -> None:
        status, text, _ = service.ask(path, body=json.dumps(body).encode())
        self.assertEqual(status, 200, text)

    def report_mfu(self, service: Service) -> None:
        """Every job says an MFU near its OFU, but for one that says far too much; and one job's model is known."""
        jobs = [job for job in service.json("/api/v1/jobs", since="3h")["jobs"] if job["ofu_ratio"] is not None]
        big = max(jobs, key=lambda job: job["gpu_hours_delivered"])
        wrong = max((job for job in jobs if job is not big), key=lambda job: job["ofu_ratio"])
        for job in jobs:
            said = min(0.95, job["ofu_ratio"] * (2.1 if job is wrong else 1.04))
            first, last = (datetime.datetime.fromisoformat(job[key].replace("Z", "+00:00")) for key in ("first", "last"))
            steps = [{"step": i, "time": (first + (last - first) * (i + 1) / 21).isoformat(), "mfu_ratio": round(said + 0.01 * (i % 3), 4), "step_seconds": 4.2} for i in range(20)]
            self.tell(service, f"/api/v1/jobs/{urllib.parse.quote(job['id'])}/mfu", {"steps": steps})
        # The job that pages.mjs opens: how it is trained is told, so that there is advice.
        with open(os.path.join(ROOT, "tests/fixtures/hf_configs/made--Llama-3-8B_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.tell(service, f"/api/v1/jobs/{urllib.parse.quote(big['id'])}/model",
                  {"config": config, "seq_len": 4096, "precision": "bf16", "recompute": "full", "training": {"global_batch": 8 * big["gpu_count"], "zero": 3, "kernels": "eager"}})

    def test_every_page_and_what_can_be_done_on_it(self):
        prices = os.path.join(self.shots, "prices.csv")
        with open(prices, "w", encoding="utf-8") as file:
            file.write("model,usd_per_gpu_hour\nH100-SXM5-80GB,2.5\n")
        service = self.service("--rollup-late", "1s", "--prices", prices)
        code, _, err = load(service.url, "--scenario", "steady", "--gpus", "64", "--samples", "480")
        self.assertEqual(code, 0, err)
        service.stop()  # closes all slots, also those of which the next would have told
        service.start()
        self.report_mfu(service)
        print(run("pages.mjs", service.url, self.shots))

    def test_findings_are_shown_marked_and_answered(self):
        prices = os.path.join(self.shots, "prices.csv")
        with open(prices, "w", encoding="utf-8") as file:
            file.write("model,usd_per_gpu_hour\n*,2.5\n")
        service = self.service("--rollup-late", "1s", "--prices", prices)
        code, _, err = load(service.url, "--scenario", "hang", "--gpus", "16", "--course", "3h", "--interval", "60s", "--samples", "115", "--start", str(int(time.time()) - 115 * 60))
        self.assertEqual(code, 0, err)
        service.stop()  # closes all slots
        service.start()
        wait_until(lambda: service.json("/api/v1/findings")["findings_total"] > 0, "finding", 180)
        print(run("findings.mjs", service.url, self.shots))

    def test_a_replay_of_real_exporters(self):
        """Published pages of real exporters, scraped anew every 15 seconds for 20 minutes: not simulated, and what they lack is said."""
        fixtures = os.path.join(ROOT, "tests", "fixtures", "dcgm_exporter")
        end = int(time.time()) // 60 * 60
        lines = []
        for name in ("kops-conformance.prom", "upcloud-l40s.prom", "runai-fraction-1_workload.prom", "runai-mig-4_Active_Workloads.prom"):
            with open(os.path.join(fixtures, name), encoding="utf-8") as file:
                page = [line.strip() for line in file if line.strip() and not line.startswith("#")]
            lines += [f"{line} {t * 1000}" for t in range(end - 1200, end, 15) for line in page]
        service = self.service("--rollup-late", "1s")
        service.stop()
        self.store(service, "replay.prom", lines)
        service.start()
        print(run("replay.mjs", service.url, self.shots))

    def store(self, service: Service, name: str, lines: list[str]) -> None:
        """Into the store of a service that is stopped."""
        path = os.path.join(self.shots, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run([BINARY, "import", "--store", service.store, "--file", path], capture_output=True, text=True, check=False)
        self.assertLessEqual(done.returncode, 1, done.stderr)

    def test_names_of_strangers_are_text(self):
        service = self.service("--rollup-late", "1s")
        labels = {"gpu": "0", "UUID": "GPU-" + HOSTILE, "modelName": HOSTILE, "Hostname": "node" + HOSTILE, "exported_pod": "job" + HOSTILE,
                  "exported_namespace": "team" + HOSTILE, "user": "user" + HOSTILE}
        text = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
        now = int(time.time())
        lines = [f"{metric}{{{text}}} {value} {(now - 2800 + 15 * i) * 1000}" for i in range(180)
                 for metric, value in (("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4), ("DCGM_FI_DEV_SM_CLOCK", 1500))]
        service.stop()
        self.store(service, "hostile.prom", lines)
        service.start()
        wait_until(lambda: service.json("/api/v1/findings")["findings_total"] > 0, "finding about a GPU without a reference", 90)
        print(run("hostile.mjs", service.url, self.shots))

    def test_without_data_it_says_how_to_connect_a_fleet(self):
        print(run("first_run.mjs", self.service().url, self.shots))

    def test_a_service_that_wants_a_token_is_given_one(self):
        tokens = os.path.join(self.shots, "tokens.yml")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write("tokens:\n  - {name: reader, token: reader-token-00001, roles: [read]}\n")
        print(run("token.mjs", self.service("--tokens-file", tokens).url, "reader-token-00001", self.shots))

    def test_when_the_service_goes_away_the_page_says_so_and_comes_back(self):
        service = self.service("--rollup-late", "1s")
        load(service.url, "--scenario", "steady", "--gpus", "8", "--samples", "80")
        service.stop()
        service.start()
        with subprocess.Popen(["node", os.path.join(ROOT, "web", "e2e", "away.mjs"), service.url, self.shots], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as script:
            self.assertEqual(script.stdout.readline().strip(), "shown")
            service.stop()
            script.stdin.write("gone\n")
            script.stdin.flush()
            rest = script.stdout.read()
            self.assertEqual(script.wait(timeout=120), 0, rest)


if __name__ == "__main__":
    unittest.main()

"""Jobs whose model is known are audited by the service itself: told by HTTP, and by a site's file of models."""

import json
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from fleet import BINARY
from servers import wait_until
from service import LOAD_END, Service, load

CONFIG = pathlib.Path(__file__).parent.parent / "fixtures/hf_configs/nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8_config.json"
RUN = {"seq_len": 8192, "precision": "bf16", "recompute": "none"}
LATENT = 2.124  # what ignoring the latent size makes of the MFU of this model


def window(end: int) -> dict[str, str]:
    return {"start": str(end - 3600), "end": str(end)}


def post(service: Service, path: str, document) -> tuple[int, str]:
    status, body, _ = service.ask(path, json.dumps(document).encode(), {"Content-Type": "application/json"})
    return status, body


def report(service: Service, job: str, end: int):
    """An MFU as the known mistake makes it of the OFU while the job reported."""
    first, last = end - 1800, end - 1800 + 19 * 60
    ofu_ratio = service.json(f"/api/v1/jobs/{job}", start=str(first), end=str(last))["ofu_ratio"]
    steps = [{"step": i, "time": rfc3339(first + 60 * i), "mfu_ratio": LATENT * ofu_ratio} for i in range(20)]
    status, body = post(service, f"/api/v1/jobs/{job}/mfu", {"steps": steps})
    assert status == 200, body


def rfc3339(unix: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))


def fleet(service: Service, end: int):
    """An hour of sixteen GPUs, in the store."""
    code, _, err = load(service.url, "--scenario", "steady", "--gpus", "16", "--start", rfc3339(end - 3600), "--samples", "240")
    assert code == 0, err
    service.stop()
    service.start()


def job_of(service: Service, end: int) -> dict:
    """The job that held most GPUs and whose OFU allows an MFU twice as high."""
    jobs = [job for job in service.json("/api/v1/jobs", **window(end))["jobs"] if job["job"] and 0.1 < (job["ofu_ratio"] or 0) < 0.45]
    return max(jobs, key=lambda job: job["gpu_hours_allocated"])


class Audits(unittest.TestCase):
    def test_a_told_model_gives_an_audit_in_the_answer_on_the_command_line_and_after_a_restart(self):
        with Service() as service:
            fleet(service, LOAD_END)
            known = job_of(service, LOAD_END)
            job = known["id"]
            self.assertIsNone(known["audit_verdict"])
            self.assertEqual(post(service, f"/api/v1/jobs/{job}/model", {"config": {"model_type": "mystery"}})[0], 400)
            self.assertEqual(post(service, f"/api/v1/jobs/{job}/model", {"config": json.loads(CONFIG.read_text()), **RUN})[0], 200)
            report(service, job, LOAD_END)
            answer = service.json(f"/api/v1/jobs/{job}", **window(LOAD_END))
            self.assertEqual(answer["audit"]["verdict"], "over_reported", answer["audit"])
            self.assertEqual(answer["audit"]["hypotheses"][0]["id"], "latent_ignored")
            self.assertIn("mfu_discrepancy", [entry["code"] for entry in answer["quality"]])
            self.assertEqual(service.metric("flopsight_models_told"), 1)
            shown = subprocess.run([BINARY, "jobs", "show", "--store", service.store, "--start", str(LOAD_END - 3600), "--end", str(LOAD_END), job],
                                   capture_output=True, text=True, check=True).stdout
            self.assertRegex(shown, r"audit +over_reported, 20")
            self.assertIn("latent_ignored", shown)
            service.stop()
            service.start()
            self.assertEqual(service.json(f"/api/v1/jobs/{job}", **window(LOAD_END))["audit"]["verdict"], "over_reported")

    def test_a_file_of_models_audits_jobs_by_name_as_they_report_and_its_mistakes_stop_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            models = pathlib.Path(folder) / "models.yml"
            models.write_text("models:\n  - {match: '*', config: none.json}\n")
            with Service("--models", str(models)) as service:
                service.wait_for_log(r"models\.yml: line 2: .*none\.json: cannot open")
                now = int(time.time()) // 60 * 60
                fleet(service, now)
                job = job_of(service, now)
                report(service, job["id"], now)
                self.assertNotIn("flopsight_job_audit_verdict{", service.ask("/metrics")[1])
                (pathlib.Path(folder) / "super.json").write_bytes(CONFIG.read_bytes())
                models.write_text("models:\n  - {match: '*', config: super.json, seq_len: 8192, precision: bf16, recompute: none}\n")
                service.hang_up()
                verdict = wait_until(lambda: re.search(r"flopsight_job_audit_verdict\{(.*)\} 1", service.ask("/metrics")[1]), "an audit that nobody asked for")[1]
                self.assertIn('verdict="over_reported"', verdict)
                self.assertIn(f'job="{job["job"]}"', verdict)
                self.assertEqual(job_of(service, now)["audit_verdict"], "over_reported")
                models.write_text("models: [")
                service.hang_up()
                service.wait_for_log(r"models\.yml: line 1, column \d+")
                self.assertIn("model: rule *", service.json(f"/api/v1/jobs/{job['id']}", **window(now))["audit"]["assumptions"])


if __name__ == "__main__":
    unittest.main()

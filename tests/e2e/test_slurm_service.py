"""A real Slurm asked by the running service: GPUs of jobs to the second, what was held and never seen, and what the job reports."""

import datetime
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from servers import Exporter, wait_until
from service import Service
from slurm_cluster import SlurmCluster


def scrape(host: str) -> str:
    """All four GPUs of a host, busy at the tensor peak's clock."""
    lines = []
    for gpu in range(4):
        labels = f'gpu="{gpu}",UUID="GPU-{host}-{gpu}",Hostname="{host}",modelName="NVIDIA A100-SXM4-80GB"'
        lines += [f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} 0.5", f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} 1410"]
    return "\n".join(lines) + "\n"


class SlurmInTheService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster()
        cls.addClassCleanup(cls.slurm.stop)
        # Of n2 this one has no exporter.
        cls.service = cls.serve("n1", "1s")

    @classmethod
    def serve(cls, host: str, slurm_interval: str) -> Service:
        exporter = Exporter(lambda: scrape(host))
        cls.addClassCleanup(exporter.stop)
        before = dict(os.environ)
        os.environ.update(cls.slurm.environment)  # where its commands find the cluster
        service = Service("--slurm-commands", "true", "--slurm-cluster", cls.slurm.name, "--slurm-interval", slurm_interval,
                          "--scrape-targets", exporter.address, "--scrape-interval", "1s", "--scrape-timeout", "900ms",
                          "--rollup-slot", "10s", "--rollup-late", "5s", "--rollup-idle", "60s")
        cls.addClassCleanup(service.close)
        os.environ.clear()
        os.environ.update(before)
        # Slurm's times are whole seconds: a job that starts now has to start after the first sample.
        wait_until(lambda: service.metric("flopsight_gpus") == 4 and exporter.requests >= 4, "samples of all GPUs")
        return service

    def job(self, job: str, service: Service | None = None) -> dict | None:
        found = [j for j in (service or self.service).json("/api/v1/jobs")["jobs"] if j["id"] == f"{job}@{self.slurm.name}"]
        return found[0] if found else None

    def ended(self, job: str) -> dict:
        """Once its end is known."""
        def known():
            one = self.job(job)
            return one if one is not None and one["runs"][-1]["end"] is not None else None
        return wait_until(known, f"end of job {job}", seconds=120)

    def test_gpus_are_the_jobs_to_the_second_it_held_them(self):
        job = self.slurm.submit("sleep 25", "--gres=gpu:a100:2", "-w", "n1", "-J", "llama-7")
        self.slurm.wait_for_state(job, "COMPLETED")
        run = self.ended(job)["runs"][-1]
        seconds = (datetime.datetime.fromisoformat(run["end"].replace("Z", "+00:00"))
                   - datetime.datetime.fromisoformat(run["start"].replace("Z", "+00:00"))).total_seconds()
        self.assertGreaterEqual(seconds, 25)
        # Its last slot is closed some seconds after its end, and brings the hours to exactly those that it held.
        wait_until(lambda: abs(self.job(job)["gpu_hours_allocated"] * 3600 - 2 * seconds) < 0.01, "all of its time", seconds=120)
        one = self.job(job)
        self.assertEqual(one["gpu_count"], 2)
        self.assertAlmostEqual(one["ofu_ratio"], 0.5, delta=1e-3)
        self.assertEqual((run["state"], run["name"]), ("COMPLETED", "llama-7"))
        status, _, _ = self.service.ask(f"/api/v1/jobs/{one['id']}/mfu", body=b'{"step": 1, "mfu_ratio": 0.46}')
        self.assertEqual(status, 200)
        self.assertEqual(self.job(job)["reported"]["mfu_ratio"], 0.46)

    def test_a_job_between_two_polls_has_its_gpu_by_what_others_did_not_hold(self):
        service = self.serve("n2", "25s")
        long = self.slurm.submit("sleep 600", "--gres=gpu:a100:3", "-w", "n2")
        self.slurm.wait_for_state(long, "RUNNING")
        polls = service.metric("flopsight_slurm_polls_total")
        wait_until(lambda: service.metric("flopsight_slurm_polls_total") > polls, "another poll")
        short = self.slurm.submit("sleep 5", "--gres=gpu:a100:1", "-w", "n2")
        self.slurm.wait_for_state(short, "COMPLETED")
        self.assertEqual(service.metric("flopsight_slurm_polls_total"), polls + 1, "it should have been over before the next poll")
        self.slurm.run("scancel", long)

        def whole():
            one = self.job(short, service)
            return one if one and one["ofu_ratio"] is not None else None
        one = wait_until(whole, "GPU time of the short job", seconds=150)
        run = one["runs"][-1]
        seconds = (datetime.datetime.fromisoformat(run["end"].replace("Z", "+00:00"))
                   - datetime.datetime.fromisoformat(run["start"].replace("Z", "+00:00"))).total_seconds()
        wait_until(lambda: abs(self.job(short, service)["gpu_hours_allocated"] * 3600 - seconds) < 0.01, "all of its time", seconds=60)
        self.assertIn("by elimination", self.job(short, service)["attributed_by"])
        self.assertAlmostEqual(one["ofu_ratio"], 0.5, delta=1e-3)

    def test_held_gpus_without_an_exporter_are_unmeasured_and_not_left_out(self):
        job = self.slurm.submit("sleep 15", "--gres=gpu:a100:3", "-w", "n2")
        self.slurm.wait_for_state(job, "COMPLETED")
        one = self.ended(job)
        self.assertEqual(one["gpu_count"], 3)
        self.assertIsNone(one["ofu_ratio"])
        self.assertGreaterEqual(one["gpu_hours_unmeasured"] * 3600, 3 * 15)
        self.assertEqual(one["absent_reason"], "not_seen")


if __name__ == "__main__":
    unittest.main()

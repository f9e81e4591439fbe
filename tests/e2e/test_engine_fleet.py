"""Two `flopsight serve` share exporters by hash and keep rollups in VictoriaMetrics: either of them answers for the whole fleet as
one process with a store of its own does, also after the engine was away and one of them was killed."""

import contextlib
import json
import math
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import Exporter, VictoriaMetrics, fetch, free_port, wait_until
from service import Service

SLOT = 20
RHYTHM = ("--scrape-interval", "5s", "--scrape-timeout", "4s", "--rollup-slot", f"{SLOT}s", "--rollup-late", "5s")


def host_text(host: int) -> str:
    """Two GPUs whose values stand still, so that it does not matter when they are scraped."""
    lines = []
    for gpu in range(2):
        job = "big" if gpu == 0 else f"small-{host % 3}"
        labels = (f'gpu="{gpu}",UUID="GPU-1{host:07d}-0000-0000-0000-00000000000{gpu}",Hostname="n{host}",'
                  f'modelName="NVIDIA H100 80GB HBM3",exported_pod="{job}",exported_namespace="research"')
        lines.append(f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} {1400 + 10 * host}\n")
        lines.append(f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {0.2 + 0.05 * host + 0.01 * gpu}\n")
        lines.append(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {300 + host}\n")
    return "".join(lines)


def differences(one, other, where="", tolerance=1e-9):
    """Where two JSON values differ by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        out = [f"{where}: keys {set(one) ^ set(other)}"] if set(one) != set(other) else []
        return out + [d for k in one if k in other for d in differences(one[k], other[k], f"{where}.{k}", tolerance)]
    if isinstance(one, list) and isinstance(other, list):
        out = [f"{where}: {len(one)} and {len(other)}"] if len(one) != len(other) else []
        return out + [d for i, (a, b) in enumerate(zip(one, other)) for d in differences(a, b, f"{where}[{i}]", tolerance)]
    if isinstance(one, float) or isinstance(other, float):
        return [] if math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9) else [f"{where}: {one} and {other}"]
    return [] if one == other else [f"{where}: {one} and {other}"]


class EngineFleet(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.engine = self.stack.enter_context(VictoriaMetrics())

    def start(self, targets, *arguments):
        return self.stack.enter_context(Service("--scrape-targets", *targets, *RHYTHM, *arguments))

    def share(self, targets, shards=2):
        return [self.start(targets, "--engine-url", self.engine.url, "--scrape-shard", str(i), "--scrape-shards", str(shards))
                for i in range(shards)]

    def wait_for_fleet(self, service, window, gpus):
        """Until all of the window is closed, delivered and visible."""
        seconds = gpus * (int(window["end"]) - int(window["start"]))

        def there():
            status, body, _ = service.ask("/api/v1/fleet", **window)
            if status != 200:
                return False
            return math.isclose((json.loads(body)["fleet"]["gpu_hours_allocated"] or 0) * 3600, seconds, rel_tol=1e-4)
        wait_until(there, f"{seconds} GPU seconds in {window} from {service.url}", 120)

    def compare(self, service, alone, window):
        fleet = {by: service.json("/api/v1/fleet", by=by, gpus="true", **window) for by in ("job", "namespace", "host")}
        expected = {by: alone.json("/api/v1/fleet", by=by, gpus="true", **window) for by in ("job", "namespace", "host")}
        for answer in (*fleet.values(), *expected.values()):
            answer["gpus"].sort(key=lambda gpu: gpu["uuid"])
        self.assertEqual(differences(fleet, expected), [])
        jobs = {job["job"]: job for job in service.json("/api/v1/jobs", **window)["jobs"]}
        same = {job["job"]: job for job in alone.json("/api/v1/jobs", **window)["jobs"]}
        self.assertEqual(set(jobs), {"big", "small-0", "small-1", "small-2"})
        for name, job in jobs.items():
            self.assertEqual(job["id"], f"{name}@research")
            for part in ("", "/series", "/gpus"):
                got = service.json(f"/api/v1/jobs/{job['id']}{part}", **window)
                want = alone.json(f"/api/v1/jobs/{same[name]['id']}{part}", **window)
                for answer in (got, want):
                    if part == "/gpus":
                        answer["gpus"].sort(key=lambda gpu: gpu["uuid"])
                    for key in ("id", "first", "last"):  # when each process began, and closed its last slot
                        answer.pop(key, None)
                self.assertEqual(differences(got, want), [], part)

    def test_fleet_is_whole_from_either_process_through_outages(self):
        exporters = [self.stack.enter_context(Exporter(lambda host=host: host_text(host))) for host in range(8)]
        targets = [exporter.address for exporter in exporters]
        first, second = self.share(targets)
        alone = self.start(targets)
        counts = [len(service.json("/api/v1/targets")["targets"]) for service in (first, second)]
        self.assertEqual(sum(counts), len(targets))
        self.assertGreater(min(counts), 0)
        wait_until(lambda: first.metric("flopsight_gpus") + second.metric("flopsight_gpus") == 16 == alone.metric("flopsight_gpus"),
                   "a scrape of every exporter")
        start = (int(time.time()) // SLOT + 1) * SLOT
        wait_until(lambda: time.time() > start and first.metric("flopsight_engine_samples_total") > 0, "samples in the engine", 120)

        self.engine.pause()
        status, body, _ = first.ask("/api/v1/fleet")
        self.assertEqual(status, 503, body)
        self.assertRegex(body, "engine: .*onnect")
        self.assertEqual(first.ask("/readyz")[0], 200)
        wait_until(lambda: first.metric("flopsight_engine_waiting_parcels") > 0 and first.metric("flopsight_engine_up") == 0,
                   "something that waits", 120)
        first.kill()
        first.start()
        waiting = first.metric("flopsight_engine_waiting_parcels")
        self.assertGreater(waiting, 0)
        self.engine.resume()
        second.kill()
        second.start()

        window = {"start": str(start), "end": str((int(time.time()) // SLOT + 2) * SLOT)}
        for service in (first, second, alone):
            self.wait_for_fleet(service, window, 16)
        for service in (first, second):
            self.compare(service, alone, window)
            self.assertEqual(service.metric("flopsight_engine_waiting_parcels"), 0)
            self.assertEqual(service.metric("flopsight_engine_samples_rejected_total"), 0)
            self.assertEqual(service.metric("flopsight_engine_up"), 1)

    def test_simulated_exporters_give_what_one_process_gives(self):
        port = free_port()
        exporter = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", BINARY, "simulate", "--scenario", "steady", "--gpus", "48", "--exporter", str(port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(exporter.wait)
        self.stack.callback(exporter.kill)

        def up():
            with contextlib.suppress(OSError):
                return fetch(f"http://127.0.0.1:{port}/metrics", seconds=5)[0] == 200
        wait_until(up, "exporter")
        targets = [f"http://127.0.0.1:{port}/host/{host}/metrics" for host in range(6)]
        first, second = self.share(targets)
        alone = self.start(targets)
        start = (int(time.time()) // SLOT + 2) * SLOT
        window = {"start": str(start), "end": str(start + 3 * SLOT)}
        for service in (first, second, alone):
            self.wait_for_fleet(service, window, 48)
        whole = alone.json("/api/v1/fleet", **window)
        for service in (first, second):
            fleet = service.json("/api/v1/fleet", **window)
            self.assertEqual([g["key"] for g in fleet["groups"]], [g["key"] for g in whole["groups"]])
            self.assertIn("simulated", [entry["code"] for entry in fleet["quality"]])
            # Two processes scrape a moment apart.
            self.assertAlmostEqual(fleet["fleet"]["ofu_ratio"], whole["fleet"]["ofu_ratio"], delta=0.01 * whole["fleet"]["ofu_ratio"])
        self.assertEqual(differences(first.json("/api/v1/fleet", gpus="true", **window),
                                     second.json("/api/v1/fleet", gpus="true", **window)), [])


if __name__ == "__main__":
    unittest.main()

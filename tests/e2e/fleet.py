"""A small fleet with known history: what a report must find, computed here without the program.

Samples every 30 s over three hours from START. The truth is the plain reading of the rules: a sample holds until the
next one, longer holes are unmeasured, GPU time is counted once.

run_report runs the program (FLOPSIGHT_BINARY), check_sums holds a report to what is always true of one.
"""

import json
import os
import pathlib
import random
import subprocess

from servers import Series

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("FLOPSIGHT_BINARY", str(ROOT / "build" / "release" / "flopsight"))
SUMMARY_KEYS = ("gpu_count gpu_hours_allocated gpu_hours_delivered gpu_hours_lost gpu_hours_unmeasured ofu_ratio "
                "ofu_ratio_low ofu_ratio_high tensor_active_ratio sm_clock_hertz_mean coverage_ratio cost_usd "
                "cost_lost_usd cost_unmeasured_usd").split()
HOURS_KEYS = [key for key in SUMMARY_KEYS if key.startswith("gpu_hours_")]

START = 1_767_225_600  # 2026-01-01T00:00:00Z
STEP = 30
HOURS = 3
SECONDS = HOURS * 3600
REFERENCE_MHZ = {"NVIDIA H100 80GB HBM3": 1830.0, "NVIDIA A100-SXM4-40GB": 1410.0}
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
CLOCK = "DCGM_FI_DEV_SM_CLOCK"
BLANK = 140737488355328.0


class Fleet:
    """series: for the servers. truth: {job: {"allocated", "measured", "delivered"}} in GPU-seconds."""

    def __init__(self, seed: int = 1):
        self._random = random.Random(seed)
        self.series: list[Series] = []
        self.truth: dict[str | None, dict[str, float]] = {}
        self.gpu_count = 0

    def _book(self, job, allocated, measured=0.0, delivered=0.0):
        entry = self.truth.setdefault(job, {"allocated": 0.0, "measured": 0.0, "delivered": 0.0})
        entry["allocated"] += allocated
        entry["measured"] += measured
        entry["delivered"] += delivered

    def _emit(self, name, labels, samples):
        """One series per distinct label set: samples are (second, extra labels, value)."""
        grouped = {}
        for second, extra, value in samples:
            grouped.setdefault(tuple(sorted(extra.items())), []).append(
                ((START + second) * 1000, value))
        for extra, points in grouped.items():
            self.series.append(Series(name, {**labels, **dict(extra)}, points))

    def add_gpu(self, uuid, host, index, job_at, model="NVIDIA H100 80GB HBM3", hole=None,
                with_tensor=True, reference_mhz=None, max_clock_mhz=None, extra=None, weight=1.0,
                blank_at=(), noise=True, book_unseen=True):
        """job_at(second) -> job or None. hole: (from, to) seconds without any sample."""
        labels = {"gpu": str(index), "UUID": uuid, "modelName": model, "Hostname": host, **(extra or {})}
        tensor, clock, temperature, maximum = [], [], [], []
        for second in range(0, SECONDS, STEP):
            in_hole = hole is not None and hole[0] <= second < hole[1]
            job = job_at(second)
            if in_hole:
                if book_unseen:
                    self._book(job, STEP * weight)
                continue
            named = {"exported_pod": job, "exported_namespace": "team-a"} if job else {}
            busy = job is not None
            value = round(self._random.uniform(0.3, 0.6), 6) if busy and noise else 0.4 if busy else 0.0
            mhz = round(self._random.uniform(1400, 1755)) if busy and noise else 1410 if busy else 345
            temperature.append((second, named, 50))
            clock.append((second, named, mhz))
            if max_clock_mhz:
                maximum.append((second, named, max_clock_mhz))
            measured = with_tensor and second not in blank_at
            if with_tensor:
                tensor.append((second, named, value if second not in blank_at else BLANK))
            reference = reference_mhz or REFERENCE_MHZ.get(model) or max_clock_mhz
            if measured and reference:
                self._book(job, STEP * weight, STEP * weight, value * mhz / reference * STEP * weight)
            else:
                self._book(job, STEP * weight)
        self._emit(CLOCK, labels, clock)
        self._emit("DCGM_FI_DEV_GPU_TEMP", labels, temperature)
        if tensor:
            self._emit(TENSOR, labels, tensor)
        if maximum:
            self._emit("DCGM_FI_DEV_MAX_SM_CLOCK", labels, maximum)
        if "GPU_I_ID" not in (extra or {}):
            self.gpu_count += 1


def standard_fleet() -> Fleet:
    """Two trainings one after the other, one with a hole of 20 minutes; a GPU without tensor counter; an unknown
    model with and one without a maximum clock; MIG."""
    fleet = Fleet()
    half = SECONDS // 2

    def two_jobs(second):
        return "train-a" if second < half else "train-b"

    for i in range(4):
        fleet.add_gpu(f"GPU-0000000{i}-aaaa-bbbb-cccc-000000000000", "n1", i, two_jobs)
    fleet.add_gpu("GPU-00000010-aaaa-bbbb-cccc-000000000000", "n2", 0, lambda s: "train-hole",
                  hole=(3600, 4800))
    fleet.add_gpu("GPU-00000011-aaaa-bbbb-cccc-000000000000", "n2", 1, lambda s: "blind", with_tensor=False)
    fleet.add_gpu("GPU-00000012-aaaa-bbbb-cccc-000000000000", "n2", 2, lambda s: None)
    fleet.add_gpu("GPU-00000013-aaaa-bbbb-cccc-000000000000", "n3", 0, lambda s: "new-model",
                  model="NVIDIA X900", max_clock_mhz=2000)
    fleet.add_gpu("GPU-00000014-aaaa-bbbb-cccc-000000000000", "n3", 1, lambda s: "no-peak",
                  model="NVIDIA X901")
    for instance, profile, slices in (("3", "3g.20gb", 3), ("5", "2g.10gb", 2)):
        fleet.add_gpu("GPU-00000015-aaaa-bbbb-cccc-000000000000", "n4", 0, lambda s: "mig-" + instance,
                      model="NVIDIA A100-SXM4-40GB", weight=slices / 7, noise=False,
                      extra={"GPU_I_ID": instance, "GPU_I_PROFILE": profile})
    fleet.gpu_count += 1
    fleet._book(None, SECONDS * 2 / 7)  # slices that no instance holds
    return fleet


def run_report(*arguments, timeout: float = 300) -> subprocess.CompletedProcess:
    """flopsight report ARGUMENTS, as text; the proxies of the environment are left out."""
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.run([BINARY, "report", *map(str, arguments)], env=clean, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def report(test, *arguments) -> dict:
    """The report as JSON; the test fails on another exit code than 0 or a word on standard error."""
    run = run_report(*arguments, "--format", "json")
    test.assertEqual((run.returncode, run.stderr), (0, ""), arguments)
    return json.loads(run.stdout)


def window(start: int = START, end: int = START + SECONDS) -> list[str]:
    return ["--start", str(start), "--end", str(end)]


def groups_by(report_json: dict, key: str) -> dict:
    """{value of the key: group}; the groups of a report have it once each."""
    groups = {group["key"][key]: group for group in report_json["groups"]}
    assert len(groups) == len(report_json["groups"]), "a group twice"
    return groups


def check_sums(test, report_json: dict, groups_count_gpus_once: bool = False):
    """Hours add up within each summary, and the groups to the fleet."""
    fleet = report_json["fleet"]
    for summary in [fleet, *report_json["groups"]]:
        parts = sum(summary["gpu_hours_" + part] for part in ("delivered", "lost", "unmeasured"))
        test.assertAlmostEqual(parts, summary["gpu_hours_allocated"], delta=1e-9 * max(1, parts))
        for key in HOURS_KEYS:
            test.assertGreaterEqual(summary[key], -1e-12, key)
    for key in HOURS_KEYS:
        total = sum(group[key] for group in report_json["groups"])
        test.assertAlmostEqual(total, fleet[key], delta=1e-9 * max(1, total), msg=key)
    if groups_count_gpus_once:
        test.assertEqual(sum(group["gpu_count"] for group in report_json["groups"]), fleet["gpu_count"])


def quality_codes(report_json: dict) -> dict[str, int]:
    return {entry["code"]: entry["count"] for entry in report_json["quality"]}

#!/usr/bin/env python3
"""The report of a job of 512 GPUs over 30 days, from the store: by the command, and by the service over HTTP. The bar is a second.

The store is made by store_bench: minutes of every GPU for the last week and ten-minute slots before, as the service keeps them. What is timed is
the clock on the wall, for the command with the start of the process; the median of five, files in the page cache. A list of every GPU of the job over
all that time reads millions of their minutes: it is timed once and has no bar.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(SOURCES / "tests" / "e2e"))
import servers  # noqa: E402

BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCES / "build" / "release" / "flopsight"))
STORE_BENCH = os.environ.get("FLOPSIGHT_STORE_BENCH", str(pathlib.Path(BINARY).parent / "store_bench"))
os.environ["PATH"] = str(pathlib.Path(BINARY).resolve().parent) + ":" + os.environ["PATH"]
END = int(time.time()) // 3600 * 3600
WINDOW = {"start": str(END - 30 * 86_400), "end": str(END)}
TIMES = 5
EACH_GPU = ("json", "/gpus")
BAR_SECONDS = 1.0


def result(name: str, what: str, seconds: float, note: str):
    bar = {} if what in EACH_GPU else {"peer": "1 s", "peer_value": BAR_SECONDS, "ratio": BAR_SECONDS / seconds}
    print(json.dumps({"name": f"long_job/{name}", "value": seconds, "unit": "seconds", "note": note, **bar}), flush=True)


def timed(what: str, ask) -> tuple[float, bytes]:
    spent, answer = [], b""
    for _ in range(1 if what in EACH_GPU else TIMES):
        begun = time.perf_counter()
        answer = ask()
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent), answer


class Filled(servers.Server):
    """The service on a store that is there already; nothing is scraped."""

    program = "flopsight"
    health_path = "/readyz"

    def __init__(self, store: str):
        self._store = store
        super().__init__()

    def _arguments(self, port: int) -> list[str]:
        return ["serve", "--listen", f"127.0.0.1:{port}", "--store", self._store]


def check(report: dict):
    group = next(g for g in report["groups"] if g["key"]["job"] == "pretrain")
    hours = group["gpu_hours_allocated"]
    if group["gpu_count"] != 512 or abs(hours - 512 * 30 * 24) > 1:
        raise RuntimeError(f"{group['gpu_count']} GPUs, {hours} GPU-hours, expected 512 and {512 * 30 * 24}")


def main():
    with tempfile.TemporaryDirectory(prefix="flopsight-long-job-") as folder:
        environment = dict(os.environ, FLOPSIGHT_BENCH_STORE=folder, FLOPSIGHT_BENCH_END=str(END))
        subprocess.run([STORE_BENCH, "--benchmark_filter=totals_of_a_job_of_thirty_days", "--benchmark_min_time=0.01"], env=environment, capture_output=True, check=True)
        size = sum(file.stat().st_size for file in pathlib.Path(folder).iterdir())
        note = f"512 GPUs, 30 days, {size / 1e6:.0f} MB"
        command = [BINARY, "report", "--store", folder, "--start", WINDOW["start"], "--end", WINDOW["end"]]
        for form in ("table", "json"):
            seconds, answer = timed(form, lambda form=form: subprocess.run([*command, "--format", form], capture_output=True, check=True).stdout)
            if form == "json":
                check(json.loads(answer))
            result(f"report_{form}", form, seconds, note + (", every GPU" if form == "json" else ""))
        with Filled(folder) as service:
            for part in ("", "/series", "/phases", "/gpus"):
                def ask(part=part) -> bytes:
                    status, body = service.get("/api/v1/jobs/pretrain@team-0" + part, **WINDOW)
                    if status != 200:
                        raise RuntimeError(f"{part}: HTTP {status} {body[:300]!r}")
                    return body
                seconds, answer = timed(part, ask)
                result("http_job" + part.replace("/", "_"), part, seconds, f"{note}, {len(answer) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()

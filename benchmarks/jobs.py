#!/usr/bin/env python3
"""Jobs and logs at the size of a site: 100,000 jobs of Slurm read and kept, and a gigabyte of a training log followed by the service.

Processor time is that of the program alone (wait4, /proc/PID/stat), memory its largest resident set. The jobs are those of
tests/fixtures/slurm with other numbers: a record as slurmdbd 22.05 gives it, with its steps. The log has the shape of
src/training_logs/reader_bench.cc: 39 of 40 lines are of libraries. Files are read from the page cache.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(SOURCES / "tests" / "e2e"))
import servers  # noqa: E402

BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCES / "build" / "release" / "flopsight"))
os.environ["PATH"] = str(pathlib.Path(BINARY).resolve().parent) + ":" + os.environ["PATH"]
TICKS = os.sysconf("SC_CLK_TCK")
JOBS = int(os.environ.get("FLOPSIGHT_BENCH_JOBS", "100000"))
LOG_BYTES = int(os.environ.get("FLOPSIGHT_BENCH_LOG_BYTES", str(1 << 30)))
START = 1_790_000_000


def result(name: str, value: float, unit: str, note: str):
    print(json.dumps({"name": f"jobs/{name}", "value": value, "unit": unit, "note": note}), flush=True)


def run(*arguments: str) -> tuple[float, float, int]:
    """(processor seconds, seconds, largest resident bytes) of one run of the program."""
    begun = time.monotonic()
    with subprocess.Popen([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss * 1024


def sacct_json(path: pathlib.Path):
    answer = json.loads((SOURCES / "tests/fixtures/slurm/slurm-22.05-sacct.json").read_text())
    job = answer["jobs"][0]
    with path.open("w") as out:
        out.write('{"meta": ' + json.dumps(answer["meta"]) + ', "errors": [], "jobs": [\n')
        for i in range(JOBS):
            job["job_id"] = 1_000_000 + i
            job["nodes"] = f"n{i % 1000:04}"
            job["time"]["start"] = START + 10 * i
            job["time"]["end"] = START + 10 * i + 3600
            job["time"]["elapsed"] = 3600
            out.write((",\n" if i else "") + json.dumps(job))
        out.write("]}\n")


def sacct_text(path: pathlib.Path):
    def stamp(unix: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix))
    with path.open("w") as out:
        out.write("Cluster|JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|NodeList|NNodes|"
                  "ExitCode|JobName\n")
        for i in range(JOBS):
            start, host = START + 10 * i, f"n{i % 1000:04}"
            out.write(f"alpha|{1_000_000 + i}|{1_000_000 + i}|user{i % 300}|team{i % 20}|gpu|normal|COMPLETED|{stamp(start - 60)}|{stamp(start)}|"
                      f"{stamp(start + 3600)}|3600|1440|billing=64,cpu=64,gres/gpu:h100=4,gres/gpu=4,mem=512G,node=1|{host}|1|0:0|train-{i}\n")


def slurm(folder: pathlib.Path):
    for name, write in (("sacct_json", sacct_json), ("sacct_text", sacct_text)):
        path = folder / name
        write(path)
        size = path.stat().st_size
        seconds, _, resident = run("jobs", "import", "--dry-run", "--zone", "UTC", str(path))
        note = f"{size / 1e6:.0f} MB, {size / seconds / 1e6:.0f} MB/s of processor time, {resident / 1e6:.0f} MB resident"
        result(f"slurm_{name}_read", JOBS / seconds, "items/s", note)
        seconds, wall, resident = run("jobs", "import", "--store", str(folder / f"store-{name}"), "--zone", "UTC", str(path))
        result(f"slurm_{name}_imported", JOBS / seconds, "items/s", f"read and kept, durable: {wall:.1f} s, {resident / 1e6:.0f} MB resident")
        again, wall, _ = run("jobs", "import", "--store", str(folder / f"store-{name}"), "--zone", "UTC", str(path))
        result(f"slurm_{name}_again", JOBS / again, "items/s", f"the same again, as every poll does: {wall:.1f} s")


def training_log(path: pathlib.Path) -> int:
    """Writes it; the number of its steps."""
    noise = ["node{0}:2231:3310 [3] NCCL INFO Channel 0{0}/0 : 12[c000] -> 20[c000] [receive] via NET/IB/3/GDRDMA\n",
             "[rank3]: W0224 19:46:17.508000 140 torch/distributed/run.py:793] Setting OMP_NUM_THREADS to be 1 for each process\n",
             "2026-02-24 19:46:17,508 - data - INFO - loaded shard {0} of corpus/part-000{0}.arrow in worker 7 without error\n",
             '  File "/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line {0}, in __next__\n',
             "(min, max) time across ranks (ms): forward-backward ...: (4321.01, 4321.22) optimizer: (12.33, 12.40) {0}\n"]
    step, size, line = 0, 0, 0
    with path.open("w") as out:
        while size < LOG_BYTES:
            lines = []
            for _ in range(39):
                line += 1
                lines.append(noise[line % 5].format(line))
            step += 1
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + 6 * step))
            lines.append(f" [{clock}] iteration {step:8}/ 1000000 | consumed samples: {step * 128:12} | elapsed time per iteration (ms): 5630.1 | "
                         "throughput per GPU (TFLOP/s/GPU): 231.9 | learning rate: 4.000000E-07 | global batch size:   128 | lm loss: 2.021530E+00 | "
                         "loss scale: 1.0 | grad norm: 6.895 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n")
            text = "".join(lines)
            size += len(text)
            out.write(text)
    return step


class Following(servers.Server):
    program = "flopsight"
    health_path = "/readyz"

    def __init__(self, sources: str):
        self._sources = sources
        super().__init__()

    def _arguments(self, port: int) -> list[str]:
        return ["serve", "--listen", f"127.0.0.1:{port}", "--store", f"{self.folder}/data", "--training-logs", self._sources]

    def metric(self, name: str) -> float:
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return 0.0

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_bytes(self) -> int:
        for line in pathlib.Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0


def logs(folder: pathlib.Path):
    path = folder / "train.log"
    steps = training_log(path)
    size = path.stat().st_size
    seconds, _, resident = run("logs", str(path), "--zone", "UTC")
    result("log_read_once", size / seconds, "bytes/s", f"flopsight logs, {size / 1e9:.2f} GB, {resident / 1e6:.0f} MB resident")
    sources = folder / "logs.yml"
    begun = time.monotonic()
    sources.write_text(f"training-logs:\n  - {{path: {path}, job: train, zone: UTC}}\n")
    with Following(str(sources)) as service:
        # The last steps wait for more; a step is open until three later ones were seen.
        while service.metric("flopsight_steps_reported") < steps - 20:
            if time.monotonic() - begun > 600:
                raise RuntimeError(f"{service.metric('flopsight_steps_reported')} of {steps} steps after ten minutes")
            time.sleep(0.05)
        wall, cpu, resident = time.monotonic() - begun, service.cpu_seconds(), service.resident_bytes()
    note = f"{size / wall / 1e6:.0f} MB/s by the clock with starting; {steps} steps kept, durable; {resident / 1e6:.0f} MB resident at most"
    result("log_followed", size / cpu, "bytes/s", note)


def main():
    with tempfile.TemporaryDirectory(prefix="flopsight-bench-jobs-") as folder:
        slurm(pathlib.Path(folder))
        logs(pathlib.Path(folder))


if __name__ == "__main__":
    main()

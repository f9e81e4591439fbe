#!/usr/bin/env python3
"""`flopsight serve` beside VictoriaMetrics and Prometheus: the same remote-write load, sent by `flopsight simulate` to each in turn.

What is counted is the receiver's own processor time (/proc/PID/stat), so that neither the sender nor the other tenants of the
machine are in the figure; memory is the resident set; disk is what the data folder holds once everything is in it. The load has
20 metrics of each GPU with about 20 labels a series, as Prometheus relabels a dcgm-exporter on Kubernetes, one sample a series and
message, 2,000 series a message. Flopsight's time includes rolling everything up and storing it.
"""

import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import time
import urllib.parse

SOURCES = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(SOURCES / "tests" / "e2e"))
import servers  # noqa: E402

BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCES / "build" / "release" / "flopsight"))
os.environ["PATH"] = str(pathlib.Path(BINARY).resolve().parent) + ":" + os.environ["PATH"]
TICKS = os.sysconf("SC_CLK_TCK")
INTERVAL = 15
METRICS = 20
PROMETHEUS_GPUS_MAX = 20_000


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def result(name: str, value: float, unit: str, **others):
    print(json.dumps({"name": f"serve/{name}", "value": value, "unit": unit, **others}), flush=True)


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int, key: str = "VmRSS") -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def folder_bytes(folder: pathlib.Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


class Flopsight(servers.Server):
    program = "flopsight"
    health_path = "/readyz"

    def _arguments(self, port: int) -> list[str]:
        # A short idle time closes the last slots soon after the load ends.
        return ["serve", "--listen", f"127.0.0.1:{port}", "--store", f"{self.folder}/data", "--rollup-idle", "5s",
                "--metrics-per-gpu", "false"]

    def stop_gently(self):
        """SIGTERM, and the folder stays."""
        self._process.terminate()
        self._process.wait()

    def metric(self, name: str) -> float:
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return 0.0


class Filled(Flopsight):
    """On a store that store_bench filled: what the service itself would take a day of samples for."""

    def __init__(self, gpus: int, end: int):
        self._gpus = gpus
        self._end = end
        super().__init__()

    def _prepare(self):
        environment = dict(os.environ, FLOPSIGHT_BENCH_GPUS=str(self._gpus), FLOPSIGHT_BENCH_END=str(self._end),
                           FLOPSIGHT_BENCH_STORE=f"{self.folder}/data")
        subprocess.run([pathlib.Path(BINARY).parent / "store_bench", "--benchmark_filter=gpus_held_in_a_day"], env=environment,
                       capture_output=True, check=True)


class VictoriaMetrics(servers.VictoriaMetrics):
    pass


class Prometheus(servers.Prometheus):
    def __init__(self):
        super().__init__(extra_arguments=["--web.enable-remote-write-receiver"])


def data_folder(server) -> pathlib.Path:
    return pathlib.Path(server.folder) / "data"


def send(url: str, gpus: int, rounds: int, start: int, metrics: int = METRICS, interval: int = INTERVAL) -> int:
    done = subprocess.run(
        [BINARY, "simulate", "--scenario", "steady", "--gpus", str(gpus), "--metrics", str(metrics), "--labels-per-series", "20",
         "--samples", str(rounds), "--start", str(start), "--interval", f"{interval}s", "--remote-write", url, "--quiet"],
        capture_output=True, text=True, check=True)
    return int(done.stdout.split(" sent ")[1].split()[0])


def pid_of(server) -> int:
    return server._process.pid


def ingest(server, gpus: int, rounds: int) -> dict:
    """`rounds` scrapes of each GPU: the first by itself, with which the receiver gets to know every series. Its other figures are of all."""
    start = int(time.time()) - rounds * INTERVAL - 120
    before = cpu_seconds(pid_of(server))
    first = send(server.url + "/api/v1/write", gpus, 1, start)
    introduced = cpu_seconds(pid_of(server)) - before
    sent = first + (send(server.url + "/api/v1/write", gpus, rounds - 1, start + INTERVAL) if rounds > 1 else 0)
    if isinstance(server, Flopsight):
        cells = gpus * (rounds * INTERVAL // 60)
        # Looking costs the server processor time, so seldom.
        while server.metric("flopsight_cells_total") < cells:
            time.sleep(5)
    spent = cpu_seconds(pid_of(server)) - before
    found = {"samples": sent, "rate": sent / spent, "new_rate": first / introduced, "known_rate": (sent - first) / max(spent - introduced, 1 / TICKS),
             "memory": resident_bytes(pid_of(server)), "peak": resident_bytes(pid_of(server), "VmHWM"), "spent": spent}
    say(f"{type(server).__name__}: {gpus} GPUs, {sent} samples, {spent:.1f} s of processor, {introduced:.1f} s of it for the first of each series; "
        f"samples/s a core: {found['rate'] / 1e3:.0f} k, first ones {found['new_rate'] / 1e3:.0f} k, others {found['known_rate'] / 1e3:.0f} k; "
        f"{found['memory'] / 2**20:.0f} MiB resident, peak {found['peak'] / 2**20:.0f}")
    return found


def rate_and_memory(gpus: int, rounds: int, peer_rounds: dict):
    with Flopsight() as server:
        ours = ingest(server, gpus, rounds)
    result(f"memory_{gpus}_gpus", ours["memory"] / gpus, "bytes", peer="2,000 B a GPU", peer_value=2000,
           ratio=2000 * gpus / ours["memory"], note=f"resident, all in, a GPU; peak {ours['peak'] / gpus:.0f}")
    for make in (VictoriaMetrics, Prometheus):
        name = make.__name__
        # Prometheus needs some 9 KB a series: 100,000 GPUs of 20 metrics do not fit in 24 GB.
        size = min(gpus, PROMETHEUS_GPUS_MAX) if make is Prometheus else gpus
        with make() as peer:
            theirs = ingest(peer, size, peer_rounds[name])
        note = f"samples a second and core, rolled up and stored; {name} with {size} GPUs, {theirs['memory'] / size:.0f} B a GPU"
        result(f"remote_write_{gpus}_gpus_vs_{name}", ours["known_rate"], "items/s", peer=name, peer_value=theirs["known_rate"],
               ratio=ours["known_rate"] / theirs["known_rate"], note="of known series: " + note)
        result(f"remote_write_new_series_{gpus}_gpus_vs_{name}", ours["new_rate"], "items/s", peer=name, peer_value=theirs["new_rate"],
               ratio=ours["new_rate"] / theirs["new_rate"], note="the first sample of each series: " + note)


def curve(sizes: list[int], rounds: int):
    for gpus in sizes:
        with Flopsight() as server:
            found = ingest(server, gpus, rounds)
        result(f"curve_{gpus}_gpus", found["rate"], "items/s", note=f"{found['memory'] / gpus:.0f} B a GPU resident")


def settled_bytes(folder: pathlib.Path) -> int:
    """The size of a folder once its server no longer changes it."""
    last = -1
    while (now := folder_bytes(folder)) != last:
        last = now
        time.sleep(5)
    return now


def disk(gpus: int, hours: float):
    rounds = int(hours * 3600 / INTERVAL)
    with Flopsight() as server:
        ingest(server, gpus, rounds)
        settled_bytes(data_folder(server))  # the last slots close, and with them the log of what is in them
        server.stop_gently()
        ours = folder_bytes(data_folder(server))
        tables = tables_of(data_folder(server) / "flopsight.db")
    with VictoriaMetrics() as server:
        ingest(server, gpus, rounds)
        server.get("/internal/force_flush")
        server.get("/internal/force_merge")
        theirs = settled_bytes(data_folder(server))
    minutes = gpus * hours * 60
    say(f"tables: {tables}")
    result(f"disk_{gpus}_gpus_{hours:g}_h", ours, "bytes", peer="VictoriaMetrics", peer_value=theirs, ratio=theirs / ours,
           note=f"{ours / minutes:.1f} and {theirs / minutes:.1f} B a GPU and minute")


# Fleet OFU of each job: the product of samples, averaged over time, as it has to be.
BY_HAND = ("avg by (pod) (avg_over_time((DCGM_FI_PROF_PIPE_TENSOR_ACTIVE * on(UUID, pod) "
           "DCGM_FI_DEV_SM_CLOCK)[24h:60s])) / 1830")


def timed(ask, times: int) -> float:
    spent = []
    for _ in range(times):
        before = time.perf_counter()
        status, body = ask()
        spent.append(time.perf_counter() - before)
        assert status == 200 and body, (status, body[:200])
    return statistics.median(spent)


def fleet_by_job(server: Flopsight, start: int, end: int) -> tuple[float, float, int]:
    """Seconds on the clock and of processor for one answer, and how many jobs there are."""
    looked_at = -1
    while (now := server.metric("flopsight_findings_rounds_total")) != looked_at:  # a day that came within minutes is looked at in the background
        looked_at = now
        time.sleep(10)
    window = {"start": str(start), "end": str(end), "by": "job"}
    found = json.loads(server.get("/api/v1/fleet", **window)[1])
    times = 20
    before = cpu_seconds(pid_of(server))
    seconds = timed(lambda: server.get("/api/v1/fleet", **window), times)
    return seconds, (cpu_seconds(pid_of(server)) - before) / times, len(found["groups"]) + found["groups_omitted_count"]


def query(gpus: int, many: int):
    """A day at one sample a minute of the two metrics that OFU needs, asked for by job. Raw PromQL over `many` GPUs does not end here within
    minutes, so that its time at `gpus` stands beside ours at `many` as well: what it would take is more."""
    rounds = 24 * 60
    start = int(time.time()) - (rounds + 5) * 60
    end = start + rounds * 60
    with Flopsight() as server:
        send(server.url + "/api/v1/write", gpus, rounds, start, metrics=2, interval=60)
        while server.metric("flopsight_cells_total") < gpus * (rounds - 1):
            time.sleep(10)
        ours, spent, count = fleet_by_job(server, start, end)
    with Filled(many, end) as server:
        ours_many, spent_many, count_many = fleet_by_job(server, start, end)
    with VictoriaMetrics(["-search.maxQueryDuration=600s", "-search.maxUniqueTimeseries=10000000"]) as peer:
        send(peer.url + "/api/v1/write", gpus, rounds, start, metrics=2, interval=60)
        peer.get("/internal/force_flush")
        theirs = timed(lambda: servers.fetch(
            peer.url + "/api/v1/query?" + urllib.parse.urlencode({"query": BY_HAND, "time": end, "nocache": 1}), seconds=600), 2)
    result(f"fleet_by_job_24h_{gpus}_gpus", ours, "seconds", peer="VictoriaMetrics, raw PromQL", peer_value=theirs,
           ratio=theirs / ours, note=f"{count} jobs, over HTTP, as JSON; {spent * 1e3:.0f} ms of processor")
    result(f"fleet_by_job_24h_{many}_gpus", ours_many, "seconds", peer=f"VictoriaMetrics, raw PromQL, {gpus} GPUs", peer_value=theirs,
           ratio=theirs / ours_many, note=f"{count_many} jobs; {spent_many * 1e3:.0f} ms of processor")


def tables_of(path: pathlib.Path) -> dict:
    with sqlite3.connect(path) as database:
        return dict(database.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 6").fetchall())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=100_000)
    parser.add_argument("--only", choices=["rate", "curve", "disk", "query"])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    gpus = 2_000 if arguments.quick else arguments.gpus
    if arguments.only in (None, "rate"):
        rate_and_memory(gpus, 17, {"VictoriaMetrics": 9, "Prometheus": 5})
    if arguments.only in (None, "curve"):
        curve([500, 1_000, 2_000] if arguments.quick else [1_000, 10_000, 100_000], 16)
    if arguments.only in (None, "disk"):
        disk(200 if arguments.quick else 2_000, 1 if arguments.quick else 2)
    if arguments.only in (None, "query"):
        query(200 if arguments.quick else 4_000, 2_000 if arguments.quick else 100_000)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""`flopsight report --prometheus` over a day of 2,000 GPUs, against the server's own time.

A VictoriaMetrics is filled with three metrics of each GPU, every 30 s: 17 million samples. As in a real cluster, hosts
of 8 GPUs are scraped at times of their own, jobs of 8 to 512 GPUs follow each other with idle time between them, and a
job's labels come and go with it, so that each GPU has several series a metric. Then, in turns:

  the report, arithmetic pushed down (--step 60s)     wall time, peak memory
  the queries that it sends, from a plain client      its floor: the server's work and the transfer
  the one query that people write by hand             what a dashboard asks, for comparison
  the report from raw samples (--raw)                 wall time, peak memory

The server's cache of results is off for the query by hand (nocache=1) and unused for the report's.
Arguments: [--gpus N] [--rounds N] [--queries], the last to print the time of each query.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

SOURCE = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCE / "build" / "release" / "flopsight"))
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))
from servers import VictoriaMetrics  # noqa: E402

START = 1_767_225_600  # 2026-01-01T00:00:00Z
DAY = 24 * 3600
SCRAPE = 30
GPUS_PER_HOST = 8
LOAD_SECONDS_MAX = 420
# on(UUID) alone is refused where one job follows another: both series of the clock are there for a moment.
BY_HAND = ("avg by (exported_pod) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE * on(UUID, exported_pod) group_left "
           "DCGM_FI_DEV_SM_CLOCK / 1830)")


def say(text: str):
    print(f"report_pushdown: {text}", file=sys.stderr, flush=True)


# ---- data -------------------------------------------------------------------------------------


def schedule(hosts: int, chance: random.Random) -> list[list[tuple[int, int, str | None]]]:
    """For each host, what held it: (from second, to second, job or None), without holes."""
    held = [[] for _ in range(hosts)]
    number = 0
    host = 0
    while host < hosts:
        size = min(hosts - host, chance.choice([1, 1, 1, 2, 2, 4, 8, 16, 32, 64]))
        second = 0
        while second < DAY:
            until = min(DAY, second + SCRAPE * chance.randint(240, 2880))
            number += 1
            idle = min(DAY, until + SCRAPE * chance.randint(2, 60))
            for one in range(host, host + size):
                held[one].append((second, until, f"train-{number}-0"))
                if idle > until:
                    held[one].append((until, idle, None))
            second = idle
        host += size
    return held


def pool(make, count: int = 20_000) -> list[str]:
    return [make() for _ in range(count)]


def lines_of(hosts: int, chance: random.Random):
    """JSON lines of VictoriaMetrics' import, one for each series. Values are stretches of long random lists:
    formatting 17 million numbers would take longer than the server takes to read them."""
    busy = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": pool(lambda: f"{chance.uniform(0.3, 0.6):.6f}"),
            "DCGM_FI_DEV_SM_CLOCK": pool(lambda: str(15 * chance.randint(94, 132))),
            "DCGM_FI_DEV_GPU_TEMP": pool(lambda: str(chance.randint(50, 70)))}
    idle = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "0", "DCGM_FI_DEV_SM_CLOCK": "345", "DCGM_FI_DEV_GPU_TEMP": "30"}
    held = schedule(hosts, chance)
    for host in range(hosts):
        phase = START * 1000 + chance.randrange(SCRAPE * 1000)
        stamps = [str(phase + 1000 * second) for second in range(0, DAY, SCRAPE)]
        for gpu in range(GPUS_PER_HOST):
            labels = {
                "gpu": str(gpu), "UUID": f"GPU-{host:08x}-{gpu:04x}-4000-8000-{host:06x}{gpu:06x}",
                "pci_bus_id": f"00000000:{gpu + 16:02X}:00.0", "device": f"nvidia{gpu}",
                "modelName": "NVIDIA H100 80GB HBM3", "Hostname": f"node-{host:04d}",
                "DCGM_FI_DRIVER_VERSION": "550.90.07", "instance": f"10.0.{host // 250}.{host % 250}:9400",
                "job": "dcgm-exporter", "cluster": "a" if host < hosts // 4 else "b",
                "container": "exporter", "namespace": "gpu-operator", "pod": f"nvidia-dcgm-exporter-{host:05d}"}
            for begin, end, job in held[host]:
                here = dict(labels)
                if job:
                    here.update(exported_pod=job, exported_namespace=f"team-{len(job) % 5}",
                                exported_container="pytorch")
                times = ",".join(stamps[begin // SCRAPE:end // SCRAPE])
                count = (end - begin) // SCRAPE
                for metric, values in busy.items():
                    at = chance.randrange(len(values) - count)
                    stretch = values[at:at + count] if job else [idle[metric]] * count
                    yield count, (f'{{"metric":{json.dumps({"__name__": metric, **here})},'
                                  f'"values":[{",".join(stretch)}],"timestamps":[{times}]}}\n')


def load(server: VictoriaMetrics, gpus: int) -> tuple[int, int]:
    """(series, samples) that were loaded."""
    begun = time.monotonic()
    address = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=120)
    series = samples = 0
    batch, size, shown = [], 0, 0.0

    def send():
        connection.request("POST", "/api/v1/import", "".join(batch).encode())
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"report_pushdown: import: HTTP {answer.status}")
        batch.clear()

    for count, line in lines_of(gpus // GPUS_PER_HOST, random.Random(7)):
        batch.append(line)
        size += len(line)
        series += 1
        samples += count
        if size > 8_000_000:
            send()
            size = 0
        spent = time.monotonic() - begun
        if spent > LOAD_SECONDS_MAX:
            raise SystemExit(f"report_pushdown: loading took over {LOAD_SECONDS_MAX} s")
        if spent - shown > 5:
            shown = spent
            say(f"loading: {samples / 1e6:.1f} million samples after {spent:.0f} s")
    send()
    server.get("/internal/force_flush")
    say(f"{samples / 1e6:.1f} million samples of {series} series in {time.monotonic() - begun:.0f} s")
    return series, samples


# ---- what is measured ---------------------------------------------------------------------------


# A child's peak memory is at least that of the process that starts it, so that a small one stands between.
STARTER = ("import os,sys;pid=os.posix_spawn(sys.argv[1],sys.argv[1:],os.environ);_,status,usage=os.wait4(pid,0);"
           "print(usage.ru_maxrss,file=sys.stderr);sys.exit(os.waitstatus_to_exitcode(status))")


def report(url: str, *arguments: str) -> tuple[float, int, dict]:
    """(wall seconds, peak resident bytes, report)."""
    command = [BINARY, "report", "--prometheus", url, "--start", str(START), "--end", str(START + DAY),
               "--format", "json", "--quiet", *arguments]
    begun = time.monotonic()
    run = subprocess.run([sys.executable, "-I", "-S", "-c", STARTER, *command], capture_output=True, text=True,
                         check=False)
    seconds = time.monotonic() - begun
    if run.returncode != 0:
        raise SystemExit(f"report_pushdown: {' '.join(command)}: {run.stderr}")
    return seconds, int(run.stderr.split()[-1]) * 1024, json.loads(run.stdout)


def record(url: str, *arguments: str) -> list[tuple[str, str, dict, bytes]]:
    """The requests that the report sends: (method, path, headers, body)."""
    requests = []
    address = url.removeprefix("http://")

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")}
            requests.append((self.command, self.path, headers, body))
            upstream = http.client.HTTPConnection(address, timeout=600)
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name in ("Content-Type", "Content-Encoding"):
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            upstream.close()

        do_GET = do_POST = forward

        def log_message(self, *unused):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        report(f"http://127.0.0.1:{server.server_address[1]}", *arguments)
    finally:
        server.shutdown()
        server.server_close()
    return requests


def replay(url: str, requests) -> list[tuple[float, int]]:
    """(seconds, bytes) of each request, one after the other over one connection."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)
    out = []
    for method, path, headers, body in requests:
        begun = time.monotonic()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"report_pushdown: {path[:200]}: HTTP {answer.status} {data[:500]!r}")
        out.append((time.monotonic() - begun, len(data)))
    connection.close()
    return out


def by_hand(url: str, step: int) -> float:
    query = urllib.parse.urlencode({"query": BY_HAND, "start": START, "end": START + DAY - step, "step": step,
                                    "nocache": 1})
    ((seconds, _),) = replay(url, [("GET", "/api/v1/query_range?" + query, {}, b"")])
    return seconds


def promql(request) -> str:
    _, path, _, body = request
    parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query + "&" + body.decode())
    return parameters.get("query", [path])[0]


def result(name: str, value: float, unit: str, **others):
    print(json.dumps({"name": f"report_pushdown/{name}", "value": value, "unit": unit, **others}), flush=True)


def measure(server: VictoriaMetrics, gpus: int, rounds: int, show_queries: bool):
    requests = record(server.url, "--step", "60s")
    ours, floor, each, minute, half = [], [], [], [], []
    memory = 0
    for number in range(rounds):
        seconds, memory, _ = report(server.url, "--step", "60s")
        ours.append(seconds)
        each.append(replay(server.url, requests))
        floor.append(sum(one for one, _ in each[-1]))
        minute.append(by_hand(server.url, 60))
        half.append(by_hand(server.url, 30))
        say(f"round {number + 1}: report {ours[-1]:.2f} s, its queries {floor[-1]:.2f} s, "
            f"by hand {minute[-1]:.2f} s at 60 s and {half[-1]:.2f} s at 30 s")
    if show_queries:
        for number, request in enumerate(requests):
            seconds = statistics.median(run[number][0] for run in each)
            say(f"{seconds:7.3f} s {each[0][number][1]:9d} B  {promql(request)}")
    ours_s, floor_s = statistics.median(ours), statistics.median(floor)
    result(f"{gpus}_gpus_24h", ours_s, "seconds", peer="its queries from a plain client", peer_value=floor_s,
           ratio=floor_s / ours_s, note=f"{len(requests)} requests, step 60 s")
    for step, values in ((60, minute), (30, half)):
        hand = statistics.median(values)
        result(f"{gpus}_gpus_24h_by_hand_{step}s", ours_s, "seconds", peer=f"avg by (exported_pod) at {step} s",
               peer_value=hand, ratio=hand / ours_s, note="one mean a job and step: no hours, coverage or band")
    _, quarter, part = report(server.url, "--step", "60s", "--match", 'cluster="a"')
    result(f"{gpus}_gpus_24h_memory", memory, "bytes", peer=f"{part['fleet']['gpu_count']} GPUs",
           peer_value=quarter, ratio=quarter / memory, note="peak resident, pushed down")
    raw_seconds, raw_memory, _ = report(server.url, "--raw")
    result(f"{gpus}_gpus_24h_raw", raw_seconds, "seconds", peer="pushed down", peer_value=ours_s,
           ratio=ours_s / raw_seconds, note="one run")
    result(f"{gpus}_gpus_24h_raw_memory", raw_memory, "bytes", peer="pushed down", peer_value=memory,
           ratio=memory / raw_memory, note="peak resident")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", action="store_true")
    arguments = parser.parse_args()
    with VictoriaMetrics() as server:
        load(server, arguments.gpus)
        measure(server, arguments.gpus, arguments.rounds, arguments.queries)


if __name__ == "__main__":
    main()

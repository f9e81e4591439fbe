#!/usr/bin/env python3
"""What `flopsight agent` costs the machine that it watches: 8 GPUs, a sample a second, a scrape every 15 s, a job on each GPU.

The GPUs are those of the fake libnvidia-ml of tests/fake_nvml, so the time that NVIDIA's library and driver take is not in it; the
fake's own is. Processor time is that of all threads, in nanoseconds (/proc/PID/task/*/schedstat); memory is the resident set at its end.
The bars are 15 MB and 0.2 % of a core.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

SOURCES = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
BINARY = pathlib.Path(os.environ.get("FLOPSIGHT_BINARY", str(SOURCES / "build" / "bench" / "flopsight"))).resolve()
os.environ["FLOPSIGHT_BINARY"] = str(BINARY)
os.environ.setdefault("FLOPSIGHT_BUILD_DIR", str(BINARY.parent))
sys.path.insert(0, str(SOURCES / "tests" / "e2e"))
import agent  # noqa: E402

GPUS = 8
SECONDS = int(os.environ.get("FLOPSIGHT_BENCH_AGENT_SECONDS", "60"))
SCRAPE_SECONDS = 15
RESIDENT_BYTES_BAR = 15e6
CORE_RATIO_BAR = 0.002


def result(name: str, value: float, unit: str, bar: float, note: str):
    print(json.dumps({"name": f"agent/{name}", "value": value, "unit": unit, "peer": "bar", "peer_value": bar, "ratio": bar / value, "note": note}),
          flush=True)


def processor_seconds(pid: int) -> float:
    return sum(int(pathlib.Path(task, "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) * 1e-9


def resident(pid: int) -> dict[str, int]:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {name: int(size) * 1024 for name, size in re.findall(r"(VmRSS|RssAnon|RssFile):\s+(\d+) kB", status)}


def main():
    script = "".join(agent.gpu(i, processes=100 + i, **{"gpm_rate 248": 1755e6, "gpm_rate 249": 1.6e9, "gpm_rate 250": 9e8}) for i in range(GPUS))
    with agent.FakeDriver(script) as driver:
        for i in range(GPUS):
            driver.process(100 + i, f"0::/system.slice/slurmstepd.scope/job_{7000 + i}/step_0/user/task_0\n", environ=b"PATH=/usr/bin\0" * 100)
        driver.environment.pop("FLOPSIGHT_FAKE_NVML_CLOCK")  # time goes on by itself
        command = [str(BINARY), "agent", "--nvml-library", agent.LIBRARY, "--listen", "127.0.0.1:0", "--interval", "1s", "--root", str(driver.root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=driver.environment) as process:
            try:
                url = re.search(r"http://\S+", process.stdout.readline())[0]
                time.sleep(3)  # past its start
                begun, start = processor_seconds(process.pid), time.monotonic()
                while time.monotonic() - start < SECONDS:
                    time.sleep(min(SCRAPE_SECONDS, start + SECONDS - time.monotonic() + 0.001))
                    page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10).read()
                used = (processor_seconds(process.pid) - begun) / (time.monotonic() - start)
                sizes = resident(process.pid)
            finally:
                process.terminate()
    if page.count(b"\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE{") != GPUS or page.count(b"\nflopsight_gpu_ofu_ratio{") != GPUS:
        raise RuntimeError("the page does not have all GPUs")
    result("resident", sizes["VmRSS"], "bytes", RESIDENT_BYTES_BAR,
           f"{GPUS} GPUs; {sizes['RssAnon'] / 1e6:.1f} MB of its own, {sizes['RssFile'] / 1e6:.1f} MB of code; over a fake driver")
    result("core_share", used, "ratio", CORE_RATIO_BAR, f"{GPUS} GPUs, a sample a second, a scrape of {len(page) / 1e3:.0f} kB every {SCRAPE_SECONDS} s; over a fake driver")


if __name__ == "__main__":
    main()

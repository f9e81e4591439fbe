"""`flopsight agent` over a fake NVIDIA driver (tests/fake_nvml), whose time the test turns.

    with FakeDriver(gpu(0) + "at 10\\ngpu 0 state = lost\\n") as driver, Agent(driver) as agent:
        driver.at(11)
        agent.wait_for(lambda page: page.value("flopsight_gpu_up", gpu="0") == 0, "a lost GPU")
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import fetch, wait_until

BUILD = os.environ.get("FLOPSIGHT_BUILD_DIR", str(pathlib.Path(BINARY).resolve().parent))
LIBRARY = os.path.join(BUILD, "libfake_nvml.so")
OLD_LIBRARY = os.path.join(BUILD, "libfake_nvml_old.so")
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def uuid(index: int) -> str:
    return f"GPU-{index:08}-1111-2222-3333-444455556666"


def gpu(index: int, **facts) -> str:
    """An H100 that works at 52.5 % tensor activity, with facts replaced or added."""
    known = {"name": "NVIDIA H100 80GB HBM3", "uuid": uuid(index), "pci": f"00000000:{index + 16:02X}:00.0", "minor": index, "gpm": "yes",
             "mig": "off", "sm_clock_mhz": 1755, "sm_clock_max_mhz": 1980, "power_milliwatts": 612500, "power_limit_milliwatts": 700000,
             "energy_millijoules": 123456789, "event_reasons": 4, "temperature_celsius": 61, "utilization_percent": 99,
             "memory_used_bytes": 68719476736, "gpm 1": 99, "gpm 2": 91, "gpm 3": 40, "gpm 5": 52.5, "gpm 10": 33, "gpm 11": 0, "gpm 12": 3,
             "gpm 13": 1, "gpm 20": 512, "gpm 21": 1024, "gpm 60": 100, "gpm 61": 200, **facts}
    return "".join(f"gpu {index} {fact} = {value}\n" for fact, value in known.items() if value is not None)


class FakeDriver:
    """script: see tests/fake_nvml/script.h. root: a folder with proc and var/log, for processes of the script."""

    def __init__(self, script: str):
        self._folder = tempfile.TemporaryDirectory(prefix="flopsight-driver-")
        self.folder = pathlib.Path(self._folder.name)
        self.root = self.folder / "root"
        self.root.mkdir()
        (self.folder / "script").write_text("driver version = 550.54.15\n" + script)
        self.at(0)
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.environment = clean | {"FLOPSIGHT_FAKE_NVML_SCRIPT": str(self.folder / "script"),
                                    "FLOPSIGHT_FAKE_NVML_CLOCK": str(self.folder / "clock")}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._folder.cleanup()

    def at(self, seconds: float):
        """The driver's time from now on; replaced as a whole, as it is read at any moment."""
        new = self.folder / "clock.new"
        new.write_text(str(seconds))
        new.rename(self.folder / "clock")

    def process(self, pid: int, cgroup: str, start: int = 100, environ: bytes = b""):
        folder = self.root / "proc" / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup").write_text(cgroup)
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text(f"{pid} (python3) S 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 {start} 1000 10\n")


class Page:
    def __init__(self, text: str):
        self.text = text
        self.samples = []
        for line in text.splitlines():
            match = SAMPLE.match(line)
            if match and not line.startswith("#"):
                self.samples.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))

    def all(self, name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        return [(have, value) for metric, have, value in self.samples if metric == name and labels.items() <= have.items()]

    def value(self, name: str, **labels: str) -> float | None:
        """Of the only such sample, or None."""
        found = self.all(name, **labels)
        return found[0][1] if len(found) == 1 else None


def run_agent(driver: FakeDriver | None, *arguments: str, library: str = LIBRARY) -> subprocess.CompletedProcess:
    """To its end."""
    known = ["--nvml-library", library] if library else []
    return subprocess.run([BINARY, "agent", *known, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          env=driver.environment if driver else None)


class Agent:
    """flopsight agent on a free port."""

    def __init__(self, driver: FakeDriver, *arguments: str, library: str = LIBRARY):
        self._log = open(driver.folder / "agent.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", BINARY, "agent", "--nvml-library", library, "--listen", "127.0.0.1:0", "--interval", "100ms",
             "--root", str(driver.root), "--host", "n1", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True, env=driver.environment)
        self.said = self.process.stdout.readline()
        match = re.search(r"http://[^/]+", self.said)
        if not match:
            self.process.wait()
            raise RuntimeError(f"agent did not start: {self.said!r} {self.log()}")
        self.url = match[0]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()
        self._log.close()

    def log(self) -> str:
        self._log.flush()
        with open(self._log.name, encoding="utf-8") as file:
            return file.read()

    def page(self) -> Page:
        status, body = fetch(self.url + "/metrics")
        assert status == 200, (status, body)
        return Page(body.decode())

    def wait_for(self, condition, what: str) -> Page:
        """The first page that the condition holds for."""
        def holds():
            page = self.page()
            return page if condition(page) else None
        return wait_until(holds, what)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code

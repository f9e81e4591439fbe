"""`flopsight serve` as a child process, for end-to-end tests: killed, stopped, started again on the same folder.

    with Service("--rollup-late", "1s") as service:
        service.url                          # "http://127.0.0.1:41873", answering
        service.json("/api/v1/jobs")         # of a 200; anything else raises
        service.kill(); service.start()      # kill -9, and again on the same store
        service.stop()                       # SIGTERM; its exit code
"""

import contextlib
import json
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import wait_until

# Loads end here, so that two of them are the same: a midnight that no retention has reached yet.
LOAD_END = (int(time.time()) // 86_400 - 2) * 86_400


class Service:
    """arguments are those of serve; --listen and --store are given already. log(): everything it said on stderr."""

    def __init__(self, *arguments: str, store: str | None = None, certificate: str | None = None):
        self._folder = tempfile.TemporaryDirectory(prefix="flopsight-service-")
        self.folder = self._folder.name
        self.store = store or os.path.join(self.folder, "store")
        self.arguments = list(arguments)
        self._certificate = certificate
        self.process = None
        self.url = ""
        self.listen = "127.0.0.1:0"
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        """Starts it, again too. Ready once it returns."""
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", BINARY, "serve", "--listen", self.listen, "--store", self.store,
                 *self.arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=clean)
        line = self.process.stdout.readline()
        match = re.search(r"https?://[^/]+", line)
        if not match:
            self.process.wait()
            raise RuntimeError(f"serve did not start: {line!r} {self.log()[-2000:]}")
        self.url = match[0]

    def log(self) -> str:
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for_log(self, pattern: str) -> str:
        return wait_until(lambda: re.search(pattern, self.log()), f"{pattern!r} on stderr")[0]

    def ask(self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, **parameters: str):
        """(status, body, headers) of one request."""
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        handlers = [urllib.request.ProxyHandler({})]
        if self._certificate:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self._certificate)))
        request = urllib.request.Request(self.url + path + query, data=body, headers=headers or {})
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers

    def json(self, path: str, headers: dict[str, str] | None = None, **parameters: str):
        status, body, _ = self.ask(path, headers=headers, **parameters)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body}")
        return json.loads(body)

    def metric(self, name: str) -> float:
        """The value of the one sample that begins so."""
        for line in self.ask("/metrics")[1].splitlines():
            if line.startswith(name + " ") or line.startswith(name + "{") and line.split("} ")[0] + "}" == name:
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no {name}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        return code

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def totals(store: str) -> dict[tuple, tuple]:
    """All columns of all job cells of a store that is not in use, by job name, model, length and time of the slot."""
    with contextlib.closing(sqlite3.connect(f"file:{store}/flopsight.db?mode=ro", uri=True)) as database:
        cells = database.execute(
            "SELECT coalesce(j.job, ''), coalesce(j.namespace, ''), m.model_raw, c.* FROM job_cells c "
            "JOIN models m ON m.id = c.model_id LEFT JOIN jobs j ON j.id = c.job_id")
        names = [column[0] for column in cells.description]
        left_out = {names.index("job_id"), names.index("model_id")}  # numbers in the order of arrival
        return {tuple(row[:5]): tuple(v for i, v in enumerate(row) if i > 4 and i not in left_out) for row in cells}


def simulate(url: str, *arguments: str) -> subprocess.Popen:
    """A load into url, as fast as it is taken; not waited for."""
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", BINARY, "simulate", "--remote-write", url + "/api/v1/write", "--quiet", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean)


def load(url: str, *arguments: str) -> tuple[int, str, str]:
    """The same, waited for: exit code, stdout, stderr."""
    with simulate(url, *arguments) as process:
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

"""Real servers for end-to-end tests: Debian's prometheus 2.42, victoria-metrics 1.79 and prometheus-alertmanager 0.25.

Everything listens on 127.0.0.1, on ports that the kernel chose, with data in temporary folders.
Each server is a context manager, and is stopped at interpreter exit as well:

    history = [Series("m", {"gpu": "0"}, [(1_700_000_000_000, 1.5), ...])]
    with Prometheus(history=history) as prometheus:
        print(prometheus.url)               # "http://127.0.0.1:41873", ready for queries
    with VictoriaMetrics() as victoria:
        victoria.load(history)              # returns when the samples can be queried
    with Exporter(lambda: "m 1\n") as exporter, Prometheus(scrape=[exporter]) as prometheus:
        prometheus.wait_for("m")            # scraped once a second
"""

import atexit
import contextlib
import http.server
import json
import math
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Callable, Iterable, NamedTuple

START_SECONDS = 60  # for a server to become ready, on a machine that is busy building
POLL_SECONDS = 0.05


class Series(NamedTuple):
    """One series of known history. points: (Unix milliseconds, value), ascending."""

    name: str
    labels: dict[str, str]
    points: Iterable[tuple[int, float]]


def free_port() -> int:
    """A port that the kernel says is free on 127.0.0.1 (it may be taken a moment later)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition: Callable[[], object], what: str, seconds: float = START_SECONDS):
    """Polls until condition() is true and returns its value; TimeoutError naming `what` otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} after {seconds:g} s")
        time.sleep(POLL_SECONDS)


def fetch(url: str, data: bytes | None = None, seconds: float = 60) -> tuple[int, bytes]:
    """GET, or POST of data: (status, body). Proxies of the environment are not used."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, data=data), timeout=seconds) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


# ---- history as text --------------------------------------------------------------------------


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def _series_text(series: Series) -> str:
    escape = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    labels = ",".join(f'{k}="{v.translate(escape)}"' for k, v in series.labels.items())
    return f"{series.name}{{{labels}}}"


def prometheus_lines(history: Iterable[Series]) -> Iterable[str]:
    """Text format lines with timestamps in milliseconds (exporters, VictoriaMetrics' import)."""
    for series in history:
        head = _series_text(series)
        for unix_ms, value in series.points:
            yield f"{head} {_number(value)} {unix_ms}\n"


def openmetrics_lines(history: Iterable[Series]) -> Iterable[str]:
    """OpenMetrics lines with timestamps in seconds, closed by # EOF (promtool)."""
    for series in history:
        head = _series_text(series)
        for unix_ms, value in series.points:
            yield f"{head} {_number(value)} {unix_ms // 1000}.{unix_ms % 1000:03d}\n"
    yield "# EOF\n"


# ---- servers ----------------------------------------------------------------------------------


class Server:
    """A child process with a temporary folder, that answers HTTP. Ready once the constructor returns.

    url     "http://127.0.0.1:PORT"
    folder  the temporary folder; removed by stop()
    Start it from a thread that outlives it: the kernel kills the child when that thread dies, so that
    nothing is left behind even by a test that was killed.
    """

    program = ""
    health_path = ""

    def __init__(self, extra_arguments: Iterable[str] = ()):
        self.folder = tempfile.mkdtemp(prefix=f"flopsight-{self.program}-")
        self.url = ""
        self._process = None
        atexit.register(self.stop)
        try:
            self._prepare()
            self._start(list(extra_arguments))
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        """Ends the process and removes its folder. May be called again."""
        atexit.unregister(self.stop)
        self._end_process()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pause(self):
        """Ends the process; its data stay."""
        self._end_process()

    def resume(self):
        """Starts it again on the same port and data. Returns when it is ready."""
        self._launch(int(self.url.rsplit(":", 1)[1]), self._extra_arguments)
        if wait_until(self._ready_or_dead, f"{self.program} on {self.url}") != "ready":
            raise RuntimeError(f"{self.program} did not start again:\n{self.log()[-4000:]}")

    def log(self) -> str:
        """What the server has printed so far."""
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
                return file.read()
        return ""

    def get(self, path: str, **parameters: str) -> tuple[int, bytes]:
        """GET url + path: (status, body)."""
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return fetch(self.url + path + query)

    def query(self, promql: str, **parameters: str) -> list[dict]:
        """The "result" of an instant query; raises on an error answer."""
        status, body = self.get("/api/v1/query", query=promql, **parameters)
        if status != 200:
            raise RuntimeError(f"{promql}: HTTP {status} {body[:300]!r}")
        return json.loads(body)["data"]["result"]

    def wait_for(self, promql: str, seconds: float = START_SECONDS) -> list[dict]:
        """Polls until the instant query has a non-empty result, and returns that."""
        return wait_until(lambda: self.query(promql), f"result of {promql}", seconds)

    def _prepare(self):
        pass

    def _arguments(self, port: int) -> list[str]:
        raise NotImplementedError

    def _launch(self, port: int, extra_arguments: list[str]):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", self.program]
                + self._arguments(port) + extra_arguments,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=self.folder)
        self.url = f"http://127.0.0.1:{port}"
        self._extra_arguments = extra_arguments

    def _start(self, extra_arguments: list[str]):
        for _ in range(5):  # the port may have been taken since free_port()
            self._launch(free_port(), extra_arguments)
            if wait_until(self._ready_or_dead, f"{self.program} on {self.url}") == "ready":
                return
            if "address already in use" not in self.log():
                break
        raise RuntimeError(f"{self.program} did not start:\n{self.log()[-4000:]}")

    def _ready_or_dead(self) -> str:
        if self._process.poll() is not None:
            return "dead"
        try:
            status, _ = fetch(self.url + self.health_path, seconds=5)
        except OSError:
            return ""
        # A stranger on the same port would answer too, but then ours has died or is about to.
        return "ready" if status == 200 and self._process.poll() is None else ""

    def _end_process(self):
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Prometheus(Server):
    """Prometheus with its own data folder.

    history          series put into blocks by promtool before the start; any age, kept for ever
    scrape           Exporters (or "host:port" texts) scraped every scrape_seconds as job "exporter"
    configuration    the whole prometheus.yml instead, where scrape is not enough
    extra_arguments  e.g. ["--query.max-samples=1000"]
    """

    program = "prometheus"
    health_path = "/-/ready"

    def __init__(self, history: Iterable[Series] = (), scrape: Iterable["Exporter | str"] = (),
                 scrape_seconds: int = 1, configuration: str | None = None,
                 extra_arguments: Iterable[str] = ()):
        self._history = history
        self._configuration = configuration
        if configuration is None:
            targets = [str(getattr(target, "address", target)) for target in scrape]
            # JSON is YAML.
            self._configuration = json.dumps({
                "global": {"scrape_interval": f"{scrape_seconds}s",
                           "scrape_timeout": f"{scrape_seconds}s"},
                "scrape_configs": [{"job_name": "exporter",
                                    "static_configs": [{"targets": targets}]}] if targets else [],
            })
        super().__init__(extra_arguments)

    def _prepare(self):
        with open(os.path.join(self.folder, "prometheus.yml"), "w", encoding="utf-8") as file:
            file.write(self._configuration)
        text = os.path.join(self.folder, "history.om")
        with open(text, "w", encoding="utf-8") as file:
            file.writelines(openmetrics_lines(self._history))
        if os.path.getsize(text) > len("# EOF\n"):
            made = subprocess.run(
                ["promtool", "tsdb", "create-blocks-from", "openmetrics", text,
                 os.path.join(self.folder, "data")],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if made.returncode != 0:
                raise RuntimeError(f"promtool: {made.stdout[-4000:]}")
        os.remove(text)

    def _arguments(self, port: int) -> list[str]:
        return [
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ]


class VictoriaMetrics(Server):
    """A single-node VictoriaMetrics. Its answers leave out the last 30 s (-search.latencyOffset)."""

    program = "victoria-metrics"
    health_path = "/health"

    def load(self, history: Iterable[Series]):
        """Imports history and returns when it can be queried."""
        self.load_text("".join(prometheus_lines(history)))

    def load_text(self, lines: str):
        """The same of lines of the text format with timestamps."""
        status, body = fetch(self.url + "/api/v1/import/prometheus", lines.encode())
        if status not in (200, 204):
            raise RuntimeError(f"import: HTTP {status} {body[:300]!r}")
        # Without it, samples become visible about a second later.
        status, body = self.get("/internal/force_flush")
        if status != 200:
            raise RuntimeError(f"force_flush: HTTP {status} {body[:300]!r}")

    def _arguments(self, port: int) -> list[str]:
        return [
            f"-storageDataPath={self.folder}/data",
            "-retentionPeriod=100y",
            f"-httpListenAddr=127.0.0.1:{port}",
        ]


class OnPrometheus:
    """For tests that ask the same of each kind of server."""

    def serve(self, history):
        return Prometheus(history=history)


class OnVictoriaMetrics:
    def serve(self, history):
        server = VictoriaMetrics()
        server.load(history)
        return server


class Alertmanager(Server):
    """An Alertmanager that tells `webhook` (a URL) of what fires and ends, within a second, and talks to no other."""

    program = "prometheus-alertmanager"
    health_path = "/-/ready"

    def __init__(self, webhook: str = ""):
        receiver = {"name": "all", "webhook_configs": [{"url": webhook, "send_resolved": True}] if webhook else []}
        # JSON is YAML.
        self._configuration = json.dumps({
            "global": {"resolve_timeout": "5m"},
            "route": {"receiver": "all", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"},
            "receivers": [receiver]})
        super().__init__()

    def alerts(self) -> list[dict]:
        """Those that fire, with labels, annotations, startsAt, endsAt."""
        status, body = self.get("/api/v2/alerts")
        if status != 200:
            raise RuntimeError(f"alerts: HTTP {status} {body[:300]!r}")
        return json.loads(body)

    def _prepare(self):
        with open(os.path.join(self.folder, "alertmanager.yml"), "w", encoding="utf-8") as file:
            file.write(self._configuration)

    def _arguments(self, port: int) -> list[str]:
        return [
            f"--config.file={self.folder}/alertmanager.yml",
            f"--storage.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]


class Exporter:
    """An exporter whose text is text() at each request, served at /metrics from a thread.

    address   "127.0.0.1:PORT"
    url       "http://127.0.0.1:PORT/metrics"
    requests  how many times it has been scraped
    authorization  the header that it demands; None: none
    text may be replaced at any time; if it raises or returns None, the answer is HTTP 503.
    """

    def __init__(self, text: Callable[[], str | None],
                 content_type: str = "text/plain; version=0.0.4; charset=utf-8"):
        self.text = text
        self.requests = 0
        self.authorization = None
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                exporter.requests += 1
                if exporter.authorization is not None and self.headers.get("Authorization") != exporter.authorization:
                    self.send_error(401)
                    return
                try:
                    body = exporter.text() if self.path.split("?")[0] == "/metrics" else None
                except Exception:  # the test's callable stands for an exporter that fails
                    body = None
                data = (body if body is not None else "no metrics here\n").encode()
                self.send_response(200 if body is not None else 503)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *unused):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.address}/metrics"
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=POLL_SECONDS), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        """Stops answering and closes the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

"""What `flopsight report` says when there is no answer: one line, exit code 2, nothing on standard output. And
credentials and certificates, right and wrong, at a proxy in front of a real server.
"""

import base64
import gzip
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY, SECONDS, report, run_report, standard_fleet, window
from servers import POLL_SECONDS, Prometheus, Series, VictoriaMetrics, free_port

SECRET = "s3cret-Word"


class Proxy:
    """Hands requests that allowed(headers) on to `upstream`, and refuses others. tls: an SSLContext."""

    def __init__(self, upstream, allowed, tls=None, refusal=(401, b"not you\n")):
        class Handler(http.server.BaseHTTPRequestHandler):
            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                kind, (status, data) = "text/plain", refusal
                if allowed(self.headers):
                    kept = {k: v for k, v in self.headers.items() if k.lower() == "content-type"}
                    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                    try:
                        with opener.open(urllib.request.Request(upstream + self.path, body, kept,
                                                                method=self.command), timeout=60) as answer:
                            status, kind, data = answer.status, answer.headers["Content-Type"], answer.read()
                    except urllib.error.HTTPError as error:
                        status, kind, data = error.code, error.headers["Content-Type"], error.read()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = forward

            def log_message(self, *unused):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # a client that does not trust the certificate hangs up

        self._server = Quiet(("127.0.0.1", 0), Handler)
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(POLL_SECONDS), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class ReportFails(unittest.TestCase):
    def check_failure(self, *arguments, said=()):
        run = run_report(*arguments)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertTrue(run.stderr.startswith("flopsight"), run.stderr)
        self.assertEqual((run.stderr.count("\n"), run.stderr[-1]), (1, "\n"), run.stderr)
        for text in said:
            self.assertIn(text, run.stderr)
        self.assertNotIn(SECRET, run.stderr)
        return run.stderr


class TooLittleMemory(unittest.TestCase):
    def test_it_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.prom.gz")
            with gzip.open(path, "wb", compresslevel=1) as file:
                for _ in range(400):
                    file.write(b"# nothing\n" * 100_000)
            done = subprocess.run(["prlimit", f"--as={200 << 20}", BINARY, "report", "--file", path], capture_output=True, text=True,
                                  timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("out of memory", done.stderr)


class NoAnswer(ReportFails):
    def test_nothing_listens(self):
        address = f"127.0.0.1:{free_port()}"
        for route in ([], ["--raw"]):
            self.check_failure("--prometheus", f"http://{address}", *route, said=[address])

    def test_an_exporter_is_no_prometheus(self):
        # What an exporter says to /api/v1/…: not found, or its only page.
        for refusal in ((404, b"404 page not found\n"), (200, b"DCGM_FI_DEV_SM_CLOCK 1\n")):
            with Proxy("", lambda headers: False, refusal=refusal) as exporter:
                for url in (exporter.url, exporter.url + "/metrics"):
                    self.check_failure("--prometheus", url, said=["expected a Prometheus HTTP API", exporter.address])

    def test_a_path_that_is_not_there(self):
        with Prometheus() as server:
            self.check_failure("--prometheus", server.url + "/prefix", said=["/prefix"])

    def test_a_url_that_is_none(self):
        for url in ("", "prom", "ftp://127.0.0.1", "http://"):
            self.check_failure("--prometheus", url)

    def test_an_empty_server(self):
        for server in (Prometheus(), VictoriaMetrics()):
            with server:
                for route in ([], ["--raw"], ["--since", "1h"]):
                    self.check_failure("--prometheus", server.url, *route, said=["no metric of a GPU exporter"])

    def test_a_server_without_gpu_metrics(self):
        history = [Series("node_load1", {"instance": "n1"}, [(1_767_225_600_000 + i, 1.0) for i in range(0, 9000, 15)])]
        loaded = VictoriaMetrics()
        loaded.load(history)
        for server in (Prometheus(history=history), loaded):
            with server:
                self.check_failure("--prometheus", server.url, *window(), said=["no metric of a GPU exporter"])
                self.check_failure("--prometheus", server.url, "--since", "1h", said=["no metric of a GPU exporter"])

    def test_a_match_that_nothing_fits(self):
        with Prometheus(history=standard_fleet().series) as server:
            for route in ([], ["--raw"]):
                self.check_failure("--prometheus", server.url, *window(), "--match", 'cluster="none"', *route)

    def test_a_match_that_is_no_matcher(self):
        with Prometheus(history=standard_fleet().series) as server:
            for route in ([], ["--raw"]):
                self.check_failure("--prometheus", server.url, *window(), "--match", 'cluster="', *route)


class Credentials(ReportFails):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="flopsight-credentials-")
        cls.fleet = standard_fleet()
        cls.server = Prometheus(history=cls.fleet.series)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        shutil.rmtree(cls.folder)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check_answer(self, url, *arguments):
        answer = report(self, "--prometheus", url, *window(), *arguments)
        self.assertAlmostEqual(answer["fleet"]["gpu_hours_allocated"], self.fleet.gpu_count * SECONDS / 3600,
                               delta=1e-6)
        self.assertNotIn(SECRET, str(answer))

    def test_bearer_token(self):
        right, wrong = self.file("right", SECRET + "\n"), self.file("wrong", SECRET + "2\n")
        with Proxy(self.server.url, lambda h: h["Authorization"] == "Bearer " + SECRET) as proxy:
            for route in ([], ["--raw"]):
                self.check_answer(proxy.url, "--bearer-token-file", right, *route)
            for arguments in ([], ["--bearer-token-file", wrong]):
                self.check_failure("--prometheus", proxy.url, *window(), *arguments, said=["401"])
            self.check_failure("--prometheus", proxy.url, "--bearer-token-file", self.folder + "/none", said=["none"])

    def test_basic(self):
        right, wrong = self.file("right", SECRET + "\n"), self.file("wrong", SECRET + "2\n")
        expected = "Basic " + base64.b64encode(f"ada:{SECRET}".encode()).decode()
        with Proxy(self.server.url, lambda h: h["Authorization"] == expected) as proxy:
            self.check_answer(proxy.url, "--basic-user", "ada", "--basic-password-file", right)
            self.check_answer(f"http://ada:{SECRET}@{proxy.address}")
            for user, path in (("ada", wrong), ("bob", right)):
                self.check_failure("--prometheus", proxy.url, *window(), "--basic-user", user,
                                   "--basic-password-file", path, said=["401"])
            self.check_failure("--prometheus", f"http://ada2:{SECRET}@{proxy.address}", *window(), said=["401"])
            self.check_failure("--prometheus", proxy.url, "--basic-user", "ada", said=["--basic-password-file"])

    def test_a_header_of_a_tenant(self):
        with Proxy(self.server.url, lambda h: h["X-Scope-OrgID"] == "a") as proxy:
            self.check_answer(proxy.url, "--header", "X-Scope-OrgID: a")
            self.check_failure("--prometheus", proxy.url, *window(), "--header", "X-Scope-OrgID: b", said=["401"])
            self.check_failure("--prometheus", proxy.url, "--header", "X-Scope-OrgID", said=["Name: value"])

    def certificate(self, name, address):
        """(certificate, key): signed by itself."""
        paths = [os.path.join(self.folder, name + suffix) for suffix in (".pem", ".key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=" + address, "-out", paths[0], "-keyout", paths[1]],
                       check=True, capture_output=True)
        return paths

    def test_tls(self):
        certificate, key = self.certificate("server", "IP:127.0.0.1")
        stranger, _ = self.certificate("stranger", "IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        token = self.file("right", SECRET + "\n")
        with Proxy(self.server.url, lambda h: h["Authorization"] == "Bearer " + SECRET, context) as proxy:
            bearer = ["--bearer-token-file", token]
            self.check_answer(proxy.url, "--ca-file", certificate, *bearer)
            self.check_answer(proxy.url, "--insecure-skip-verify", *bearer)
            for arguments in ([], ["--ca-file", stranger], ["--ca-file", self.folder + "/none.pem"]):
                self.check_failure("--prometheus", proxy.url, *window(), *arguments, *bearer)
            self.check_failure("--prometheus", proxy.url, *window(), "--ca-file", certificate, said=["401"])
            plain = "http://" + proxy.address
            self.check_failure("--prometheus", plain, *window(), *bearer)

    def test_a_certificate_of_another_name(self):
        certificate, key = self.certificate("other", "DNS:prometheus.example")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with Proxy(self.server.url, lambda h: True, context) as proxy:
            self.check_failure("--prometheus", proxy.url, *window(), "--ca-file", certificate)
            self.check_answer(proxy.url, "--ca-file", certificate, "--server-name", "prometheus.example")


if __name__ == "__main__":
    unittest.main(verbosity=2)

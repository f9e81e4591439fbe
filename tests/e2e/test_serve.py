"""`flopsight serve` with its neighbours: Prometheus and vmagent write to it, Prometheus scrapes it, users and certificates change."""

import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.request

import servers
from fleet import BINARY
from service import LOAD_END, Service, load, simulate

# Slots are closed within seconds, but not before what a client holds back in its queues is there.
QUICK = ("--rollup-slot", "10s", "--rollup-late", "5s")


# 0.8 of 1,830 MHz with a tensor activity of 0.5: what each whole millisecond delivers is a whole number of the steps that the
# store keeps, so the ratio is exact however little of a slot was measured.
CLOCK, OFU = 1464, 0.4


def exporter_text(gpus: int = 2, tensor: float = 0.5) -> str:
    lines = []
    for gpu in range(gpus):
        labels = (f'gpu="{gpu}",UUID="GPU-0000000{gpu}-aaaa-bbbb-cccc-000000000000",modelName="NVIDIA H100 80GB HBM3",'
                  f'Hostname="n0",exported_pod="train-0",exported_namespace="research"')
        lines += [f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} {CLOCK}\n", f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {tensor}\n",
                  f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 50\n", f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 500\n"]
    return "".join(lines) + 'node_load1 0.5\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'


def job_of(service: Service, name: str = "train-0"):
    for job in service.json("/api/v1/jobs")["jobs"]:
        if job["job"] == name and job["gpu_hours_allocated"] > 0:
            return job
    return None


class RemoteWrite(unittest.TestCase):
    def check_job(self, service: Service):
        job = servers.wait_until(lambda: job_of(service), "the job in /api/v1/jobs", 120)
        self.assertEqual((job["namespace"], job["gpu_count"]), ("research", 2))
        self.assertAlmostEqual(job["ofu_ratio"], OFU, places=6)

    def test_prometheus_writes_and_nothing_fails(self):
        with Service(*QUICK) as service, servers.Exporter(exporter_text) as exporter:
            configuration = json.dumps({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [{"job_name": "exporter", "static_configs": [{"targets": [exporter.address]}]}],
                "remote_write": [{"url": service.url + "/api/v1/write", "queue_config": {"batch_send_deadline": "1s"}}]})
            with servers.Prometheus(configuration=configuration) as prometheus:
                self.check_job(service)
                metrics = prometheus.get("/metrics")[1].decode()
            for name in ("prometheus_remote_storage_samples_failed_total", "prometheus_remote_storage_samples_dropped_total",
                         "prometheus_remote_storage_samples_retried_total"):
                values = [float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", metrics, re.M)]
                self.assertEqual(values, [0.0], name)
            self.assertGreater(service.metric('flopsight_samples_dropped_total{reason="unwanted_metric"}'), 0)
            self.assertEqual(service.stop(), 0, service.log())

    def test_prometheus_catches_up_after_an_outage_and_nothing_fails(self):
        with Service(*QUICK) as service, servers.Exporter(exporter_text) as exporter:
            self.assertEqual(service.stop(), 0)
            port = servers.free_port()
            configuration = json.dumps({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [{"job_name": "exporter", "static_configs": [{"targets": [exporter.address]}]}],
                "remote_write": [{"url": f"http://127.0.0.1:{port}/api/v1/write",
                                  "queue_config": {"min_backoff": "30ms", "max_backoff": "200ms", "batch_send_deadline": "1s"}}]})
            with servers.Prometheus(configuration=configuration) as prometheus:
                servers.wait_until(lambda: exporter.requests >= 15, "scrapes during the outage")
                service.listen = f"127.0.0.1:{port}"
                service.start()
                self.check_job(service)
                metrics = prometheus.get("/metrics")[1].decode()
            failed = re.findall(r"^prometheus_remote_storage_samples_failed_total{.*} (\S+)$", metrics, re.M)
            self.assertEqual(failed, ["0"])
            self.assertEqual(service.metric('flopsight_samples_dropped_total{reason="too_old"}'), 0)

    def test_vmagent_writes_and_nothing_is_dropped(self):
        with Service(*QUICK) as service, servers.Exporter(exporter_text) as exporter, tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "scrape.yml"), "w", encoding="utf-8") as file:
                json.dump({"global": {"scrape_interval": "1s"},
                           "scrape_configs": [{"job_name": "exporter", "static_configs": [{"targets": [exporter.address]}]}]}, file)
            port = servers.free_port()
            with open(os.path.join(folder, "log"), "wb") as log, subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "vmagent", f"-promscrape.config={folder}/scrape.yml",
                     f"-remoteWrite.url={service.url}/api/v1/write", f"-remoteWrite.tmpDataPath={folder}/data",
                     f"-httpListenAddr=127.0.0.1:{port}"], stdout=log, stderr=log) as agent:
                try:
                    self.check_job(service)
                    metrics = servers.fetch(f"http://127.0.0.1:{port}/metrics")[1].decode()
                finally:
                    agent.terminate()
            dropped = re.findall(r"^vmagent_remotewrite_packets_dropped_total{.*} (\S+)$", metrics, re.M)
            self.assertEqual(dropped, ["0"])
            self.assertEqual(re.findall(r'^vmagent_remotewrite_requests_total{.*status_code="[45]..".*} [1-9]', metrics, re.M), [])


class Metrics(unittest.TestCase):
    def test_promtool_finds_nothing_and_prometheus_scrapes_the_ratio_of_a_job(self):
        with servers.Exporter(exporter_text) as exporter, \
                Service(*QUICK, "--scrape-targets", exporter.address, "--scrape-interval", "1s", "--scrape-timeout", "1s") as service:
            servers.wait_until(lambda: "flopsight_job_ofu_ratio{" in service.ask("/metrics")[1], "a ratio", 120)
            checked = subprocess.run(["promtool", "check", "metrics"], input=service.ask("/metrics")[1], text=True,
                                     capture_output=True, timeout=60, check=False)
            self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))
            with servers.Prometheus(scrape=[service.url.removeprefix("http://")]) as prometheus:
                found = prometheus.wait_for("flopsight_job_ofu_ratio")
                self.assertEqual(len(prometheus.query("up == 1")), 1)
            self.assertEqual((found[0]["metric"]["exported_job"], found[0]["metric"]["namespace"]), ("train-0", "research"))
            self.assertAlmostEqual(float(found[0]["value"][1]), OFU, places=6)


TOKENS = "tokens:\n  - {{token: {token}, roles: [admin]}}\n"
FIRST, SECOND = "the-first-token-01", "the-second-token-2"


class Reload(unittest.TestCase):
    def test_a_new_token_works_the_old_one_stops_and_a_wrong_file_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokens.yml")

            def write(text):
                with open(path + ".new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.rename(path + ".new", path)

            def status(token):
                return service.ask("/api/v1/jobs", headers={"Authorization": "Bearer " + token})[0]

            write(TOKENS.format(token=FIRST))
            with Service("--tokens-file", path) as service:
                self.assertEqual((status(FIRST), status(SECOND), service.ask("/api/v1/jobs")[0]), (200, 401, 401))
                write(TOKENS.format(token=SECOND))
                self.assertEqual((status(FIRST), status(SECOND)), (200, 401))
                service.hang_up()
                servers.wait_until(lambda: status(SECOND) == 200, "the new token")
                self.assertEqual(status(FIRST), 401)
                said = service.log()
                write("tokens: [\n")
                service.hang_up()
                line = service.wait_for_log("configuration not reloaded: .*")
                self.assertIn("tokens.yml", line)
                self.assertEqual(service.log()[len(said):].count("\n"), 1)
                self.assertEqual((status(FIRST), status(SECOND)), (401, 200))
                self.assertEqual(service.stop(), 0)


    def test_logs_and_slurm_are_asked_anew_and_what_needs_a_restart_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(f"{folder}/{name}.new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.rename(f"{folder}/{name}.new", f"{folder}/{name}")

            for name in ("a", "b"):
                write(name + ".log", "")
            write("logs.yml", f"training-logs:\n  - {{path: {folder}/a.log, job: '101'}}\n")
            config = "listen: 127.0.0.1:0\n"
            write("serve.yml", config)
            with Service("--config", folder + "/serve.yml", "--rollup-slot", "10s") as service:
                self.assertEqual(service.metric("flopsight_training_logs"), 0)
                config += f"training-logs: {folder}/logs.yml\nrollup: {{late: 7s}}\n"
                write("serve.yml", config)
                service.hang_up()
                line = service.wait_for_log("configuration reloaded.*")
                self.assertTrue(line.endswith("configuration reloaded; changed, but as before until a restart: rollup.late"), line)
                servers.wait_until(lambda: service.metric("flopsight_training_logs") == 1, "the log to be followed")
                # The file of sources is another one under the same name.
                write("logs.yml", f"training-logs:\n  - {{path: '{folder}/*.log', job: '101'}}\n")
                service.hang_up()
                servers.wait_until(lambda: service.metric("flopsight_training_logs") == 2, "both logs to be followed")
                self.assertNotIn("flopsight_slurm_polls_total", service.ask("/metrics")[1])
                write("serve.yml", config + f"slurm: {{commands: true, cluster: alpha, command-folder: {folder}, interval: 1s}}\n")
                service.hang_up()
                service.wait_for_log("Slurm: .*no such program")
                write("serve.yml", "listen: 127.0.0.1:0\n")
                service.hang_up()
                servers.wait_until(lambda: service.metric("flopsight_training_logs") == 0, "no log to be followed")
                self.assertNotIn("answers again", service.log())
                self.assertEqual(service.stop(), 0)


def certificate(folder: str, name: str) -> str:
    """A throw-away certificate for 127.0.0.1 at folder/cert.pem, with its key beside it; the path of a copy."""
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem"],
        capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(made.stderr)
    with open(folder + "/cert.pem", encoding="utf-8") as file, open(f"{folder}/{name}.pem", "w", encoding="utf-8") as copy:
        copy.write(file.read())
    return f"{folder}/{name}.pem"


class Tls(unittest.TestCase):
    def test_certificates_and_their_change(self):
        with tempfile.TemporaryDirectory() as folder:
            first = certificate(folder, "first")
            web = os.path.join(folder, "web.yml")
            with open(web, "w", encoding="utf-8") as file:
                file.write("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n  min_version: TLS13\n")
            with Service("--web-config", web, certificate=first) as service:
                self.assertTrue(service.url.startswith("https://"))
                self.assertEqual(service.ask("/healthz")[0], 200)
                with self.assertRaises(OSError):
                    urllib.request.urlopen(service.url + "/healthz", timeout=20)  # nobody vouches for it
                with self.assertRaises((OSError, ValueError)):
                    urllib.request.urlopen(service.url.replace("https", "http") + "/healthz", timeout=20)
                service._certificate = certificate(folder, "second")
                service.hang_up()
                service.wait_for_log("configuration reloaded")
                self.assertEqual(service.ask("/healthz")[0], 200)
                with open(folder + "/cert.pem", "w", encoding="utf-8") as file:
                    file.write("no certificate\n")
                service.hang_up()
                service.wait_for_log("configuration not reloaded: .*cert.pem")
                self.assertEqual(service.ask("/healthz")[0], 200)
                self.assertEqual(service.stop(), 0)

    def test_beyond_loopback_without_tls_it_does_not_start(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate(folder, "x")
            web = os.path.join(folder, "web.yml")
            with open(web, "w", encoding="utf-8") as file:
                file.write("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n")
            for more in ((), ("--web-config", web)):  # no TLS; TLS and no users
                done = subprocess.run([BINARY, "serve", "--listen", "0.0.0.0:0", "--store", folder + "/store", *more],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
                self.assertIn("not loopback", done.stderr)
                self.assertFalse(os.path.exists(folder + "/store"))


class SlowClients(unittest.TestCase):
    def test_a_thousand_of_them_keep_nobody_from_writing(self):
        with Service() as service, contextlib.ExitStack() as stack:
            host, port = service.url.removeprefix("http://").split(":")

            def slow_client(i: int) -> socket.socket:
                connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
                # Half a head, or a body that does not go on.
                connection.sendall(b"GET /heal" if i % 2 else b"POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Type: "
                                   b"application/x-protobuf\r\nContent-Length: 1000\r\n\r\nx")
                return connection

            slow = [slow_client(i) for i in range(1_000)]
            self.assertGreaterEqual(service.metric("flopsight_http_connections"), 500)
            sender = simulate(service.url, "--scenario", "steady", "--gpus", "64", "--samples", "400", "--metrics", "10",
                              "--start", str(LOAD_END - 6_000))
            asked = 0
            while sender.poll() is None:
                self.assertEqual(service.ask("/healthz")[0], 200)
                for _ in range(20):
                    i = asked % len(slow)
                    try:
                        slow[i].sendall(b"x")
                    except OSError:  # cut for being slow, where the load took long: another comes in its place
                        slow[i].close()
                        slow[i] = slow_client(i)
                    asked += 1
            out, err = sender.communicate()
            self.assertEqual((sender.returncode, err), (0, ""), out)
            self.assertGreater(asked, 0)


class Demo(unittest.TestCase):
    def test_with_nothing_on_the_machine_every_answer_says_simulated(self):
        with Service("--demo", *QUICK) as service:
            service.wait_for_log("SIMULATED")
            job = servers.wait_until(lambda: service.json("/api/v1/jobs")["jobs"], "a job", 120)[0]
            for path in ("/api/v1/jobs", "/api/v1/jobs/" + job["id"], f"/api/v1/jobs/{job['id']}/series", f"/api/v1/jobs/{job['id']}/gpus"):
                self.assertIs(service.json(path)["simulated"], True, path)
            self.assertTrue(service.json("/api/v1/fleet")["source"].startswith("SIMULATED"))
            self.assertEqual(service.metric("flopsight_simulated"), 1)
            # Stopped, and started as the real service: the cells are still there, and still say what they are.
            self.assertEqual(service.stop(), 0)
            service.arguments.remove("--demo")
            service.start()
            self.assertIs(service.json("/api/v1/jobs")["simulated"], True)


if __name__ == "__main__":
    unittest.main()

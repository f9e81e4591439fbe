"""`flopsight validate` by the real program: the fake CUDA library stands for driver and cublasLt, a server for dcgm-exporter.

The fake executes 600 TFLOP/s whatever the product; the exporter says what such a GPU's counters would say. So the experiment must find
that OFU is above MFU by the tiles' overhead, and nothing else.
"""

import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(__file__))
from agent import LIBRARY, FakeDriver, gpu

BINARY = os.environ["FLOPSIGHT_BINARY"]
FAKE = os.path.join(os.environ["FLOPSIGHT_BUILD_DIR"], "libfake_cuda.so")
UUID = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0"
EXECUTED = 6e14
CLOCK_MHZ = 1500
TENSOR = EXECUTED / 989.4e12 * 1830 / CLOCK_MHZ


def labels(uuid: str) -> str:
    return f'gpu="0",UUID="{uuid}",modelName="NVIDIA H100 80GB HBM3",Hostname="host",DCGM_FI_DRIVER_VERSION="580.1"'


def exposition(uuid: str = UUID, tensor: bool = True) -> str:
    text = f"DCGM_FI_DEV_SM_CLOCK{{{labels(uuid)}}} {CLOCK_MHZ}\n"
    return text + (f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels(uuid)}}} {TENSOR:.6f}\n" if tensor else "")


@contextlib.contextmanager
def exporter(text: str):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *unused):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Validate(unittest.TestCase):
    def run_program(self, *arguments: str, script: dict | None = None, nvml: str | None = None) -> subprocess.CompletedProcess:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, FakeDriver(nvml or "") as driver:
            file.write("".join(f"{key} {value}\n" for key, value in {"real_time": 1, **(script or {})}.items()))
            file.flush()
            environment = {**os.environ, **driver.environment, "FLOPSIGHT_FAKE_CUDA": file.name}
            del environment["FLOPSIGHT_FAKE_NVML_CLOCK"]  # its time is the machine's
            return subprocess.run([BINARY, "validate", "--cuda-library", FAKE, "--cublaslt-library", FAKE, *arguments],
                                  capture_output=True, text=True, timeout=300, check=False, env=environment)

    def measured(self, *arguments: str, script: dict | None = None) -> dict:
        with exporter(exposition()) as url:
            done = self.run_program("--exporter", url, "--interval", "20ms", "--settle", "0", "--seconds", "100ms", "--format", "json", *arguments, script=script)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, expected: str, *arguments: str, script: dict | None = None, nvml: str | None = None):
        done = self.run_program(*arguments, script=script, nvml=nvml)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(expected, done.stderr)

    def test_time_and_counters_agree_once_tiles_are_taken_out(self):
        answer = self.measured("--precision", "bf16", "--sizes", "1024:2048", "--unaligned", "2")
        self.assertFalse(answer["simulated"])
        self.assertEqual(answer["gpu"], "H100-SXM5-80GB")
        self.assertEqual(answer["uuid"], UUID)
        self.assertEqual(answer["driver_version"], "580.1")
        self.assertEqual(answer["library_version"], "13.1.0")
        self.assertEqual({point["tile"] for point in answer["points"]}, {"128x256x64"})
        self.assertEqual({point["tile_source"] for point in answer["points"]}, {"library"})
        self.assertEqual(len(answer["points"]), 5)
        for point in answer["points"]:
            self.assertAlmostEqual(point["ofu_ratio"], EXECUTED / 989.4e12, places=5)
            self.assertAlmostEqual(point["ofu_adjusted_ratio"], point["mfu_ratio"], places=3)
            self.assertGreaterEqual(point["samples"], 3)
        self.assertGreater(answer["agreement"][0]["ofu"]["error_max_ratio"], 0.01)
        self.assertEqual(answer["agreement"][0]["ofu_adjusted"]["within_2_points_ratio"], 1)

    def test_counters_come_from_nvml_where_no_exporter_is_named(self):
        driver = gpu(0, uuid="GPU-99999999-0000-0000-0000-000000000000") + gpu(1, uuid=UUID, sm_clock_mhz=CLOCK_MHZ, **{"gpm 5": 100 * TENSOR})
        done = self.run_program("--nvml-library", LIBRARY, "--interval", "20ms", "--settle", "0", "--seconds", "200ms", "--precision", "bf16", "--sizes", "1024:1024",
                                "--unaligned", "1", "--format", "json", nvml=driver)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["counters"], "NVML GPM")
        self.assertEqual(answer["driver_version"], "550.54.15")
        for point in answer["points"]:
            self.assertAlmostEqual(point["tensor_active_ratio"], TENSOR, places=6)
            self.assertAlmostEqual(point["ofu_adjusted_ratio"], point["mfu_ratio"], places=3)
            self.assertGreaterEqual(point["samples"], 2)

    def test_a_gpu_of_which_nvml_says_nothing_is_one_line(self):
        nvml = ("--nvml-library", LIBRARY)
        self.refused("NVML has no tensor activity of " + UUID, *nvml, nvml=gpu(0, uuid=UUID, gpm="no"))
        self.refused("NVML lists no GPU " + UUID, *nvml, nvml=gpu(0))
        self.refused("is divided into MIG instances", *nvml, nvml=gpu(0, uuid=UUID, mig="on"))
        self.refused("--exporter URL takes the counters from a dcgm-exporter", "--nvml-library", "/nowhere/libnvidia-ml.so.1")
        self.refused("while a product ran", *nvml, "--interval", "20ms", "--settle", "0", nvml=gpu(0, uuid=UUID) + "at 1\ngpu 0 state = lost\n")

    def test_a_format_that_the_gpu_cannot_do_is_left_out_and_said(self):
        answer = self.measured("--precision", "fp8", "--precision", "bf16", "--sizes", "1024:1024", "--unaligned", "0", script={"unsupported_type": 28})
        self.assertEqual([one["precision"] for one in answer["points"]], ["bf16"])
        self.assertEqual([one["precision"] for one in answer["left_out"]], ["fp8"])
        self.assertIn("status 15", answer["left_out"][0]["reason"])

    def test_a_tile_that_the_library_does_not_say_is_modelled_and_said(self):
        answer = self.measured("--precision", "bf16", "--sizes", "1024:1024", "--unaligned", "0", script={"tile": 0})
        self.assertEqual(answer["points"][0]["tile_source"], "modelled")
        self.assertEqual(answer["agreement"][0]["tiles_modelled"], 1)

    def test_files_have_gpu_driver_and_date_and_are_not_called_simulated(self):
        with tempfile.TemporaryDirectory() as folder, exporter(exposition()) as url:
            done = self.run_program("--exporter", url, "--interval", "20ms", "--settle", "0", "--seconds", "100ms", "--precision", "bf16",
                                    "--sizes", "1024:1024", "--unaligned", "0", "--out", folder + "/out")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(folder + "/out")), ["points.csv", "scatter.svg", "summary.json"])
            texts = [pathlib.Path(folder, "out", name).read_text(encoding="utf-8") for name in sorted(os.listdir(folder + "/out"))]
            for text in texts:
                self.assertIn("580.1", text)
                self.assertNotIn("SIMULATED", text)
            self.assertNotIn("SIMULATED", done.stdout)
            self.assertTrue(xml.etree.ElementTree.fromstring(texts[1]).tag.endswith("svg"))

    def test_what_goes_wrong_is_one_line(self):
        with exporter(exposition(uuid="GPU-ffffffff-4050-6070-8090-a0b0c0d0e0f0")) as url:
            self.refused("has no GPU " + UUID, "--exporter", url)
        with exporter(exposition(tensor=False)) as url:
            self.refused("has no tensor activity (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)", "--exporter", url)
        with exporter("<html>") as url:
            self.refused(url, "--exporter", url)
        self.refused("http://127.0.0.1:1/metrics", "--exporter", "http://127.0.0.1:1/metrics")
        self.refused("the CUDA driver sees no GPU", "--exporter", "http://127.0.0.1:1/metrics", script={"gpus": 0})
        self.refused("a failure of the script (CUDA error 999)", "--exporter", "http://127.0.0.1:1/metrics", script={"fail": "cuInit"})
        self.refused("no GPU NVIDIA Unheard-of in the catalogue", "--exporter", "http://127.0.0.1:1/metrics", script={"name": "NVIDIA Unheard-of"})
        self.refused("--gpu-index 3: this machine has 1 GPUs", "--gpu-index", "3", "--exporter", "http://127.0.0.1:1/metrics")

    def test_a_gpu_that_fails_ends_the_experiment_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder, exporter(exposition()) as url:
            self.refused("running a product: a failure of the script", "--exporter", url, "--interval", "20ms", "--out", folder,
                         script={"fail": "cuEventSynchronize"})
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()

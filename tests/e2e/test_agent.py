"""`flopsight agent` and the GPUs of `flopsight serve`'s own machine, over a fake NVIDIA driver (tests/fake_nvml)."""

import json
import os
import subprocess
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(__file__))
from agent import LIBRARY, OLD_LIBRARY, Agent, FakeDriver, gpu, run_agent, uuid
from fleet import BINARY
from servers import fetch, wait_until
from service import Service

TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
MIG = "NVIDIA H100 80GB HBM3 MIG "


def knows_activity(gpus: int):
    return lambda page: len(page.all(TENSOR)) == gpus


def report(url: str) -> dict:
    done = subprocess.run([BINARY, "report", "--scrape", url + "/metrics", "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class AgentTest(unittest.TestCase):
    def driver(self, script: str) -> FakeDriver:
        driver = FakeDriver(script)
        self.addCleanup(driver.__exit__)
        return driver

    def agent(self, driver: FakeDriver, *arguments: str, library: str = LIBRARY) -> Agent:
        agent = Agent(driver, *arguments, library=library)
        self.addCleanup(agent.__exit__)
        return agent

    def test_a_page_as_of_a_dcgm_exporter_that_report_reads(self):
        agent = self.agent(self.driver(gpu(0) + gpu(1, **{"gpm 5": 10})))
        self.assertRegex(agent.said, r"flopsight agent: 2 GPUs at http://127\.0\.0\.1:\d+/metrics")
        page = agent.wait_for(knows_activity(2), "activity of both GPUs")
        labels, value = page.all(TENSOR, gpu="0")[0]
        self.assertEqual(value, 0.525)
        self.assertEqual(labels, {"gpu": "0", "UUID": uuid(0), "pci_bus_id": "00000000:10:00.0", "device": "nvidia0",
                                  "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "n1", "DCGM_FI_DRIVER_VERSION": "550.54.15"})
        self.assertEqual(page.value("DCGM_FI_DEV_SM_CLOCK", gpu="0"), 1755)
        self.assertEqual(page.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0"), 123456789)
        self.assertAlmostEqual(page.value("flopsight_gpu_ofu_ratio", uuid=uuid(0)), 0.525 * 1755 / 1830, places=6)
        self.assertEqual(page.value("flopsight_gpu_reference_clock_hertz", uuid=uuid(0), source="catalog_tensor_peak"), 1830e6)
        self.assertEqual(page.value("flopsight_gpu_absent", uuid=uuid(0), metric="mma_cycles_active_total", reason="not_supported"), 1)
        answer = report(agent.url)
        self.assertEqual(answer["fleet"]["gpu_count"], 2)
        self.assertAlmostEqual(answer["fleet"]["ofu_ratio"], (0.525 + 0.10) / 2 * 1755 / 1830, places=6)
        self.assertEqual(fetch(agent.url + "/healthz"), (200, b"ok\n"))
        self.assertEqual(fetch(agent.url + "/other")[0], 404)
        self.assertEqual(fetch(agent.url + "/metrics", data=b"x")[0], 405)
        self.assertEqual(agent.stop(), 0)
        self.assertEqual(agent.log(), "")

    def test_totals_make_a_rare_scrape_exact(self):
        driver = self.driver(gpu(0))
        agent = self.agent(driver)
        page = agent.wait_for(lambda page: (page.value("flopsight_gpu_measured_seconds_total") or 0) > 0.3, "measured time")
        ofu = page.value("flopsight_gpu_ofu_seconds_total") / page.value("flopsight_gpu_measured_seconds_total")
        self.assertAlmostEqual(ofu, 0.525 * 1755 / 1830, places=6)

    def test_a_lost_gpu_is_told_and_comes_back(self):
        driver = self.driver(gpu(0) + gpu(1) + "at 10\ngpu 1 state = lost\ngpu 1 xid = 79\nat 20\ngpu 1 state = ok\n")
        agent = self.agent(driver)
        agent.wait_for(knows_activity(2), "activity of both GPUs")
        driver.at(11)
        page = agent.wait_for(lambda page: page.value("flopsight_gpu_up", gpu="1") == 0, "the lost GPU")
        self.assertEqual(page.value("flopsight_gpu_absent", uuid=uuid(1), metric="gpu", reason="device_lost"), 1)
        self.assertEqual(page.value("DCGM_FI_DEV_XID_ERRORS", gpu="1"), 79)
        self.assertIsNone(page.value("DCGM_FI_DEV_SM_CLOCK", gpu="1"))
        self.assertEqual(page.value("DCGM_FI_DEV_SM_CLOCK", gpu="0"), 1755)
        self.assertRegex(page.text, rf"# GPU 1 \({uuid(1)}\): nothing is known: the GPU has fallen off the bus")
        # Known and not measured: neither idle nor left out.
        answer = report(agent.url)
        self.assertEqual(answer["fleet"]["gpu_count"], 2)
        self.assertEqual(answer["fleet"]["coverage_ratio"], 0.5)
        driver.at(21)
        agent.wait_for(knows_activity(2), "the GPU back at work")

    def test_a_driver_restart_is_survived(self):
        driver = self.driver(gpu(0) + "at 10\ndriver state = not_loaded\nat 20\ndriver state = ready\ndriver restart = 1\n")
        agent = self.agent(driver)
        agent.wait_for(knows_activity(1), "activity")
        driver.at(11)
        page = agent.wait_for(lambda page: page.value("flopsight_agent_driver_up") == 0, "the driver gone")
        self.assertEqual(page.value("flopsight_gpu_up", gpu="0"), 0)
        self.assertEqual(page.all(TENSOR), [])
        self.assertEqual(page.value("flopsight_agent_driver_restarts_total"), 1)
        status, body = fetch(agent.url + "/healthz")
        self.assertEqual(status, 503)
        self.assertIn(b"driver", body)
        driver.at(21)
        agent.wait_for(knows_activity(1), "activity under the new driver")
        self.assertEqual(fetch(agent.url + "/healthz"), (200, b"ok\n"))

    def test_a_driver_that_hangs_is_told_and_does_not_keep_the_agent_from_ending(self):
        driver = self.driver(gpu(0) + "at 10\ndriver hang = on\nat 20\ndriver hang = off\nat 30\ndriver hang = on\n")
        agent = self.agent(driver)
        agent.wait_for(knows_activity(1), "activity")
        driver.at(11)
        page = agent.wait_for(lambda page: page.value("flopsight_agent_driver_up") == 0, "a page that says so")
        self.assertEqual(page.all("DCGM_FI_DEV_SM_CLOCK"), [])
        self.assertEqual(page.value("flopsight_gpu_up", gpu="0"), 0)
        status, body = fetch(agent.url + "/healthz")
        self.assertEqual((status, body), (503, b"NVML has not answered for longer than it should take\n"))
        driver.at(21)
        agent.wait_for(knows_activity(1), "activity after it")
        driver.at(31)
        self.assertEqual(agent.stop(), 0)

    def test_its_resident_memory_is_under_15_megabytes(self):
        driver = self.driver("".join(gpu(i) for i in range(8)))
        agent = self.agent(driver)
        page = agent.wait_for(knows_activity(8), "activity of all GPUs")
        self.assertLess(page.value("process_resident_memory_bytes"), 15e6)

    def test_mig_that_is_divided_anew(self):
        driver = self.driver(gpu(0) + f"at 10\ngpu 0 mig = on\ngpu 0 instance 1 name = {MIG}3g.40gb\ngpu 0 instance 1 gpm 5 = 70\n"
                             f"gpu 0 instance 2 name = {MIG}4g.40gb\ngpu 0 instance 2 gpm 5 = 20\n"
                             "at 20\ngpu 0 instance 2 name = -\n")
        agent = self.agent(driver)
        agent.wait_for(knows_activity(1), "activity of the whole GPU")
        driver.at(11)
        page = agent.wait_for(knows_activity(2), "activity of two instances")
        self.assertEqual(page.value(TENSOR, GPU_I_ID="1", GPU_I_PROFILE="3g.40gb", UUID=uuid(0)), 0.7)
        self.assertEqual(page.value(TENSOR, GPU_I_ID="2"), 0.2)
        # The GPU's power on each of its instances, as dcgm-exporter has it.
        self.assertEqual([value for _, value in page.all("DCGM_FI_DEV_POWER_USAGE")], [612.5, 612.5])
        self.assertEqual(len({row["mig_instance"] for row in report(agent.url)["gpus"]}), 2)
        driver.at(21)
        agent.wait_for(lambda page: [labels["GPU_I_ID"] for labels, _ in page.all(TENSOR)] == ["1"], "one instance")

    def test_the_job_of_a_process_is_the_jobs_of_the_gpu(self):
        driver = self.driver(gpu(0, processes="41") + gpu(1, processes="42") + gpu(2, processes="43 44") +
                             "at 10\ngpu 0 processes = -\n")
        pod = "a101c1c8-1589-4313-acf5-02e3ca8d3994"
        driver.process(41, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n",
                       environ=b"SLURM_JOB_ID=77\0SLURM_JOB_USER=ada\0SLURM_JOB_ACCOUNT=physics\0")
        driver.process(42, f"0::/kubepods/burstable/pod{pod}/{'c' * 64}\n")
        driver.process(43, "0::/system.slice/slurmstepd.scope/job_78/step_0\n")
        driver.process(44, "0::/system.slice/slurmstepd.scope/job_79/step_0\n")
        agent = self.agent(driver)
        page = agent.wait_for(lambda page: page.value(TENSOR, hpc_job="77"), "the Slurm job")
        self.assertEqual(page.all(TENSOR, hpc_job="77")[0][0]["user"], "ada")
        self.assertEqual(page.value(TENSOR, pod_uid=pod), 0.525)
        # A shared GPU is one GPU: a copy for each job, and its utilization once.
        self.assertEqual(sorted(labels["hpc_job"] for labels, _ in page.all(TENSOR, gpu="2")), ["78", "79"])
        self.assertEqual(page.value("DCGM_FI_DEV_GPU_UTIL", gpu="2"), 99)
        groups = {group["key"]["job"]: group for group in report(agent.url)["groups"]}
        self.assertEqual(set(groups), {"77", pod, "78", "79"})
        self.assertEqual(groups["77"]["gpu_count"], 1)
        self.assertEqual(report(agent.url)["fleet"]["gpu_count"], 3)
        # The pod's name comes with its log.
        logs = driver.root / "var/log/pods" / f"team-a_train-0_{pod}"
        logs.mkdir(parents=True)
        driver.process(42, f"0::/kubepods/burstable/pod{pod}/{'c' * 64}\n", start=200)
        page = agent.wait_for(lambda page: page.value(TENSOR, pod="train-0"), "the pod's name")
        self.assertEqual(page.all(TENSOR, pod="train-0")[0][0]["namespace"], "team-a")
        driver.at(11)
        page = agent.wait_for(lambda page: not page.all(TENSOR, hpc_job="77"), "the end of the job")
        self.assertNotIn("hpc_job", page.all(TENSOR, gpu="0")[0][0])

    def test_an_older_gpu_and_an_older_driver_say_what_is_missing(self):
        driver = self.driver(gpu(0, name="NVIDIA A100-SXM4-80GB", gpm="no"))
        agent = self.agent(driver)
        page = agent.page()
        self.assertEqual(page.all(TENSOR), [])
        self.assertEqual(page.all("flopsight_gpu_ofu_ratio"), [])
        self.assertEqual(page.value("DCGM_FI_DEV_POWER_USAGE"), 612.5)
        self.assertIn("no OFU: NVML counts tensor activity (GPM) on Hopper and newer only; on NVIDIA A100-SXM4-80GB it takes a dcgm-exporter",
                      agent.log())
        self.assertIn("# GPU 0", page.text)
        old = self.agent(self.driver(gpu(0)), library=OLD_LIBRARY)
        self.assertEqual(old.page().value("flopsight_gpu_absent", metric="tensor_active_ratio", reason="no_function"), 1)
        self.assertIn("is older than NVML's counters (GPM)", old.log())

    def test_once_prints_a_page_and_ends(self):
        done = run_agent(self.driver(gpu(0)), "--once", "--interval", "100ms", "--no-jobs")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f'{TENSOR}{{gpu="0"', done.stdout)

    def test_mistakes_and_missing_things_are_one_line_and_exit_code_2(self):
        cases = [
            (None, "/nonexistent/libnvidia-ml.so.1", [], "/nonexistent/libnvidia-ml.so.1"),
            ("driver state = not_loaded\n", LIBRARY, [], "the NVIDIA kernel driver is not loaded"),
            ("driver state = mismatch\n", LIBRARY, [], "different versions"),
            ("", LIBRARY, [], "the NVIDIA driver lists no GPU"),
            (gpu(0), LIBRARY, ["--listen", "0.0.0.0:0"], "is not loopback"),
            (gpu(0), LIBRARY, ["--listen", "nowhere"], "--listen nowhere: expected ADDRESS:PORT"),
            (gpu(0), LIBRARY, ["--interval", "1ms"], "--interval 1ms: expected a duration from 100ms to 1h"),
            (gpu(0), LIBRARY, ["--gpu-catalog", "/nonexistent"], "/nonexistent"),
            (gpu(0), LIBRARY, ["--wrong"], "--wrong"),
        ]
        for script, library, arguments, words in cases:
            driver = self.driver(script) if script is not None else None
            done = run_agent(driver, *arguments, library=library)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_port_that_is_taken_is_named(self):
        first = self.agent(self.driver(gpu(0)))
        port = first.url.rsplit(":", 1)[1]
        done = run_agent(self.driver(gpu(0)), "--listen", f"127.0.0.1:{port}")
        self.assertEqual(done.returncode, 2)
        self.assertIn(port, done.stderr)

    def serve(self, driver: FakeDriver, *arguments: str) -> Service:
        with mock.patch.dict(os.environ, driver.environment):
            service = Service("--nvml-library", LIBRARY, "--nvml-root", str(driver.root), "--nvml-interval", "100ms", *arguments)
        self.addCleanup(service.close)
        return service

    def test_serve_reads_the_gpus_of_its_own_machine_without_being_told(self):
        driver = self.driver(gpu(0, processes="41") + gpu(1) + "at 10\ndriver state = not_loaded\nat 20\ndriver state = ready\n")
        driver.process(41, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n")
        service = self.serve(driver, "--demo")
        service.wait_for_log(r"this machine's 2 GPUs are read by NVML every 0.1 s \(driver 550.54.15\)")
        self.assertNotIn("SIMULATED", service.log())

        def target():
            return service.json("/api/v1/targets")["targets"][0]
        found = wait_until(lambda: target() if target()["up"] else None, "the GPUs as a target")
        self.assertEqual(found["url"], "nvml")
        self.assertGreater(found["samples"], 40)
        wait_until(lambda: b"\nflopsight_gpus 2\n" in fetch(service.url + "/metrics")[1], "both GPUs in the service")
        driver.at(11)
        found = wait_until(lambda: target() if not target()["up"] else None, "the driver gone")
        self.assertIn("driver", found["error"])
        driver.at(21)
        wait_until(lambda: target()["up"], "the driver back")
        self.assertEqual(service.stop(), 0)

    def test_serve_can_be_told_not_to_and_that_it_must(self):
        driver = self.driver(gpu(0))
        service = self.serve(driver, "--nvml-use", "no")
        self.assertEqual(service.json("/api/v1/targets")["targets"], [])
        with self.assertRaisesRegex(RuntimeError, "nvml.use: yes: .*kernel driver is not loaded"):
            self.serve(self.driver("driver state = not_loaded\n"), "--nvml-use", "yes")
        with self.assertRaisesRegex(RuntimeError, 'nvml.use: found "perhaps", expected auto, yes or no'):
            self.serve(driver, "--nvml-use", "perhaps")

    def test_serve_says_why_gpus_that_are_there_are_not_read(self):
        service = self.serve(self.driver("driver state = mismatch\n"))
        service.wait_for_log("this machine's GPUs are not read: .*different versions")


if __name__ == "__main__":
    unittest.main()

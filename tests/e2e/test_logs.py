"""`flopsight logs` as a user runs it: a pipe, and a log much larger than the memory it may take."""

import gzip
import json
import os
import resource
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["FLOPSIGHT_BINARY"]
STEP = ("[rank0]:[titan] 2026-02-24 19:46:17,508 - root - INFO - step: {}  loss:  7.6  tps: 10,050  tflops: 314.71  "
        "mfu: 13.99%\n")


class Logs(unittest.TestCase):
    def test_a_compressed_log_through_a_pipe(self):
        text = "".join(STEP.format(step) for step in range(1, 41))
        done = subprocess.run([PROGRAM, "logs", "-", "--format", "json", "--zone", "America/New_York", "--steps"],
                              input=gzip.compress(text.encode()), capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        log = json.loads(done.stdout)["files"][0]
        self.assertEqual(log["steps_used"], 40)
        self.assertEqual(log["steps"][0]["time"], "2026-02-25T00:46:17.508Z")
        self.assertAlmostEqual(log["summary"]["implied_peak_flops_per_second"] / 1e12, 2249.5, delta=0.1)

    def test_memory_does_not_grow_with_the_log(self):
        noise = "".join(f"node{i}: NCCL INFO Channel {i} : 12[c000] -> 20[c000] via NET/IB/3/GDRDMA\n" for i in range(3000))
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            step = 0
            while log.tell() < 400 << 20:
                step += 1
                log.write(noise + STEP.format(step))
            log.flush()

            def limit():  # of the address space: libraries and stacks take most of it
                resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

            done = subprocess.run([PROGRAM, "logs", log.name, "--format", "json"], capture_output=True, check=False,
                                  preexec_fn=limit)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["files"][0]["steps_total"], step)

    def test_nothing_matched_is_said(self):
        done = subprocess.run([PROGRAM, "logs", "-"], input=b"epoch 3 done at 40 mfu\n", capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"nothing matched in 1 lines; nearest: line 1, it speaks of 'mfu'", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Jobs of a real Slurm 22.05 on this machine, as Flopsight reads them: who held which GPUs, to the second.

The truth is not Slurm's own list but what each job saw itself: its script writes down the GPUs that it was given and the
time when it began and when it was ended.
"""

import datetime
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import BINARY
from servers import wait_until
from service import Service
from slurm_cluster import SlurmCluster

COLUMNS = ("Cluster,JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocTRES,NodeList,NNodes,"
           "ExitCode,JobName")
# Says what it was given, and when it began and was ended, into a file named by its id and its start.
WITNESS = ("echo begun $(date +%s) ${SLURM_JOB_GPUS:-none} $(hostname) $SLURMD_NODENAME >> seen-$SLURM_JOB_ID; "
           "trap 'echo ended $(date +%s) >> seen-$SLURM_JOB_ID; exit 0' TERM; ")


def unix(text: str | None) -> int | None:
    return None if text is None else int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster()
        cls.addClassCleanup(cls.slurm.stop)
        cls.begun = int(time.time())

    def tearDown(self):
        self.slurm.run("scancel", "--partition=gpu")
        wait_until(lambda: not self.slurm.run("squeue", "-h"), "empty queue")

    # ---- asking -----------------------------------------------------------------------------------

    def read(self, text: str, zone: str = "UTC") -> list[dict]:
        """What `flopsight jobs import` makes of a command's output; nothing of it may be a problem."""
        done = subprocess.run([BINARY, "jobs", "import", "--dry-run", "--format", "json", "--cluster", self.slurm.name, "--zone", zone, "-"],
                              input=text, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answer = json.loads(done.stdout)
        self.assertEqual(answer["problem_count"], 0, answer["problems"])
        return answer["jobs"]

    def asked(self) -> list[dict]:
        """By the accounting and by what is running, as serve asks."""
        since = datetime.datetime.fromtimestamp(self.begun - 60, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        ended = self.slurm.run("sacct", "--allusers", "--duplicates", "--parsable2", "--allocations", "--starttime", since, "--format", COLUMNS)
        return self.read(ended) + self.read(self.slurm.run("scontrol", "show", "job", "--details"))

    def runs(self, answer: list[dict], job: str) -> list[dict]:
        """All starts of an id, in order; of one that is told twice the telling with indices."""
        found = {}
        for one in answer:
            if one["id"] == job and (one["start"] not in found or any(a["gpu_indices"] for a in one["allocations"])):
                found[one["start"]] = one
        return [found[start] for start in sorted(found, key=str)]

    def seen(self, job: str) -> list[list[str]]:
        with open(os.path.join(self.slurm.folder, f"seen-{job}"), encoding="utf-8") as file:
            return [line.split() for line in file]

    def held(self, answer: list[dict], jobs: list[str]) -> list[tuple]:
        """(host, GPU, start, end, job) of all that was told of the jobs."""
        return [(host, gpu, unix(one["start"]), unix(one["end"]) or 2**40, one["id"]) for one in answer if one["id"] in jobs
                for allocation in one["allocations"] for host in allocation["hosts"] for gpu in allocation["gpu_indices"]]

    def indices(self, job: dict) -> dict[str, list[str]]:
        return {host: sorted(a["gpu_indices"]) for a in job["allocations"] for host in a["hosts"]}

    def submit(self, *options: str, seconds: str = "600") -> str:
        # A shell waits for its child before it looks at a signal, unless it waits with `wait`.
        job = self.slurm.submit(WITNESS + f"sleep {seconds} & wait", f"--chdir={self.slurm.folder}", *options)
        return job

    def wait_begun(self, job: str, times: int = 1):
        def begun():
            try:
                return [line[0] for line in self.seen(job)].count("begun") >= times
            except FileNotFoundError:
                return False
        try:
            wait_until(begun, f"begin of job {job}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.slurm.run('squeue')}\n{self.slurm.log()}") from error

    # ---- what is claimed --------------------------------------------------------------------------

    def test_a_running_job_holds_the_gpus_that_it_saw_itself(self):
        job = self.submit("--gres=gpu:a100:2", "-J", "two words", "-A", "physics", "-t", "1:00:00")
        self.wait_begun(job)
        text = self.slurm.run("scontrol", "show", "job", "-d", job)
        for one in (self.read(text)[0], self.runs(self.asked(), job)[0],
                    self.runs(self.read(self.slurm.run("squeue", "--json")), job)[0]):
            begun = self.seen(job)[0]
            self.assertEqual(self.indices(one), {begun[4]: begun[2].split(",")})
            self.assertEqual((one["gpu_count"], one["gpus"]), (2, [{"type": "a100", "count": 2, "is_mig": False}]))
            self.assertEqual((one["name"], one["account"], one["state"], one["end"]), ("two words", "physics", "RUNNING", None))
            self.assertIn(int(begun[1]) - unix(one["start"]), range(0, 6))
            self.assertEqual(str(unix(one["start"])),
                             self.slurm.run("squeue", "-h", "-j", job, "-o", "%S", SLURM_TIME_FORMAT="%s").strip())
        self.slurm.run("scancel", job)
        self.slurm.wait_for_accounting(job, "CANCELLED")
        over = self.runs(self.asked(), job)[0]
        self.assertEqual(over["state"], "CANCELLED")
        self.assertIn(unix(over["end"]) - int(self.seen(job)[-1][1]), range(-2, 7))
        self.assertEqual(str(unix(over["end"])),
                         self.slurm.run("sacct", "-n", "-P", "-X", "-j", job, "-o", "End", SLURM_TIME_FORMAT="%s").strip())

    def test_times_without_an_offset_are_read_in_the_zone_in_which_they_were_printed(self):
        job = self.submit("--gres=gpu:a100:1")
        self.wait_begun(job)
        expected = self.read(self.slurm.run("scontrol", "show", "job", "-d", job))[0]["start"]
        for zone in ("America/New_York", "Asia/Kathmandu", "Europe/Berlin"):
            text = self.slurm.run("scontrol", "show", "job", "-d", job, TZ=zone)
            self.assertEqual(self.read(text, zone)[0]["start"], expected, zone)

    def test_a_requeued_job_is_two_runs_with_their_own_gpus(self):
        job = self.submit("--gres=gpu:a100:1", "--requeue")
        self.wait_begun(job)
        first = self.runs(self.asked(), job)[0]
        self.slurm.run("scontrol", "requeue", job)
        self.slurm.wait_for_state(job, "PENDING")
        # Not in the second of the requeue: slurmd takes a credential of that second for the one that was revoked with it.
        requeued = int(time.time())
        wait_until(lambda: int(time.time()) > requeued + 1, "later second")
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.wait_begun(job, times=2)
        wait_until(lambda: len(self.runs(self.asked(), job)) == 2, "second run in the accounting")
        runs = self.runs(self.asked(), job)
        self.assertEqual([run["start"] for run in runs][0], first["start"])
        self.assertEqual(runs[0]["state"], "REQUEUED")
        self.assertLessEqual(unix(runs[0]["end"]), unix(runs[1]["start"]))
        self.assertIsNone(runs[1]["end"])
        self.assertEqual(runs[1]["restart_count"], 1)

    def test_tasks_of_an_array_are_jobs_and_one_is_cancelled_alone(self):
        array = self.submit("--gres=gpu:a100:1", "--array=0-2")
        lines = lambda: self.slurm.run("squeue", "-h", "-r", "-j", array, "-o", "%A %K %T").split("\n")
        wait_until(lambda: sum("RUNNING" in line for line in lines()) == 3, "three tasks")
        ids = {line.split()[1]: line.split()[0] for line in lines() if line}
        for job in ids.values():
            self.wait_begun(job)
        self.slurm.run("scancel", f"{array}_1")
        self.slurm.wait_for_accounting(ids["1"], "CANCELLED")
        answer = self.asked()
        held = set()
        for task, job in ids.items():
            one = self.runs(answer, job)[0]
            self.assertEqual((one["array_job_id"], one["array_task_id"]), (int(array), int(task)))
            self.assertEqual(one["state"], "CANCELLED" if task == "1" else "RUNNING")
            if task != "1":
                held |= {(host, i) for host, indices in self.indices(one).items() for i in indices}
        self.assertEqual(held, {(line[4], line[2]) for task in ("0", "2") for line in self.seen(ids[task])[:1]})

    def test_parts_of_a_heterogeneous_job_have_ids_of_their_own(self):
        script = os.path.join(self.slurm.folder, "het.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n#SBATCH --output=/dev/null\n#SBATCH --gres=gpu:a100:1 -n1\n#SBATCH hetjob\n#SBATCH -n1\nsleep 600\n")
        job = self.slurm.run("sbatch", "--parsable", script).strip()
        self.slurm.wait_for_state(job, "RUNNING")
        parts = [one for one in self.read(self.slurm.run("scontrol", "show", "job", "-d"))
                 if one["het_job_id"] == int(job)]
        self.assertEqual([(one["het_offset"], one["gpu_count"]) for one in parts], [(0, 1), (1, 0)])
        self.assertEqual(len({one["id"] for one in parts}), 2)

    def test_a_mig_instance_is_no_whole_gpu_and_no_gpu_is_zero(self):
        mig = self.submit("--gres=gpu:a100_1g.5gb:1")
        plain = self.submit()
        for job in (mig, plain):
            self.wait_begun(job)
        answer = self.asked()
        one = self.runs(answer, mig)[0]
        self.assertEqual(one["gpus"], [{"type": "a100_1g.5gb", "count": 1, "is_mig": True}])
        self.assertEqual(self.runs(answer, plain)[0]["gpu_count"], 0)

    def test_no_gpu_has_two_holders_at_a_time(self):
        jobs = [self.submit("--gres=gpu:a100:2") for _ in range(6)]  # eight GPUs: two have to wait
        for job in jobs[:4]:
            self.wait_begun(job)
        before = self.asked()
        self.slurm.run("scancel", jobs[0], jobs[1])
        for job in jobs[4:]:
            self.wait_begun(job)
        after = self.asked()
        held = self.held(before + after, jobs)
        self.assertEqual({line[-1] for line in held}, set(jobs))
        ends = {one["id"]: unix(one["end"]) for one in after if one["end"]}
        for host, gpu, start, end, job in held:
            for other_host, other_gpu, other_start, other_end, other in held:
                if job == other or (host, gpu) != (other_host, other_gpu):
                    continue
                end, other_end = ends.get(job, end), ends.get(other, other_end)
                self.assertTrue(end <= other_start or other_end <= start, (host, gpu, job, other))

    def test_slurmrestd_says_what_the_commands_say(self):
        job = self.submit("--gres=gpu:a100:1")
        self.wait_begun(job)
        commands = self.runs(self.asked(), job)[0]
        with self.slurm.rest() as url, Service("--slurm-rest-url", url, "--slurm-cluster", self.slurm.name, "--slurm-interval", "1s") as service:
            def told():
                return [one for one in service.json("/api/v1/jobs")["jobs"] if one["id"] == f"{job}@{self.slurm.name}"]
            rest = wait_until(told, "the job by slurmrestd")[0]["runs"][0]
        for key in ("cluster", "id", "start", "end", "state", "gpu_count", "gpus", "allocations", "user", "account"):
            self.assertEqual(rest[key], commands[key], key)


if __name__ == "__main__":
    unittest.main()

"""The waste account of a running service and of its store: hours and dollars add up, by cause, for every grouping."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["FLOPSIGHT_BINARY"]
START, END = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def flopsight(*arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=120)


class Waste(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        out = root / "fleet"
        made = flopsight("simulate", "--scenario", "input_starved", "--gpus", "32", "--labels", "kubernetes", "--metrics", "16", "--out", str(out))
        assert made.returncode == 0, made.stderr
        cls.samples = str(out / "samples.prom.gz")
        cls.store = str(root / "store")
        stored = flopsight("import", "--store", cls.store, "--file", cls.samples, "--quiet")
        assert stored.returncode == 0, stored.stderr
        cls.prices = root / "prices.csv"
        cls.prices.write_text("model,team,usd_per_gpu_hour\n*,,3\n")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def account(self, *arguments):
        done = flopsight("waste", "--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_sums(self, account, price):
        total = account["total"]
        for row in account["rows"] + [total]:
            for unit in ("gpu_hours", "usd"):
                amounts = row[unit]
                self.assertAlmostEqual(amounts["allocated"], amounts["delivered"] + amounts["lost"] + amounts["unmeasured"], places=6)
                self.assertAlmostEqual(amounts["lost"], sum(amounts["lost_by_cause"].values()), places=6)
            self.assertAlmostEqual(row["usd"]["allocated"], price * row["gpu_hours"]["allocated"], places=6)
        self.assertAlmostEqual(total["gpu_hours"]["allocated"], sum(r["gpu_hours"]["allocated"] for r in account["rows"]), places=6)

    def test_the_store_and_the_samples_give_the_same_account(self):
        window = ["--start", START, "--end", END, "--prices", str(self.prices), "--attainable", "0.5"]
        for by in ("job", "user", "team", "namespace", "model", "family"):
            with self.subTest(by=by):
                of_file = self.account("--file", self.samples, "--by", by, *window)
                of_store = self.account("--store", self.store, "--by", by, *window)
                self.check_sums(of_file, 3)
                self.check_sums(of_store, 3)
                self.assertTrue(of_file["simulated"] and of_store["simulated"])
                self.assertLess(abs(of_file["total"]["gpu_hours"]["lost"] - of_store["total"]["gpu_hours"]["lost"]), 0.6)
                self.assertGreater(of_file["total"]["attainable"]["usd_lost"], 0)
                self.assertLess(of_file["total"]["attainable"]["usd_lost"], of_file["total"]["usd"]["lost"])

    def test_the_account_is_the_reports_fleet(self):
        account = self.account("--file", self.samples, "--start", START, "--end", END)
        report = json.loads(flopsight("report", "--file", self.samples, "--start", START, "--end", END, "--format", "json").stdout)
        for mine, theirs in (("allocated", "allocated"), ("delivered", "delivered"), ("lost", "lost"), ("unmeasured", "unmeasured")):
            self.assertAlmostEqual(account["total"]["gpu_hours"][mine], report["fleet"]["gpu_hours_" + theirs], places=6)
        self.assertIsNone(account["total"]["usd"])

    def test_summaries_and_messages(self):
        window = ["--file", self.samples, "--start", START, "--end", END]
        markdown = flopsight("waste", *window, "--format", "markdown").stdout
        self.assertTrue(markdown.startswith("# SIMULATED: Where GPU time went"))
        html = flopsight("waste", *window, "--format", "html").stdout
        self.assertTrue(html.startswith("<!DOCTYPE html>") and html.rstrip().endswith("</html>"))
        messages = flopsight("waste", *window, "--format", "messages").stdout
        user = messages.split("\n")[0].removeprefix("To: ")
        alone = flopsight("waste", *window, "--format", "messages", "--user", user)
        self.assertIn(alone.stdout.strip().split("\n")[0], messages)

    def test_top_lists_fewer_jobs_of_a_user_and_loses_nobody(self):
        for source in (["--file", self.samples], ["--store", self.store]):
            window = [*source, "--start", START, "--end", END, "--format", "messages"]
            messages = flopsight("waste", *window).stdout
            users = [line.removeprefix("To: ") for line in messages.split("\n") if line.startswith("To: ")]
            self.assertGreater(len(users), 1)
            for user in users:
                everything = flopsight("waste", *window, "--user", user)
                short = flopsight("waste", *window, "--user", user, "--top", "1")
                self.assertEqual(short.returncode, 0, short.stderr)
                held = everything.stdout.split("Your jobs, by what they lost")[0]
                self.assertTrue(short.stdout.startswith(held), "the sums are of all his jobs")
                self.assertEqual(short.stdout.count(" GPU-hours, ") - held.count(" GPU-hours, "), 1)
            self.assertEqual(flopsight("waste", *window, "--top", "1").stdout.count("To: "), len(users))

    def test_names_from_outside_are_never_markup(self):
        hostile = pathlib.Path(self.folder.name) / "hostile.prom"
        name = "<img src=x onerror=alert(1)>|[x](http://e.vil)"
        lines = []
        for i in range(20):
            t = 1767225600000 + i * 15000
            labels = f'gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="p-1",namespace="a",user="{name}",team="=cmd()"'
            lines.append(f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} 0.4 {t}\nDCGM_FI_DEV_SM_CLOCK{{{labels}}} 1500 {t}\n")
        hostile.write_text("".join(lines))
        html = flopsight("waste", "--file", str(hostile), "--by", "user", "--format", "html").stdout
        self.assertNotIn("<img", html)
        self.assertIn("&lt;img", html)
        markdown = flopsight("waste", "--file", str(hostile), "--by", "user", "--format", "markdown").stdout
        self.assertNotIn("<img", markdown.replace("\\<", ""))
        self.assertNotIn("](http:", markdown)
        csv = flopsight("waste", "--file", str(hostile), "--by", "team", "--format", "csv").stdout
        self.assertIn("\n'=cmd()", csv)

    def test_wrong_usage_is_one_line(self):
        for arguments, expected in (
            (["--file", self.samples, "--by", "gpu"], "--by gpu: expected job, user, team, namespace, model or family"),
            (["--file", self.samples, "--format", "pdf"], "--format pdf: expected table, json, csv, markdown, html or messages"),
            (["--file", self.samples, "--attainable", "50"], "--attainable 50: expected a ratio from 0 to 1, a percentage with its sign, or a file"),
            (["--file", self.samples, "--user", "ada"], "--user needs --format messages"),
            (["--store", self.folder.name + "/nothing"], "nothing"),
            ([], "expected one of --file, --scrape, --prometheus or --store"),
        ):
            done = flopsight("waste", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("flopsight waste: "), done.stderr)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()

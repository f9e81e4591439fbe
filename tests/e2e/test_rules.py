"""`flopsight rules` on real engines: promtool (the engine of Prometheus) on simulated fleets, a live Prometheus and
VictoriaMetrics by vmalert. The same numbers as `flopsight report`, alerts where something happens and none where nothing does.
"""

import gzip
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

import fleet
from servers import Prometheus, Series, VictoriaMetrics, wait_until

BINARY = os.environ["FLOPSIGHT_BINARY"]
START = 1_767_225_600  # of simulate --out
STEP = 15
NEEDED = re.compile(r"^(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE|DCGM_FI_DEV_(SM_CLOCK|GPU_UTIL|GPU_TEMP|POWER_USAGE))\{")
GPU = "NVIDIA H100 80GB HBM3"
POINT = 0.001  # a tenth of a percentage point


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


def write_rules(folder: str, *arguments: str) -> str:
    path = os.path.join(folder, "rules.yml")
    done = run("rules", "prometheus", "--out", path, "--force", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return path


def simulate(folder: str, scenario: str, hours: float, *more: str):
    done = run("simulate", "--scenario", scenario, "--hours", hours, "--out", folder, "--force", *more)
    assert done.returncode == 0, done.stderr


def samples_by_series(folder: str) -> dict[str, dict[int, str]]:
    """{name and labels: {seconds since START, a multiple of STEP: value}} of what rules read."""
    out: dict[str, dict[int, str]] = {}
    with gzip.open(os.path.join(folder, "samples.prom.gz"), "rt", encoding="utf-8") as file:
        for line in file:
            if NEEDED.match(line):
                head, value, unix_ms = line.rsplit(" ", 2)
                # Each host is scraped at its own moment; an evaluation sees what came before it.
                step = -(-(int(unix_ms) - START * 1000) // (STEP * 1000)) * STEP
                out.setdefault(head, {})[step] = value
    return out


def promtool_test(folder: str, rules: str, series: dict[str, dict[int, str]], seconds: int, checks: list,
                  interval: int = STEP) -> str:
    """What `promtool test rules` says of these series; empty when all holds. checks: (expression, seconds)."""
    inputs = []
    for head, samples in series.items():
        # '_' has no sample: what is not scraped is stale after the hold of the rules.
        values = " ".join(samples.get(at, "_") for at in range(0, seconds + 1, STEP))
        inputs.append({"series": head, "values": values})
    test = {"rule_files": [rules], "evaluation_interval": f"{interval}s",
            "tests": [{"interval": f"{STEP}s", "input_series": inputs,
                       "promql_expr_test": [{"expr": expression, "eval_time": f"{at}s",
                                             "exp_samples": [{"labels": "{}", "value": 1}]} for expression, at in checks]}]}
    path = os.path.join(folder, "test.yml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(test, file)  # JSON is YAML
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, timeout=600, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-6000:]


def ofu_of(job: str, window: str) -> str:
    pick = f'{{flopsight_job="{job}"}}[{window}]'
    return (f"sum(sum_over_time(job:flopsight_delivered_gpus:sum{pick}))"
            f" / sum(sum_over_time(job:flopsight_measured_gpus:sum{pick}))")


class Scenario(unittest.TestCase):
    """The rules in the engine of Prometheus, over whole simulated histories."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))

    def compare(self, scenario: str, hours: float, *more: str):
        simulate(self.folder, scenario, hours, *more)
        seconds = int(hours * 3600)
        done = run("report", "--file", self.folder + "/samples.prom.gz", "--start", START, "--end", START + seconds, "--format", "json")
        report = json.loads(done.stdout)
        rules = write_rules(self.folder, "--gpu", GPU, "--interval", "15s", "--scrape-interval", "15s", "--no-alerts")
        checks, compared = [], 0
        for group in report["groups"]:
            job = group["key"]["job"]
            # An end of a job costs up to two intervals: of a job of minutes that is more than a tenth of a point.
            if job is None or group["gpu_hours_allocated"] < 0.7 * hours * group["gpu_count"]:
                continue
            compared += 1
            checks.append((f"abs({ofu_of(job, f'{seconds}s')} - {group['ofu_ratio']!r}) < bool {POINT}", seconds))
        self.assertGreater(compared, 1)
        fleet_ofu = ("sum_over_time(fleet:flopsight_delivered_gpus:sum[%ds]) / sum_over_time(fleet:flopsight_measured_gpus:sum[%ds])"
                     % (seconds, seconds))
        checks.append((f"abs({fleet_ofu} - {report['fleet']['ofu_ratio']!r}) < bool {POINT}", seconds))
        checks.append((f"abs(sum(max_over_time(fleet:flopsight_allocated_gpus:sum[{seconds}s])) - {report['fleet']['gpu_count']}) < bool 0.001", seconds))
        self.assertEqual(promtool_test(self.folder, rules, samples_by_series(self.folder), seconds, checks), "")

    def test_steady_jobs_have_the_ofu_of_the_report(self):
        self.compare("steady", 1, "--gpus", "16")

    def test_shared_gpus_count_once(self):
        self.compare("shared_gpus", 1, "--gpus", "16")

    def check_gpus(self, gpus: dict[str, dict[str, float]], checks: dict[str, float], *more: str):
        """gpus: values of a metric by its name and labels beside UUID and model; what instant queries give after ten minutes."""
        series = {}
        for uuid, values in gpus.items():
            for head, value in values.items():
                name, _, labels = head.partition("{")
                labels = f'UUID="{uuid}",modelName="{GPU}",Hostname="n1",{labels.rstrip("}")}'.rstrip(",")
                series[f"{name}{{{labels}}}"] = {at: repr(float(value)) for at in range(0, 601, STEP)}
        rules = write_rules(self.folder, "--gpu", GPU, "--interval", "15s", "--scrape-interval", "15s", *more)
        expressions = [(f"abs(sum({query}) - {value!r}) < bool 1e-9", 600) for query, value in checks.items()]
        self.assertEqual(promtool_test(self.folder, rules, series, 600, expressions), "")

    def test_of_two_copies_the_one_within_its_range_counts(self):
        def copies(tensor, clock):
            values = {}
            for replica, a, b in zip("ab", tensor, clock):
                values[fleet.TENSOR + '{instance="%s"}' % replica] = a
                values[fleet.CLOCK + '{instance="%s"}' % replica] = b
            return values

        names = [f"GPU-0000002{number}-aaaa-bbbb-cccc-000000000000" for number in range(4)]
        self.check_gpus({names[0]: copies((0.2, 1.6), (1830, 1830)), names[1]: copies((0.5, 0.5), (1830, 0)),
                         names[2]: copies((0.5, 0.5), (1830, 2147483632)), names[3]: copies((0.5, fleet.BLANK), (1830, 1830))},
                        {**{f'gpu:flopsight_ofu:ratio{{UUID="{name}"}}': value for name, value in zip(names, (0.2, 0.5, 0.5, 0.5))},
                         "fleet:flopsight_measured_gpus:sum": 4.0})

    def test_readings_that_contradict_each_other_are_not_measured(self):
        dead = {fleet.TENSOR: 0, fleet.CLOCK: 1830, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0}
        util, power, limit = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"
        cases = [dead | {util: 100, power: 100}, dead | {util: 0, power: 600}, dead | {util: 0, power: 250, limit: 400},  # contradicted
                 dead | {util: 0, power: 70}, dead | {util: 0, power: 300}, dead | {util: 0, power: 300, limit: 700},  # idle
                 dead | {util: 100, power: 600, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.97}]  # busy without tensor work
        names = [f"GPU-0000003{number}-aaaa-bbbb-cccc-000000000000" for number in range(len(cases))]
        gpus = dict(zip(names, cases))
        # Utilization and power of a divided GPU contradict none of its instances.
        gpus["GPU-00000040-aaaa-bbbb-cccc-000000000000"] = {
            head + '{GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"}': value for head, value in (dead | {util: 100, power: 600}).items()}
        self.check_gpus(gpus, {"count(gpu:flopsight_contradicted:info)": 3.0,
                               f'count(gpu:flopsight_contradicted:info{{UUID=~"{"|".join(names[:3])}"}})': 3.0,
                               "fleet:flopsight_allocated_gpus:sum": 7 + 3 / 7, "fleet:flopsight_measured_gpus:sum": 4 + 3 / 7}, "--no-alerts")

    def alerts_of(self, scenario: str, hours: float, fires: str | None):
        """Whether the alert, and where none is named no alert at all, fires in the scenario."""
        simulate(self.folder, scenario, hours, "--gpus", "16")
        rules = write_rules(self.folder, "--gpu", GPU, "--scrape-interval", "15s")
        seconds = int(hours * 3600)
        which = f'alertname="{fires}",' if fires else ""
        fired = f'(count(count_over_time(ALERTS{{{which}alertstate="firing"}}[{seconds}s])) or vector(0))'
        check = f"{fired} > bool 0" if fires else f"{fired} == bool 0"
        self.assertEqual(promtool_test(self.folder, rules, samples_by_series(self.folder), seconds, [(check, seconds)], interval=60), "")

    def test_nothing_fires_on_a_steady_fleet(self):
        self.alerts_of("steady", 4, None)

    def test_a_hang_is_found(self):
        self.alerts_of("hang", 3, "FlopsightGpuHung")

    def test_a_debugging_flag_is_found(self):
        self.alerts_of("debug_flag_regression", 5, "FlopsightJobOfuDropped")

    def test_hot_gpus_at_a_low_clock_are_found(self):
        self.alerts_of("thermal", 4, "FlopsightGpuClockThrottled")


class Engines(unittest.TestCase):
    """The rules evaluated by servers, as time goes by and over history."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_prometheus_evaluates_every_rule(self):
        # Long held, as a history cannot reach into the future: what is recorded now would be older than the newest block.
        rules = write_rules(self.folder, "--interval", "1s", "--scrape-interval", "10m")
        now = int(time.time())
        history = []
        for number, (model, mhz, pod) in enumerate(((GPU, 1500, "train"), ("NVIDIA X900", 1500, "new"), ("NVIDIA A100-SXM4-80GB", 1410, "train"))):
            labels = {"UUID": f"GPU-0000001{number}-aaaa-bbbb-cccc-000000000000", "modelName": model, "Hostname": "n1", "pod": pod, "namespace": "a"}
            times = range((now - 300) * 1000, (now - 60) * 1000, 15_000)
            history += [Series(fleet.TENSOR, labels, [(at, 0.4) for at in times]), Series(fleet.CLOCK, labels, [(at, mhz) for at in times])]
        configuration = json.dumps({"rule_files": [rules]})
        with Prometheus(history=history, configuration=configuration) as prometheus:
            ofu = {one["metric"]["flopsight_job"]: float(one["value"][1]) for one in prometheus.wait_for("job:flopsight_ofu:ratio")}
            # An unknown model has no value, never another's clock.
            self.assertEqual(set(ofu), {"train"})
            self.assertAlmostEqual(ofu["train"], (0.4 * 1500 / 1830 + 0.4) / 2, delta=1e-9)
            coverage = {one["metric"]["flopsight_job"]: float(one["value"][1]) for one in prometheus.wait_for("job:flopsight_coverage:ratio")}
            self.assertEqual(coverage, {"train": 1, "new": 0})
            done = run("report", "--prometheus", prometheus.url, "--start", now - 300, "--end", now - 60, "--format", "json")
            report = {group["key"]["job"]: group["ofu_ratio"] for group in json.loads(done.stdout)["groups"]}
            self.assertAlmostEqual(ofu["train"], report["train"], delta=POINT)
            _, body = prometheus.get("/api/v1/rules")
            for group in json.loads(body)["data"]["groups"]:
                for rule in group["rules"]:
                    self.assertNotEqual(rule["health"], "err", rule)
            done = run("rules", "grafana")
            for panel in json.loads(done.stdout)["panels"]:
                for target in panel["targets"]:
                    prometheus.query(target["expr"].replace("$__range", "5m").replace("$job", ".*").replace("$host", ".*"))

    def test_promtool_accepts_the_rules(self):
        for more in ([], ["--no-alerts"], ["--group-by", "cluster,label_team", "--match", 'cluster=~"a|b"'], ["--clock", 'a"}) x=2e9']):
            done = subprocess.run(["promtool", "check", "rules", write_rules(self.folder, *more)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("FAILED", done.stdout + done.stderr)

    def test_vmalert_records_the_numbers_of_the_report_in_victoria_metrics(self):
        seconds = 1800
        simulate(self.folder, "steady", seconds / 3600, "--gpus", "16")
        done = run("report", "--file", self.folder + "/samples.prom.gz", "--start", START, "--end", START + seconds, "--format", "json")
        report = json.loads(done.stdout)
        with gzip.open(os.path.join(self.folder, "samples.prom.gz"), "rt", encoding="utf-8") as file:
            samples = "".join(line for line in file if NEEDED.match(line))
        with VictoriaMetrics(["-search.latencyOffset=0s", "-search.disableCache"]) as victoria:
            victoria.load_text(samples)
            self.replay(victoria, seconds)
            compared = 0
            for group in report["groups"]:
                job = group["key"]["job"]
                if job is None or group["gpu_hours_allocated"] < 0.7 * seconds / 3600 * group["gpu_count"]:
                    continue
                compared += 1
                answer = wait_until(lambda ofu=ofu_of(job, f"{seconds}s"): victoria.query(ofu, time=str(START + seconds)), "OFU of " + job)
                self.assertAlmostEqual(float(answer[0]["value"][1]), group["ofu_ratio"], delta=POINT, msg=job)
            self.assertGreater(compared, 1)

    def replay(self, victoria: VictoriaMetrics, seconds: int):
        """vmalert evaluates the rules over the past, one after the other: each waits until what those before it wrote can be read.
        So only what the OFU of jobs is made of, with the one label that names jobs here."""
        labels = os.path.join(self.folder, "labels.json")
        with open(labels, "w", encoding="utf-8") as file:
            json.dump({"holders": [{"rule": "pod", "job": "pod", "namespace": "namespace", "container": "container", "is_pod": True}]}, file)
        rules = write_rules(self.folder, "--gpu", GPU, "--interval", "15s", "--scrape-interval", "15s", "--no-alerts", "--rules", labels)
        with open(rules, encoding="utf-8") as file:
            text = file.read()
        end = text.index("      - record: ", text.index("- record: job:flopsight_delivered_gpus:sum"))
        with open(rules, "w", encoding="utf-8") as file:
            file.write(text[:end])
        times = (START, START + seconds)
        start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in times)
        done = subprocess.run(["vmalert", "-rule=" + rules, "-datasource.url=" + victoria.url, "-remoteWrite.url=" + victoria.url, "-datasource.queryStep=15s",
                               "-replay.timeFrom=" + start, "-replay.timeTo=" + end, "-replay.rulesDelay=3s", "-replay.disableProgressBar",
                               "-remoteWrite.flushInterval=200ms", "-httpListenAddr=127.0.0.1:0"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        victoria.get("/internal/force_flush")

    def test_victoria_metrics_and_vmalert_accept_every_expression(self):
        rules = write_rules(self.folder, "--scrape-interval", "30s")
        done = subprocess.run(["vmalert", "-dryRun", "-rule=" + rules], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        with open(rules, encoding="utf-8") as file:
            text = file.read()
        expressions = re.findall(r"        expr: \|-\n((?:          .*\n)+)", text)
        self.assertEqual(len(expressions), text.count("expr:"))
        with VictoriaMetrics() as victoria:
            victoria.load(fleet.standard_fleet().series)
            answers = [victoria.query(expression, time=str(fleet.START + 600)) for expression in expressions]
        # Those that read the exporters' own series have answers at once.
        self.assertGreater(sum(1 for answer in answers if answer), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Findings of the service on simulated fleets, from remote write to people: found, priced, acknowledged, silenced, resolved, and kept through kill -9."""

import calendar
import json
import os
import subprocess
import tempfile
import time
import unittest

from fleet import BINARY
from servers import wait_until
from service import LOAD_END, Service, load

COURSE_HOURS = 4
INTERVAL = 30
START = LOAD_END - COURSE_HOURS * 3600
PRICES = "model,usd_per_gpu_hour\nH100-SXM5-80GB,2.5\n"


def rfc3339(unix: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))


def unix(text: str) -> float:
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def arguments(scenario: str, hours: float = COURSE_HOURS, gpus: int = 16) -> list[str]:
    return ["--scenario", scenario, "--gpus", str(gpus), "--interval", f"{INTERVAL}s", "--course", f"{hours}h", "--start", rfc3339(START)]


def truth(scenario: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="flopsight-truth-") as folder:
        out = os.path.join(folder, "out")
        subprocess.run([BINARY, "simulate", *arguments(scenario), "--hours", str(COURSE_HOURS), "--out", out, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(out, "truth.json"), encoding="utf-8") as file:
            return json.load(file)


def send(service: Service, scenario: str, part: float = 1, **more):
    """The first part of the course, in the store when it returns."""
    hours = more.get("hours", COURSE_HOURS)
    scrapes = int(hours * 3600 * part / INTERVAL)
    _, _, err = load(service.url, *arguments(scenario, hours), "--samples", str(scrapes))
    more.get("before_restart", lambda: None)()
    service.stop()
    service.start()
    look(service, START + scrapes * INTERVAL)
    return err


def look(service: Service, end: float):
    """Until the minutes of which samples were sent have been looked at, but for the last that wait for late ones."""
    wait_until(lambda: (service.json("/api/v1/findings")["looked_until"] or "") >= rfc3339(end - 240), "look at the last minutes", 120)


def findings(service: Service, **parameters: str) -> list[dict]:
    return service.json("/api/v1/findings", **{"state": "all", **parameters})["findings"]


def post(service: Service, path: str, document: dict, token: str = "") -> tuple[int, dict]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    status, body, _ = service.ask(path, json.dumps(document).encode(), headers)
    return status, json.loads(body)


def command(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([BINARY, "findings", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Regression(unittest.TestCase):
    def test_a_debugging_switch_is_found_priced_and_followed_through_kills_until_it_is_over(self):
        event = next(e for e in truth("debug_flag_regression")["events"] if e["event"] == "debug_flag")
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as prices:
            prices.write(PRICES)
            prices.flush()
            with Service("--rollup-late", "1s", "--prices", prices.name) as service:
                self.check_open(service, event)

    def check_open(self, service: Service, event: dict):
        send(service, "debug_flag_regression", 0.6)
        found = findings(service)
        self.assertEqual([f["kind"] for f in found], ["regression"], found)
        first = found[0]
        self.assertEqual((first["state"], first["severity"]), ("open", "critical"))
        self.assertLess(abs(unix(first["first"]) - unix(event["start"])), 120)
        self.assertTrue(first["simulated"])
        # What was not delivered is at most all that was allocated since, and dollars are hours at the price.
        self.assertGreater(first["cost_gpu_hours"], 1)
        self.assertLess(first["cost_gpu_hours"], 8 * 0.2 * COURSE_HOURS)
        self.assertAlmostEqual(first["cost_usd"], 2.5 * first["cost_gpu_hours"], places=6)
        whole = service.json(f"/api/v1/findings/{first['id']}")
        self.assertEqual(whole["suspects"][0]["kind"], "host_or_input")
        self.assertEqual(len(whole["series"]["time"]), len(whole["series"]["value"]))
        job = service.json(f"/api/v1/jobs/{first['job']}", start=str(START), end=str(LOAD_END))
        self.assertEqual((job["finding_count"], job["findings"][0]["id"]), (1, first["id"]))
        fleet = service.json("/api/v1/fleet", start=str(START), end=str(LOAD_END))
        self.assertEqual((fleet["finding_count"], fleet["findings"][0]["id"]), (1, first["id"]))
        self.assertEqual(service.metric('flopsight_findings{kind="regression",severity="critical",state="open"}'), 1)
        self.check_kills(service, whole)

    def check_kills(self, service: Service, before: dict):
        service.kill()
        service.start()
        status, acknowledged = post(service, f"/api/v1/findings/{before['id']}/acknowledge", {"author": "ada", "note": "known"})
        self.assertEqual((status, acknowledged["state"], acknowledged["acknowledged_by"]), (200, "acknowledged", "ada"))
        service.kill()
        service.start()
        again = service.json(f"/api/v1/findings/{before['id']}")
        self.assertEqual((again["state"], again["note"]), ("acknowledged", "known"))
        # The rest of the course: the cost goes on from where it was, and the switch is turned off at 75 %.
        send(service, "debug_flag_regression", 0.7)
        later = service.json(f"/api/v1/findings/{before['id']}")
        self.assertEqual(later["state"], "acknowledged")
        minutes = (unix(later["last"]) - unix(before["last"])) / 60
        self.assertGreater(minutes, 10)
        rate = before["cost_gpu_hours"] / ((unix(before["last"]) - unix(before["first"])) / 60)
        self.assertAlmostEqual(later["cost_gpu_hours"] - before["cost_gpu_hours"], rate * minutes, delta=0.25 * rate * minutes)
        send(service, "debug_flag_regression")
        found = findings(service)
        self.assertEqual([(f["id"], f["state"], f["acknowledged_by"]) for f in found], [(before["id"], "resolved", "ada")], found)
        self.assertEqual(post(service, f"/api/v1/findings/{before['id']}/acknowledge", {})[0], 409)
        self.assertEqual(service.json("/api/v1/findings")["findings"], [])


class Others(unittest.TestCase):
    def test_a_hang_is_critical_costs_all_that_is_held_and_is_no_regression(self):
        events = truth("hang")["events"]
        hang = next(e for e in events if e["event"] == "hang")
        with Service("--rollup-late", "1s") as service:
            send(service, "hang", 0.65)
            found = findings(service)
            self.assertEqual([f["kind"] for f in found], ["hang"], found)
            self.assertEqual((found[0]["severity"], found[0]["state"]), ("critical", "open"))
            self.assertLess(abs(unix(found[0]["first"]) - unix(hang["start"])), 120)
            self.assertIsNone(found[0]["cost_usd"])
            self.assertEqual(found[0]["cost_usd_absent_reason"], "no price for the GPU model")
            send(service, "hang", 0.85)
            self.assertEqual([f["state"] for f in findings(service, kind="hang")], ["resolved"])
            self.check_commands(service, found[0])

    def check_commands(self, service: Service, found: dict):
        store = service.store
        code, out, err = command("list", "--store", store, "--state", "all", "--format", "json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out)["findings"], json.loads(command("list", "--server", service.url, "--state", "all", "--format", "json")[1])["findings"])
        self.assertIn(found["id"], command("list", "--store", store, "--state", "all")[1])
        self.assertEqual(command("list", "--store", store, "--state", "all", "--fail-on", "warning")[0], 0, "it is resolved")
        code, out, _ = command("show", found["id"], "--server", service.url)
        self.assertEqual(code, 0)
        self.assertIn("take stack traces of the ranks", out)
        code, _, err = command("ack", found["id"], "--store", store)
        self.assertEqual(code, 2)
        self.assertIn("--server URL", err)
        self.assertEqual(command("show", "0" * 16, "--server", service.url)[0], 2)

    def test_a_hot_host_is_found_by_name_and_silenced(self):
        throttling = next(e for e in truth("thermal")["events"] if e["event"] == "thermal_throttling")
        with Service("--rollup-late", "1s") as service:
            code, out, err = command("silence", "add", "--server", service.url, "--match", "kind=thermal", "--for", "2h", "--comment", "the pump", "--author", "ada")
            self.assertEqual((code, err), (0, ""))
            silence = out.split()[0]
            service.kill()
            service.start()
            self.assertEqual([s["id"] for s in service.json("/api/v1/silences")["silences"]], [silence])
            send(service, "thermal", 0.6)
            thermal = findings(service, kind="thermal")
            self.assertGreater(len(thermal), 0)
            for finding in thermal:
                self.assertLess(abs(unix(finding["first"]) - unix(throttling["start"])), 180)
                self.assertTrue(finding["silenced"])
                self.assertIsNotNone(finding["job"])
            self.assertFalse(any(f["silenced"] for f in findings(service) if f["kind"] != "thermal"))
            # It is over; what goes on is to be delivered again.
            self.assertEqual(command("silence", "end", silence, "--server", service.url)[0], 0)
            self.assertFalse(any(f["silenced"] for f in findings(service)))
            self.assertEqual(command("silence", "list", "--server", service.url)[1], "no silences\n")
            self.assertEqual(command("list", "--server", service.url, "--kind", "thermal", "--fail-on", "critical")[0], 1)
            self.check_resolved_by_hand(service, thermal[0])

    def check_resolved_by_hand(self, service: Service, thermal: dict):
        self.assertEqual(command("resolve", thermal["id"], "--server", service.url, "--author", "ada", "--note", "a test")[0], 0)
        send(service, "thermal", 0.7)
        again = service.json(f"/api/v1/findings/{thermal['id']}")
        self.assertEqual((again["state"], again["resolved_by"]), ("resolved", "ada"), "it goes on showing, and was said to be done")
        self.assertEqual(len([f for f in findings(service, kind="thermal") if f["key"] == thermal["key"]]), 1)

    def test_a_slow_gpu_is_found_by_name(self):
        slow = next(e for e in truth("straggler")["events"] if e["event"].startswith("slow_gpu"))
        with Service("--rollup-late", "1s") as service:
            send(service, "straggler", 0.7)
            gpus = {f["gpu"] for f in findings(service) if f["gpu"]}
            self.assertEqual(gpus, set(slow["uuids"]), findings(service))

    def test_a_fleet_in_which_nothing_is_the_matter_has_no_finding(self):
        with Service("--rollup-late", "1s") as service:
            rounds = []  # of the process before the restart, which on a slow machine makes many of them
            send(service, "steady", hours=12, before_restart=lambda: rounds.append(service.metric("flopsight_findings_rounds_total")))
            self.assertEqual(findings(service), [])
            self.assertGreater(rounds[0] + service.metric("flopsight_findings_rounds_total"), 600)


class Access(unittest.TestCase):
    def test_who_may_see_and_change_what(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as tokens:
            tokens.write("tokens:\n"
                         "  - {name: writer, token: writer-token-0001, roles: [ingest]}\n"
                         "  - {name: reader, token: reader-token-0001, roles: [read]}\n"
                         "  - {name: nobody, token: nobody-token-0001, roles: [read], users: [nobody]}\n"
                         "  - {name: admin, token: admin-token-00001, roles: [admin]}\n")
            tokens.flush()
            with Service("--rollup-late", "1s", "--tokens-file", tokens.name) as service:
                self.check(service, tokens.name)

    def check(self, service: Service, tokens: str):
        bearer = lambda token: {"Authorization": f"Bearer {token}"}
        scrapes = int(COURSE_HOURS * 3600 * 0.65 / INTERVAL)
        with tempfile.NamedTemporaryFile("w") as token:
            token.write("writer-token-0001")
            token.flush()
            load(service.url, *arguments("hang"), "--samples", str(scrapes), "--bearer-token-file", token.name)
        service.stop()
        service.start()
        listed = lambda token: service.json("/api/v1/findings", bearer(token))
        wait_until(lambda: (listed("reader-token-0001")["looked_until"] or "") >= rfc3339(START + scrapes * INTERVAL - 240), "look at the last minutes", 120)
        found = listed("reader-token-0001")["findings"]
        self.assertEqual([f["kind"] for f in found], ["hang"])
        self.assertEqual(listed("nobody-token-0001")["findings"], [])
        path = f"/api/v1/findings/{found[0]['id']}"
        self.assertEqual(service.ask(path, headers=bearer("nobody-token-0001"))[0], 404)
        self.assertEqual(service.ask("/api/v1/silences", headers=bearer("nobody-token-0001"))[0], 403)
        self.assertEqual(post(service, path + "/acknowledge", {}, "reader-token-0001")[0], 403)
        self.assertEqual(post(service, path + "/acknowledge", {})[0], 401)
        foreign = {**bearer("admin-token-00001"), "Origin": "http://attacker.example"}
        self.assertEqual(service.ask(path + "/acknowledge", b"{}", foreign)[0], 403)
        status, acknowledged = post(service, path + "/acknowledge", {"author": "somebody else"}, "admin-token-00001")
        self.assertEqual((status, acknowledged["acknowledged_by"]), (200, "admin"), "the service knows who it is")


if __name__ == "__main__":
    unittest.main()

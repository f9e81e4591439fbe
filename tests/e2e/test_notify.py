"""Findings reach who is to be told of them: a real Alertmanager, a webhook that fails first, a command; once, in order, through kill -9."""

import http.server
import json
import os
import stat
import tempfile
import threading
import unittest
import urllib.request

from servers import Alertmanager, free_port, wait_until
from service import Service
from test_findings import findings, post, send

HUNG, OVER = 0.65, 0.85  # of the course of "hang": the collective that never ends is under way, and the job has been restarted


class Webhook:
    """Keeps what it is posted, but answers the first requests with `failures`: (status, headers), or "slow"."""

    def __init__(self, *failures, port: int = 0):
        self.messages, self.failures, self.refusals = [], list(failures), 0
        self.released = threading.Event()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                failure = hook.failures.pop(0) if hook.failures else None
                if failure == "slow":
                    hook.refusals += 1
                    hook.released.wait()
                    return
                status, headers = failure or (200, {})
                if failure:
                    hook.refusals += 1
                else:
                    hook.messages.append(json.loads(body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *unused):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def told(self, kind: str) -> list[str]:
        """What happened to findings of this kind, in order."""
        return [finding["transition"] for message in self.messages for finding in message["findings"] if finding["kind"] == kind]

    def close(self):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class Notifications(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="flopsight-notify-")
        self.addCleanup(self._folder.cleanup)
        self.config = os.path.join(self._folder.name, "config.yml")

    def configure(self, *receivers: dict):
        for receiver in receivers:
            receiver.setdefault("group-wait", "0")
        with open(self.config, "w", encoding="utf-8") as file:  # JSON is YAML
            json.dump({"notify": {"external-url": "https://flopsight.example.com", "receivers": list(receivers)}}, file)

    def service(self) -> Service:
        return self.enterContext(Service("--config", self.config, "--rollup-late", "1s"))

    def enterContext(self, context):  # of Python 3.11
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def command(self) -> tuple[str, str]:
        """A program that writes a line for each run, and the file with these lines."""
        path, lines = os.path.join(self._folder.name, "hook"), os.path.join(self._folder.name, "lines")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$FLOPSIGHT_KIND $FLOPSIGHT_TRANSITION simulated=$FLOPSIGHT_SIMULATED" >> {lines}\n')
        os.chmod(path, stat.S_IRWXU)
        return path, lines

    def test_a_hang_and_its_end_reach_alertmanager_and_who_it_tells_and_a_command_once(self):
        sink = self.enterContext(Webhook())
        alertmanager = self.enterContext(Alertmanager(sink.url))
        hook, lines = self.command()
        self.configure({"name": "am", "type": "alertmanager", "url": alertmanager.url, "kinds": ["hang"], "resend": "1s", "labels": {"cluster": "a"}},
                       {"name": "hook", "type": "command", "command": [hook], "kinds": ["hang"]})
        service = self.service()
        send(service, "hang", HUNG)
        (alert,) = wait_until(alertmanager.alerts, "an alert")
        (finding,) = findings(service, kind="hang")
        self.assertEqual(alert["labels"]["alertname"], "FlopsightGpuHung")
        self.assertEqual(alert["labels"]["severity"], "critical")
        self.assertEqual(alert["labels"]["cluster"], "a")
        self.assertEqual(alert["labels"]["id"], finding["id"])
        self.assertEqual(alert["labels"]["job"], finding["job_name"])
        self.assertEqual(alert["startsAt"][:19] + "Z", finding["first"])
        self.assertIn(f"/finding?id={finding['id']}", alert["generatorURL"])
        self.assertIn("SIMULATED", alert["annotations"]["summary"])
        self.assertIn("no tensor work", alert["annotations"]["description"])
        # Sent again before it would end by itself.
        wait_until(lambda: alertmanager.alerts()[0]["endsAt"] > alert["endsAt"], "a later end")
        wait_until(lambda: sink.messages and sink.messages[0]["status"] == "firing", "a notification")

        send(service, "hang", OVER)
        wait_until(lambda: sink.messages[-1]["status"] == "resolved", "a notification of the end")
        self.assertEqual(alertmanager.alerts(), [])
        # The first run was before send() started the service again.
        wait_until(lambda: service.metric('flopsight_notify_command_exits_total{receiver="hook",type="command",code="0"}') == 1, "the run for the end")
        with open(lines, encoding="utf-8") as file:
            self.assertEqual(file.read(), "hang opened simulated=1\nhang resolved simulated=1\n")

    def test_a_webhook_that_is_away_refuses_and_is_slow_is_told_once_in_the_end(self):
        port = free_port()
        self.configure({"name": "hook", "type": "webhook", "url": f"http://user:sesame@127.0.0.1:{port}/", "kinds": "hang", "timeout": "500ms"})
        service = self.service()
        send(service, "hang", HUNG)
        service.wait_for_log("notify: hook: .*refused.*what is due waits")
        self.assertEqual(service.metric('flopsight_notify_up{receiver="hook",type="webhook"}'), 0)
        hook = self.enterContext(Webhook((503, {"Retry-After": "1"}), "slow", (429, {}), port=port))
        wait_until(lambda: hook.messages, "a message")
        self.assertEqual(hook.refusals, 3)
        self.assertEqual(hook.told("hang"), ["opened"])
        service.wait_for_log("notify: hook: takes messages again")
        self.assertEqual(service.metric('flopsight_notify_up{receiver="hook",type="webhook"}'), 1)
        self.assertEqual(service.metric('flopsight_notify_waiting_findings{receiver="hook",type="webhook"}'), 0)
        self.assertGreater(service.metric('flopsight_notify_last_success_timestamp_seconds{receiver="hook",type="webhook"}'), 1.7e9)
        self.assertNotIn("sesame", service.log())

    def test_after_kill_9_nothing_is_told_again_and_the_end_is_told(self):
        hook = self.enterContext(Webhook())
        self.configure({"name": "hook", "type": "webhook", "url": hook.url, "kinds": "hang"})
        service = self.service()
        send(service, "hang", HUNG)
        wait_until(lambda: service.metric('flopsight_notify_messages_total{receiver="hook",type="webhook"}') == 1, "a message that was taken")
        service.kill()
        service.start()
        send(service, "hang", OVER)
        wait_until(lambda: len(hook.told("hang")) >= 2, "the end")
        self.assertEqual(hook.told("hang"), ["opened", "resolved"])

    def test_what_ended_while_the_service_was_down_or_the_receiver_away_is_told_afterwards(self):
        port = free_port()
        self.configure({"name": "hook", "type": "webhook", "url": f"http://127.0.0.1:{port}/", "kinds": "hang"})
        service = self.service()
        send(service, "hang", OVER)
        self.assertEqual([finding["state"] for finding in findings(service, kind="hang")], ["resolved"])
        service.kill()
        service.start()
        hook = self.enterContext(Webhook(port=port))
        wait_until(lambda: hook.told("hang"), "the end")
        self.assertEqual(hook.told("hang"), ["resolved"])

    def test_silenced_findings_are_not_told_until_the_silence_is_over(self):
        hook, alertmanager = self.enterContext(Webhook()), self.enterContext(Alertmanager())
        self.configure({"name": "am", "type": "alertmanager", "url": alertmanager.url, "resend": "1s"}, {"name": "hook", "type": "webhook", "url": hook.url})
        service = self.service()
        status, silence = post(service, "/api/v1/silences", {"matchers": ["kind=hang"], "duration_seconds": 3600, "comment": "known"})
        self.assertIn(status, (200, 201), silence)
        send(service, "hang", HUNG)
        self.assertEqual([finding["silenced"] for finding in findings(service, kind="hang")], [True])
        self.assertEqual(hook.told("hang"), [])
        self.assertEqual(service.metric('flopsight_notify_waiting_findings{receiver="hook",type="webhook"}'), 0)
        self.assertEqual(alertmanager.alerts(), [])
        end = urllib.request.Request(f"{service.url}/api/v1/silences/{silence['id']}", method="DELETE")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(end, timeout=60) as answer:
            self.assertIn(answer.status, (200, 204))
        wait_until(lambda: hook.told("hang"), "what is not silenced any more")
        wait_until(alertmanager.alerts, "an alert")

    def test_an_alert_ends_when_somebody_acknowledges_its_finding_and_says_that_it_is_still_open(self):
        sink = self.enterContext(Webhook())
        alertmanager, hook = self.enterContext(Alertmanager(sink.url)), self.enterContext(Webhook())
        self.configure({"name": "am", "type": "alertmanager", "url": alertmanager.url, "resend": "1s"}, {"name": "hook", "type": "webhook", "url": hook.url})
        service = self.service()
        send(service, "hang", HUNG)
        wait_until(alertmanager.alerts, "an alert")
        wait_until(lambda: hook.told("hang"), "a message")
        (finding,) = findings(service, kind="hang")
        self.assertEqual(post(service, f"/api/v1/findings/{finding['id']}/acknowledge", {"author": "ada", "note": "on it"})[0], 200)
        wait_until(lambda: sink.messages[-1]["status"] == "resolved", "the end of the alert")
        self.assertIn("acknowledged", sink.messages[-1]["alerts"][0]["annotations"]["withdrawn"])
        (finding,) = findings(service, kind="hang")
        self.assertEqual(sink.messages[-1]["alerts"][0]["annotations"]["acknowledged_by"], finding["acknowledged_by"])
        send(service, "hang", OVER)
        wait_until(lambda: len(hook.told("hang")) >= 2, "the end")
        self.assertEqual(hook.told("hang"), ["opened", "resolved"])


if __name__ == "__main__":
    unittest.main()

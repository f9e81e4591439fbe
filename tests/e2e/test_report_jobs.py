"""`flopsight report --prometheus` with what else the server knows of jobs: whose pods are, and what trainers export of their own speed.
On real Prometheus and VictoriaMetrics servers.
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from fleet import SECONDS, START, Fleet, check_sums, groups_by, quality_codes, report, window
from servers import OnPrometheus, OnVictoriaMetrics, Series

NAMESPACE = "team-a"
# Pods, each on a GPU of its own, and what owns them.
PODS = ["llama-worker-0", "llama-worker-1", "web-7d9f-abcde", "web-7d9f-fghij", "sweep-1-xyz12", "ray-head-1", "alone"]


def always(name, labels, value=1.0):
    return Series(name, labels, [((START + s) * 1000, value(s) if callable(value) else value) for s in range(0, SECONDS, 30)])


def owner_of_pod(pod, kind, name, exported=""):
    """As kube-state-metrics says it; with `exported`, as Prometheus keeps it without honor_labels."""
    labels = {exported + "namespace": NAMESPACE, exported + "pod": pod, "owner_kind": kind, "owner_name": name, "owner_is_controller": "true"}
    if exported:
        labels |= {"namespace": "monitoring", "pod": "kube-state-metrics-0"}
    return always("kube_pod_owner", labels)


def kubernetes():
    return [owner_of_pod("llama-worker-0", "PyTorchJob", "llama"), owner_of_pod("llama-worker-1", "PyTorchJob", "llama", "exported_"),
            owner_of_pod("web-7d9f-abcde", "ReplicaSet", "web-7d9f"), owner_of_pod("web-7d9f-fghij", "ReplicaSet", "web-7d9f"),
            owner_of_pod("sweep-1-xyz12", "Job", "sweep-1"), owner_of_pod("alone", "<none>", "<none>"),
            owner_of_pod("not-on-a-gpu", "PyTorchJob", "other"),
            always("kube_replicaset_owner", {"namespace": NAMESPACE, "replicaset": "web-7d9f", "owner_kind": "Deployment",
                                             "owner_name": "web", "owner_is_controller": "true"}),
            always("kube_job_owner", {"namespace": NAMESPACE, "job_name": "sweep-1", "owner_kind": "JobSet", "owner_name": "sweep",
                                      "owner_is_controller": "true"}),
            always("kube_pod_labels", {"namespace": NAMESPACE, "pod": "ray-head-1", "label_ray_io_cluster": "raycluster"}),
            always("kube_pod_labels", {"namespace": NAMESPACE, "pod": "llama-worker-0", "label_team": "vision", "label_user": "ada"}),
            always("kube_pod_labels", {"namespace": NAMESPACE, "pod": "llama-worker-1", "label_team": "vision", "label_user": "ada"})]


def fleet():
    out = Fleet()
    for i, pod in enumerate(PODS):
        out.add_gpu(f"GPU-000000{i:02}-aaaa-bbbb-cccc-000000000000", "n1", i, lambda s, pod=pod: pod)
    return out


class JobsOnOneServer:
    """The tests; a class below says how a server with a history is started."""

    def test_the_pods_of_one_owner_are_one_job_by_either_route(self):
        truth = fleet()
        with self.serve(truth.series + kubernetes()) as server:
            for route in ([], ["--raw"]):
                answer = report(self, "--prometheus", server.url, *window(), *route)
                check_sums(self, answer)
                jobs = groups_by(answer, "job")
                self.assertEqual(set(jobs), {"llama", "web", "sweep", "raycluster", "alone"}, route)
                self.assertEqual(jobs["llama"]["gpu_count"], 2, route)
                for job, pods in (("llama", PODS[:2]), ("web", PODS[2:4]), ("alone", ["alone"])):
                    hours = sum(truth.truth[pod]["allocated"] for pod in pods) / 3600
                    self.assertAlmostEqual(jobs[job]["gpu_hours_allocated"], hours, delta=0.04, msg=(route, job))
            teams = groups_by(report(self, "--prometheus", server.url, *window(), "--by", "team"), "team")
            self.assertEqual(teams["vision"]["gpu_count"], 2)
            host = report(self, "--prometheus", server.url, *window(), "--by", "host")
            self.assertEqual(set(groups_by(host, "host")), {"n1"})

    def test_without_kube_state_metrics_pods_stay_apart_and_nothing_is_said(self):
        with self.serve(fleet().series) as server:
            answer = report(self, "--prometheus", server.url, *window())
            self.assertEqual(set(groups_by(answer, "job")), set(PODS))
            self.assertNotIn("owners_not_told", quality_codes(answer))

    def test_the_mfu_that_trainers_export_stands_beside_the_ofu(self):
        def rank(pod, number, value):
            return always("our_mfu", {"namespace": NAMESPACE, "pod": pod, "rank": str(number)}, value)

        trainers = [rank("llama-worker-0", 0, 38.0), rank("llama-worker-0", 1, lambda s: 42.0 if s > 600 else 0.0),
                    rank("llama-worker-1", 0, lambda s: 250.0 if s < 600 else 44.0), rank("alone", 0, 30.0), rank("elsewhere", 0, 99.0)]
        with self.serve(fleet().series + kubernetes() + trainers) as server, \
                tempfile.NamedTemporaryFile("w", suffix=".yml") as metrics:
            metrics.write("training-metrics:\n- {name: our_mfu, means: mfu, unit: '%'}\n- {name: nobody_mfu, means: mfu, unit: ratio}\n")
            metrics.flush()
            answer = report(self, "--prometheus", server.url, *window(), "--training-metrics", metrics.name)
            jobs = groups_by(answer, "job")
            # Of the first pod 40, of the second 44.
            self.assertAlmostEqual(jobs["llama"]["reported_mfu_ratio"], 0.42, delta=1e-9)
            self.assertAlmostEqual(jobs["alone"]["reported_mfu_ratio"], 0.30, delta=1e-9)
            self.assertIsNone(jobs["web"].get("reported_mfu_ratio"))
            self.assertEqual(answer["mfu"]["all"]["job_count"], 2)
            self.assertTrue(any("reported MFU" in text for text in answer["assumptions"]))


class JobsOnPrometheus(OnPrometheus, JobsOnOneServer, unittest.TestCase):
    pass


class JobsOnVictoriaMetrics(OnVictoriaMetrics, JobsOnOneServer, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)

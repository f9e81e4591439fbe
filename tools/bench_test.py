#!/usr/bin/env python3
"""Tests of bench.py: what becomes of a program's report and of a script's lines."""

import unittest

import bench


def run(name: str, **more) -> dict:
    return {"name": name, "run_type": "iteration", "real_time": 2.0, "time_unit": "ms"} | more


class Reports(unittest.TestCase):
    def results(self, *runs: dict) -> list[dict]:
        return bench.results_of_report("wire_bench", {"benchmarks": list(runs)})

    def test_rates_go_before_times(self):
        self.assertEqual(self.results(run("a"), run("b", items_per_second=5.0, label="48 series")), [
            {"name": "wire_bench/a", "value": 0.002, "unit": "seconds"},
            {"name": "wire_bench/b", "value": 5.0, "unit": "items/s", "note": "48 series"}])

    def test_a_peer_stands_beside_what_it_rivals(self):
        rate, = self.results(run("a/8", items_per_second=6.0), run("a_peer_re2/8", items_per_second=2.0))
        self.assertEqual((rate["peer"], rate["peer_value"], rate["ratio"]), ("re2", 2.0, 3.0))
        time, = self.results(run("a", real_time=1.0), run("a_peer_re2", real_time=4.0))
        self.assertEqual((time["peer"], time["ratio"]), ("re2", 4.0))

    def test_a_peer_of_other_work_stays_alone(self):
        self.assertEqual(len(self.results(run("a/8"), run("a_peer_re2/9"))), 2)

    def test_aggregates_are_left_out_and_errors_are_not(self):
        self.assertEqual(self.results(run("a_mean", run_type="aggregate")), [])
        with self.assertRaisesRegex(bench.Failure, "wire_bench: a: no file"):
            self.results(run("a", error_occurred=True, error_message="no file"))


class Lines(unittest.TestCase):
    def test_each_line_is_a_result(self):
        self.assertEqual(len(bench.results_of_lines("x.py", '{"name":"a","value":1,"unit":"s"}\n' * 2)), 2)

    def test_other_output_is_an_error(self):
        for line in ("ready", "[1]", '{"name":"a","value":1}'):
            with self.assertRaisesRegex(bench.Failure, "x.py: line 1"):
                bench.results_of_lines("x.py", line)


class Table(unittest.TestCase):
    def test_quantities(self):
        self.assertEqual(bench.quantity(0.0021, "seconds"), "2.1 ms")
        self.assertEqual(bench.quantity(2.5e-10, "seconds"), "0.25 ns")
        self.assertEqual(bench.quantity(3.5e6, "items/s"), "3.5 M items/s")
        self.assertEqual(bench.quantity(0, "bytes"), "0 B")
        self.assertEqual(bench.quantity(1.83, "bytes/point"), "1.83 bytes/point")
        self.assertEqual(bench.quantity(None, "seconds"), "–")


if __name__ == "__main__":
    unittest.main()

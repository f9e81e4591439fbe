#!/usr/bin/env python3
"""Runs the benchmarks that ./bench has built and puts their results into one table and one file.

A result is an object with the keys name, value, unit, peer, peer_value, ratio and note; all but the first
three may be absent. `ratio` says how many times better than the peer, or than the bound named in `peer`,
the value is: above 1 it is better.

 - A program *_bench (Google Benchmark) gives one result a benchmark: items or bytes a second where the
   benchmark sets them, else seconds. A benchmark named X_peer_NAME is the same work done by NAME, and
   stands beside X instead of in a row of its own. A label set by the benchmark becomes the note.
 - A script benchmarks/*.py prints one result a line as JSON on standard output, and anything for people on
   standard error. It finds the program in FLOPSIGHT_BINARY and the sources in FLOPSIGHT_SOURCE_DIR. One
   that is not executable is a helper of others and is not run.
"""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
PREFIXES = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")]
SCALED = {"seconds": "s", "bytes": "B", "bytes/s": "B/s", "items/s": " items/s"}  # shown with a prefix


class Failure(Exception):
    """One benchmark did not give an answer; the others still run."""


def results_of_report(program: str, report: dict) -> list[dict]:
    """The results in the JSON report of a Google Benchmark program, peers joined to what they rival."""
    results: dict[str, dict] = {}
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            raise Failure(f"{program}: {run['name']}: {run.get('error_message', 'failed')}")
        if run.get("run_type", "iteration") != "iteration":
            continue
        if "items_per_second" in run:
            value, unit = run["items_per_second"], "items/s"
        elif "bytes_per_second" in run:
            value, unit = run["bytes_per_second"], "bytes/s"
        else:
            value, unit = run["real_time"] * SECONDS[run["time_unit"]], "seconds"
        result = {"name": f"{program}/{run['name']}", "value": value, "unit": unit}
        if run.get("label"):
            result["note"] = run["label"]
        results[run["name"]] = result
    for name, result in list(results.items()):
        base, slash, arguments = name.partition("/")
        own, marker, peer = base.partition("_peer_")
        rival = results.get(own + slash + arguments)
        if marker and rival and rival["unit"] == result["unit"]:
            better = (rival["value"], result["value"])
            ratio = better[1] / better[0] if result["unit"] == "seconds" else better[0] / better[1]
            rival.update(peer=peer, peer_value=result["value"], ratio=ratio)
            del results[name]
    return list(results.values())


def results_of_lines(script: str, text: str) -> list[dict]:
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            result = None
        if not isinstance(result, dict) or not {"name", "value", "unit"} <= result.keys():
            raise Failure(f"{script}: line {number} of its output is no result: {line[:80]}")
        results.append(result)
    return results


def run_program(program: pathlib.Path, names: list[str]) -> list[dict]:
    report = BUILD / f"{program.name}.json"
    command = [str(program), f"--benchmark_out={report}", "--benchmark_out_format=json"]
    if names and not any(name in program.name for name in names):
        command.append(f"--benchmark_filter={'|'.join(names)}")
        listed = subprocess.run(command + ["--benchmark_list_tests"], capture_output=True, text=True,
                                check=False)
        if not listed.stdout.strip() or "Failed to match" in listed.stdout + listed.stderr:
            return []
    print(f"running {program.name}", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failure(f"{program.name}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return results_of_report(program.name, json.loads(report.read_text()))


def run_script(script: pathlib.Path, names: list[str]) -> list[dict]:
    if names and not any(name in script.name for name in names):
        return []
    print(f"running {script.name}", file=sys.stderr)
    environment = dict(os.environ, FLOPSIGHT_BINARY=str(BUILD / "flopsight"),
                       FLOPSIGHT_BUILD_DIR=str(BUILD), FLOPSIGHT_SOURCE_DIR=str(ROOT))
    done = subprocess.run([sys.executable, "-B", str(script)], stdout=subprocess.PIPE, text=True,
                          env=environment, check=False)
    if done.returncode != 0:
        raise Failure(f"{script.name}: exit status {done.returncode}")
    return results_of_lines(script.name, done.stdout)


def quantity(value: object, unit: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if unit not in SCALED:
        return f"{value:,.4g} {unit}"
    least = (1, "") if value == 0 else PREFIXES[-1]
    factor, prefix = next((pair for pair in PREFIXES if abs(value) >= pair[0]), least)
    return f"{value / factor:.4g} {prefix}{SCALED[unit]}"


def table(results: list[dict]) -> str:
    rows = [("benchmark", "value", "peer or bound", "its value", "ratio", "note")]
    for result in results:
        ratio = result.get("ratio")
        unit, peer_value = result["unit"], result.get("peer_value")
        rows.append((result["name"], quantity(result["value"], unit), str(result.get("peer") or ""),
                     "" if peer_value is None else quantity(peer_value, unit),
                     "" if ratio is None else f"{ratio:.2f}", str(result.get("note") or "")))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = (1, 3, 4)
    return "\n".join("  ".join(
        cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip()
        for row in rows)


def context() -> dict:
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    cpu = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
           if line.startswith("model name")]
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"commit": commit or None, "time": now.isoformat("T", "seconds"),
            "cpu": cpu[0] if cpu else platform.machine(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}


def main(names: list[str]) -> int:
    programs = sorted(path for path in BUILD.glob("*_bench") if os.access(path, os.X_OK))
    scripts = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if os.access(path, os.X_OK))
    about, results, failures = context(), [], []
    for runner, path in [(run_program, path) for path in programs] + [(run_script, path) for path in scripts]:
        try:
            results += runner(path, names)
        except (Failure, KeyError, ValueError) as failure:
            failures.append(str(failure))
            print(f"bench: {failure}", file=sys.stderr)
    if not results and not failures:
        print(f"bench: no benchmark matches {' '.join(names)}" if names else "bench: there are no benchmarks",
              file=sys.stderr)
        return 2
    (BUILD / "results.json").write_text(
        json.dumps({"context": about, "results": results, "failures": failures}, indent=1) + "\n")
    print(table(results))
    print(f"\n{len(results)} results, {len(failures)} failures, on {about['cpus']} × {about['cpu']}, "
          f"load {about['load']:.1f} at the start; build/bench/results.json")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

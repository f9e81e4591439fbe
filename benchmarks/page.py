#!/usr/bin/env python3
"""The page of a large fleet in Debian's Chromium: when something useful is painted, how long the answers of its first page take, and how long
an interaction takes until it is on the screen. Medians of five openings; browser and service share the machine's cores.

The fleet page reads a day of a store that store_bench filled; the map is of a fleet that `flopsight simulate` sent, minutes of it, as it has
a cell for each GPU. With a web/node_modules that tools/build-web has fetched.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

SOURCES = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(SOURCES / "benchmarks"))
import serve  # noqa: E402

BOUNDS = {"first_paint_milliseconds": 1_000, "figures_milliseconds": 1_000, "hover_milliseconds": 100, "colour_milliseconds": 100, "dialog_milliseconds": 100}
ANSWER_BOUND = 200


def measure(name: str, url: str, path: str, gpus: int):
    script = SOURCES / "web" / "e2e" / "measure.mjs"
    done = subprocess.run(["node", script, url, path], capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    for answer, milliseconds in measured.pop("answers").items():
        bound = {"peer": "bound", "peer_value": ANSWER_BOUND / 1e3, "ratio": ANSWER_BOUND / milliseconds} if name == "fleet" else {}
        serve.result(f"page/{name}{answer}_{gpus}_gpus", milliseconds / 1e3, "seconds", **bound)
    for what, milliseconds in measured.items():
        serve.result(f"page/{name}/{what.removesuffix('_milliseconds')}_{gpus}_gpus", milliseconds / 1e3, "seconds", peer="bound",
                     peer_value=BOUNDS[what] / 1e3, ratio=BOUNDS[what] / milliseconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="a small fleet, to see that it runs")
    arguments = parser.parse_args()
    gpus = 1_000 if arguments.quick else arguments.gpus
    end = int(time.time()) // 60 * 60
    with serve.Filled(gpus, end) as server:
        measure("fleet", server.url, "/", gpus)
    with serve.Flopsight() as server:
        serve.send(server.url + "/api/v1/write", gpus, 12, end - 12 * 60, metrics=4, interval=60)
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if json.loads(server.get("/api/v1/gpus?since=15m")[1])["gpu_count"] >= gpus * 0.9:
                break
            time.sleep(2)
        measure("map", server.url, "/map?of=15m", gpus)


if __name__ == "__main__":
    main()

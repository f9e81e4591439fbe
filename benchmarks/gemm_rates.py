#!/usr/bin/env python3
"""Predicted rates of matrix products (`flopsight gemm --measured`) against the measured ones of the matmul table that XLA ships.

Nothing is fitted to the table: the prediction has tile and wave efficiency, the best published share of the peak, bandwidth and a start
of 3 us. Printed, for each GPU: how far predicted is from measured, over products of 10 GFLOPs and more and over all, and how
many rows are above the dense peak, which no GPU can do. `sm_90` does not say which H100; the SXM5 is assumed.
"""

import csv
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

SOURCE = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCE / "build" / "release" / "flopsight"))
TABLE = SOURCE / "tests" / "fixtures" / "gemm" / "xla-matmul_rates.csv.gz"
GPUS = {"sm_90": "H100-SXM5-80GB", "sm_100_B200": "B200-SXM"}


def precision(dtype: str) -> str:
    """Of the inputs; products of FP32 above the FP32 peak of CUDA cores, as the table's are, run as TF32."""
    return {"bf16": "bf16", "f32": "tf32"}.get(dtype.split("x")[0], "fp8")


def check(gpu: str, rows: list[dict]) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("m,n,k,batch,precision,tflops\n")
        for row in rows:
            file.write(",".join([row["m"], row["n"], row["k"], row["batch"], precision(row["dtype"]), row["tflops"]]) + "\n")
        file.flush()
        done = subprocess.run([BINARY, "gemm", "--measured", file.name, "--gpu", gpu, "--format", "json"],
                              check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["measured"]


def main() -> None:
    with gzip.open(TABLE, "rt") as file:
        rows = list(csv.DictReader(file))
    for name, gpu in GPUS.items():
        measured = check(gpu, [row for row in rows if row["gpu_or_sm"] == name])
        errors = measured["predicted_over_measured_less_one"]
        for size, key in (("10 GFLOPs and more", "from_1e10_flops"), ("all sizes", "all")):
            e = errors[key]
            note = (f"10th to 90th percentile {100 * e['p10_ratio']:+.0f} to {100 * e['p90_ratio']:+.0f} %, "
                    f"{100 * e['within_25_percent_ratio']:.0f} % of {e['rows']} rows within 25 %")
            print(json.dumps({"name": f"predicted matmul rate, {gpu}, {size}: median error", "value": round(100 * e["median_ratio"], 1),
                              "unit": "%", "note": note}))
        lines = measured["impossible_lines"]
        print(json.dumps({"name": f"measured matmul rates above the peak, {gpu}", "value": len(lines), "unit": "rows",
                          "note": f"of {len(measured['rows'])}, left out" if lines else f"of {len(measured['rows'])}"}))


if __name__ == "__main__":
    main()

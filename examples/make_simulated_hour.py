#!/usr/bin/env python3
"""Writes simulated-h100-hour.prom.gz: an hour of a fleet that does not exist, for trying the report.

Two nodes of eight H100 scraped every 30 s: a power-capped training on twelve GPUs, a fine-tuning on two, a notebook that
holds a GPU and runs nothing, a free GPU; node sim-02's exporter is down for five minutes. Every number is made up
(seed 1), in the shape that dcgm-exporter gives on Kubernetes.
"""

import gzip
import os
import random

START = 1_767_225_600  # 2026-01-01T00:00:00Z
STEP = 30
SAMPLES = 120
METRICS = ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_PROF_SM_ACTIVE",
           "DCGM_FI_DEV_POWER_USAGE")


def job_of(gpu):
    if gpu < 12:
        return ("llm-pretrain-worker-" + str(gpu // 8), "foundation", "ada")
    return {12: ("finetune-7b", "apps", "grace"), 13: ("finetune-7b", "apps", "grace"),
            14: ("notebook-linus", "research", "linus")}.get(gpu)


def values(rng, gpu, i):
    if gpu < 12:
        # A checkpoint every 20 minutes stops the tensor pipes for a scrape.
        busy = i % 40 != 39
        return (rng.gauss(0.47, 0.01) if busy else rng.uniform(0.0, 0.02), rng.gauss(1590, 25),
                rng.gauss(0.93, 0.01) if busy else rng.uniform(0.05, 0.2), rng.gauss(690, 5))
    if gpu < 14:
        return rng.gauss(0.12, 0.03), rng.gauss(1960, 10), rng.gauss(0.35, 0.04), rng.gauss(310, 25)
    return 0.0, 345, 0.0, rng.gauss(72, 1)


def main():
    rng = random.Random(1)
    lines = {metric: [] for metric in METRICS}
    for gpu in range(16):
        node = gpu // 8 + 1
        labels = (f'gpu="{gpu % 8}",UUID="GPU-5111{gpu:04d}-0000-4000-8000-000000000000",'
                  f'pci_bus_id="00000000:{0x1b + 16 * (gpu % 8):02X}:00.0",device="nvidia{gpu % 8}",'
                  f'modelName="NVIDIA H100 80GB HBM3",Hostname="sim-{node:02d}"')
        job = job_of(gpu)
        if job:
            labels += f',container="main",namespace="{job[1]}",pod="{job[0]}",team="{job[1]}",user="{job[2]}"'
        for i in range(SAMPLES):
            tensor, clock, sm, power = values(rng, gpu, i)
            if node == 2 and 60 <= i < 70:
                continue
            for metric, text in zip(METRICS, (f"{max(tensor, 0):.6f}", f"{clock:.0f}", f"{max(sm, 0):.6f}",
                                              f"{power:.3f}")):
                lines[metric].append(f"{metric}{{{labels}}} {text} {(START + i * STEP) * 1000}\n")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "simulated-h100-hour.prom.gz")
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        out.write(b"# SIMULATED by examples/make_simulated_hour.py; no such GPU exists.\n")
        out.write(b"# TYPE flopsight_simulated gauge\nflopsight_simulated 1\n")
        for metric in METRICS:
            out.write(f"# TYPE {metric} gauge\n".encode())
            out.write("".join(lines[metric]).encode())


if __name__ == "__main__":
    main()

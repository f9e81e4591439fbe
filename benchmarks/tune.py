#!/usr/bin/env python3
"""How long a whole advice of `flopsight tune` takes, with its search over layouts: bar one second, and five for 1,024 GPUs.

Models of every kind that the search treats differently: dense, experts, latent attention, hybrid. How good the predictions are is measured by a
test (docs/tune-accuracy.md).
"""

import json
import os
import pathlib
import subprocess
import time

SOURCE = pathlib.Path(os.environ.get("FLOPSIGHT_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
BINARY = os.environ.get("FLOPSIGHT_BINARY", str(SOURCE / "build" / "release" / "flopsight"))
CONFIGS = SOURCE / "tests" / "fixtures" / "hf_configs"
RUNS = 5
CASES = [
    ("made--Llama-3-70B", 64, 8192, 128),
    ("made--Llama-3.1-405B", 1024, 8192, 1024),
    ("deepseek-ai--DeepSeek-V3", 1024, 4096, 8192),
    ("Qwen--Qwen3-30B-A3B", 1024, 131072, 1024),
    ("nvidia--Nemotron-H-56B-Base-8K", 1024, 8192, 4096),
]


def main() -> None:
    for model, gpus, tokens, batch in CASES:
        command = [BINARY, "tune", "train", "--config", str(CONFIGS / f"{model}_config.json"), "--gpu", "H100-SXM5-80GB", "--gpus", str(gpus),
                   "--seq-len", str(tokens), "--global-batch", str(batch), "--search", "--format", "json"]
        seconds = []
        for _ in range(RUNS):
            start = time.monotonic()
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds.append(time.monotonic() - start)
        answer = json.loads(done.stdout)
        print(json.dumps({"name": f"tune train, whole advice with two searches: {model}, {gpus} GPUs", "value": round(sorted(seconds)[RUNS // 2], 3), "unit": "s",
                          "note": f"median of {RUNS}; {answer['layouts_tried']} layouts divide, {answer['layouts_fitting']} fit"}))


if __name__ == "__main__":
    main()

"""The suite gpu's steps, tiny, on the host CUDA runtime: that they work, not what they measure."""
import json
import os
import sys
import tempfile

from harness import TOP, environment, execute, expect, main


def every_step():
    """tests/gpu/run --dry"""
    with tempfile.TemporaryDirectory() as d:
        execute([sys.executable, os.path.join(TOP, "tests", "gpu", "run"), "--dry", "--out", d, "--timeout", "200"], 560, environment())
        with open(os.path.join(d, "results.json")) as f:
            results = json.load(f)
        expect(os.path.getsize(os.path.join(d, "results.md")) > 0, "no results.md")
    expect(set(results["rows"]) == {"identity", "models", "graphs", "trace", "sweep", "pair"}, f"steps {sorted(results['rows'])}")
    expect({r["model"] for r in results["rows"]["models"]} == {"resnet152", "bert-large", "dlrm"}, "all models")


def skipped_without_gpu():
    """Without --dry it says why it does nothing"""
    import subprocess
    p = subprocess.run([sys.executable, os.path.join(TOP, "tests", "gpu", "run")], stdout=subprocess.PIPE, text=True, timeout=120,
                       env=environment({"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}))
    if os.path.exists("/proc/driver/nvidia/version"):
        print("skip  skipped_without_gpu: there is an NVIDIA driver here")
        return
    expect(p.returncode == 77 and p.stdout.startswith("skipped: no NVIDIA GPU"), f"{p.returncode}: {p.stdout}")


main(every_step, skipped_without_gpu)

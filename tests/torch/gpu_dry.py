"""The suite gpu's steps, tiny, on the host CUDA runtime: that they work, not what they measure."""
import json
import os
import subprocess
import sys
import tempfile

from harness import TOP, Failed, environment, execute, expect, main


def gpu(d, *words, timeout=560):
    execute([sys.executable, os.path.join(TOP, "tests", "gpu", "run"), "--dry", "--out", d, "--timeout", "200", *words], timeout, environment())


def results_of(d):
    expect(os.path.getsize(os.path.join(d, "results.md")) > 0, "no results.md")
    with open(os.path.join(d, "results.json")) as f:
        return json.load(f)["steps"]


def every_step_works():
    """tests/gpu/run --dry"""
    with tempfile.TemporaryDirectory() as d:
        gpu(d)
        steps = results_of(d)
    expect(set(steps) == {"numbers", "identity", "models", "graphs", "trace", "sweep", "pair"}, f"steps {sorted(steps)}")
    expect(all(s["rows"] and not s["failures"] for s in steps.values()), str(steps))
    expect({r["model"] for r in steps["models"]["rows"]} == {"resnet152", "bert-large", "dlrm"}, "all models")


def results_are_kept_in_all_cases():
    """A step whose job breaks, and a suite that is ended in the middle, leave results; what other sittings found is kept"""
    with tempfile.TemporaryDirectory() as d:
        old = {"about": {"dry": True}, "rows": [{"kept": 1}], "failures": []}
        with open(os.path.join(d, "results.json"), "w") as f:
            json.dump({"steps": {"sweep": old, "trace": old}}, f)
        try:
            gpu(d, "--only", "trace", "--timeout", "1")
            expect(False, "a job that is not over in time is no failure")
        except Failed as e:
            expect("was not over after 1 s" in str(e), str(e))
        steps = results_of(d)
        expect(steps["sweep"] == old and steps["trace"]["rows"] == [], str(steps))
        expect("was not over after 1 s" in steps["trace"]["failures"][0], str(steps))
        p = subprocess.Popen([sys.executable, os.path.join(TOP, "tests", "gpu", "run"), "--dry", "--out", d, "--only", "pair"],
                             stdout=subprocess.PIPE, text=True, env=environment())
        while not p.stdout.readline().startswith("pair:"):
            expect(p.poll() is None, "it ended before its step")
        p.terminate()
        p.communicate(timeout=300)  # at the latest when a job is over
        steps = results_of(d)
        expect(p.returncode == 143 and "was ended in this step" in steps["pair"]["failures"][0] and steps["sweep"] == old, f"{p.returncode} {steps}")


def it_is_skipped_without_a_gpu():
    """Without --dry it says why it does nothing"""
    p = subprocess.run([sys.executable, os.path.join(TOP, "tests", "gpu", "run")], stdout=subprocess.PIPE, text=True, timeout=120,
                       env=environment({"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}))
    if os.path.exists("/proc/driver/nvidia/version"):
        print("skip  it_is_skipped_without_a_gpu: there is an NVIDIA driver here")
        return
    expect(p.returncode == 77 and p.stdout.startswith("skipped: no NVIDIA GPU"), f"{p.returncode}: {p.stdout}")


main(every_step_works, results_are_kept_in_all_cases, it_is_skipped_without_a_gpu)

"""What a world of 512 ranks costs at the start: 8 real ranks as one node of 64, against a plain job of 8 processes. ./scripts/bench torch

Two times, medians of alternating rounds: a process's init_process_group and first barrier, and the whole job from launch to end."""
import json
import os
import statistics
import sys
import tempfile

from harness import emulate, plain

ARGS = ["--sizes", 1024, "--steps", 5, "--warmup", 1]


def measure(run):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "job.json")
        seconds = run(path).seconds
        with open(path) as f:
            return json.load(f)["init_s"], seconds


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    runs = {"plain, 8 ranks": lambda path: plain(8, "calls.py", [*ARGS, "--json", path], timeout=300),
            "one node of 512 ranks": lambda path: emulate(64, 8, "calls.py", [*ARGS, "--json", path], timeout=300)}
    times = {name: [] for name in runs}
    for i in range(rounds):
        for name in (list(runs) if i % 2 == 0 else list(runs)[::-1]):
            times[name].append(measure(runs[name]))
    print(f"8 real ranks; medians of {rounds} rounds, taking turns")
    print(f"{'run':<24}{'init and first barrier s':>26}{'launch to end s':>18}")
    rows = []
    for name, values in times.items():
        init, whole = (statistics.median(v[i] for v in values) for i in range(2))
        rows.append({"run": name, "init_s": init, "job_s": whole})
        print(f"{name:<24}{init:>26.2f}{whole:>18.2f}")
    print(f"{'difference':<24}{rows[1]['init_s'] - rows[0]['init_s']:>26.2f}{rows[1]['job_s'] - rows[0]['job_s']:>18.2f}")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as f:
            json.dump(rows, f)


main()

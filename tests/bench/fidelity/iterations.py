"""What nbox's record says of the iterations of rank 0, in virtual time: the wall clock's also has what the machine added."""
import csv
import io
import statistics
import subprocess

from laboratory import Failed

MS = 1e6


def report(nbox, flag, folder):
    text = subprocess.run([nbox, "report", flag, folder], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [r for r in csv.DictReader(io.StringIO(text)) if r["world_rank"] == "0"]


def begins_of(ops, per_iteration):
    """The first op of each iteration: with so many ops in each, or (None) as nbox tells steps."""
    if per_iteration:
        return ops[::per_iteration]
    return [op for before, op in zip([None, *ops], ops) if op["step"] != "0" and (not before or op["step"] != before["step"])]


def medians_of(nbox, folder, per_iteration, warmup):
    """{iteration_ms, exposed_ms, injected_ms} of a run in @folder, from one iteration's first op to the next one's."""
    ops = sorted(report(nbox, "--csv", folder), key=lambda op: int(op["call_ns"]))  # rows are in the order in which ops ended
    if per_iteration and len(ops) % per_iteration:
        raise Failed(f"nbox recorded {len(ops)} ops of iterations of {per_iteration}")
    begins = begins_of(ops, per_iteration)[warmup - 1:]
    points = [(int(p["virtual_ns"]), int(p["exposed_ns"])) for p in report(nbox, "--points", folder)]
    took, injected, exposed = [], [], []
    for a, b in zip(begins, begins[1:]):
        at = [(int(op["virtual_arrive_ns"]), int(op["plain_arrive_ns"])) for op in (a, b)]
        took.append(at[1][0] - at[0][0])
        injected.append(took[-1] - (at[1][1] - at[0][1]))
        exposed.append(sum(ns for t, ns in points if at[0][0] <= t < at[1][0]))
    if not took:
        raise Failed("nbox recorded no iterations")
    return {k: statistics.median(v) / MS for k, v in (("iteration_ms", took), ("injected_ms", injected), ("exposed_ms", exposed))}

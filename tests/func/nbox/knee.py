"""knee.py NBOX RUN: the knee that nbox why finds for the all-reduces of RUN, against re-timed delays. Behind all knees each of them is
paid in full; up to this one no more than half of that, beyond it no less."""
import json, subprocess, sys

nbox, run = sys.argv[1:]


def why(*words):
    return json.loads(subprocess.run([nbox, "why", run, *words, "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)


def iteration(delay_ms):
    return why("--what-if", f"add:op=allreduce,delay={delay_ms:.6f}ms")["median_ms"]


base = why()
slack, = (s for s in base["slack"] if s["op"] == "AllReduce")
knee, n, none = slack["knee_ms"], slack["an_iteration"], iteration(0)
far = 2 * none + 10 * knee
steepest = (iteration(2 * far) - iteration(far)) / far
assert abs(steepest - n) <= 0.02 * n, f"far behind the knee {steepest} ms are paid of each ms, not {n}"
# medians of iterations that differ do not turn as each of them does
margin = 0.1 * none
before, behind = iteration(knee) - none, iteration(3 * knee) - iteration(knee)
assert before <= 0.51 * n * knee + margin, f"{before} ms are paid up to a knee of {knee} ms of {n} ops"
assert behind >= 0.49 * n * 2 * knee - margin, f"{behind} ms are paid from {knee} to {3 * knee} ms of {n} ops"
print(f"{n:g} all-reduces an iteration of {none:.3f} ms; the knee of their delay is at {knee:.3f} ms: {before:.3f} ms are paid there, "
      f"{behind:.3f} more at three times as much")

#!/usr/bin/env bash
# The main job: a data-parallel trainer believes in its cluster. The losses of the plain run and of every virtual world are equal.
script=$(realpath "$(dirname "$0")/../../../scripts/main-job")
. "$(dirname "$0")/lib.sh"
trainer="$BUILD/tests/apps/trainer --steps 6 --batch 4 --hidden 64 --json"

# shellcheck disable=SC2086
exits 0 "plain, 2 real ranks" "$NBOX" run --plain --procs 2 --quiet -- $trainer plain.json
loss=$(json plain.json 'd["loss"]')
close() { python3 -c 'import sys; a, b = map(float, sys.argv[1:3]); sys.exit(not (a > 0 and abs(a - b) <= 2e-6 * abs(a)))' "$1" "$2"; }
for world in 2 16 1024; do
	# shellcheck disable=SC2086
	exits 0 "one node of $world ranks" "$NBOX" run --quiet --nodes $((world / 2)) --gpus-per-node 2 --model ring --out "w$world" --json "w$world-s.json" -- $trainer "w$world.json"
	check "the loss at $world ranks equals the plain run's to fp32 rounding" close "$loss" "$(json "w$world.json" 'd["loss"]')"
done
is "$(json w1024-s.json 'd["steps"]["count"] >= 4')" True "steps were found"
for exchange in messages payload; do
	# shellcheck disable=SC2086
	exits 0 "16 ranks, $exchange" "$NBOX" run --quiet --nodes 8 --gpus-per-node 2 --model ring --exchange $exchange --out "x$exchange" -- $trainer "x.json"
	check "the loss under $exchange" close "$loss" "$(json x.json 'd["loss"]')"
done
# a delay far above anything else must be paid for: never early
# shellcheck disable=SC2086
exits 0 "with 50 ms added" "$NBOX" run --quiet --nodes 64 --gpus-per-node 2 --model ring --what-if add:op=allreduce,delay=50ms --out add --json add-s.json -- $trainer add.json
is "$(json add-s.json 'd["steps"]["ms"]["mean"] >= 50')" True "an added delay is in the step's time"
check "the loss with the delay" close "$loss" "$(json add.json 'd["loss"]')"
# the script's table: runs take turns, the fastest count, what was disturbed runs again, but not for ever
check "the table of scripts/main-job" python3 - "$script" <<'PY'
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("main_job", sys.argv[1])
m = importlib.util.module_from_spec(importlib.util.spec_from_loader("main_job", loader))
sys.dont_write_bytecode = True
loader.exec_module(m)
times = {"steady": [10, 10.5, 10.2], "once": [40, 20, 20.5, 21, 99], "always": [1, 2, 4, 8, 16, 32, 64, 128]}
def measure(after_s):
    left, order, now = {k: list(v) for k, v in times.items()}, [], [0]
    def train(label, nbox_args, opt):
        order.append(label)
        now[0] += after_s
        t = left[label].pop(0)
        return {"run": label, "iteration_ms": t, "exposed_ms": t / 2, "modelled_ms": None, "injected_ms": 0.0, "late_us": None, "loss": 1.0, "warnings": []}
    m.train, m.time.monotonic = train, lambda: now[0]
    return {r["run"]: r for r in m.measure([(k, []) for k in times], None)}, order
rows, order = measure(0)
assert order == 3 * ["steady", "once", "always"] + ["once", "always"] + 2 * ["always"], order
assert [(r["iteration_ms"], r["exposed_ms"], r["is_steady"]) for r in rows.values()] == [(10.2, 5.1, True), (20.5, 10.25, True), (2, 1.0, False)], rows
rows, order = measure(100)
assert order == 3 * ["steady", "once", "always"] and not rows["once"]["is_steady"], order
PY
# its page: a curve, live dots, the knee
check "the page of scripts/main-job" python3 - "$script" "$BUILD" <<'PY'
import importlib.machinery, importlib.util, json, os, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("main_job", sys.argv[1])
m = importlib.util.module_from_spec(importlib.util.spec_from_loader("main_job", loader))
loader.exec_module(m)
m.nbox = os.path.join(sys.argv[2], "nbox")
job = [os.path.join(sys.argv[2], "tests", "apps", "trainer"), "--steps", "6", "--batch", "4", "--hidden", "64"]
class Opt: verbose = False
table, apart = m.picture("fig4", ["--nodes", "4", "--gpus-per-node", "2", "--model", "ring"], job, Opt, live="0,4ms", seeds="1")
delays = json.load(open("fig4/delays/sweep.json"))
assert [p["setting"]["delay"] for p in delays["points"] if "beside_ms" in p] == ["0ms", "4ms"]
assert apart == 0 and len(delays["points"]) == 11 and delays["knee_ms"] >= 0 and "knee " in table and "paid " in table, table
page = open("fig4/delays/sweep.html").read()
assert ">live</text>" in page and ">re-timed</text>" in page and f'>knee {delays["knee_ms"]:.2f} ms</text>' in page
PY
nothing_left
finish

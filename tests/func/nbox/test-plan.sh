#!/usr/bin/env bash
# nbox plan: what it says of points follows by arithmetic from what nbox sweep says of them.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
job=$(dirname "$test")/../../apps/stepper/jobs/ddp.job
exits 0 "a run" timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real 0 --model ring --out run -- \
	"$BUILD/tests/apps/stepper" "$job" --iterations 5 --warmup 1
cat >prices.yaml <<'P'
currency: EUR
node_hour:
  inter-bandwidth=100Gbps: 10
  800Gbps: 30
  default: 20
P
axes=(--nodes "4,8,1024" --inter-bandwidth "100,400,800Gbps")
exits 0 "a plan" "$NBOX" plan run "${axes[@]}" --samples-per-step 1K --prices prices.yaml --goal "samples/s >= 20K" --json plan.json
check "its figures" python3 -IS - <<'P'
import json
plan, sweep = json.load(open("plan.json"))["points"], json.load(open("run-sweep/sweep.json"))["points"]
assert len(plan) == len(sweep) == 9
for p, s in zip(plan, sweep):
    near = lambda a, b: abs(a / b - 1) < 1e-6 or (a, b)
    assert p["setting"] == s["setting"] and p["ranks"] == int(p["setting"]["nodes"])
    assert near(p["step_ms"], s["ms"]["mean"]) is True
    assert near(p["rate"], 1000 * p["ranks"] / 4 / s["ms"]["mean"] * 1e3) is True
    least = next(q for q in plan if q["ranks"] == 4 and q["setting"]["inter-bandwidth"] == p["setting"]["inter-bandwidth"])
    assert near(p["efficiency"], p["rate"] / p["ranks"] * 4 / least["rate"]) is True
    node = {"100Gbps": 10, "400Gbps": 20, "800Gbps": 30}[p["setting"]["inter-bandwidth"]]
    assert near(p["price_hour"], node * p["ranks"]) is True
    assert near(p["price_million"], p["price_hour"] / 3600 / p["rate"] * 1e6) is True
    assert p["meets"] == (p["rate"] >= 20e3)
    assert p["bound_by"] == ("AllReduce of world" if p["ranks"] == 1024 else "computation") and p["won"] > 0.4
    assert p["slow"] is None and "a" <= p["notes"][0] <= "z" # the model ring has no known error
met = [p for p in plan if p["meets"]]
assert [p for p in plan if p["cheapest"]] == [min(met, key=lambda p: p["price_hour"])]
P
is "$(tail -n +2 run-sweep/plan.csv | wc -l)" 9 "a row of CSV for each"
exits 3 "a goal that none meets" "$NBOX" plan run "${axes[@]}" --tokens-per-step 1 --goal "tokens/s >= 1G"
says "9 of 9 points are complete already" "nothing is played again"
refused() { local text=$1; shift; exits 2 "refused: $*" "$NBOX" plan run --nodes 2,4 "$@"; says "$text" "... and says how"; }
refused "--tokens-per-step"
refused "such as 512" --samples-per-step many
refused "either samples or tokens" --samples-per-step 3 --tokens-per-step 3
refused "of which prices" --samples-per-step 3 --goal "price/hour <= 3"
refused "not 'tokens/s'" --samples-per-step 3 --goal "tokens/s >= 3"
echo 'node_hours: {default: 3}' >wrong.yaml
refused "wrong.yaml:1:1: unknown key 'node_hours'" --samples-per-step 3 --prices wrong.yaml
echo 'node_hour: {default: 3USD}' >wrong.yaml
refused "is no price" --samples-per-step 3 --prices wrong.yaml
echo 'node_hour: {8x400Gbps: 3}' >wrong.yaml
exits 1 "a point without a price" "$NBOX" plan run --nodes 2,4 --samples-per-step 3 --prices wrong.yaml
says "no line fits nodes=2" "is named"
finish

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
axes=(--nodes "4,8,16384" --inter-bandwidth "100,400,800Gbps")
exits 0 "a plan without a goal" "$NBOX" plan run "${axes[@]}" --samples-per-step 1K --prices prices.yaml --json plan.json
goal=$(json plan.json '.99 * next(p["rate"] for p in d["points"] if p["label"] == "nodes=8,inter-bandwidth=100Gbps")')
exits 0 "a plan" "$NBOX" plan run "${axes[@]}" --samples-per-step 1K --prices prices.yaml --goal "samples/s >= $goal" --json plan.json
check "its figures" python3 -IS - "$goal" <<'P'
import json, sys
goal = float(sys.argv[1])
plan, sweep = json.load(open("plan.json"))["points"], json.load(open("run-sweep/sweep.json"))["points"]
assert len(plan) == len(sweep) == 9
for p, s in zip(plan, sweep):
    near = lambda a, b: abs(a / b - 1) < 1e-6 or (a, b)
    assert p["setting"] == s["setting"] and p["ranks"] == int(p["setting"]["nodes"])
    assert near(p["mean_ms"], s["ms"]["mean"]) is True
    assert near(p["rate"], 1000 * p["ranks"] / 4 / s["ms"]["mean"] * 1e3) is True
    least = next(q for q in plan if q["ranks"] == 4 and q["setting"]["inter-bandwidth"] == p["setting"]["inter-bandwidth"])
    assert near(p["efficiency"], p["rate"] / p["ranks"] * 4 / least["rate"]) is True
    node = {"100Gbps": 10, "400Gbps": 20, "800Gbps": 30}[p["setting"]["inter-bandwidth"]]
    assert near(p["price_hour"], node * p["ranks"]) is True
    assert near(p["price_million"], p["price_hour"] / 3600 / p["rate"] * 1e6) is True
    assert p["meets"] == (p["rate"] >= goal)
    assert p["bound_by"] == ("AllReduce of world" if p["ranks"] == 16384 else "computation") and p["won"] > 0.5
    assert p["slow"] is None and "a" <= p["notes"][0] <= "z" # the model ring has no known error
met = [p for p in plan if p["meets"]]
assert [p for p in plan if p["cheapest"]] == [min(met, key=lambda p: p["price_hour"])]
P
is "$(tail -n +2 run-sweep/plan.csv | wc -l)" 9 "a row of CSV for each"
check "the figures of the page are those" python3 -IS "$(dirname "$test")/check-page.py" run-sweep/plan.html run-sweep/plan.json
exits 0 "the page as Markdown" "$NBOX" report --format md run-sweep
says "nodes=8, inter-bandwidth=100Gbps: the choice" "... says the choice"
mkdir nbox-out && ln -s ../run-sweep nbox-out/named
exits 0 "... of a plan by its name" "$NBOX" report --format md named
says "    nbox plan " "it says how it was made"
exits 0 "a sweep beside the plan" "$NBOX" sweep run "${axes[@]}"
exits 0 "the plan's page" "$NBOX" report --format md run-sweep
check "does not say that the sweep made it" test "${out/nbox sweep/}" = "$out"
exits 3 "a goal in percent" "$NBOX" plan run "${axes[@]}" --samples-per-step 1K --goal "efficiency >= 101%"
exits 3 "a goal that none meets" "$NBOX" plan run "${axes[@]}" --tokens-per-step 1 --goal "tokens/s >= 1G"
says "9 of 9 points are complete already" "nothing is played again"

# the model's error, where it is known: each point re-timed at either end of it
exits 0 "a band" "$NBOX" plan run --preset dgx-h100 --inter 1x40Gbps --model nccl --nodes 4,64 --gpu-speed 1,1000 --samples-per-step 1K --prices prices.yaml --out band
check "is narrow where computation hides communication, and below the error where it does not" python3 -IS - <<'P'
import json
for p in json.load(open("band/plan.json"))["points"]:
    width = p["slow"]["mean_ms"] / p["fast"]["mean_ms"]
    assert p["fast"]["mean_ms"] <= p["mean_ms"] <= p["slow"]["mean_ms"], p
    assert (1.3 if p["bound_by"] == "AllReduce of world" else 1) <= width < (1.1 if p["setting"]["gpu-speed"] == "1" else 1.58 / 0.81), p
    assert (p["bound_by"] == "AllReduce of world") == (p["setting"]["gpu-speed"] == "1000"), p
P
"$NBOX" plan run --nodes 4,8 --samples-per-step 3 --gpu-error 0.5..1 --on commands --out elsewhere >lines
is "$(wc -l <lines)" 2 "a command line a point"
check "which any launcher takes" xargs -d '\n' -n 1 sh -c <lines
exits 0 "together they are the plan" "$NBOX" plan run --nodes 4,8 --samples-per-step 3 --gpu-error 0.5..1 --out elsewhere
says "nbox plan: 2 of 2 points are complete already" "nothing is played again"
exits 0 "the same again" "$NBOX" plan run --preset dgx-h100 --inter 1x40Gbps --model nccl --nodes 4,64 --gpu-speed 1,1000 --samples-per-step 1K --prices prices.yaml --out again
says "band           of the network's model alone: four fifths" "whose error it is"
check "is the same to the last digit" cmp band/plan.csv again/plan.csv

exits 0 "GPUs that may be half as fast" "$NBOX" plan run --nodes 4,8 --samples-per-step 1K --gpu-error 0.5..1 --out gpus
says "band           of computation alone: GPUs are 0.5 to 1 times as fast as taken; how far the model" "the band says whose error it has"
is "$(json gpus/plan.json '[p["fast"]["mean_ms"] == p["mean_ms"] and 1.5 < p["slow"]["mean_ms"] / p["mean_ms"] <= 2 for p in d["points"]]')" "[True, True]" "and has it"
exits 0 "both errors" "$NBOX" plan run --preset dgx-h100 --inter 1x40Gbps --model nccl --nodes 4,64 --gpu-speed 1,1000 --samples-per-step 1K --gpu-error 0.5..1 --out both
says "of the network's model: four fifths" "are both named"
check "and make the band wider" python3 -IS -c '
import json
for one, both in zip(json.load(open("band/plan.json"))["points"], json.load(open("both/plan.json"))["points"]):
    assert both["slow"]["mean_ms"] > one["slow"]["mean_ms"] and both["fast"]["mean_ms"] == one["fast"]["mean_ms"], (one, both)'
fastest='max(d["points"], key=lambda p: p["rate"])'
for goal in "$(json band/plan.json "$fastest[\"slow\"][\"rate\"] * .99")" "$(json band/plan.json "($fastest[\"slow\"][\"rate\"] + $fastest[\"rate\"]) / 2")"; do
	exits 0 "a goal" "$NBOX" plan run --preset dgx-h100 --inter 1x40Gbps --model nccl --nodes 4,64 --gpu-speed 1,1000 --samples-per-step 1K \
		--prices prices.yaml --goal "samples/s >= $goal" --out band
	says "nodes=64,gpu-speed=1000: ${verdict:=meets the goal also at the slow end}" "that the choice meets at the slow end of its band, or not"
	verdict="not at the slow end of its band, nor does any other point"
done

# faster GPUs, live and re-timed
exits 0 "a run on GPUs of twice the speed" timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real 0 --model ring --gpu-speed 2 --out fast -- \
	"$BUILD/tests/apps/stepper" "$job" --iterations 5 --warmup 1
exits 0 "re-timed as it was" "$NBOX" retime fast --json fast.json
exits 0 "re-timed as fast as this machine" "$NBOX" retime fast --gpu-speed 1 --json slow.json
check "has its times, and twice as much of computation" python3 -IS -c '
import json
live, fast, slow = (json.load(open(f))["steps"]["ms"]["p50"] for f in ("fast/summary.json", "fast.json", "slow.json"))
assert abs(live / fast - 1) < 1e-3 and 1.9 < slow / fast <= 2, (live, fast, slow)'

# a layout follows the nodes; leaves; files of fabrics
exits 0 "a run of pairs" timeout 100 "$NBOX" run --quiet --nodes 2 --gpus-per-node 4 --real 0,1 --preset dgx-h100 --layout tp=2,dp=4 --out pairs -- \
	"$BUILD/tests/apps/stepper" "${job%ddp.job}tp-dp.job" --iterations 6 --warmup 1
exits 0 "in other worlds" "$NBOX" plan pairs --nodes 2,4,32 --samples-per-step 8
says "layout tp=2,dp=8 follows the nodes; the run's was tp=2,dp=4" "dp grows, and that is said"
exits 0 "in a sweep" "$NBOX" sweep pairs --nodes 2,4,32
says "layout tp=2,dp=8 follows the nodes; the run's was tp=2,dp=4 (2 of 3 points)" "it is said of each point"
says " AllReduce have each as many bytes as it had (2 of 3 points)" "so is what else they assume"
exits 0 "a layout that is given" "$NBOX" retime pairs --nodes 4 --layout tp=2,dp=8
exits 2 "one that does not fit" "$NBOX" retime pairs --nodes 4 --layout tp=4,dp=4
says "each rank would compute something else" "is refused, with the reason"
printf '%s\n' 'bucket 1MiB' 'layer forward=1ms backward=1ms params=1MiB moe=64MiB' >moe.job
exits 0 "a run of experts" timeout 100 "$NBOX" run --quiet --nodes 8 --gpus-per-node 1 --real 0 --preset 100gbe --out experts -- \
	"$BUILD/tests/apps/stepper" moe.job --iterations 2 --warmup 1
printf '%s\n' 'preset: 100gbe' 'network: {kind: leaf-spine, latency: 2us, nodes_per_leaf: 1}' >leaves.yaml
printf '%s\n' 'preset: dgx-a100' >a100.yaml
exits 0 "fabrics and their leaves" "$NBOX" sweep experts --model nccl --fabric '{leaves.yaml,a100.yaml}' --oversubscription 1,4 --keep-records
is "$(json experts-sweep/sweep.json '[list(p["setting"].values())[1:] for p in d["points"]]')" \
	"[['leaves.yaml', '1'], ['leaves.yaml', '4'], ['a100.yaml', '1'], ['a100.yaml', '4']]" "are axes, in place of the run's preset"
check "what crosses leaves takes as much longer as there is less up from them" python3 -IS - "$NBOX" <<'P'
import csv, json, subprocess, sys
p = [sum(float(r["model_ns"]) for r in csv.DictReader(subprocess.run([sys.argv[1], "report", "--csv", p["dir"]], stdout=-1, text=True).stdout.splitlines()))
     for p in json.load(open("experts-sweep/sweep.json"))["points"]]
assert 3.9 < p[1] / p[0] < 4 and p[3] == p[2], p
P
touch leaves.yaml
exits 0 "a fabric's file that is younger" "$NBOX" sweep experts --model nccl --fabric '{leaves.yaml,a100.yaml}' --oversubscription 1,4
says "2 of 4 points are complete already" "its points are played again, those of another are not"
exits 2 "leaves where there are none" "$NBOX" sweep run --preset 100gbe --oversubscription 2,4
says "no fabric with leaves" "are refused"
mkdir odd; printf '%s' '{"unit": "<b>", "goal_metric": "rate", "goal_value": "x", "points": [{"setting": {"nodes": 3, "a": []}, "rate": 1}, 7,
	{"setting": {"a": "<script>"}, "rate": 2e300, "nodes": 1e300, "slow": {}, "cheapest": true}], "notes": [1]}' >odd/plan.json
exits 0 "a plan that somebody wrote" "$NBOX" report --format html odd
check "is text" [ "$(grep -c '<script>\|<b>' <<<"$out")" = 0 ]
refused() { local text=$1; shift; exits 2 "refused: $*" "$NBOX" plan run --nodes 2,4 "$@"; says "$text" "... and says how"; }
refused "--tokens-per-step"
refused "such as 512" --samples-per-step many
refused "either samples or tokens" --samples-per-step 3 --tokens-per-step 3
refused "'0.8' is no FROM..TO" --samples-per-step 3 --gpu-error 0.8
refused "there are 2, from 0" --point 2
refused "of which prices" --samples-per-step 3 --goal "price/hour <= 3"
refused "0.95 or 95%" --samples-per-step 3 --goal "efficiency >= 95"
refused "not 'tokens/s'" --samples-per-step 3 --goal "tokens/s >= 3"
echo 'node_hours: {default: 3}' >wrong.yaml
refused "wrong.yaml:1:1: unknown key 'node_hours'" --samples-per-step 3 --prices wrong.yaml
echo 'node_hour: {default: 3USD}' >wrong.yaml
refused "is no price" --samples-per-step 3 --prices wrong.yaml
echo 'node_hour: {8x400Gbps: 3}' >wrong.yaml
cp run-sweep/command.txt before.txt
refused "nodes=2: no line fits; add" --samples-per-step 3 --prices wrong.yaml
check "before it plays a point" cmp run-sweep/command.txt before.txt
finish

#!/usr/bin/env bash
# nbox optimize: a run with small buckets is planned, the plan is re-timed, and run. Theorems, the exact programme: tests/unit/buckets.
. "$(dirname "$0")/lib.sh"

# An all-reduce takes 20 ms at least, however little is in it: a plan wins much on any machine.
net=(--nodes 8 --gpus-per-node 1 --real 0 --data none --model "ring:bw=3Gbps,alpha=1430us")
# run NAME BUCKETS [OPTION of the stepper...]
run() {
	local name=$1 buckets=$2; shift 2
	printf '%s\n' "style ddp" "$buckets" "update 1ms" "layer x8 forward=1ms backward=2ms params=256KiB" >"$name.job"
	timeout 100 "$NBOX" run --quiet --out "$name" "${net[@]}" -- "$BUILD/tests/apps/stepper" "$name.job" --iterations 5 --warmup 1 "$@"
}
# holds NAME: Python's assertions on standard input hold
holds() {
	cat - >holds.py
	check "$1" python3 -S -c 'import json, subprocess, sys
nbox = sys.argv[1]
def ask(*words):
    return json.loads(subprocess.run([nbox, *words, "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
def row(d, name): return next(p for p in d["plans"] if p["plan"].startswith(name))
def near(a, b, share): assert abs(a - b) <= share * abs(b), f"{a} and {b}: further apart than {share:.3g} of it"
def is_best(d, share=0.03):
    """The recurrence is the re-timing, and the plan is the best row"""
    retimed = [p for p in d["plans"] if "retimed_ms" in p]
    for p in retimed: near(p["step_ms"], p["retimed_ms"], share)
    assert [p["retimed_ms"] for p in retimed if p["is_plan"]] == [min(p["retimed_ms"] for p in retimed)] == [d["after_ms"]], d["plans"]
    assert all("retimed_ms" in p or "cycles" in p["not_retimed"] for p in d["plans"]), d["plans"]
exec(open("holds.py").read())' "$NBOX"
}

exits 0 "a run with small buckets" run small "bucket 1B"
exits 0 "a plan" "$NBOX" optimize small --out plan.json
says "re-timed" "re-timed"
says "bucket_cap_mb_list=" "with a list for PyTorch"
buckets=$(sed -n 's/^ *stepper *//p' <<<"$out")
exits 0 "its run" run planned "$buckets"
exits 0 "a run whose buckets are groups of all-reduces" run groups $'bucket 1MiB\ngroup 4'
exits 0 "a run of one iteration" run once "bucket 1B" --iterations 1 --warmup 0
exits 1 "which has no steps" "$NBOX" optimize once
exits 0 "the same of a captured graph" run graph "bucket 1B" --graph
holds_if_quiet small "the recurrence is the re-timing; the plan is the best, wins much, and as much when it runs" <<'P'
for run in "small", "graph":
    d = ask("optimize", run)
    was = row(d, "as recorded")["retimed_ms"]
    is_best(d)
    assert d["after_ms"] < 0.7 * was, d["plans"]
    assert row(d, "Algorithm 1")["retimed_ms"] < was, d["plans"]
    assert [sum(map(int, "+".join(d["mapping"]).split("+")))] == [sum(range(8))]
    assert len(d["gradients"]) == len(d["search"]) == 8
assert json.load(open("plan.json"))["mapping"] == ask("optimize", "small")["mapping"]
is_best(ask("optimize", "groups", "--model", "ring:bw=3Gbps,alpha=50us"))
live = row(ask("optimize", "planned"), "as recorded")["retimed_ms"]
assert live < 0.7 * row(ask("optimize", "small"), "as recorded")["retimed_ms"], live
P
printf '%s\n' "parallel tp=2" "bucket 1B" "layer x6 forward=1ms backward=2ms params=256KiB tp=256KiB" >tp.job
exits 0 "a run of two ranks that share each layer" timeout 100 "$NBOX" run --quiet --out tp --nodes 8 --gpus-per-node 2 --data none \
	--model "ring:bw=3Gbps,alpha=1430us" -- "$BUILD/tests/apps/stepper" tp.job --iterations 5 --warmup 1
holds_if_quiet tp "buckets of both ranks are fused, each in its own communicator; what they share stays" <<'P'
d = ask("optimize", "tp")
is_best(d)
assert len(d["gradients"]) == 6 and len(d["mapping"]) < 6, d["mapping"]
assert d["after_ms"] < 0.75 * row(d, "as recorded")["retimed_ms"], d["plans"]
P
holds_if_quiet small "a slow rank that has no process is waited for" <<'P'
d = ask("optimize", "small", "--what-if", "slow:rank=1,compute=3")  # 16 ms of backward pass become 48
is_best(d, 0.1)  # and what this machine was late by three times as much
assert row(d, "one bucket")["step_ms"] > 72 + 20, d["plans"]
P
holds_if_quiet small "on another cluster the same run has another plan" <<'P'
d = ask("optimize", "small", "--nodes", "64")
is_best(d, 0.1)  # a busy machine was late in the run
assert len(d["mapping"]) == 1 and row(d, "best")["retimed_ms"] < 0.3 * row(d, "as recorded")["retimed_ms"], d["plans"]
d = ask("optimize", "small", "--model", "ring:bw=30Mbps,alpha=10ms")  # all bytes of the buckets go on: 979 ms
assert row(d, "best")["retimed_ms"] > 950 and len(d["mapping"]) < 4, d["plans"]
d = ask("optimize", "small", "--model", "none")
assert len(d["mapping"]) == 8, d["plans"]
near(row(d, "best")["retimed_ms"], row(d, "as recorded")["retimed_ms"], 1e-9)  # a plan of no change
d = ask("optimize", "small", "--allreduce", "0us,1GB/s")
assert len(d["mapping"]) == 8 and row(d, "best").get("retimed_ms") is None
P

cat >layers <<'L'
# four layers, in the order of the forward pass
layer x2 forward=1ms backward=2ms params=4MB out=1GB
act forward=1ms backward=1ms out=1GB kept=no
layer x2 forward=1ms backward=2ms params=4MB out=1GB fused=2ms
L
exits 0 "of layers alone" "$NBOX" optimize --layers layers --allreduce 1ms,5GB/s --pass tsfs,opfs --opt dpro
says "Algorithm 1" "by Algorithm 1"
says "fused ops" "with op fusion"
exits 0 "as the model of a cluster says" "$NBOX" optimize --layers layers --nodes 8 --preset p5
python3 -S -c 'for i in range(300): print(f"l{i} backward={20 + i * 7 % 13}us params={4 * (1 + i * 7919 % 4000)}B")' >many.layers
holds "of 300 gradients, 45,150 sizes, the model is asked for few, and the plan is still the best" <<'P'
d = ask("optimize", "--layers", "many.layers", "--nodes", "64", "--gpus-per-node", "8", "--model", "ring:bw=50GB/s,alpha=5us")
assert d["sizes_asked"] < 2000 and d["after_ms"] <= 1.001 * min(p["step_ms"] for p in d["plans"]), (d["sizes_asked"], d["plans"])
P
exits 0 "that must fit" "$NBOX" optimize --layers layers --allreduce 1ms,5GB/s --pass tsfs,mem --mem 3GB
says "accumulated" "in parts"
exits 0 "a run with two layers a bucket" run pairs "bucket 512KiB"
echo "layer x8 backward=2ms params=256KiB" >pairs.layers
exits 0 "layers say what was in its buckets" "$NBOX" optimize pairs --layers pairs.layers --json pairs.json
is "$(json pairs.json 'len(d["gradients"]), d["plans"][0]["buckets"], d["plans"][1]["buckets"]')" "(8, 4, 8)" "eight gradients in four buckets"
exits 0 "memory" "$NBOX" mem layers --mem 3GB
says "fits" "what fits is told"
exits 1 "memory that nothing fits" "$NBOX" mem layers --mem 1MB
says "nothing fits: in 1024 parts" "with a sentence"
exits 2 "a wrong key" "$NBOX" mem <(echo "a backwrd=2ms")
exits 2 "no run" "$NBOX" optimize
exits 2 "memory of no batch" "$NBOX" mem layers --batch 0
exits 2 "a pass twice" "$NBOX" optimize small --pass tsfs,tsfs
says "tsfs is given twice" "by its name"
exits 2 "another search" "$NBOX" optimize small --opt dqro
says "'dqro' is none of dp, dpro" "with those that there are"
printf 'a backward=1ms\0\n' >zero.layers
exits 2 "a file that is no text" "$NBOX" mem zero.layers
exits 2 "op fusion without times" "$NBOX" optimize small --pass tsfs,opfs
says "fused=TIME" "with a way out"
exits 2 "layers of another job" "$NBOX" optimize small --layers layers
says "the record's all-reduce 0 of a step has 262144 bytes" "named by its bytes"
finish

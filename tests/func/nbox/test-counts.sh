#!/usr/bin/env bash
# Counts in worlds of other sizes: runs on 2 and 4 nodes, re-timed to 8, have the ops of a run on 8 to the byte.
. "$(dirname "$0")/lib.sh"

cat >moe.job <<'J'
bucket 1MiB
layer forward=200us backward=200us params=512KiB
layer forward=200us backward=200us params=250KiB moe=128KiB
J
cat >fsdp.job <<'J'
style fsdp
layer x2 forward=200us backward=200us params=512KiB
layer    forward=200us backward=200us params=1001B # does not divide
J
cat >pipeline.job <<'J'
parallel pp=2
micro 2
layer x2 forward=200us backward=200us params=512KiB send=128KiB
J

# run JOB NODES REAL [OPTION...]: its results are in JOBNODES
run() {
	local job=$1 nodes=$2 real=$3; shift 3
	[[ $* = *--out* ]] || set -- --out "$job$nodes" "$@"
	timeout 100 "$NBOX" run --quiet --nodes "$nodes" --gpus-per-node 1 --real "$real" --model ring "$@" -- \
		"$BUILD/tests/apps/stepper" "$job.job" --iterations 1 --warmup 0
}

# same DIR DIR: each op of each real rank has the same kind, count, root, peers, bytes, and time by the model
same() {
	python3 -IS - "$NBOX" "$@" <<'P'
import json, subprocess, sys
nbox, *dirs = sys.argv[1:]
def ops(run):
    lines = subprocess.run([nbox, "record", "dump", "--json", "--kind", "op", run], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = sorted((json.loads(line) for line in lines), key=lambda o: (o["world_rank"], o["kind"], o["seq"], o["comm"]))
    return [[o[key] for key in ("world_rank", "rank", "kind", "dtype", "seq", "count", "bytes", "root")] + [round(o["model_ns"], 3), o.get("calls")] for o in rows]
a, b = map(ops, dirs)
assert a and len(a) == len(b), (len(a), len(b))
for x, y in zip(a, b):
    assert x == y, f"{x}\n{y}"
P
}

how() { json "$1" 'sorted((c["op"], c["law"], c["how"], c["ops"]) for c in d["counts"])'; }

for nodes in 2 4 8; do
	exits 0 "moe on $nodes nodes" run moe $nodes 0
	exits 0 "fsdp on $nodes nodes" run fsdp $nodes 0
	exits 0 "pipeline on $nodes nodes, a rank of each stage" run pipeline $nodes 0,$((nodes / 2)) --layout "dp=$((nodes / 2)),pp=2"
done
for job in moe fsdp pipeline; do
	exits 0 "$job of 4 nodes and of 2 on 8" "$NBOX" retime ${job}4 --with ${job}2 --nodes 8 --out $job
	check "$job: its ops are those of a run there" same $job ${job}8
done
exits 0 "moe of 2 nodes and of 4 on 8" "$NBOX" retime moe2 --with moe4 --nodes 8 --out moe-up
check "the other way round, too" same moe-up moe8
says "AllToAll: as many bytes in all as they had, fitted from runs of 2 and 4 ranks" "the summary says where they come from"
exits 0 "a report of it" "$NBOX" report moe
says "AllToAll: as many bytes in all as they had, fitted from runs of 4 and 2 ranks" "says it again"
is "$(how moe/summary.json)" "[('AllReduce', 'keep', 'fitted', 1), ('AllToAll', 'total', 'fitted', 4)]" "and so does summary.json"
is "$(how pipeline/summary.json)" "[('AllReduce', 'keep', 'assumed', 2)]" "what only one run has is assumed"
is "$(json pipeline/summary.json '[w for w in d["warnings"] if w.startswith("assumed: 2 AllReduce")] != []')" True "with a warning"
is "$(json pipeline/summary.json 'd["real_ranks"]')" 2 "a rank of each stage is real"

# the stages of a pipeline one after the other, at two sizes: runs of one size play together, those of the other say how counts change
for nodes in 2 4; do
	for stage in 0 1; do
		exits 0 "stage $stage of $nodes nodes alone" run pipeline $nodes $((stage * nodes / 2)) --layout "dp=$((nodes / 2)),pp=2" --out "stage$stage-$nodes"
	done
done
exits 0 "stages of 4 nodes and of 2 on 8" "$NBOX" retime stage0-4 --with stage1-2 --with stage1-4 --with stage0-2 --nodes 8 --out stages
check "their ops are those of a run there" same stages pipeline8
is "$(json stages/summary.json '[(c["class"], c["timeline_of_rank"], c["of_run"]) for c in d["classes"]]')" \
	"[('pp=0', 0, 'stage0-4'), ('pp=1', 2, 'stage1-4')]" "whose timelines they have is said by the ranks of their runs"

exits 1 "all-to-alls of one run" "$NBOX" retime moe4 --nodes 8
says "--counts AllToAll=total" "are refused with what to do"
exits 0 "declared ones" "$NBOX" retime moe4 --nodes 8 --counts alltoall=total --out declared
check "are as declared" same declared moe8
says "AllToAll: as many bytes in all as they had, declared" "and said"
exits 2 "an unknown kind" "$NBOX" retime moe4 --nodes 8 --counts alltoal=total
says "--counts: 'alltoal' is no kind of op; did you mean 'alltoall'?" "is refused with a suggestion"
exits 2 "another job" "$NBOX" retime moe4 --with fsdp2 --nodes 8
says "of rank 0, op 1 in communicator 1 is AllReduce in the one, and in communicator 1 AllGather in the other" "is refused by its first op"
exits 2 "a run that lacks a communicator" "$NBOX" retime pipeline2 --with pipeline4 --nodes 8
says "no such communicator in that of 2: re-time the former, --with the latter" "is refused with what to do"

exits 0 "a sweep with both" "$NBOX" sweep moe4 --with moe2 --nodes 2,8 --out sweep
is "$(json sweep/points/nodes=8/summary.json 'd["counts"][1]["how"]')" fitted "its points are fitted"
exits 0 "a plan by what is declared" "$NBOX" plan moe4 --counts alltoall=total --nodes 8,16 --samples-per-step 64 --out plan
is "$(json plan/points/nodes=8/summary.json 'd["counts"][1]["how"]')" declared "its points are"
exits 0 "the sweep with other words" "$NBOX" sweep moe4 --counts alltoall=keep --nodes 2,8 --out sweep
is "$(json sweep/points/nodes=8/summary.json 'd["counts"][1]["law"]')" keep "is made again"
exits 2 "live points" "$NBOX" sweep moe4 --live --with moe2 --nodes 2,8
says "a run has its own counts" "take no counts"
finish

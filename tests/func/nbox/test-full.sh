#!/usr/bin/env bash
# --nccl full from end to end: an NCCL (tests/apps/proxy-nccl) that sends through libnbox.so as its network, at the virtual size, and a job
# that looks at each value that comes out.
. "$(dirname "$0")/lib.sh"
export NBOX_NCCL=$BUILD/tests/apps/proxy-nccl/libnccl.so.2 NCCL_DEBUG=WARN
job=$BUILD/tests/apps/full-check
all=allreduce,allgather,reducescatter,broadcast,reduce,sendrecv,grouped
moved=allreduce,allgather,reducescatter,broadcast,reduce
# full NAME NODES GPUS OPTIONS... -- OPTIONS OF THE JOB...: a run whose values are right
full() {
	local name=$1 nodes=$2 gpus=$3; shift 3
	local of_run=()
	while [ "$1" != -- ]; do of_run+=("$1"); shift; done
	shift
	exits 0 "$name" timeout 200 "$NBOX" run --nccl full --nodes "$nodes" --gpus-per-node "$gpus" --model alphabeta --out "${name//[^a-z0-9]/-}" \
		"${of_run[@]}" -- "$job" --gpus "$gpus" "$@"
}

if is_sanitized; then pass "# SKIP a sanitized libnbox.so is not preloaded"; finish; fi
for link in shm tcp; do
	full "identity, two of 16 ranks, $link" 8 2 --exchange payload --data identity --link $link -- --data identity --real 2 --ops $all \
		--counts 1,1000,70001
	says "values are right" "... each value is looked at"
done
full "mirror, two of 16 ranks" 8 2 --exchange payload --data mirror -- --data mirror --real 2 --ops $moved --counts 1,1000,70001
full "mirror, two real nodes" 8 2 --real 0-3 --exchange payload --data mirror -- --data mirror --real 4 --ops $moved --counts 1,70001
full "broadcasts of another policy" 8 2 --exchange payload --data mirror --data-for broadcast=identity -- --data identity --real 2 \
	--ops broadcast --counts 1000
full "mirror for broadcasts alone" 8 2 --exchange payload --data identity --data-for broadcast=mirror -- --data mirror --real 2 \
	--ops broadcast --counts 1000
for protocol in LL LL128; do
	FAKE_NCCL_PROTO=$protocol full "protocol $protocol" 8 2 --exchange payload --data identity -- --data identity --real 2 --ops $all \
		--counts 1,1000,70001
done
for protocol in Simple LL LL128; do
	FAKE_NCCL_ALGO=Tree FAKE_NCCL_PROTO=$protocol full "trees, $protocol" 8 2 --exchange payload --data identity -- --data identity --real 2 \
		--ops allreduce --counts 1,1000,70001
done
for version in 22304 22403 22501 22605 22707 23007; do
	FAKE_NCCL_VERSION=$version full "the words of NCCL $version" 8 2 --exchange payload --data identity -- --data identity --real 2 --ops $all \
		--counts 1000
done
full "one real rank" 16 1 --exchange payload --data identity -- --data identity --real 1 --ops $all --counts 1,70001
full "two real nodes" 8 2 --real 0-3 --exchange payload --data identity -- --data identity --real 4 --ops $all --counts 1,70001
FAKE_NCCL_ALGO=Tree full "two real nodes, trees" 8 2 --real 0-3 --exchange payload --data identity -- --data identity --real 4 --ops allreduce \
	--counts 1,70001
full "communicators of one process beside it" 8 2 --exchange payload --data identity -- --data identity --real 2 --ops $all --counts 1000 \
	--init-all
NCCL_COMM_BLOCKING=0 full "non-blocking by a variable" 8 2 --exchange payload --data identity -- --data identity --real 2 --ops $all \
	--counts 1000 --init-all
# Messages of more than 4 MiB: in the ring two of the buffer's 8 steps, in the tree one
for link in shm tcp; do
	NCCL_BUFFSIZE=67108864 full "long messages, $link" 4 1 --exchange payload --data identity --link $link -- --data identity --real 1 \
		--ops sum --counts 20000001
	says "its messages   24 from real ranks (114.44 MiB), 24 to them" "... of 4.8 MiB"
done
NCCL_BUFFSIZE=67108864 FAKE_NCCL_ALGO=Tree full "long messages, trees, two real nodes" 4 1 --real 0-1 --exchange payload --data identity -- \
	--data identity --real 2 --ops sum --counts 5000001
for protocol in LL LL128; do
	NCCL_LL_BUFFSIZE=67108864 NCCL_LL128_BUFFSIZE=67108864 FAKE_NCCL_ALGO=Tree FAKE_NCCL_PROTO=$protocol full "long messages, $protocol" 4 1 \
		--exchange payload --data identity -- --data identity --real 1 --ops sum --counts 5000001
done
full "messages without bodies" 8 2 --exchange messages --data identity -- --data none --real 2 --ops $all --counts 1,70001
full "512 ranks" 256 2 --exchange payload --data identity -- --data identity --real 2 --ops allreduce,broadcast,reduce --counts 1000
# --- an op takes as long as what NCCL took for it, not as what the model would have -----------------------------------------------------
ops() { "$NBOX" record dump "$1" --kind op --rank 0; }
# times RUN: what each op of many bytes takes, which uses all channels
times() { ops "$1" | grep count=70001 | grep -o ' model_ns=[0-9.]*\| kind=[A-Za-z]*'; }
for choice in "Tree LL" "Ring Simple"; do
	set -- $choice
	run=nccl-took-$1
	FAKE_NCCL_ALGO=$1 FAKE_NCCL_PROTO=$2 exits 0 "model nccl, NCCL takes $choice" timeout 100 "$NBOX" run --nccl full --nodes 8 \
		--gpus-per-node 2 --preset dgx-h100 --model nccl --exchange messages --data identity --out "$run" -- "$job" --gpus 2 --data none \
		--real 2 --ops allreduce,broadcast --counts 1,70001
	n_ops=$(ops "$run" | wc -l)
	says "decided by     NCCL itself ($n_ops of $n_ops collectives)" "NCCL has decided each"
	is "$(ops "$run" | grep -c "kind=AllReduce .* took_algorithm=${1,} took_protocol=$2 took_channels=[12]")" \
		"$(ops "$run" | grep -c kind=AllReduce)" "... and the record has it"
	exits 0 "$choice, by the rules" "$NBOX" retime "$run" --algo "allreduce=${1,}" \
		--model "nccl:proto=${2,,},channels=2,version=2.28.9" --out "rules-$1"
	says "decided by     NCCL 2.28.9, as given" "a version asks the rules, pinned to the same"
	is "$(times "rules-$1")" "$(times "$run")" "... and these say the same times"
	exits 0 "$choice, as it was" "$NBOX" retime "$run" --out "again-$1"
	says "decided by     NCCL itself ($n_ops of $n_ops collectives)" "is NCCL's choice again"
	is "$(times "again-$1")" "$(times "$run")" "... at the same times"
done
is "$([ "$(times rules-Tree)" != "$(times rules-Ring)" ] && echo yes)" yes "both take other times"
exits 0 "another algorithm" "$NBOX" retime again-Tree --model nccl:algo=ring
says "collectives); else NCCL 2.28.9, the job's, algo=ring" "is a what-if"
says "(AllReduce): the model nccl:algo=ring over alphabeta does not time what NCCL took, but its own choice: its algo=, or --algo, asks for" \
	"... and that is said"
for other in "--nodes 16" "--preset dgx-a100"; do
	exits 0 "$other" "$NBOX" retime again-Tree $other
	says "decided by     NCCL 2.28.9, the job's" "is not what NCCL has decided for"
done
# Ops of a group begin in the order of the calls, whichever NCCL launches first: the second one when the first has given back the links
exits 0 "groups, model nccl" timeout 100 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --preset dgx-h100 --model nccl --exchange messages \
	--data identity --out groups -- "$job" --gpus 2 --data none --real 2 --ops grouped --counts 70001
is "$(ops groups | grep kind=AllReduce | grep -o ' start_ns=[0-9]*\| due_ns=[0-9]*' | tr -d '\n' | sed 's/ start_ns=/\n/g; s/ due_ns=/ /g' |
	awk 'NF { n += $1 + 1 < due; due = $2 } END { print (NR > 18), n + 0 }')" "1 0" "... one after the other"
# A training's loss is the same to the last digit, whoever sends
loss_of() { grep -o 'loss [0-9.]* -> [0-9.]*' <<<"$out"; }
exits 0 "the trainer, NCCL's own messages" timeout 200 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --model alphabeta --exchange payload \
	--data mirror --out train-full -- "$BUILD/tests/apps/trainer"
full_loss=$(loss_of)
exits 0 "the trainer, with the gate" env -u NBOX_NCCL timeout 200 "$NBOX" run --nccl gate --nodes 8 --gpus-per-node 2 --model alphabeta --data mirror \
	--out train-gate -- "$BUILD/tests/apps/trainer"
is "$full_loss" "$(loss_of)" "... and both learn the same"

# --- what goes wrong is said, and nothing hangs -----------------------------------------------------------------------------------------
for fault in skip-send repeat-send; do
	FAKE_NCCL_FAULT=$fault:3 exits 1 "$fault: the run ends" timeout 100 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --model alphabeta \
		--exchange payload --data identity --out $fault -- "$job" --data none --real 2 --gpus 2 --ops allreduce --counts 1000 --times 20
	says "communicator 1 was aborted" "... and says what has failed"
	says "NCCL sends message" "... which message, of which op, to whom"
done
FAKE_NCCL_ALGO=Tree FAKE_NCCL_FAULT=wrong-peer:1 exits 1 "wrong-peer: the run ends" timeout 100 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 \
	--model alphabeta --exchange payload --data identity --out wrong-peer -- "$job" --data none --real 2 --gpus 2 --ops allreduce \
	--counts 1000 --times 20
says "but its connection is to rank" "... and says where the message would have gone"
exits 0 "an abort while ops are under way" timeout 100 "$NBOX" run --nccl full --nodes 16 --gpus-per-node 1 --model alphabeta --exchange payload \
	--data identity --out abort -- "$job" --data none --real 1 --counts 70001 --end abort
says "rank 0: aborted" "... comes back"
out=$(timeout 100 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --model alphabeta --exchange payload --data identity --out kill -- "$job" \
	--data none --real 2 --gpus 2 --ops allreduce --counts 70001 --times 50 --end kill 2>&1)
got=$?
is "$((got != 0 && got != 124))" 1 "a rank that is killed: the run ends"
says "rank 0 (world rank 0)" "... and says whose process it was"
nothing_left
finish

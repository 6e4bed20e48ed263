#!/usr/bin/env bash
# --nccl full with a decision file: an NCCL (tests/apps/proxy-nccl) takes by its tuner, which is libnbox.so, what the file says.
. "$(dirname "$0")/lib.sh"
export NBOX_NCCL=$BUILD/tests/apps/proxy-nccl/libnccl.so.2 NCCL_DEBUG=WARN
job=$BUILD/tests/apps/full-check
cp "$(dirname "$0")/tuner.txt" .
model=nccl:decisions=tuner.txt
# full NAME MODEL RUN OPTIONS OF THE JOB...: two ranks of a node; each value is looked at
full() {
	local name=$1 model=$2 run=$3; shift 3
	exits 0 "$name" timeout 150 "$NBOX" run --nccl full --nodes 8 --gpus-per-node 2 --preset dgx-h100 --model "$model" --exchange payload \
		--data identity --out "$run" -- "$job" --gpus 2 --real 2 --data identity "$@"
	says "values are right" "... with the right values"
}
# took RUN KIND BYTES: what NCCL took for them
took() {
	"$NBOX" record dump "$1" --kind op --rank 0 | grep " bytes=$3 .*kind=$2 .*dtype=float" | grep -o 'took_.*' |
		sed -E 's/took_algorithm=(\w+) took_protocol=(\w+) took_channels=([0-9]+).*/\1 \2 \3/' | sort -u
}
# file_says KIND BYTES: the same by the file
file_says() {
	"$NBOX" explain "$1" "${2}B" --nodes 8 --gpus-per-node 2 --preset dgx-h100 --model $model --json >explain.json
	json explain.json '"%s %s %d" % (d["plan"]["algo"].replace("chain", "ring"), d["plan"]["proto"], d["plan"]["channels"])'
}

if is_sanitized; then pass "# SKIP a sanitized libnbox.so is not preloaded"; finish; fi
all=(--ops allreduce,allgather,broadcast --counts 2,2048,262144)
full "NCCL by itself" nccl before "${all[@]}"
is "$(took before AllReduce 8192)" "ring Simple 2" "takes what it would"
full "by the file" $model tuned "${all[@]}"
for bytes in 8 8192 1048576; do
	is "$(took tuned AllReduce $bytes)" "$(file_says allreduce $bytes)" "AllReduce of $bytes bytes is as the file says"
done
is "$(took tuned AllReduce 1048576)" "tree LL128 4" "LL128 is taken where a CPU plays kernels"
is "$(took tuned AllReduce 8192)" "tree LL 1" "... and so many channels"
is "$(took tuned AllGather 8192 | cut -d' ' -f1,2)" "ring LL" "so is AllGather"
is "$(took tuned Broadcast 1048576)" "ring Simple 4" "of Broadcast the file says nothing: NCCL's own choice, over the channels of the file"
n_all=$("$NBOX" record dump tuned --kind op --rank 0 | wc -l)
n_told=$("$NBOX" record dump tuned --kind op --rank 0 | grep -c 'kind=All')
says "decided by     NCCL itself ($n_all of $n_all collectives), $n_told of them as tuner.txt (with NCCL_ALGO=^NVLSTree, NCCL_PAT_ENABLE=0) says" "the summary counts them"
is "$(json tuned/summary.json "'as tuner.txt' in d['decided_by']")" True "... and so does summary.json"
exits 0 "from its record" "$NBOX" retime tuned --model $model
says "$n_told of them as tuner.txt (with" "... they are counted, too"
exits 0 "the record of the run without" "$NBOX" retime before --model $model
says "otherwise" "... has others"
says "NCCL took ring Simple, and by tuner.txt" "... the first one is named"

exits 0 "a tuner of the user's" env NCCL_TUNER_PLUGIN="$BUILD/tests/apps/proxy-nccl/own-tuner.so" timeout 100 "$NBOX" run --nccl full --nodes 8 \
	--gpus-per-node 2 --preset dgx-h100 --model $model --exchange payload --data identity --out own -- "$job" --gpus 2 --real 2 \
	--data identity --ops allreduce --counts 262144
is "$(took own AllReduce 1048576 | cut -d' ' -f1,2)" "ring LL" "is NCCL's tuner"
says "environment is NCCL's tuner: the model's decision file does not count for what NCCL takes" "... which is said before the start"
says "NCCL has the tuner NCCL_TUNER_PLUGIN=" "... and in the summary"

# --- another world than the file's, and nboxd that goes ---------------------------------------------------------------------------------
exits 0 "another world" timeout 100 "$NBOX" run --nccl full --nodes 4 --gpus-per-node 2 --preset dgx-h100 --model $model --exchange payload \
	--data identity --out other -- "$job" --gpus 2 --real 2 --data identity --ops allreduce --counts 2048
is "$(took other AllReduce 8192)" "ring Simple 2" "is decided by NCCL alone"
says "collectives)"$'\n' "... and the summary says no more"
nothing_left
finish

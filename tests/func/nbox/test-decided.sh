#!/usr/bin/env bash
# What ops are decided by: the job's version of NCCL and its variables, the model's parameters, nbox's options.
. "$(dirname "$0")/lib.sh"
if is_sanitized; then # what sets a variable of the job alone is no program of ours
	echo "1..0 # SKIP a sanitized libnbox.so cannot be preloaded into env"
	exit 0
fi
unset NBOX_MODEL
old=$BUILD/tests/func/nbox/old-nccl.so
export NBOX_TEST_NCCL=$BUILD/emulator/standins/libnccl.so.2
world=(--preset dgx-a100 --nodes 8 --gpus-per-node 2)
op=("$PERF" --op allreduce -b 1M -e 1M -n 2 -w 0 --no-check)
large=(--preset dgx-a100 --nodes 16 --gpus-per-node 2)
large_op=("$PERF" --op allreduce -b 16M -e 16M -n 1 -w 0 --no-check)
# modelled DIR: what the record says of its all-reduces
modelled() { "$NBOX" report --csv "$1" | python3 -IS -c 'import csv,sys; print(sorted({round(float(r["model_ns"]) / 1e3, 2) for r in csv.DictReader(sys.stdin) if r["op"] == "AllReduce"}))'; }
# expected [OPTION...]: the same, asked without a job
expected() { "$NBOX" perf allreduce "${world[@]}" -b 1M -e 1M --json - "$@" | times; }
expected_large() { "$NBOX" perf allreduce "${large[@]}" -b 16M -e 16M --json - "$@" | times; }
times() { python3 -IS -c 'import json,sys; print([round(r["modelled_us"], 2) for r in json.load(sys.stdin)["rows"]])'; }

exits 0 "a job" "$NBOX" run "${world[@]}" --out job -- "${op[@]}"
says "decided by     NCCL 2.28.9, the job's" "is decided by its NCCL's tables"
is "$(json job/summary.json 'd["decided_by"]')" "NCCL 2.28.9, the job's" "so says summary.json"
is "$(modelled job)" "$(expected)" "and takes what nbox perf says"

export NCCL_PROTO=Simple
exits 0 "a job over an older NCCL" env NBOX_NCCL="$old" NBOX_TEST_NCCL_VERSION=22105 "$NBOX" run "${large[@]}" --out older -- "${large_op[@]}"
says "decided by     NCCL 2.21.5, the job's, NCCL_PROTO=Simple" "is decided by that one's"
is "$(modelled older)" "$(expected_large --model nccl:version=2.21.5)" "as if the version were given"
[ "$(expected_large)" != "$(expected_large --model nccl:version=2.21.5)" ] && pass "which is another time" || fail "which is another time" "$(expected_large)"
exits 0 "an unknown one" env NBOX_NCCL="$old" NBOX_TEST_NCCL_VERSION=23107 "$NBOX" run "${large[@]}" --out newer -- "${large_op[@]}"
says "decided by     NCCL 2.30.7, the nearest known to the job's 2.31.7, NCCL_PROTO=Simple" "is said"
exits 0 "a given one" "$NBOX" run "${large[@]}" --model nccl:version=2.21.5 --out given -- "${large_op[@]}"
says "decided by     NCCL 2.21.5, as given, NCCL_PROTO=Simple" "goes before the job's"
is "$(modelled given)" "$(modelled older)" "and means the same"
unset NCCL_PROTO

# the job's variables, which need not be nbox's
exits 0 "a variable of the job alone" "$NBOX" run "${world[@]}" --out own --procs 2 -- env NCCL_ALGO=Tree NCCL_MAX_NCHANNELS=2 "${op[@]}"
says "decided by     NCCL 2.28.9, the job's, NCCL_ALGO=Tree, NCCL_MAX_NCHANNELS=2" "counts"
is "$(modelled own)" "$(NCCL_ALGO=Tree NCCL_MAX_NCHANNELS=2 expected)" "as nbox perf's own does there"
exits 0 "nbox compare" "$NBOX" compare job own
says "   decided by       A: NCCL 2.28.9, the job's" "says what else ops were decided by"
says "                    B: NCCL 2.28.9, the job's, NCCL_ALGO=Tree, NCCL_MAX_NCHANNELS=2" "of both runs"
exits 0 "one of nbox alone" env NCCL_ALGO=Tree "$NBOX" run "${world[@]}" --out none --procs 2 -- env -u NCCL_ALGO "${op[@]}"
is "$(modelled none)" "$(modelled job)" "does not"
exits 0 "one that is not modelled" "$NBOX" run "${world[@]}" --out cross --procs 2 -- env NCCL_CROSS_NIC=0 "${op[@]}"
says "warning: delay model nccl: NCCL_CROSS_NIC=0: not modelled" "is warned of"
exits 0 "ranks that differ" "$NBOX" run "${world[@]}" --out differ --procs 2 -- sh -c 'NCCL_BUFFSIZE=$((4194304 << LOCAL_RANK)) exec "$@"' - "${op[@]}"
says "a process of the job has another NCCL_BUFFSIZE than the first one" "are warned of"
exits 0 "ranks with other versions" env NBOX_NCCL="$old" "$NBOX" run "${world[@]}" --out versions --procs 2 -- sh -c 'NBOX_TEST_NCCL_VERSION=2280$LOCAL_RANK exec "$@"' - "${op[@]}"
says "a process of the job has another NCCL than the first one" "too"
exits 0 "two jobs in a script" "$NBOX" run --preset dgx-a100 --nodes 8 --gpus-per-node 1 --out two -- sh -c 'NCCL_ALGO=Ring "$@"; NCCL_ALGO=Tree "$@"' - "${op[@]}"
says "decided by     NCCL 2.28.9, the job's, NCCL_ALGO=Ring; NCCL 2.28.9, the job's, NCCL_ALGO=Tree" "have each its own"
exits 0 "the status" "$NBOX" run "${world[@]}" --out status --procs 2 -- sh -c '"$@" && if [ $LOCAL_RANK = 0 ]; then LD_PRELOAD= "$0" status --json; fi' "$NBOX" "${op[@]}"
says "\"decided_by\": \"NCCL 2.28.9, the job's\"" "says it, too"
printf 'allreduce,0,1000000000,tree,simple,4,-1,-1\n' >tuner.csv
exits 0 "a tuner's table" "$NBOX" run "${world[@]}" --out tuner --procs 2 -- env NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE=tuner.csv "${op[@]}"
is "$(modelled tuner)" "$(expected --model nccl:tuner=tuner.csv)" "is read where the job says so"
"$NBOX" run "${world[@]}" --out wrong --procs 2 -- env NCCL_PROTO=quick "${op[@]}" >wrong.txt 2>&1 && fail "what NCCL does not know" "$(cat wrong.txt)"
out=$(cat wrong.txt)
says "NCCL_PROTO: 'quick' is none of" "what NCCL does not know ends the job with a sentence"

# options pin what the model decides
exits 0 "--algo and --channels" "$NBOX" run "${world[@]}" --algo allreduce=tree --channels 2 --out pinned -- "${op[@]}"
says "decided by     NCCL 2.28.9, the job's, channels=2" "count"
is "$(modelled pinned)" "$(modelled own)" "as the variables do"
is "$(expected --algo allreduce=tree --channels 2)" "$(modelled own)" "and for nbox perf"
is "$(expected --model pinned --algo allreduce=tree --channels 2 --chunk 64K)" "$(expected --model pinned:algo=tree,channels=2,chunk=64K)" "of pinned they are parameters"
exits 0 "nbox explain of a configuration in force" "$NBOX" explain allreduce 1MiB --config job/config.yaml
says "the default" "has none pinned that the run did not"
while IFS='|' read -r words why; do
	# shellcheck disable=SC2086
	exits 2 "$words" "$NBOX" run --dry-run "${world[@]}" $words -- true
	says "nbox run: $why" "is refused with the reason"
done <<'T'
--chunk 64K|--chunk: model nccl cuts ops as it decides: variables such as NCCL_BUFFSIZE change that of nccl, and --model pinned:chunk=64K has it as given
--channels 65|--channels: delay model nccl: channels=65: NCCL has 1 to 64
--channels 4 --model nccl:channels=2|--channels: the model is given as nccl:channels=2 over alphabeta, which says it, too
T
exits 0 "--chunk of messages that cross the link" "$NBOX" run "${world[@]}" --chunk 64K --exchange messages --out link -- "${op[@]}"
is "$(modelled link)" "$(modelled job)" "changes nothing that the model decides"
nothing_left
finish

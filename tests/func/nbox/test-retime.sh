#!/usr/bin/env bash
# The record holds all that a run's timelines were made from: fed with it alone they say the same times again. Its deps say what an iteration
# is. The reader in Python finds the same rows and values in it.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
jobs=$(dirname "$test")/../../apps/stepper/jobs share=$(dirname "$test")/../../../share
same='import json, sys
def number(text): return int(float(text)) if float(text).is_integer() else float(text)
rows = [sorted(json.dumps(json.loads(line, parse_float=number), sort_keys=True) for line in f) for f in (sys.stdin, open(sys.argv[1]))]
print("same" if rows[0] == rows[1] and len(rows[0]) > 100 else "differ: %d and %d rows, %s" % (len(rows[0]), len(rows[1]), set(rows[0]) ^ set(rows[1])))'

while IFS='|' read -r job real graph what_ifs; do
	# shellcheck disable=SC2086
	exits 0 "$job: a run" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real "$real" --model ring --out "$job" $what_ifs -- \
		"$BUILD/tests/apps/stepper" "$jobs/$job.job" --iterations 5 --warmup 1 ${graph:+--$graph}
	exits 0 "$job: its timelines from the record alone" "$BUILD/tests/func/nbox/retime" "$job/record.nbox" "$BUILD/delaymodels"
	echo "# $out"
	is "$(json "$job/summary.json" 'd["steps"]["count"]')" 6 "$job: its iterations are found"
	"$NBOX" record dump --json "$job" >dumped
	is "$(python3 -I "$share/nbox_record.py" "$job/record.nbox" | python3 -ISc "$same" dumped)" "same" "$job: nbox_record.py reads what nbox record dump shows"
	rm -rf "$job"
done <<'T'
ddp|0||
fsdp|0-1|graph|--what-if slow:rank=0,compute=1.5
tp-dp|0||--what-if slow:rank=3,compute=2 --what-if jitter:on=compute,stddev=10%
pipeline|0,1||
moe|0-1||--seed 5 --what-if jitter:on=compute,stddev=5%
T
finish

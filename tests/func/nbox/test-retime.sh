#!/usr/bin/env bash
# The record holds all that a run's timelines were made from: fed with it alone they say the same times again. Its deps say what an iteration
# is.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
jobs=$(dirname "$test")/../../apps/stepper/jobs

while IFS='|' read -r job real graph what_ifs; do
	# shellcheck disable=SC2086
	exits 0 "$job: a run" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real "$real" --model ring --out "$job" $what_ifs -- \
		"$BUILD/tests/apps/stepper" "$jobs/$job.job" --iterations 5 --warmup 1 ${graph:+--$graph}
	exits 0 "$job: its timelines from the record alone" "$BUILD/tests/func/nbox/retime" "$job/record.nbox" "$BUILD/delaymodels"
	echo "# $out"
	is "$(json "$job/summary.json" 'd["steps"]["count"]')" 6 "$job: its iterations are found"
	rm -rf "$job"
done <<'T'
ddp|0||
fsdp|0-1|graph|--what-if slow:rank=0,compute=1.5
tp-dp|0||--what-if slow:rank=3,compute=2 --what-if jitter:on=compute,stddev=10%
pipeline|0,1||
moe|0-1||--seed 5 --what-if jitter:on=compute,stddev=5%
T
finish

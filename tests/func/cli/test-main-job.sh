#!/usr/bin/env bash
# The main job: a data-parallel trainer believes in its cluster. The losses of the plain run and of every virtual world are equal.
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
nothing_left
finish

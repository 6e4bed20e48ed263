#!/bin/sh
# The trainer on host NCCL: two ranks learn, a second run, whose computation is stretched, gives the same loss
# bit for bit and takes as long as its layers should, and when one rank is killed the other ends with an error instead of waiting.
set -eu
trainer=$1
dir=$(mktemp -d)
other='' first=''
# shellcheck disable=SC2086 # none, one or two numbers
trap 'kill -9 $other $first 2> /dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
unset NCCL_COMM_ID
export WORLD_SIZE=2

for i in 1 2 3 4 5 6 7 8 9; do
	echo "$i: the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs"
	echo "$i: how vexingly quick daft zebras jump; sphinx of black quartz, judge my vow"
done > "$dir/text"

set -- --text "$dir/text" --batch 8 --hidden 32 --bucket-mb 0.005 --id-file "$dir/id"

for run in a b; do
	[ $run = a ] || set -- "$@" --layer-ms 0.5
	RANK=1 LOCAL_RANK=1 "$trainer" "$@" --steps 30 > /dev/null &
	other=$!
	RANK=0 LOCAL_RANK=0 "$trainer" "$@" --steps 30 --json "$dir/$run.json" > "$dir/$run.out"
	wait "$other"
	other=''
	test ! -e "$dir/id"
done
loss_of() {
	sed 's/.*"'"$2"'": \([-0-9.e]*\)[,}].*/\1/' "$dir/$1.json"
}
a=$(loss_of a loss)
b=$(loss_of b loss)
initial=$(loss_of a initial_loss)
buckets=$(loss_of a allreduces_per_step)
p50=$(sed 's/.*"p50": \([0-9.]*\),.*"exposed_ms".*/\1/' "$dir/b.json")
if [ "$(echo "$p50" | awk '{ print ($1 >= 17 * 0.5) }')" != 1 ]; then
	echo "an iteration of 5 layers forward and 12 back of 0.5 ms each took $p50 ms" >&2
	exit 1
fi
if [ "$a" != "$b" ]; then
	echo "two equal runs end with losses $a and $b" >&2
	exit 1
fi
if [ "$(echo "$a $initial" | awk '{ print ($1 < $2) }')" != 1 ] || [ "$buckets" -lt 2 ]; then
	echo "nothing learnt: $initial -> $a, $buckets buckets" >&2
	exit 1
fi

RANK=1 LOCAL_RANK=1 "$trainer" "$@" --steps 1000000 > /dev/null 2>&1 &
other=$!
RANK=0 LOCAL_RANK=0 "$trainer" "$@" --steps 1000000 --log 1 > "$dir/log" 2> "$dir/error" &
first=$!
while [ ! -s "$dir/log" ] && kill -0 "$first" 2> /dev/null; do sleep 0.01; done
kill -9 "$other"
wait "$other" || true
other=''
status=0
wait "$first" || status=$?
first=''
if [ "$status" -eq 0 ]; then
	echo "rank 0 ended well although rank 1 was killed" >&2
	exit 1
fi
if [ "$(wc -l < "$dir/error")" -ne 1 ]; then
	echo "not one line about it:" >&2
	cat "$dir/error" >&2
	exit 1
fi

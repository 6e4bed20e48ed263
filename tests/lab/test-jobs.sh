#!/usr/bin/env bash
# Five jobs, each real on four hosts, then under nbox with one of them real: both do the same ops, and neither is faster than its cables
# and its computation allow. A slower cable and a slow rank show. How near the times are: ./scripts/bench fidelity.
. "$(dirname "$0")/lib.sh"
stepper=$BUILD/tests/apps/stepper
lab_up --hosts 4 --link 400Mbps --slow-link 3=100Mbps
export LD_LIBRARY_PATH=$BUILD/emulator/standins

# bytes that each cable must carry one way in a ring of 4 ranks, over the goodput of the slowest: ms
cable_ms() { awk -v bytes="$1" -v mbps="$2" 'BEGIN { print bytes * 8 / (mbps * 1e3 * 1448 / 1514) }'; }
cat >ddp.job <<'J'
bucket 512KiB
layer x4 forward=1ms backward=2ms params=512KiB
J
cp "$(dirname "$LAB")/../tests/bench/fidelity/compute-bound.job" compute.job
cat >fsdp.job <<'J'
style fsdp
layer x3 forward=1ms backward=2ms params=256KiB
J
cat >pipeline.job <<'J'
parallel pp=4
micro 4
layer x4 forward=1ms backward=2ms send=64KiB params=64KiB
J
cat >moe.job <<'J'
layer x2 forward=1ms backward=2ms params=64KiB moe=256KiB
J
# NAME MBPS COMPUTE-MS BYTES: the bound of an iteration is the larger of what rank 0 computes and what its cable carries. All use host 3,
# whose cable is slow; under nbox all cables are.
while read -r name compute bytes slow; do
	more=()
	[ "$slow" = - ] || more=(--slow "$slow")
	exits 0 "$name: on four hosts" timeout 60 "$LAB" run --name "$lab" -- "$stepper" $name.job --iterations 3 --warmup 1 --json "$name.json" "${more[@]}"
	what=()
	[ "$slow" = - ] || what=(--what-if "slow:rank=${slow%=*},compute=${slow#*=}")
	exits 0 "$name: one host of four" timeout 60 "$LAB" run --name "$lab" --only 0 --per-host -- "$NBOX" run --quiet --device host --nodes 4 --gpus-per-node 1 \
		--real 0 --model alphabeta:bw=95Mbps,alpha=10us "${what[@]}" --out "out-$name" -- "$stepper" $name.job --iterations 3 --warmup 1 --json "n-$name.json"
	bound=$(awk -v a="$compute" -v b="$(cable_ms "$bytes" 100)" 'BEGIN { print (a > b ? a : b) }')
	for f in "$name.json" "n-$name.json"; do
		is "$(json "$f" "d['world'], len(d['iterations']), sum(d['iterations']) / 3 >= $bound * 0.9")" "(4, 3, True)" "$f: three iterations, no faster than $bound ms"
	done
	is "$(json "n-$name.json" 'd["ops"]')" "$(json "$name.json" 'd["ops"]')" "$name: the same ops"
done <<'T'
ddp 12 3145728 -
compute 200 0 3=1.5
fsdp 9 1500000 -
pipeline 12 0 -
moe 6 0 -
T
# 200 ms alone, 300 when it is waited for. Its ops hide behind computation, so the lag has to last from one op to the next.
is "$(json compute.json "sum(d['iterations']) / 3 >= 250")" True "a slow rank is waited for on real hosts"
is "$(json n-compute.json "sum(d['iterations']) / 3 >= 250")" True "a slow virtual rank is waited for"
# the same in virtual time: from the first op of an iteration to the next one's, and what it would take without
"$NBOX" report --csv out-compute | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	(NR - 2) % 8 == 0 { print $at["virtual_arrive_ns"], $at["plain_arrive_ns"] }' >begins
is "$(awk 'NR > 2 && ($1 - v < 250e6 || $2 - p > $1 - v - 50e6) { bad++ } { v = $1; p = $2 } END { print NR, bad + 0 }' begins)" "4 0" \
	"nbox predicts iterations longer by what it adds: $(tr '\n' ';' <begins)"
"$LAB" down --name "$lab"
nothing_left
finish

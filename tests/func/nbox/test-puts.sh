#!/usr/bin/env bash
# NCCL's one-sided calls: among real ranks on host NCCL, then with virtual ranks.
. "$(dirname "$0")/lib.sh"
puts=$BUILD/tests/apps/puts

while read -r ranks right; do
	exits 0 "$ranks ranks put into each other's windows" timeout 60 "$NBOX" run --plain --procs "$ranks" --quiet -- "$puts" --rounds 2
	is "$(grep -c "of $ranks: $right right, 0 of other ranks" <<<"$out")" "$ranks" "$ranks ranks: every number is right"
done <<'T'
1 4000
2 8000
4 12000
T
export NCCL_SHM_DISABLE=1
exits 0 "over tcp, megabytes" timeout 60 "$NBOX" run --plain --procs 3 --quiet -- "$puts" --elements 300000 --rounds 1
unset NCCL_SHM_DISABLE

model=(--model alphabeta:alpha=2us,bw=1GB/s)
exits 0 "one real rank of four" timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 "${model[@]}" --out one -- "$puts" --rounds 1
says "puts: rank 0 of 4: 1000 right, 2000 of other ranks" "finds what it put itself where a virtual rank puts"
exits 0 "two of four, on a node" timeout 60 "$NBOX" run --quiet --nodes 2 --gpus-per-node 2 "${model[@]}" --out two -- "$puts" --rounds 1
is "$(sed -n "s,.*rank \([01]\) of 4: .* right.*,\1,p" <<<"$out" | sort | tr -d "\n")" 01 "both find nothing wrong"
exits 0 "all real" timeout 60 "$NBOX" run --quiet --nodes 1 --gpus-per-node 4 "${model[@]}" --out all -- "$puts" --rounds 1
is "$(grep -c "of 4: 6000 right, 0 of other ranks" <<<"$out")" 4 "every number is right there, too"
exits 0 "no data" timeout 60 "$NBOX" run --quiet --nodes 64 --gpus-per-node 2 --data none "${model[@]}" --out big -- "$puts" --no-check
# ends RUN: of each put, 2 us and its bytes at 1 GB/s; of each wait for one message of a virtual rank, when that would be there if it was put
# when this rank put its own
ends() {
	python3 -IS - "$NBOX" "$1" <<'P'
import json, subprocess, sys
rows = [json.loads(line) for line in subprocess.run([sys.argv[1], "record", "dump", "--json", "--kind", "op", sys.argv[2]], capture_output=True, text=True, check=True).stdout.splitlines()]
rows = sorted((r for r in rows if r["world_rank"] == 0), key=lambda r: r["seq"])
assert all(r["flags"] & 1024 for r in rows)
puts = waits = 0
began = None
for r in rows[:4]: # barrier and ring of the first round
    calls, sends = r["calls"], r["calls"][0]["is_send"]
    bytes = sum(c["bytes"] for c in calls)
    takes = r["virtual_end_ns"] - r["virtual_arrive_ns"]
    if sends:
        began = r["virtual_arrive_ns"]
        assert abs(takes - 2000 - bytes) <= 2, (r, takes)
        puts += 1
    else:
        assert abs(takes - max(0, began + 2000 + bytes - r["virtual_arrive_ns"])) <= 2, (r, takes)
        waits += 1
    assert {c["bytes"] for c in calls} in ({8}, {4000}), calls
print(len(rows), puts, waits)
P
}
is "$(ends one)" "14 2 2" "a put takes its message's time, a wait what is left of it since the like was put"
exits 0 "re-timed" "$NBOX" retime one --out again
is "$(ends again)" "14 2 2" "the same comes out of the record"
exits 0 "beside a slow rank" "$NBOX" retime two --what-if slow:rank=3,compute=2 --out slow
# messages RUN: those of rank 0's first ops: signals, puts of 4000 bytes in chunks of 1 KiB, waits for the like
messages() {
	"$NBOX" record dump --json --kind op "$1" | python3 -IS -c 'import json, sys
rows = sorted((r for r in map(json.loads, sys.stdin) if r["world_rank"] == 0), key=lambda r: r["seq"])
print(*[r["n_messages"] for r in rows[:6]])'
}
while read -r exchange link; do
	exits 0 "$exchange over $link" timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --exchange "$exchange" --link "$link" --chunk 1KiB "${model[@]}" --out "$exchange-$link" -- "$puts" --rounds 1
	says "puts: rank 0 of 4: 1000 right, 2000 of other ranks" "$exchange over $link: the data is the same"
	is "$(ends "$exchange-$link")" "14 2 2" "$exchange over $link: the ends are the same"
	is "$(messages "$exchange-$link")" "3 3 4 4 3 3" "$exchange over $link: a wait gets as many messages as a put of its sender has chunks"
done <<'T'
messages shm
messages tcp
payload shm
payload tcp
T
exits 0 "slow messages" timeout 60 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --exchange messages --model alphabeta:alpha=400ms,bw=1GB/s --out late -- "$puts" --rounds 1
is "$("$NBOX" record dump --json --kind op late | python3 -IS -c 'import json, sys
print(max(r["release_ns"] - r["due_ns"] for r in map(json.loads, sys.stdin) if not r["calls"][0]["is_send"]) < 400000000)')" True "what was put before the wait does not keep it"
exits 0 "payload, two of four, on a node" timeout 60 "$NBOX" run --quiet --nodes 2 --gpus-per-node 2 --exchange payload "${model[@]}" --out payload-two -- "$puts" --rounds 1
nothing_left
finish

#!/usr/bin/env bash
# --alltoall: all-to-alls of an unmodified job whose ranks do not send alike take what the network needs for the matrix of all ranks: live =
# re-timed = nbox perf alltoall --matrix.
. "$(dirname "$0")/lib.sh"
exchanger=$BUILD/tests/apps/exchanger
world=(--nodes 4 --gpus-per-node 2)
model=(--model alphabeta --inter-bandwidth 10GB/s --inter-latency 7us --intra-bandwidth 100GB/s)

# rank 5 keeps the hot tables; rank 3 keeps none, so it sends nothing
matrix() {
	python3 -c 'import sys
weight = [int(w) for w in sys.argv[2:]]
for source in range(8): print(*[0 if source == to else weight[source] * int(sys.argv[1]) for to in range(8)])' "$@"
}
matrix 1024 64 128 192 0 320 4096 448 512 >m.txt
matrix 3072 64 128 192 0 320 4096 448 512 >three.txt
matrix 1024 64 128 192 64 320 384 448 512 >other.txt
matrix 1024 64 512 192 0 320 4096 448 512 >one.txt # rank 0 may have it so, rank 1 does not
# took DIR FILE: OK, if the run's groups of calls take what nbox perf says of FILE there and of its transpose back, to 0.01 us; all ranks
# are over with the last one: not before the first of them has come and all messages went
took() {
	python3 -IS - "$NBOX" "$1" "$(perf "$2")" "$(perf "$2.back")" <<'PY'
import csv, subprocess, sys
rows = csv.DictReader(subprocess.run([sys.argv[1], "report", "--csv", sys.argv[2]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
groups = {}
for r in rows:
    if r["op"] == "SendRecv": groups.setdefault(int(r["seq"]), []).append(r)
bad = [] if len(groups) == 6 else [groups]
for seq, own in groups.items():
    ns = [float(r["model_ns"]) + float(r["injected_ns"]) for r in own]
    ends = {int(r["virtual_end_ns"]) for r in own}
    first = min(int(r["virtual_arrive_ns"]) + float(r["queued_ns"]) for r in own)
    if any(abs(t / 1e3 - float(sys.argv[3 + seq % 2])) > 0.0051 for t in ns) or len(ends) > 1 or min(ends) < first + min(ns) - 2:
        bad.append((seq, ns, sys.argv[3:], ends, first))
print(bad or "OK")
PY
}
perf() { "$NBOX" perf alltoall "${world[@]}" "${model[@]}" --matrix "$1" | awk '$1 == "time" { print $2 }'; }
for f in m three; do
	python3 -c 'import sys; rows = [l.split() for l in open(sys.argv[1])]; [print(*c) for c in zip(*rows)]' $f.txt >$f.txt.back
done

cp m.txt kept.txt
cp m.txt.back kept.txt.back
for real in 0-1 2-3 0-7; do
	exits 0 "live, ranks $real real" "$NBOX" run "${world[@]}" "${model[@]}" --real $real --alltoall m.txt --out "live-$real" --json live.json -- "$exchanger" "$tmp/m.txt"
	says "groups of calls of all real ranks took the matrix's time" "$real: the summary says so"
	is "$(json live.json 'd["alltoall"]["by_matrix"] == 6 * d["real_ranks"], d["alltoall"]["left_alone"]')" "(True, 0)" "$real: all of them"
	is "$(took "live-$real" m.txt)" OK "$real: they take what nbox perf says"
done
exits 0 "plain" "$NBOX" run --quiet "${world[@]}" "${model[@]}" --real 0-1 --out plain -- "$exchanger" "$tmp/m.txt" 3
exits 0 "re-timed" "$NBOX" retime plain --alltoall m.txt --out retimed --json retimed.json
is "$(took retimed three.txt)" OK "shares: a job with three times the bytes takes their time, re-timed from a plain run"
rm m.txt
exits 0 "the run folder has a copy of the file" "$NBOX" retime live-0-1 --out again
is "$(took again kept.txt)" OK "... and the times are the same"

exits 0 "what does not match" "$NBOX" retime plain --alltoall other.txt --out left --json left.json
says "has its rows and columns" "... is told"
says "of as many ranks did not match it" "... is left alone, and counted"
is "$(json left.json 'd["alltoall"]')" "{'by_matrix': 0, 'left_alone': 12}" "... each group"
"$NBOX" retime plain --alltoall one.txt --json one.json >/dev/null
is "$(json one.json 'd["alltoall"]')" "{'by_matrix': 0, 'left_alone': 12}" "ranks that do not agree are left alone"
"$NBOX" retime plain --out same >/dev/null
is "$("$NBOX" report --csv left | cut -d, -f1-6,24,25)" "$("$NBOX" report --csv same | cut -d, -f1-6,24,25)" "... and keeps its times"
"$NBOX" retime live-0-1 --alltoall none --out none >/dev/null
is "$("$NBOX" report --csv none | awk -F, '$20 >= 2048' | wc -l)" "1" "none: the matrix is left out"
exits 2 "no such file" "$NBOX" retime plain --alltoall nowhere.txt --out x
says "nowhere.txt" "... is named"
nothing_left
finish

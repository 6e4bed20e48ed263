#!/usr/bin/env bash
# nbox reshard: what it says of a plan, its JSON and trace; verify over tcp, and that it leaves no process. Figures are in tests/papers.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

readme() { readme_block "$here/../../../emulator/mesh/README.md" "$1"; }
exits 0 "a plan" "$NBOX" reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --nic 10Gbps --json p.json --trace t.json
is "$(grep -v ' busy ' <<<"$out")" "$(readme '$ nbox reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --nic 10Gbps')" "is what the README shows"
is "$(json p.json 'd["optimal"], d["end_ns"] == d["bound_ns"], len(d["tasks"]), d["crossing_bytes"] == d["bytes"], [h["idle_ns"] for h in d["src_hosts"]]')" \
	"(True, True, 4, True, [0.0, 0.0])" "the same as JSON"
is "$(json p.json 'max(d["dst_done_ns"]) == d["end_ns"], len(d["dst_done_ns"])')" "(True, 8)" "and when each device has its tile"
is "$(json t.json 'sum(e["dur"] for e in d["traceEvents"] if e.get("cat") == "reshard" and e["pid"] == 0) * 1000 / 2 / '"$(json p.json 'd["end_ns"]')")" \
	1.0 "its trace has both hosts busy"
"$NBOX" reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --nic 10Gbps --json - >again.json
check "the same seed plans the same" cmp p.json again.json
exits 0 "Table 2" "$NBOX" reshard --suite table2
is "$out" "$(readme '$ nbox reshard --suite table2')" "is what the README shows"
exits 0 "a preset" "$NBOX" reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --preset dgx-h100 --k best
says "a host sends and receives 392 GB/s, a message starts in" "has all NICs of a node"
"$NBOX" topo --preset dgx-h100 --yaml >h100.yaml
is "$("$NBOX" reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --fabric h100.yaml --k best)" "$out" "and so has its file"

exits 0 "verify over tcp" "$NBOX" reshard verify --tensor 30x7 --dtype u8 --src S0R@2x2 --dst RS01@3x1 --link tcp
says "210 elements at the destination, 0 wrong; 7 processes over tcp" "compares all elements"
says "as many (210 B)" "counts what crosses hosts"
exits 2 "a tensor too large" "$NBOX" reshard verify --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4
says "more than 1 GiB" "says so"

# killed at its work: a piece is 4 bytes, so that there is some
"$NBOX" reshard verify --tensor 2000x2000 --src RR@1x2 --dst RR@2x2 --k 1000000 >/dev/null 2>&1 &
main=$!
within 60 pgrep -P $main
children=$(pgrep -P $main)
kill -KILL $main
wait $main 2>/dev/null
gone() { for p in $children; do [ ! -e "/proc/$p" ] || return 1; done; }
check "killed, it leaves no process" within 60 gone
finish

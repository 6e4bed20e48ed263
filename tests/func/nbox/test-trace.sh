#!/usr/bin/env bash
# nbox trace: traces of several forms, put together; clocks that differ by a known time. (How near the truth clocks are found:
# tests/papers/trace.c.)
. "$(dirname "$0")/lib.sh"

# --- dPRO's form: 4 hosts, 10 steps, 3 tensors around a ring
awk 'BEGIN {
	srand(1); N = 4; print "["
	for (s = 0; s < 10; s++) {
		for (k = 0; k < 3; k++) {
			for (r = 0; r < N; r++) {
				e = ready[r] + 2000 * (0.97 + 0.06 * rand())
				printf "%s{\"ph\":\"X\",\"name\":\"BW.l%d\",\"pid\":\"host%d.rank%d\",\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%d}}", c, k, r, r, ready[r], e - ready[r], s
				c = ",\n"; ready[r] = e; has[r] = e > done[r] ? e : done[r]
			}
			for (h = 0; h < 2 * (N - 1); h++) {
				for (r = 0; r < N; r++) {
					d = 300 * (0.97 + 0.06 * rand()); t = (r + 1) % N; got[t] = has[r] + d
					for (end = 0; end < 2; end++)
						printf ",\n{\"ph\":\"X\",\"name\":\"Comm.%d.%s\",\"pid\":\"host%d.rank%d\",\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%d,\"loopId\":0,\"channelId\":0,\"chunkId\":%d,\"sliceId\":0}}", k, end ? "RECV" : "SEND", end ? t : r, end ? t : r, has[r], d, s, h
				}
				for (r = 0; r < N; r++) has[r] = got[r] > has[r] ? got[r] : has[r]
			}
			for (r = 0; r < N; r++) done[r] = has[r]
		}
		for (r = 0; r < N; r++) ready[r] = done[r] > ready[r] ? done[r] : ready[r]
	}
	print "]"
}' >t.json
exits 0 "export with other clocks" "$NBOX" trace export t.json --skew host1=13.7ms --skew host2=-7ms --recv-early 5ms --out s.json.gz
exits 0 "align" "$NBOX" trace align s.json.gz --json a.json
says "host1" "names the hosts"
is "$(json a.json '[round(h["offset_us"] / 100) for h in d["hosts"]]')" "[0, -137, 70, 0]" "finds by how much their clocks differ"
is "$(json a.json 'd["received_too_early_before"] > 0, d["received_too_early"]')" "(True, 0)" "after it no message is received before it is sent"
exits 0 "merge" "$NBOX" trace merge s.json.gz --out m.json
exits 0 "align what was merged" "$NBOX" trace align m.json --json a.json
is "$(json a.json 'max(abs(h["offset_us"]) for h in d["hosts"]) < 50')" True "has one clock"
exits 0 "diff" "$NBOX" trace diff t.json m.json --json d.json
is "$(json d.json '[abs(r["first_ms"] - r["second_ms"]) < 0.01 for r in d["rows"] if r["name"] in ("BW.l0", "Comm.0.SEND")]')" "[True, True]" "a merged trace has the ops of the first"
exits 0 "diff with what is still posted early" "$NBOX" trace diff t.json s.json.gz
says "Comm.0.RECV" "names the ops that take another time"
exits 0 "stat" "$NBOX" trace stat t.json --json s.json --rank 2
is "$(json s.json 'd["iterations"], [(r["kind"], r["count"]) for r in d["rows"] if r["name"] in ("BW.l0", "Comm.0.RECV")]')" \
	"(10, [('compute', 10), ('recv', 60)])" "counts one rank's ops"

# --- a run, and the trace that it writes
exits 0 "a run of two real ranks" timeout 100 "$NBOX" run --nodes 4 --gpus-per-node 1 --real 0-1 --model ring --name r -- \
	"$BUILD/tests/apps/stepper" "$(dirname "$0")/../../apps/stepper/jobs/fsdp.job" --iterations 5 --warmup 1
exits 0 "its record" "$NBOX" trace stat r --json r.json
exits 0 "its trace, a file a rank" "$NBOX" report r --trace t/
exits 0 "is read again" "$NBOX" trace stat t/rank-0.json.gz t/rank-1.json.gz --json k.json
ops='sorted((r["kind"], r["count"]) for r in d["rows"] if r["kind"] == "collective")'
is "$(json r.json "$ops")" "$(json k.json "$ops")" "with the same ops"
exits 0 "what computation costs the run" "$NBOX" diagnose r --json run-why.json
exits 0 "what it costs its trace" "$NBOX" diagnose t/ --json trace-why.json
is_if_quiet r "$(python3 -c 'import json; a, b = (json.load(open(f))["causes"][0]["won_ms"] for f in ("run-why.json", "trace-why.json")); print(abs(b / a - 1) < .05)')" True \
	"is the same: no kernel stands at the time of the clock"
exits 0 "both make one file" "$NBOX" trace merge t/rank-0.json.gz t/rank-1.json.gz --out both.json
exits 0 "which is read again" "$NBOX" trace stat both.json --json b.json
is "$(json b.json "$ops")" "$(json k.json "$ops")" "with the same ops"
is "$(json both.json '{e["pid"][-6:] for e in d["traceEvents"]} == {".rank0", ".rank1"}, d["distributedInfo"]["world_size"]')" "(True, 4)" "and says whose they are"

# --- what is refused
echo '[{"ph":"X","name":"FW.a","pid":"h.rank0","ts":1,"dur":-4}]' >bad.json
exits 2 "a time below zero" "$NBOX" trace stat bad.json
says "bad.json: event 1: 'FW.a': it lasts -4 us" "names file, event and time"
awk 'BEGIN { print "["; for (i = 0; i < 2; i++) for (k = 0; k < 2; k++) printf "%s{\"ph\":\"X\",\"name\":\"Comm.%d.%s\",\"pid\":\"h%d.rank%d\",\"ts\":%d,\"dur\":1}", n++ ? "," : "", i, k ? "RECV" : "SEND", k != i, k != i, k ? 100 : 200; print "]" }' >clocks.json
exits 1 "clocks that contradict each other" "$NBOX" trace align clocks.json
says "the clocks contradict each other by 198.000 us" "says by how much"
head -c 5000 t.json >cut.json
exits 2 "a trace that is cut" "$NBOX" trace stat cut.json
says "cut.json: ends in the middle: in event" "names where"
mkdir "run [1]" && cp t.json "run [1]/" && head -c 5000 t.json >"run [1]/u.json"
exits 2 "a folder with one trace that is cut" "$NBOX" trace stat "run [1]"
says "run [1]/u.json: ends in the middle: in event" "names that one"
rm "run [1]/u.json"
exits 0 "a folder with brackets in its name" "$NBOX" trace stat "run [1]"
exits 2 "a bare number" "$NBOX" trace export t.json --skew host1=1 --out x.json
exits 2 "another verb" "$NBOX" trace aling t.json

finish

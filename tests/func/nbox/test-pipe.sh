#!/usr/bin/env bash
# nbox pipe: from flags, and from the record of a pipeline, one stage of which ran alone. What it says of schedules is tests/papers/pipe.c.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
stepper=$BUILD/tests/apps/stepper

exits 0 "four stages" "$NBOX" pipe --stages 4 --micro 16 --fwd 1ms --bwd 2ms --bwd-w 1ms --comm 1ms --overlap all --json a.json --svg a.svg
is "$out" "$(readme_block "$here/../../../emulator/pipe/README.md" '$ nbox pipe --stages 4 --micro 16 --fwd 1ms --bwd 2ms --bwd-w 1ms --comm 1ms --overlap all')" \
	"is what the README shows"
is "$(json a.json '[(r["schedule"], r["overlap"], r["is_delayed"], round(r["iteration_ns"] / 1e6, 9)) for r in d["rows"]]')" \
	"$(tr -d '\n' <<<"[('gpipe', 'off', 0, 123.0), ('1f1b', 'off', 0, 121.0), ('gpipe', 'sender', 0, 93.0), ('1f1b', 'sender', 0, 92.0), \
('eager', 'sender', 0, 89.0), ('gpipe', 'on', 0, 63.0), ('1f1b', 'on', 0, 85.0), ('1f1b', 'on', 1, 71.0), ('eager', 'on', 0, 63.0), ('eager', 'on', 1, 60.0)]" |
		sed "s/, 0, /, False, /g; s/, 1, /, True, /g")" "all rows"
is "$(json a.json '[r["activations"] for r in d["rows"] if r["schedule"] == "eager"][0]')" "[7, 5, 3, 1]" "micro-batches under way"
check "the picture is XML" python3 -IS -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse(sys.argv[1])' a.svg

exits 0 "eager, overlapped or not" "$NBOX" pipe --stages 4 --micro 16 --fwd 1ms --bwd 2ms --comm 1ms --schedule eager --overlap all --json a.json
is "$(json a.json '[r["overlap"] for r in d["rows"]]')" "['sender', 'on']" "has the rows that can be"

exits 0 "unequal stages" "$NBOX" pipe --stages 3 --micro 4 --fwd 1ms,2ms,1ms --bwd 2ms,4ms,2ms --comm 1ms,2ms --update 3ms --schedule 1f1b --json b.json
is "$(json b.json '[(s["forward_ns"], s["to_next_ns"], s["to_previous_ns"]) for s in d["stages"]], len(d["rows"])')" \
	"([(1000000.0, 1000000.0, 0.0), (2000000.0, 2000000.0, 1000000.0), (1000000.0, 0.0, 2000000.0)], 1)" "each has its own times"

# 60 ms of stages, 1 ms of messages: 62.2 is 3 % above Signal, with 2.5 of 6 messages exposed at either end
exits 0 "a network" "$NBOX" pipe --stages 4 --micro 17 --fwd 1ms --bwd 2ms --bytes 1MB --nic 1GB/s --json c.json
says "eager is within 3 % of Signal with messages up to 0.31 times as long: from 25.9 Gbit/s on" "is found"
exits 0 "table 1" "$NBOX" pipe --stages 8 --micro 64 --fwd 10ms --bwd 20ms --comm 1ms --gpt hidden=12288,tp=8,tokens=2048 --json d.json
is "$(json d.json '[r["bytes"][0] / 2**20 for r in d["rows"]]')" "[6096.0, 3408.0, 3744.0]" "3,024 MiB of state, 48 of each activation"

# a run with both stages real, and one with the second stage alone: 1 MB at 1 GB/s is 1 ms
printf '%s\n' 'parallel pp=2' 'micro 6' 'schedule eager' 'update 1ms' 'layer x2 forward=2ms backward=4ms send=1MB' >eager.job
run() { "$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --layout pp=2 --model ring:bw=1GB/s,alpha=0us "$@" -- "$stepper" eager.job --iterations 6; }
exits 0 "both stages" run --real 0-1 --out both
exits 0 "its record" "$NBOX" pipe --from both --json e.json
is "$(json e.json 'd["recorded"]["schedule"], d["micro"], [(s["to_next_ns"], s["to_previous_ns"], s["message_bytes"]) for s in d["stages"]], d["recorded"]["notes"]')" \
	"('eager', 6, [(1000000.0, 0.0, 1000000), (0.0, 1000000.0, 0)], '')" "says schedule, micro-batches and messages"
is "$(json e.json 'all(s["forward_ns"] + s["backward_ns"] >= 6e6 for s in d["stages"])')" True "and what stages compute, which sleep no less than that"
exits 0 "the second stage alone" run --as-node 1 --out second
exits 0 "its record" "$NBOX" pipe --from second --micro 6
says "1 of 2 stages, stage 0 first, have no record: they compute and send as one that has; --with RUN adds the record of another stage" "says what is assumed"
exits 0 "the first stage alone" run --as-node 0 --out first
exits 0 "records of both, one after the other" "$NBOX" pipe --from first --with second --json f.json
is "$(json f.json 'd["recorded"]["schedule"], d["micro"], d["recorded"]["notes"]')" "('eager', 6, '')" "are a whole pipeline"
exits 1 "a run that fails before its first op" run --real 0-1 --what-if fail:rank=1,time=0s --out dead
exits 2 "is no pipeline" "$NBOX" pipe --from dead
exits 0 "with other messages" "$NBOX" pipe --from both --comm 3ms --json g.json
is "$(json g.json 'd["stages"][0]["to_next_ns"]')" 3000000.0 "flags come in the place of the record"

for micro in 4 4294967296; do
	exits 2 "--micro $micro of iterations of 6" "$NBOX" pipe --from both --micro $micro
	says "nbox pipe: --micro" "is refused"
done

# of four stages the last alone has a record: nothing is known of the first two borders
printf '%s\n' 'parallel pp=4' 'micro 4' 'layer x4 forward=1ms backward=2ms send=1MB' >four.job
"$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --layout pp=4 --model ring:bw=1GB/s,alpha=0us --real 3 --out last -- "$stepper" four.job --iterations 4 >/dev/null
exits 0 "one stage of four" "$NBOX" pipe --from last --json h.json
is "$(json h.json '[(s["to_next_ns"], s["to_previous_ns"]) for s in d["stages"]]')" "[(1000000.0, 0.0), (1000000.0, 1000000.0), (1000000.0, 1000000.0), (0.0, 1000000.0)]" \
	"messages of other stages take as long"
"$NBOX" pipe --stages 2 --micro 2 --fwd 1ms --bwd 2ms --comm 1ms --svg - >stdout.svg
check "a picture on standard output is XML" python3 -IS -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse(sys.argv[1])' stdout.svg

"$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --real 0-1 --out forth -- "$BUILD/tests/apps/resharder" 64x64 f32 RR@1x1 RR@1x1 --steps 6 >/dev/null
exits 2 "messages one way alone" "$NBOX" pipe --from forth
says "how many micro-batches has an iteration? --micro M: the 6 messages of rank 0 to its neighbour and 0 back do not tell" "are no iterations"

printf 'parallel dp=2\nlayer forward=1ms backward=1ms params=1KiB\n' >ddp.job
"$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --real 0 --out ddp -- "$stepper" ddp.job --iterations 2 >/dev/null
exits 2 "a run without stages" "$NBOX" pipe --from ddp
says "nbox pipe: the run is no pipeline: nobody sends to anybody" "is refused"
nothing_left
finish

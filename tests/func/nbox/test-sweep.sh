#!/usr/bin/env bash
# nbox sweep: the points that the command line means, each as nbox retime has it; what fails is marked; what is complete is not done again.
test=$(realpath "$0")
. "$(dirname "$0")/lib.sh"
job=$(dirname "$test")/../../apps/stepper/jobs/ddp.job
exits 0 "a run" timeout 100 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --real 0 --model ring --out run -- \
	"$BUILD/tests/apps/stepper" "$job" --iterations 5 --warmup 1

# 60 ms of computation with 8 all-reduces; what is left of it behind one of them hides 5 ms of its delay
exits 0 "two axes" "$NBOX" sweep run --nodes 2..8:x2 --what-if 'add:op=allreduce,delay={0,2..4:+2,20ms}' -j 2
is "$(json run-sweep/sweep.json '[list(p["setting"].values()) for p in d["points"]]')" \
	"$(python3 -c 'print([[n, t] for n in ("2", "4", "8") for t in ("0ms", "2ms", "4ms", "20ms")])')" "all combinations, with one unit"
check "a point is what nbox retime says" "$NBOX" retime run --nodes 8 --what-if add:op=allreduce,delay=4ms --json one.json
is "$(json 'run-sweep/points/nodes=8,delay=4ms/summary.json' 'd["steps"]["ms"]')" "$(json one.json 'd["steps"]["ms"]')" "... to the last digit"
is "$(json run-sweep/sweep.json '[p["setting"]["delay"] for p in d["points"] if p["knee"]]')" "['4ms', '4ms', '4ms']" \
	"the knee of each curve: what 5 ms hide does not tell"
is "$(tail -n +2 run-sweep/sweep.csv | wc -l)" 12 "a row of CSV for each"
check "the page is whole" grep -q '</html>' run-sweep/sweep.html
check "the picture is whole" grep -q '</svg>' run-sweep/sweep.svg
check "nbox reads a point's configuration" "$NBOX" perf allreduce --config 'run-sweep/points/nodes=8,delay=4ms/config.yaml' -b 1M -e 1M
check "records are not kept" [ -z "$(find run-sweep -name record.nbox)" ]

# resumed
touch -d '-1 hour' stamp; find run-sweep/points -name summary.json -exec touch -r stamp {} +
rm 'run-sweep/points/nodes=4,delay=2ms/summary.json'
exits 0 "the same again" "$NBOX" sweep run --nodes 2..8:x2 --what-if 'add:op=allreduce,delay={0,2..4:+2,20ms}'
says "11 of 12 points are complete already" "does what is missing"
exits 0 "with another seed" "$NBOX" sweep run --nodes 2..8:x2 --what-if 'add:op=allreduce,delay={0,2..4:+2,20ms}' --seed 2
is "$(find run-sweep/points -name summary.json -not -newer stamp | wc -l)" 0 "does all again"
cp -r run other
exits 1 "another run in the same folder is refused" "$NBOX" sweep other --nodes 2,4 --out run-sweep
says "another run" "with a sentence"

# a list; a point that fails
printf '%s\n' '# four' '--nodes 8 --what-if "add:op=allreduce,delay=1ms"' '--preset no-such' '--nodes 16' >list
exits 1 "a list with a point that is wrong" "$NBOX" sweep run --list list --out listed --keep-records
says "no-such" "says why"
is "$(json listed/sweep.json '[p["failed"] for p in d["points"]]')" "[False, True, False]" "the others are done"
is "$(find listed -name record.nbox | wc -l)" 2 "... and their records kept"

exits 3 "points are held to what is expected" "$NBOX" sweep run --what-if 'add:op=allreduce,delay={0,20ms}' --expect 'injected_ms < 1'
is "$(json run-sweep/sweep.json '[p["as_expected"] for p in d["points"]]')" "[True, False]" "... each by itself"

# what is no sweep
refused() { local text=$1; shift; exits 2 "refused: $*" "$NBOX" sweep "$@"; says "$text" "... and says how"; }
refused 'delay={0,1ms}' run --what-if add:op=allreduce,delay=0,1ms
refused 'delay={0..9ms:3ms}' run --what-if add:op=allreduce,delay=0..9ms:3ms
refused "in which steps" run --inter-bandwidth 100..400Gbps
refused "'8' is there twice" run --nodes 8,4,8
refused "FROM..TO" run --nodes 8..x
refused "one '{' and one '}'" run --what-if 'slow:rank={1'
refused "over what" run
refused "did you mean '--nodes'" run --nodez 8
refused "no unit" run --inter-bandwidth 100,200
exits 0 "a bar: commas belong to the values" "$NBOX" sweep run --what-if '{none|slow:rank=3,compute=1.5}' --json - --out bar
is "$(python3 -c 'import json,sys; print([p["setting"]["what-if"] for p in json.loads(sys.argv[1])["points"]])' "$out")" \
	"['none', 'slow:rank=3,compute=1.5']" "... and JSON alone on the standard output"

# elsewhere, and live
"$NBOX" sweep run --seed 3,4 --what-if 'add:op=allreduce,delay={1,20ms}' --on commands --out "it's" >lines
is "$(wc -l <lines)" 4 "a command line a point"
check "which any launcher takes" xargs -d '\n' -n 1 -P 2 sh -c <lines
exits 0 "together they are the sweep" "$NBOX" sweep run --seed 3,4 --what-if 'add:op=allreduce,delay={1,20ms}' --out "it's"
says "4 of 4 points are complete already" "nothing is done again"
exits 0 "live, by the run's own command line" timeout 200 "$NBOX" sweep run --live --what-if 'add:op=allreduce,delay={20ms}'
is "$(json run-sweep-live/points/all/summary.json 'd["model"], "retimed_of" in d')" "('ring + add:op=allreduce,delay=20ms', False)" \
	"... with the point's options"
sed -i 's/"exit_code": 0/"exit_code": 143/' run-sweep-live/points/all/summary.json
exits 0 "a live point that was ended from outside" timeout 200 "$NBOX" sweep run --live --what-if 'add:op=allreduce,delay={20ms}'
is "$(json run-sweep-live/points/all/summary.json 'd["exit_code"]')" 0 "... is run again"
exits 0 "beside re-timed points" "$NBOX" sweep run --what-if 'add:op=allreduce,delay={0..20ms:4ms}' --out beside --beside run-sweep-live
is "$(json beside/sweep.json '[("beside_ms" in p) for p in d["points"]]')" "[False, False, False, False, False, True]" "each stands at its setting"
is "$(json beside/sweep.json 'd["points"][5]["beside_ms"]')" "$(json run-sweep-live/points/all/summary.json 'd["steps"]["ms"]["p50"]')" "... with its time"
check "the page has its figures" python3 -IS "$(dirname "$test")/check-page.py" beside/sweep.html \
	beside/points/delay={0,4,8,12,16,20}ms/summary.json run-sweep-live/points/all/summary.json
exits 2 "points without that setting are refused" "$NBOX" sweep run --seed 3,4 --out seeds --beside run-sweep-live
says "'seed'" "... and it says which"
exits 2 "a folder without a sweep beside" "$NBOX" sweep run --seed 3,4 --out seeds --beside run
says "no nbox sweep has its results there" "is refused"
exits 0 "points at other settings beside" "$NBOX" sweep run --what-if 'add:op=allreduce,delay={0,4ms}' --out other-settings --beside run-sweep-live
says "none of its points has a setting of this sweep" "are said to be"
rm -r run-sweep-live/points/all
exits 2 "no point with steps beside" "$NBOX" sweep run --what-if 'add:op=allreduce,delay={0,20ms}' --out none-beside --beside run-sweep-live
says "of its 1 points none has steps" "is refused"
check "before a point is played" [ ! -e none-beside -a ! -e seeds ]
exits 0 "a fixed delay, over another axis in time" "$NBOX" sweep run --what-if add:op=allreduce,delay=0.5ms --inter-latency 0,1,20ms --out fixed
is "$(json fixed/sweep.json 'd["knee_ms"]')" None "has no knee of that delay"
is "$(json beside/sweep.json 'd["knee_ms"] > 0')" True "... as the axis of a delay has"
nothing_left
finish

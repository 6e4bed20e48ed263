#!/usr/bin/env bash
# nbox report --format: a page for people. Its figures are summary.json's, it needs nothing but itself, and fits every screen.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
trainer="$BUILD/tests/apps/trainer --steps 10 --batch 4 --hidden 32"

# shellcheck disable=SC2086
named() { local name=$1; shift; exits 0 "a run named $name" "$NBOX" run --quiet --name "$name" --nodes 8 --gpus-per-node 2 "$@" $trainer; }
named d0 --model ring --
named d2 --model ring --what-if add:op=allreduce,delay=2ms --
named d5 --model ring --what-if add:op=allreduce,delay=5ms --
# what others wrote stays text: in elements, in attributes, in the JSON
# shellcheck disable=SC2016 # no expansion is meant
odd='<script>console.error("obeyed"); <!-- <b x="| *c* `d`'
# shellcheck disable=SC2086
exits 0 "a run of odd words" "$NBOX" run --quiet --name odd --nodes 8 --gpus-per-node 2 --preset dgx-h100 --model nccl -- $trainer --json "$odd"

for run in d5 odd; do
	exits 0 "the page of $run" "$NBOX" report --format html --out $run.html $run
	check "its figures are those of summary.json" python3 -IS "$here/check-page.py" $run.html nbox-out/$run/summary.json
done
check "the fabric is drawn" grep -q 'NVSwitch with NVLS' odd.html
check "with loads: an all-reduce of two of each node sends as much as it receives" python3 -IS -c '
import re
rows = re.findall(r"<td>(node\d+\.nic\d+)\.(in|out)</td><td class=\"r\">([^<]*)", open("odd.html").read())
assert len(rows) == 2 and rows[0][2] == rows[1][2], rows'
check "the command is text" grep -q 'json &lt;script>console.error(&quot;obeyed&quot;); &lt;!-- &lt;b x=&quot;| \*c\*' odd.html
exits 0 "a page of several runs" "$NBOX" report --format html --out sweep.html d0 d2 d5
check "its figures are theirs" python3 -IS "$here/check-page.py" sweep.html nbox-out/d0/summary.json nbox-out/d2/summary.json nbox-out/d5/summary.json
check "they lie over what differs" grep -q '>what-if add:op=allreduce,delay (ms)</text>' sweep.html
check "which is a number" grep -q '<td>delay=2ms</td>' sweep.html
live=live_runs_of_the_job_with_and_without_a_delay
exits 0 "live runs of a sweep" timeout 100 "$NBOX" sweep d0 --live --what-if 'add:op=allreduce,delay={0,4ms}' --out $live
exits 0 "a sweep with them beside it" "$NBOX" sweep $live/points/delay=0ms --what-if 'add:op=allreduce,delay={0..8ms:2ms}' --out beside --beside $live
exits 0 "one of many curves" "$NBOX" sweep d0 --nodes 1..64:x2 --what-if 'add:op=allreduce,delay={0..6ms:1ms}' --out curves
exits 0 "one of runs that differ in several settings" "$NBOX" report --format html d0 odd
says ", model nccl" "names them"
says "json &lt;script>console.error(" "names the other's command, too"

exits 0 "a run that is re-timed" "$NBOX" retime d0 --what-if add:op=allreduce,delay=2ms --out d0-2
exits 0 "its page" "$NBOX" report --format html --out d0-2.html d0-2
check "has its figures" python3 -IS "$here/check-page.py" d0-2.html d0-2/summary.json
check "says whose times of computation it has" grep -q 'the machine.s clock at the real ranks in the run nbox-out/d0;' d0-2.html
exits 0 "for a pull request" "$NBOX" report --format md odd
says '| exposed communication | ' "a table"
says "--json $odd" "the command, as code"
exits 0 "the picture alone" "$NBOX" report --format svg --out one.svg d5
exits 0 "of several runs" "$NBOX" report --format svg --out several.svg d0 d2 d5
check "both are XML" python3 -IS -c 'import xml.dom.minidom as m; m.parse("one.svg"), m.parse("several.svg")'
PATH=/nowhere exits 1 "png without rsvg-convert" "$NBOX" report --format png --out none.png d5
says "install it (Debian, Ubuntu: librsvg2-bin), or take --format svg" "says what to install"
if command -v rsvg-convert >/dev/null; then
	exits 0 "png" "$NBOX" report --format png --out one.png d5
	is "$(head -c 4 one.png | tail -c 3)" PNG "is PNG"
fi
cp nbox-out/d5/record.nbox alone.nbox
exits 0 "a record alone" "$NBOX" report --format html --out alone.html alone.nbox
exits 1 "a page that cannot be written" "$NBOX" report --format html --out /dev/full d5

exits 0 "a plan" "$NBOX" plan d0 --model nccl --preset dgx-h100 --nodes 2..64:x2 --gpu-speed 1,100 --tokens-per-step 1K --goal 'tokens/s >= 2K'
if command -v chromium >/dev/null; then
	check "in Chromium: no error, no request, no overflow, readable" timeout 200 python3 -IS "$here/browser.py" odd.html d5.html sweep.html beside/sweep.html curves/sweep.html nbox-out/d0-sweep/plan.html
else
	pass "in Chromium # SKIP chromium is not installed"
fi
nothing_left
finish

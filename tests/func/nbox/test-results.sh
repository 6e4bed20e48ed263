#!/usr/bin/env bash
# Runs by name: --name, nbox list, nbox compare; and what versions.txt knows.
. "$(dirname "$0")/lib.sh"
trainer="$BUILD/tests/apps/trainer --steps 4 --batch 4 --hidden 32"

# shellcheck disable=SC2086
named() { local name=$1; shift; exits 0 "a run named $name" "$NBOX" run --quiet --name "$name" --nodes 8 --gpus-per-node 2 "$@" -- $trainer; }
named first --model ring
NBOX_NBOXD=/bin/false exits 1 "a start that fails" "$NBOX" run --name second --nodes 2 --gpus-per-node 1 -- true
named second --model ring --what-if add:op=allreduce,delay=50ms
# shellcheck disable=SC2086
exits 3 "one that fails" "$NBOX" run --quiet --name third --nodes 4 --gpus-per-node 1 "$BUILD/tests/func/jobs/flaky" early
is "$(ls nbox-out | sort | tr '\n' ' ')" "first second third " "a name is the folder's"
while IFS='|' read -r words why; do
	# shellcheck disable=SC2086
	exits 2 "run $words" "$NBOX" run --nodes 2 --gpus-per-node 1 $words -- true
	case $out in *"$why"*) pass "says why" ;; *) fail "says why" "wanted: $why" "got: $out" ;; esac
done <<'T'
--name first|nbox run: --name first: nbox-out/first is there; choose another name
--name a/b|nbox run: --name 'a/b': that is no name of a folder
--name ..|nbox run: --name '..': that is no name of a folder
--name=-x|nbox run: --name '-x': that is no name of a folder
--name x --out y|nbox run: --name x: the results go to y already; give one of --name and --out
--name x --plain|nbox run: --name x: a run with --plain leaves no results
--name x --name y|nbox run: --name y: given a second time, after x
T
is "$(ls nbox-out | sort | tr '\n' ' ')$(ls -d y 2>/dev/null)" "first second third " "and nothing was made"

echo 'out: of-the-file' >out.yaml
NBOX_OUT=of-the-variable exits 0 "a name goes before a variable and a file" "$NBOX" run --dry-run --name x --nodes 2 --gpus-per-node 1 --config out.yaml -- true
says 'out: "nbox-out/x"' "as each flag"

is "$(sed 's/ [0-9].[0-9.]*/ N/' nbox-out/first/versions.txt | sort | tr '\n' ';')" \
	"cuda N;gpu nbox host device (stand-in, no GPU);nbox N;nccl N (nbox's stand-in, on the CPU);" "versions.txt has what it ran on, once"
is "$(ls nbox-out/first/notes.txt 2>/dev/null)" "" "which is no warning"

exits 0 "list" "$NBOX" list
is "$(awk '{ print $1 }' <<<"$out" | tr '\n' ' ')" "name first second third " "lists them in the order of their start"
says "16 (8 x 2)" "with the world's size"
says "ring + add:op=allreduce,delay=50ms" "with model and what-ifs"
says "$trainer" "and command"
"$NBOX" list --json >list.json
is "$(json list.json '[(r["name"], r["steps"], r["exit_code"], r["world_size"]) for r in d]')" "[('first', 4, 0, 16), ('second', 4, 0, 16), ('third', 0, 3, 4)]" "the same as JSON"
is "$(json list.json 'd[2]["command"]')" "$BUILD/tests/func/jobs/flaky early" "the command of a run without -- is the job's as well"
mv nbox-out/first nbox-out/erßte && cp -r nbox-out/erßte nbox-out/first
is "$("$NBOX" list | sed -n '2,3{s/ß/s/;s/  20.*//p}' | awk '{ print length($0) }' | sort -u)" 6 "columns stand below each other, also behind letters of two bytes"
rm nbox-out/erßte/summary.json
is "$("$NBOX" list | grep erßte | awk '{ print $8, $9 }')" "- -" "steps of a run without a summary are not known"
rm -r nbox-out/erßte
mkdir nbox-out/bad nbox-out/worse && echo rubbish >nbox-out/bad/record.nbox && mkfifo nbox-out/worse/record.nbox
exits 0 "list, with folders of others beside" timeout 60 "$NBOX" list
says "nbox list: 2 more cannot be read" "counts them"
exits 0 "list of another folder" "$NBOX" list nowhere
says "no run has left results below nowhere/" "is empty"

exits 0 "report by name" "$NBOX" report second
says "ring + add:op=allreduce,delay=50ms" "is of that run"
cmp -s <("$NBOX" report --csv second) <("$NBOX" report --csv nbox-out/second)
is "$?" 0 "as by path"
mkdir second
exits 0 "report by name, beside a folder of that name" "$NBOX" report second
exits 1 "status by name" "$NBOX" status second
says "no run is under way in nbox-out/second" "looks there"

exits 0 "compare" "$NBOX" compare first nbox-out/second
says "what-if          A: -" "says what differs"
is "$(grep -c ' A: ' <<<"$out")" 1 "and nothing else"
is "$(awk '$1 == "injected" { print $3, ($4 > 0 && $4 < 60) }' <<<"$out")" "0.000 1" "what was injected into each step: 50 ms, less what computation hides in this step and not in the first one"
"$NBOX" compare --json first second >c.json
is "$(json c.json '(d["values"]["steps"]["b"], 0 < d["values"]["injected_ms"]["b"] < 60, d["asked"][0]["b"])')" "(4.0, True, 'add:op=allreduce,delay=50ms')" "the same as JSON"
exits 0 "compare by a record's path" "$NBOX" compare first nbox-out/second/record.nbox
exits 0 "compare with a run that has no op" "$NBOX" compare first third
says "B has no steps" "says so"
says "B, warning: no op was recorded: the job ended with exit code 3" "and how it ended"
cp -r nbox-out/first nbox-out/cut && truncate -s -50 nbox-out/cut/record.nbox
exits 0 "compare with a record that is cut off" "$NBOX" compare first cut
says "B, warning: the record's end is missing" "says so"
rm -r nbox-out/cut
exits 2 "compare with none" "$NBOX" compare first fourth
says "nbox compare: fourth is neither a results directory nor the name of a run" "says so"
for name in bad worse; do
	exits 2 "compare with $name" timeout 60 "$NBOX" compare first $name
	is "$(wc -l <<<"$out")" 1 "is one sentence"
done
rm nbox-out/second/config.yaml && mkfifo nbox-out/second/config.yaml
rm nbox-out/second/summary.json && mkfifo nbox-out/second/summary.json
exits 0 "compare, a file of one is a pipe" timeout 60 "$NBOX" compare first second
says "B has no config.yaml that can be read" "does without it"
nothing_left
finish

#!/usr/bin/env bash
# nbox status of a run that is under way: found by itself, by its directory, by its address; what is left of it afterwards.
. "$(dirname "$0")/lib.sh"
unset NBOX_ADDR NBOX_TOKEN
# on a terminal
tty_status() { timeout 200 python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$NBOX" status "$@" </dev/null; }
# there DIR: one of these runs (a pattern) has its address file
# shellcheck disable=SC2086 # a pattern
there() { [ -n "$(find $1 -maxdepth 1 -name nboxd.addr -size +0 2>/dev/null)" ]; }
# start NAME NBOX-ARGS...: a run in the background whose op is over once the file NAME.go is there; its pid is in $run
start() {
	local name=$1; shift
	NBOX_DEBUG=INFO TMPDIR=$tmp timeout 300 "$NBOX" run --nodes 4 --gpus-per-node 2 "$@" -- \
		"$BUILD/tests/func/jobs/flaky" until "$tmp/$name.go" >"$name.log" 2>&1 &
	run=$!
	logs=("$name.log")
}
# come DIR: both workers of a run have
come() { [ "$("$NBOX" status --json "$1" | grep -o '"worker": ' | wc -l)" = 2 ]; }

start one
check "an address file appears" within 200 there 'nbox-out/*'
dir=$(echo nbox-out/*)
check "its workers come" within 200 come "$dir"
is "$(stat -c %a "$dir/nboxd.addr")" 600 "only its owner may read it"
token=$(sed -n 's/^token //p' "$dir/nboxd.addr" | python3 -c 'import sys; print(bytes.fromhex(sys.stdin.read()).decode())')
is "${#token}" 24 "it has the token"
is "$(grep -lr -- "$token" "$dir" one.log)" "" "which is nowhere else"
exits 0 "status finds the run" "$NBOX" status
printf '%s' "$out" >found.json
is "$(json found.json 'd["world_size"], d["out"]')" "(8, '$dir')" "and answers in JSON where it is no terminal"
exits 0 "status of a directory" "$NBOX" status --json "$dir"
says '"world_size": 8' "the same"
exits 0 "on a terminal" tty_status
says "8 ranks (4 nodes x 2), 2 real" "a table for people"
says "worker  pid" "with its workers"
exits 0 "--json on a terminal" tty_status --json "$dir"
says '"workers": [{"worker": ' "JSON all the same"
addr=$(sed -n 's/^addr //p' "$dir/nboxd.addr")
exits 1 "without the token" "$NBOX" status --addr "$addr"
says "the results directory of its run knows it: nbox status DIR" "where it can be found is said"
exits 0 "with it" "$NBOX" status --addr "$addr" --token "$token"
exits 0 "report of it" "$NBOX" report "$dir"
says "warning: the run is under way, or its nboxd was killed: this is what came so far; nbox status says more" "says that it goes on"
is "$(grep -c "no op was recorded" <<<"$out")" 0 "and guesses nothing"
exits 0 "report --csv of it" "$NBOX" report --csv "$dir"
says "nbox report: the run is under way" "says so as well"
exits 2 "a directory and an address" "$NBOX" status --addr "$addr" "$dir"
# each way out of the live view gives the terminal back as it was
for key in q int term segv stop; do
	check "a live view, left by $key" timeout 200 python3 -IS "$(dirname "$0")/watch-screen.py" $key "$NBOX" status --watch "$dir"
done
timeout 200 "$NBOX" status --watch "$dir" >watched.txt 2>&1 &
watcher=$!
check "lines where it is no terminal" within 200 grep -q ' 2 workers; ' watched.txt
touch one.go
wait $watcher
is "$?" 0 "which end with the run"
check "and say so" grep -q "^the run is over: .*; nbox report $dir" watched.txt
wait $run
is "$?" 0 "the run goes on undisturbed"
is "$(grep -c 'status client (pid .*): connected over shm$' one.log)" "$(grep -c 'status client.*connected' one.log)" "the log calls them status clients, on no other host"
is "$(grep -c 'status client' one.log | awk '{ print ($1 > 3) }')" 1 "all of them"
is "$(ls "$dir/nboxd.addr" 2>/dev/null)" "" "the file has gone with nboxd"
exits 1 "status of a run that is over" "$NBOX" status "$dir"
says "nbox report $dir" "says how to see it"

# an op that the virtual cluster still works at
start slow --out slow --model const:time=1000s
ends() { "$NBOX" status --json slow | grep -q 'AllReduce of .* ends in [0-9]*\.[0-9] s'; }
check "an op says when it ends" within 200 ends
pkill -TERM -P $run -x nbox # nobody waits for that end
wait $run

# killed, nboxd leaves nothing behind either; and what a whole machine's end leaves is told from a run
start two --out two
check "its address file appears" within 200 there two
cp two/nboxd.addr left.addr
kill -9 "$(sed -n 's/^pid //p' two/nboxd.addr)"
touch two.go
wait $run
is "$(ls two/nboxd.addr 2>/dev/null)" "" "nbox run takes away what a killed nboxd left"
mkdir -p nbox-out/dead && cp left.addr nbox-out/dead/nboxd.addr
exits 1 "an nboxd that is gone" "$NBOX" status
says "no run is under way in nbox-out/dead: its nboxd" "is no run"
start three
check "a third run's file appears" within 200 there 'nbox-out/2*'
sleep 0.1; touch nbox-out/dead/nboxd.addr
exits 0 "the newest that answers is taken" "$NBOX" status
touch three.go
wait $run
logs=()
echo "addr nonsense" >nbox-out/dead/nboxd.addr
exits 1 "a file that is none" "$NBOX" status nbox-out/dead
says "nbox-out/dead/nboxd.addr: it has no pid" "is named"
nothing_left
finish

#!/usr/bin/env bash
# nbox and nboxd stopped, interrupted and killed at any moment: the exit code, and that nothing is left.
. "$(dirname "$0")/lib.sh"
long="$PERF --op allreduce -b 1024 -e 1024 -n 100000 -w 1 --no-check"
wait_for() { within 200 "$@"; }
alive() { grep -lsa -- "$tmp" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | sort -un | while read -r p; do
	case $(cat "/proc/$p/comm" 2>/dev/null) in nboxd | nbox | nbox-perf) echo "$p" ;; esac; done; }
none_alive() { [ -z "$(alive)" ]; }
# shellcheck disable=SC2086
start() { ready=$1; shift; "$NBOX" run --nodes 8 --gpus-per-node 2 --model const:time=2ms --out "$ready" "$@" -- $long >"$ready.log" 2>&1 & run=$! logs=("$ready.log"); }

# stopped: nbox says why the job stands still, and ends all the same
start stopped
check "the run is under way" wait_for ops_recorded stopped 3
d=$(pgrep -P $run -x nboxd)
kill -STOP "$d"
check "a stopped nboxd is told" wait_for grep -q "nboxd is stopped.*kill -CONT $d" stopped.log
kill -CONT "$d"
check "and that it goes on" wait_for grep -q "nboxd goes on" stopped.log
kill -STOP "$d" "$(pgrep -P $run -x nbox-perf | head -n 1)"
kill -TERM $run
wait $run; is "$?" 143 "the end reaches those who are stopped"
check "nobody is left" wait_for none_alive

# a shell's background job ignores SIGINT: so do the ranks, and are ended all the same
start int
check "the run is under way" wait_for test -s int/record.nbox
kill -INT $run
wait $run; is "$?" 130 "SIGINT to nbox: 130, also when the ranks ignore it"

# the reader of nbox's output has gone: the output is lost, the exit code stays the job's, and the job gets SIGPIPE as without nbox
{ sleep 1; "$NBOX" run --nodes 2 --gpus-per-node 1 --model const:time=1us --out unread -- "$BUILD/tests/func/jobs/flaky" early; echo $? >unread.code; } 2>&1 | true
is "$(cat unread.code)" 3 "the exit code of a job whose output nobody reads"
if ! is_sanitized; then
	exits 141 "a job that is ended by its own pipe" "$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --out pipe -- bash -c 'kill -PIPE $$'
fi

# nboxd ended by somebody else, with code 0
start term
check "the run is under way" wait_for ops_recorded term 3
kill -TERM "$(pgrep -P $run -x nboxd)"
wait $run; is "$([ $? != 0 ] && echo failed)" failed "nboxd ended from outside fails the run"
is "$(grep -c 'nbox run: nboxd ended during the run' term.log)" 1 "and is told"

# and it takes its time to end: the job fails for want of it long before there is anybody to be waited for
cat >slow-nboxd <<-'LATE'
#!/bin/bash
"$REAL_NBOXD" "$@" & d=$!
for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -gt 2 ] && [ "$fd" != 255 ] && eval "exec $fd>&-"; done
exec >/dev/null 2>&1
trap 'kill $d; wait $d; sleep 3; exit 0' TERM
wait $d
LATE
chmod +x slow-nboxd
REAL_NBOXD=$BUILD/nboxd NBOX_NBOXD=$tmp/slow-nboxd start late
check "the run is under way" wait_for ops_recorded late 3
kill -TERM "$(pgrep -P $run -f "$tmp/slow-nboxd")"
wait $run; is "$([ $? != 0 ] && echo failed)" failed "so does one that is late to end"
is "$(grep -c 'nbox run: nboxd ended during the run' late.log)" 1 "and is told"

if ! is_sanitized; then
	# killed under a job that neither heeds SIGTERM nor asks for an op: nothing else would end it. What is killed in the
	# end prints nothing, so nbox's line is the first one
	"$NBOX" run --nodes 8 --gpus-per-node 2 --out deaf -- sh -c 'trap "" TERM; : >deaf.$RANK; while :; do sleep 0.1; done' >deaf.log 2>&1 & run=$! logs=(deaf.log)
	both_wait() { [ -e deaf.0 ] && [ -e deaf.1 ]; }
	check "a job that waits for nobody is under way" wait_for both_wait
	pkill -KILL -P $run -x nboxd
	ended() { ! kill -0 $run; }
	check "nboxd killed: it is ended" wait_for ended
	kill -KILL $run 2>/dev/null # where it was not
	wait $run; is "$?" 1 "with nbox's own exit code"
	# a machine that is busy for 20 s is told before that there is no communicator yet
	is "$(grep -v 'no communicator and no request' deaf.log | head -n 1)" "nbox run: nboxd ended during the run (signal 9, Killed): the job cannot go on without it and is ended; \
if nobody here killed it, the kernel may have, for want of memory (see dmesg)" "and the reason is said first"
	is "$(grep -c 'failed first' deaf.log)" 0 "no process is named as the reason"
	# one that has ended well when that is heard of: nbox is stopped meanwhile
	"$NBOX" run --nodes 8 --gpus-per-node 2 --out well -- sh -c ': >well.$RANK; until [ -e well.go ]; do sleep 0.1; done' >well.log 2>&1 & run=$! logs=(well.log)
	well_wait() { [ -e well.0 ] && [ -e well.1 ]; }
	all_dead() { local p; for p in $(pgrep -P $run); do case $(ps -o stat= -p "$p") in Z*) ;; *) return 1 ;; esac; done; }
	check "another job is under way" wait_for well_wait
	kill -STOP $run
	touch well.go; pkill -KILL -P $run -x nboxd
	check "it and nboxd end" wait_for all_dead
	kill -CONT $run
	wait $run; is "$?" 1 "a job that ends well while nboxd is killed: its results are not whole, so the run fails"
	is "$(grep -c 'nboxd ended during the run (signal 9, Killed); if' well.log)" 1 "nobody is said to be ended"
fi

# both at once: nobody is there to clean up
start both
check "the run is under way" wait_for test -s both/record.nbox
kill -KILL $run "$(pgrep -P $run -x nboxd)"
wait $run 2>/dev/null
check "nbox and nboxd killed: nobody is left" wait_for none_alive

# at random moments
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	case $((RANDOM % 3)) in 0) exchange=none ;; 1) exchange=messages ;; *) exchange=payload ;; esac
	case $((RANDOM % 2)) in 0) link=shm ;; *) link=tcp ;; esac
	case $((RANDOM % 2)) in 0) sig=TERM want=143 ;; *) sig=KILL want=137 ;; esac
	start "r$i" --exchange $exchange --link $link
	sleep "0.$(printf %02d $((RANDOM % 60)))"
	kill -$sig $run
	wait $run 2>/dev/null; is "$?" $want "$i: SIG$sig, $exchange over $link"
	check "$i: nobody is left" wait_for none_alive
done
is "$(find "$tmp" -type s)" "" "no socket is left"
nothing_left
finish

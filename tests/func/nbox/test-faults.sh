#!/usr/bin/env bash
# Bad days of a whole run: nboxd killed in the middle of an op, a worker killed, nbox itself interrupted.
. "$(dirname "$0")/lib.sh"
long="$PERF --op allreduce -b 1024 -e 1024 -n 100000 -w 1 --no-check"
now_ms() { date +%s%3N; }
nboxd_of() { pgrep -f "nboxd.*$tmp/$1" | head -n 1; }
ranks_of() { pgrep -P "$1" -f nbox-perf; }

for exchange in none payload; do
	# shellcheck disable=SC2086
	"$NBOX" run --nodes 8 --gpus-per-node 2 --model const:time=20ms --exchange $exchange --out "$tmp/kill-$exchange" -- $long >kill.log 2>&1 &
	run=$!
	logs=(kill.log)
	check "$exchange: the run is under way" within 200 ops_recorded "kill-$exchange" 3
	d=$(nboxd_of "kill-$exchange")
	t0=$(now_ms)
	kill -KILL "$d"
	wait $run; code=$?
	took=$(($(now_ms) - t0))
	is "$([ $code != 0 ] && echo failed)" failed "$exchange: a killed nboxd fails the run"
	# far less than what would wait for a timeout: 600 s
	is "$([ $took -lt 300000 ] && echo soon)" soon "$exchange: it ends by itself ($took ms)"
	is "$(grep -cE 'nboxd ended (during the run \(signal 9, Killed\)|with exit code 137)' kill.log)" 1 "$exchange: nbox says why"
	check "$exchange: what it has recorded can be read" ops_recorded "kill-$exchange" 3
	# nbox ends the job at once: none, one or both of the workers have heard of it by then
	lines=$(grep -c 'nbox ERROR lost the link to nboxd' kill.log)
	is "$([ "$lines" -le 2 ] && echo few)" few "$exchange: a worker that is told says so in one line"
done

# shellcheck disable=SC2086
"$NBOX" run --nodes 8 --gpus-per-node 2 --model const:time=20ms --out "$tmp/worker" -- $long >worker.log 2>&1 &
run=$!
logs=(worker.log)
check "the run is under way" within 200 ops_recorded worker 3
victim=$(ranks_of $run | tail -n 1)
kill -KILL "$victim"
wait $run; code=$?
is "$code" 137 "a killed rank gives the run its code"
is "$(grep -ci 'gone\|died\|left\|vanished' worker.log | awk '{ print ($1 >= 1) }')" 1 "the other rank is told"

# shellcheck disable=SC2086
"$NBOX" run --nodes 8 --gpus-per-node 2 --model const:time=20ms --out "$tmp/int" -- $long >int.log 2>&1 &
run=$!
logs=(int.log)
check "the run is under way" within 200 test -s int/record.nbox
kill -TERM $run
wait $run; code=$?
is "$code" 143 "an interrupted nbox ends its job"
# the real NCCL of one rank fails while the communicator is made: the other must not wait for it
if ! is_sanitized; then
	printf '#!/bin/sh\n[ "$RANK" = 0 ] && export NCCL_SOCKET_IFNAME=nonexist0\nexec %s --op allreduce -b 1K -e 1K -n 2 --no-check\n' "$PERF" >part.sh
	chmod +x part.sh
	logs=()
	exits 1 "a rank whose real communicator fails" timeout 300 "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --out "$tmp/part" -- ./part.sh
	says "rank 1 of 8: rank 0" "the other rank is told who"
	says "its real communicator failed" "and why"
	# who was killed is the cause, also when another one's end is seen first
	printf '#!/bin/sh\n[ "$RANK" = 0 ] && exit 1\nsleep 0.3\nkill -KILL $$\n' >late.sh
	chmod +x late.sh
	exits 137 "a rank that is killed after another one has failed" timeout 300 "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --out "$tmp/late" -- ./late.sh
	says "process 1 of 2 (rank 1) failed first (exit code 137)" "is named"
	# whatever keeps LD_PRELOAD from the job: one process, which ends when it is given a line, once nbox has said so
	mkfifo go && exec {go}<>go
	# until_told LOG COMMAND...
	until_told() {
		local to=$1 giver code; shift
		: >"$to"
		(within 200 grep -q "libnbox.so is in none" "$to"; echo >&"$go") & giver=$!
		"$@" >"$to" 2>&1; code=$?
		kill $giver 2>/dev/null; wait $giver 2>/dev/null
		cat "$to"
		return $code
	}
	exits 0 "a job whose environment was cleaned" until_told cleaned.log timeout 300 "$NBOX" run --nodes 4 --gpus-per-node 1 --device host --out cleaned -- \
		env -u LD_PRELOAD head -n 1 go
	says "libnbox.so is in none of the job's 1 processes (such as pid " "is told that nbox is not in it"
	# as under sudo: a program of another user, whom the dynamic linker does not obey; this user cannot look into it
	other() { XDG_RUNTIME_DIR=$tmp/other setpriv --reuid 65534 --regid 65534 --clear-groups "$@" 2>&1; }
	mkdir other && chmod 755 . && chmod 777 other && cp "$(command -v id)" suid-id && cp "$(command -v head)" suid-head && chmod 4755 suid-*
	if [ "$(id -u)" = 0 ] && [ "$(other ./suid-id -u)" = 0 ] && other "$NBOX" preload >/dev/null; then
		exits 0 "a job of another user" until_told other.log other timeout 300 "$NBOX" run --nodes 4 --gpus-per-node 1 --device host --out other/out -- ./suid-head -n 1 go
		says "libnbox.so is in none of the job's 1 processes (such as pid " "is told that nbox is not in it, too"
	else
		pass "a job of another user # SKIP only root can have one, and not over rdma, whose device is root's"
	fi
fi
nothing_left
finish

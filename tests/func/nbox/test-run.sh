#!/usr/bin/env bash
# Whole runs: an unmodified NCCL program in worlds of several sizes, exit codes, results, leftovers.
. "$(dirname "$0")/lib.sh"
perf="$PERF --op allreduce -b 1024 -e 4096 -f 2 -n 5 -w 1 --no-check"

silent=
if ! is_sanitized; then # answers at the end
	"$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --out silent -- \
		sh -c 'for i in $(seq 900); do grep -q "no communicator" silent.txt && break; sleep 0.1; done' >silent.txt 2>&1 &
	silent=$!
fi
if is_sanitized; then
	pass "jobs that are shell scripts # SKIP a sanitized libnbox.so cannot be preloaded into a shell"
else
	exits 7 "the job's exit code is passed through" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --out e7 -- sh -c 'exit 7'
	exits 143 "a signal becomes 128 + its number" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --out e143 -- sh -c 'kill -TERM $$'

	exits 0 "the environment of the ranks" "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --out env -- \
		sh -c 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE" >'"$tmp"'/env.$LOCAL_RANK'
	is "$(cat env.0 env.1)" "0 0 8 2
1 1 8 2" "RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE"
	exits 0 "another node is real" "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --real 4-5 --out env2 -- \
		sh -c 'echo "$RANK $LOCAL_RANK" >'"$tmp"'/real.$LOCAL_RANK'
	is "$(cat real.0 real.1)" "4 0
5 1" "--real 4-5"

	# an address says which link it is
	for addr in tcp:127.0.0.1:0 "shm:$tmp/one.sock"; do
		exits 0 "--addr ${addr%%:*}: without --link" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --addr "$addr" --out "a-${addr%%:*}" -- \
			sh -c 'echo "${NBOX_ADDR%%:*}" >'"$tmp/addr"
		is "$(cat addr)" "${addr%%:*}" "the worker's address is of that kind"
	done
	exits 0 "NBOX_ADDR" env NBOX_ADDR=tcp:127.0.0.1:0 "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --out a-var -- sh -c 'case $NBOX_ADDR in tcp:*) ;; *) exit 9 ;; esac'
	exits 0 "two addresses: workers take the first" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --addr tcp:127.0.0.1:0 --addr "shm:$tmp/two.sock" --out a-two -- \
		sh -c 'case $NBOX_ADDR in tcp:*) ;; *) exit 9 ;; esac'
	exits 2 "--link and --addr that contradict each other" "$NBOX" run --nodes 4 --gpus-per-node 1 --link tcp --addr "shm:$tmp/no.sock" --out a-no -- true
	says "contradicts link tcp (--link); an address alone says which link it is" "the error says so"

	# a job that reads the terminal, such as one with a breakpoint, gets what is typed
	cat >terminal.py <<'P'
import os, pty, signal, sys
signal.alarm(300)
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
os.write(fd, b"continue\n")
out = b""
try:
    while chunk := os.read(fd, 4096):
        out += chunk
except OSError:
    pass
print(out.decode(errors="replace").replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
	if python3 -c "import pty; pty.openpty()" 2>/dev/null; then
		exits 0 "a job that reads the terminal" python3 terminal.py "$NBOX" run --nodes 2 --gpus-per-node 1 --out terminal -- sh -c 'read -r word && echo "typed: $word"'
		says "typed: continue" "gets what is typed"
		exits 137 "one of two that does" python3 terminal.py "$NBOX" run --nodes 2 --gpus-per-node 2 --out terminal2 -- sh -c 'test $RANK = 0 || read -r word; exit 0'
		says "nbox: process 1 of 2 wants the terminal, which several cannot share, and is ended" "is told, and does not wait for ever"
	else
		pass "a job that reads the terminal # SKIP no terminal can be had here"
	fi

	# status while it runs
	"$NBOX" run --quiet --nodes 8 --gpus-per-node 1 --addr "shm:$tmp/st.sock" --out st -- sh -c "NBOX_ADDR=shm:$tmp/st.sock $NBOX status >$tmp/st.json" >/dev/null 2>&1
	is "$(json st.json 'd["world_size"] if "world_size" in d else d')" 8 "nbox status answers"
fi

for exchange in none messages payload; do
	for link in shm tcp; do
		reduces=$([ $link = shm ] || echo --reduce-bandwidth 20GB/s)
		# shellcheck disable=SC2086 # words
		exits 0 "512 ranks, $exchange over $link" "$NBOX" run --nodes 256 --gpus-per-node 2 --model ring --exchange $exchange --link $link $reduces \
			--seed 5 --out "o-$exchange-$link" --json "$exchange-$link.json" -- $perf
	done
	is "$(json $exchange-shm.json '(d["world_size"], d["nodes"], d["real_ranks"], d["exit_code"], d["seed"], d["data"])')" \
		"(512, 256, 2, 0, 5, 'mirror')" "summary of $exchange"
	is "$(json $exchange-shm.json 'd["ops"] > 10 and d["lateness_us"]["max"] >= 0 and "ring" in d["model"]')" True "numbers of $exchange"
done
says "512 ranks" "the summary is printed"
says "lateness" "with the lateness"
says "network        1us, 400GB/s inside a node; 5us, 50GB/s between nodes" "and the network"
# shellcheck disable=SC2086
exits 0 "without --nodes" "$NBOX" run --gpus-per-node 1 --model ring:alpha=3us --out two --json two.json -- $perf
says "nbox run: a cluster of 2 nodes, since --nodes is not given; --nodes N for another" "says what is taken"
says "network        3us, 400GB/s inside a node; 3us, 50GB/s between nodes (alpha: the model's own)" "the network has the model's parameters"
is "$(json two.json 'd["network"]')" "3us, 400GB/s inside a node; 3us, 50GB/s between nodes (alpha: the model's own)" "in its JSON, too"
# shellcheck disable=SC2086
exits 0 "model none" "$NBOX" run --nodes 2 --gpus-per-node 1 --what-if add:op=all,delay=1us --out none-model -- $perf
says "model          none: the virtual network takes no time but what what-ifs add" "says what it is"
is "$(grep -c "below the bound" <<<"$out")" 0 "and is not blamed for it"
# shellcheck disable=SC2086
exits 0 "with --quiet" "$NBOX" run --quiet --gpus-per-node 1 --out two-quiet -- $perf
is "$(grep -c "not given" <<<"$out")" 0 "it does not"
# shellcheck disable=SC2086
exits 0 "exceptions from the data policy" "$NBOX" run --nodes 4 --gpus-per-node 2 --data-for allgather=identity --data-for broadcast=fill --json df.json --out df -- $perf
says "data           mirror (allgather=identity;broadcast=fill)" "are in the summary"
is "$(json df.json 'd["data_for"]')" "allgather=identity;broadcast=fill" "and in its JSON"
# how long kernels take
echo '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "kernel", "dur": 3000}, {"cat": "cpu_op", "name": "aten::add"}]}' >trace.json
exits 0 "a table from a trace" "$NBOX" kernels --out our.kernels trace.json
is "$out$(grep -v '^#' our.kernels)" "kernel 3000.000us
* 3000.000us" "has the kernel's time"
is "$(gzip -c trace.json | gunzip -c | "$NBOX" kernels - | grep -v '^#')" "$(grep -v '^#' our.kernels)" "standard input is a trace, too"
# shellcheck disable=SC2086
exits 0 "a table of kernels" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --device host --gpu our.kernels --json kernels.json --out kernels -- $perf
is "$(json kernels.json 'd["device"].split("; ")[1]')" "compute is modelled: kernels take the times of the table our.kernels" "the summary says so"
exits 0 "a time, as a baseline" env NBOX_HOST_KERNEL_TIME=20us "$NBOX" run --quiet --plain --device host --procs 1 --gpu our.kernels -- \
	python3 -c 'import os; print(os.environ["NBOX_HOST_KERNEL_TIME"])'
is "$out" "$(realpath our.kernels)" "the job gets the table by its whole path; the flag counts more than the variable"
exits 0 "plain" "$NBOX" run --plain --procs 1 -- true
says "nbox run: plain, without nbox: a world of 1 rank, all real; a baseline for runs with as many real ranks" "says what it can be compared with"
exits 0 "plain, more processes than cores" "$NBOX" run --plain --device host --procs $(($(getconf _NPROCESSORS_ONLN) + 1)) -- true
says "their times are no baseline" "says that it is none"
exits 0 "plain, quietly" "$NBOX" run --quiet --plain --procs 1 -- true
is "$out" "" "says nothing"
exits 0 "report of a run" "$NBOX" report o-none-shm
says "device         no GPU: the job ran on the CPU" "has what only summary.json has"
says "network        1us, 400GB/s inside a node" "and the network"
exits 0 "report of its record" "$NBOX" report o-none-shm/record.nbox
says "network        1us, 400GB/s inside a node" "knows what lies beside it"
exits 0 "report as CSV and JSON" "$NBOX" report --csv --json both.json o-none-shm
is "$(head -n 1 <<<"$out" | cut -c 1-10) $(json both.json 'd["world_size"]')" "number,seq 512" "is both"
is "$("$NBOX" report --csv o-none-shm | awk -F, 'NR > 1 && ($24 != $26 || $25 != $27)' | wc -l) $(json o-none-shm/summary.json 'd["injected_ms"]')" "0 0.0" "without what-ifs plain times are the virtual ones"
# its columns, in the help by name and unit; the algorithm is that which the time follows from
column() { awk -F, -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i } NR > 1 { print $c }' "$1"; }
for table in csv points; do
	is "$("$NBOX" report --help | sed -n "/columns of --$table/,/^$/p" | awk 'NR > 1 && NF { printf "%s%s", sep, $1; sep = "," }')" "$("$NBOX" report --$table o-none-shm | head -n 1)" \
		"report --help explains each column of --$table"
done
for case in tree/tree/tree ring/ring/ring alphabeta/ring/chain const:time=1ms/const/const none/none/none "alphabeta --algo allreduce=tree --algo broadcast=ring/tree/ring"; do
	IFS=/ read -r model allreduce broadcast <<<"$case"
	# shellcheck disable=SC2086
	exits 0 "model $model" "$NBOX" run --quiet --nodes 4 --gpus-per-node 2 --model $model --out "algo-$model" -- "$BUILD/tests/apps/trainer" --steps 3 --batch 4 --hidden 64
	"$NBOX" report --csv "algo-$model" >algo.csv
	is "$(column algo.csv algo | paste - <(column algo.csv op) | sort -u | tr '\t\n' '  ')" "$(printf '%s\n' "$allreduce AllReduce" "$broadcast Broadcast" | sort | tr '\n' ' ')" "times follow from it"
	is "$(column algo.csv step | sort -un | tr '\n' ' ')" "0 1 2 3 " "the steps are counted"
done
# the three depths agree on each op's modelled time
for e in none messages payload; do
	for l in shm tcp; do "$NBOX" report --csv o-$e-$l | cut -d, -f6,11,17,18 >$e-$l.csv; done
done
is "$(cmp none-shm.csv messages-shm.csv && cmp none-shm.csv payload-shm.csv && echo equal)" equal "none, messages and payload agree on every op's time"
is "$(cmp none-tcp.csv messages-tcp.csv && cmp none-tcp.csv payload-tcp.csv && echo equal)" equal "... where reductions take time, too"
is "$(cmp -s none-shm.csv none-tcp.csv || echo other)" other "... and are part of it"
for f in record.nbox config.yaml summary.json command.txt versions.txt host.json; do check "results have $f" test -s "o-none-shm/$f"; done
is "$("$NBOX" report --csv o-none-shm | awk -F, 'NR > 1 && $15 < $14' | wc -l)" 0 "no gate opened early"
# shellcheck disable=SC2086
exits 3 "a job that fails" "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 --token "hunter2" --out secret -- "$BUILD/tests/func/jobs/flaky" early --token theirs
is "$(grep -rl hunter2 secret)" "" "the token is in none of its files"
is "$(tail -n 3 secret/command.txt | tr '\n' ' ')" "early --token theirs " "the job's words are as they were"
check "its record again" "$NBOX" report --json secret.json secret
is "$(json secret/summary.json 'd["exit_code"]') $(json secret.json '"exit_code" in d')" "3 False" "what the record does not know is not made up"
# shellcheck disable=SC2086
exits 1 "results of another run are not overwritten" "$NBOX" run --nodes 4 --gpus-per-node 1 --out o-none-shm -- $perf

# nothing to report: the reason where one is known, guesses where none is, and no table of zeros
printf 'kind,bytes,us\nallreduce,8,1\n' >no-broadcast.txt
exits 1 "a model that lacks the job's first op" timeout 600 "$NBOX" run --nodes 4 --gpus-per-node 2 --model table:file=no-broadcast.txt --out none -- "$BUILD/tests/apps/trainer" --steps 1
says "nbox run: delay model table: no-broadcast.txt has times of allreduce; an op of another kind (allgather reducescatter broadcast " "is warned of before the job"
summary=${out##*-- nbox:}
out=$summary says "warning: no op was recorded: the job ended with exit code 1 before its first op was over; communicator 1 was aborted: op 0 (Broadcast)" "the summary repeats why"
is "$(cat none/aborts.txt)" "communicator 1 was aborted: op 0 (Broadcast): the delay model 'table:file=none/config-model/no-broadcast.txt' says nothing about Broadcast of 8 ranks by chain: choose another model or algorithm" "in one line of aborts.txt"
is "$(echo "$summary" | grep -c 'readelf\|modelled\|lateness\|communication')" 0 "and neither guesses nor counts nothing"
exits 0 "its report" "$NBOX" report none
says "exit code 1 before its first op was over; communicator 1 was aborted" "knows it, too"
if ! is_sanitized; then
	exits 0 "a job without NCCL" "$NBOX" run --nodes 4 --gpus-per-node 1 --out none0 -- true
	says "readelf -d" "is told what may be the reason"
	exits 3 "one that fails" "$NBOX" run --nodes 4 --gpus-per-node 1 --out none3 -- sh -c 'exit 3'
	is "$(echo "$out" | grep -o 'no op was recorded.*')" "no op was recorded: the job ended with exit code 3 before its first op was over" "is told no more than that"
fi

# nor are files of the user's: a cluster file of the same name beside --out .
mkdir mine && cd mine && printf 'cluster:\n  nodes: "4"\n  gpus_per_node: "1"\n' >config.yaml && cp config.yaml ../mine.yaml
# shellcheck disable=SC2086
exits 1 "a cluster file is not overwritten" "$NBOX" run --config config.yaml --out . -- $perf
says "config.yaml is there and is not of a run of nbox" "and the error says so"
check "it is as it was" cmp config.yaml ../mine.yaml
cd "$tmp" || exit 1
mkdir links && ln -s "$tmp/mine.yaml" links/host.json
# shellcheck disable=SC2086
exits 1 "no link is followed" "$NBOX" run --nodes 4 --gpus-per-node 1 --out links -- $perf
check "where it led to is as it was" cmp mine/config.yaml mine.yaml

# the results can be fed back: the effective configuration is a configuration
# and says neither where the first run's results lie nor where its nboxd listened
# shellcheck disable=SC2086
exits 0 "the effective configuration runs again" "$NBOX" run --quiet --config o-none-shm/config.yaml --json again.json -- $perf
check "its results lie elsewhere" test -s nbox-out/*/record.nbox
exits 0 "report of the newest run" "$NBOX" report
says "the newest run: $(ls -d nbox-out/*)" "says which one it is"
says "512 ranks" "and shows it"
is "$(grep -c '^# out: "o-none-shm"' o-none-shm/config.yaml) $(grep -c '^ *addr:' o-none-shm/config.yaml)" "1 0" "the file says where the first lay, and no address"
is "$("$BUILD/nboxd" --nodes 2 --gpus-per-node 1 --addr shm:@nbox-auto-7-0123 --out elsewhere --check | grep -E '^ *(# )?(addr|out):' | cut -d'"' -f1 | tr -d '\n')" "  # addr: # out: " "nor an address that nbox chose"
is "$(json again.json 'd["world_size"], d["seed"]')" "(512, 5)" "with the same world and seed"

# same seed, same chance
for i in 1 2; do
	# shellcheck disable=SC2086
	"$NBOX" run --quiet --nodes 16 --gpus-per-node 1 --seed 42 --model ring --what-if jitter:dist=lognormal,median=50us,sigma=0.3 --out "j$i" -- $perf >/dev/null 2>&1
	"$NBOX" report --csv "j$i" | cut -d, -f1,2,6,11,17,18 >"j$i.csv"
done
is "$(wc -l <j1.csv | awk '{ print ($1 > 10) }')" 1 "a run with jitter is recorded"
is "$(cmp j1.csv j2.csv && echo equal)" equal "the same seed gives the same jitter"

exits 0 "plain, without nbox" "$NBOX" run --plain --procs 2 --quiet -- sh -c 'test -z "${NBOX_ADDR:-}" && test "$WORLD_SIZE" = 2'
if [ -n "$silent" ]; then
	wait "$silent"
	out=$(cat silent.txt)
	says "no communicator and no request to the store yet: a program that gives ranks to" "a job that nbox does not reach is told so after 20 s"
fi
nothing_left
finish

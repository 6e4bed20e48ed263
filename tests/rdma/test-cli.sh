#!/usr/bin/env bash
# The command line over rdma: what func/nbox/test-run.sh shows over shm and tcp, as far as a link has a part in it.
. "$(dirname "$0")/lib.sh"
export NBOX_TOKEN=for-tests # rdma:HOST can be reached from other hosts
perf="$PERF --op allreduce -b 1024 -e 4096 -f 4 -n 3 -w 1 --no-check"
lib=$BUILD/libnbox.so

# the same three depths, and over another link: what is modelled does not depend on how it travels
for at in none/shm none/rdma messages/rdma payload/rdma; do
	exchange=${at%/*} link=${at#*/}
	# shellcheck disable=SC2086 # words
	exits 0 "$exchange over $link" timeout 400 "$NBOX" run --nodes 8 --gpus-per-node 2 --model ring --exchange "$exchange" --link "$link" \
		--seed 5 --what-if jitter:dist=lognormal,median=50us,sigma=0.3 --out "$exchange-$link" -- $perf
	"$NBOX" report --csv "$exchange-$link" >all.csv
	cut -d, -f1,2,6,11,17,18 all.csv >"$exchange-$link.csv"
	is "$(cmp none-shm.csv "$exchange-$link.csv" && echo equal)" equal "each op's modelled time and its chance are those of none over shm"
	is "$(awk -F, 'NR > 1 && $15 < $14' all.csv | wc -l)" 0 "no gate opened early"
done
is "$(wc -l <none-shm.csv | awk '{ print ($1 > 10) }')" 1 "the runs had ops"
# (python takes 20 s to start in an emulated machine)
is "$(tr -d ' "{}\n' <payload-rdma/summary.json | grep -oE '\b(world_size|nodes|real_ranks|exit_code|seed|data):[^,]*' | sort | tr '\n' ' ')" \
	"data:mirror exit_code:0 nodes:8 real_ranks:2 seed:5 world_size:16 " "summary.json describes the run"
says "payload        in memory of the host (this process has no GPU" "the summary says where bodies lay, and why"
is "$(grep -c '"payload_memory": "host (this process has no GPU' payload-rdma/summary.json) $(grep -c payload_memory messages-rdma/summary.json)" "1 0" "summary.json says where bodies lay"
# shellcheck disable=SC2086
exits 0 "bodies may lie in memory of a GPU (of the emulated driver)" timeout 400 env LD_PRELOAD="$BUILD/tests/driver/libcuda.so.1" "$NBOX" run --nodes 2 --gpus-per-node 1 --exchange payload \
	--link rdma --device cuda --out gpu -- $perf
says "payload        in memory of the device (" "the summary says that bodies lay in the device"

# two processes that never sleep, on the two cores that there are
exits 0 "a run may poll without sleeping" timeout 400 "$NBOX" run --quiet --nodes 2 --gpus-per-node 1 --real 0 --exchange payload --link rdma --ib-poll busy --out busy -- \
	"$PERF" --op allreduce -b 1024 -e 1024 -n 2 -w 1 --no-check
is "$("$NBOX" report --csv busy | grep -c AllReduce | awk '{ print ($1 >= 3) }')" 1 "its ops are in the record"

# an address says which link it is; beside another one the first is taken
job=(sh -c 'echo "${NBOX_ADDR%:*}" >'"$tmp"'/addr; exit 7')
exits 7 "--addr rdma: chooses the link, and the exit code is the job's" timeout 400 env -u NBOX_LINK "$NBOX" run --quiet --nodes 4 --gpus-per-node 1 \
	--addr "rdma:$NBOX_TEST_RDMA:0" --addr "shm:$tmp/two.sock" --out addr-1 -- "${job[@]}"
is "$(cat addr)" "rdma:$NBOX_TEST_RDMA" "the worker's address is of that kind"
exits 2 "--link and --addr may not contradict each other" "$NBOX" run --nodes 4 --gpus-per-node 1 --link tcp --addr "rdma:$NBOX_TEST_RDMA:0" --out addr-2 -- true
says "contradicts link tcp (--link)" "the error names both"

# nbox status is a client that comes over rdma as well
exits 0 "nbox status asks over rdma" timeout 400 "$NBOX" run --quiet --nodes 8 --gpus-per-node 1 --link rdma --out st -- \
	sh -c "LD_PRELOAD= NBOX_ADDR= $NBOX status st >st.json && cp st/nboxd.addr addr"
is "$(tr -d ' "\n' <st.json | grep -o '\bworld_size:[0-9]*')" world_size:8 "nboxd answers"
is "$(grep -c "rdma:$NBOX_TEST_RDMA:" addr)" 1 "the address was an rdma one"

# nobody there: the worker is told at once, not when its time to connect is over
exits 1 "a worker fails at once where no nboxd listens" timeout 400 env LD_PRELOAD="$lib" NBOX_ADDR="rdma:$NBOX_TEST_RDMA:1" NBOX_TOKEN=x NBOX_CONNECT_TIMEOUT=1000s RANK=0 LOCAL_RANK=0 \
	WORLD_SIZE=2 TMPDIR="$tmp" "$BUILD/tests/func/jobs/flaky"
says "nobody listens there" "the worker says that nobody listens"
says "start the virtual cluster with 'nbox run'" "the worker says what to do"
nothing_registered "the kernel keeps nothing"
nothing_left
finish

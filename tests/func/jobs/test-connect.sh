#!/usr/bin/env bash
# A worker and the nboxd that it is told of: nobody there is an error at once, silence is one after NBOX_CONNECT_TIMEOUT, and one that is
# slow is waited for.
. "$(dirname "$0")/../nbox/lib.sh"
flaky=$BUILD/tests/func/jobs/flaky
export TMPDIR=$tmp NBOX_TOKEN=for-tests NBOX_DEVICE=host LD_LIBRARY_PATH=$BUILD/emulator/standins NBOX_MODEL_PATH=$BUILD/delaymodels
now_ms() { date +%s%3N; }
# worker ADDRESS TIMEOUT ARGUMENT...: rank 0 of 2, the other is virtual
worker() {
	local addr=$1 limit=$2
	shift 2
	timeout -k 5 100 env LD_PRELOAD="$BUILD/libnbox.so" NBOX_ADDR="$addr" NBOX_CONNECT_TIMEOUT="$limit" RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 \
		LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$flaky" "$@"
}

# one that is stopped for 6 s while a worker connects; looked at last
"$BUILD/nboxd" --addr "shm:$tmp/slow.sock" --nodes 2 --gpus-per-node 1 --once --out slow >slow.log 2>&1 &
nboxd=$!
trap 'kill -KILL $nboxd 2>/dev/null; rm -rf "$tmp"' EXIT
within 200 grep -q 'nboxd ready' slow.log # bound is not yet listening
kill -STOP $nboxd
t0=$(now_ms)
worker "shm:$tmp/slow.sock" 90s >worker.log 2>&1 &
late=$!

# silent ones: connections are made (tcp) or queued (a unix socket), and nobody ever reads
cat >silent.py <<'E'
import os, socket, sys, time
tcp = socket.create_server(("127.0.0.1", 0))
unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
unix.bind(sys.argv[1])
unix.listen()
open("port.new", "w").write(str(tcp.getsockname()[1]))
os.rename("port.new", "port")
time.sleep(150)
E
python3 silent.py "$tmp/silent.sock" &
silent=$!
trap 'kill -KILL $nboxd $silent 2>/dev/null; rm -rf "$tmp"' EXIT
within 200 test -s port
for addr in "tcp:127.0.0.1:$(cat port)" "shm:$tmp/silent.sock"; do
	exits 1 "${addr%%:*}: a silent nboxd" worker "$addr" 500ms
	says "NBOX_CONNECT_TIMEOUT, 0.5 s" "is given up when the time is over, and the sentence names the variable"
	says "start the virtual cluster with 'nbox run'" "and what to do"
done
kill -KILL $silent
wait $silent 2>/dev/null

# refused: at once, however long one would wait
for addr in "tcp:127.0.0.1:$(cat port)" "shm:$tmp/none.sock"; do
	exits 1 "${addr%%:*}: nobody there, at once" worker "$addr" 1000s
	says "start the virtual cluster with 'nbox run'" "and what to do"
done
exits 1 "a time without a unit" worker "shm:$tmp/none.sock" 30
says "NBOX_CONNECT_TIMEOUT" "is an error that names the variable"

while [ $(($(now_ms) - t0)) -lt 6000 ]; do sleep 0.1; done
kill -CONT $nboxd
wait $late; is "$? $(cat worker.log)" "0 " "an nboxd that answers after $((($(now_ms) - t0) / 1000)) s is waited for"
wait $nboxd; is "$?" 0 "and ends in good order"
finish

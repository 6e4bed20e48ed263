#!/usr/bin/env bash
# Workers on hosts whose clocks are hours from nboxd's: real processes in time namespaces, over tcp.
. "$(dirname "$0")/../nbox/lib.sh"
later() { local hours=$1; shift; unshare --user --map-root-user --time --monotonic $((hours * 3600)) --fork --kill-child "$@"; }
if ! later 10 true 2>/dev/null; then
	echo "1..0 # SKIP this kernel, or its administrator, lets nobody have a time namespace"
	exit 0
fi
export TMPDIR=$tmp NBOX_TOKEN=for-tests NBOX_DEVICE=host LD_LIBRARY_PATH=$BUILD/emulator/standins NBOX_MODEL_PATH=$BUILD/delaymodels
for exchange in none payload; do
	"$BUILD/nboxd" --addr tcp:127.0.0.1:0 --nodes 4 --gpus-per-node 1 --real 0,1,2 --exchange $exchange --model const:time=20ms --once --out $exchange >$exchange.log 2>&1 &
	nboxd=$!
	trap 'kill -KILL $nboxd 2>/dev/null; rm -rf "$tmp"' EXIT
	logs=($exchange.log)
	within 200 grep -q 'nboxd ready' $exchange.log
	addr=$(grep -o 'tcp:[0-9.:]*' $exchange.log | head -n 1)
	workers=()
	for rank in 0 1 2; do # the first has nboxd's clock
		start=()
		[ $rank = 0 ] || start=(later $((rank * rank * 10)))
		"${start[@]}" timeout -k 5 200 env LD_PRELOAD="$BUILD/libnbox.so" NBOX_ADDR="$addr" RANK=$rank LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=1 \
			MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$PERF" --no-check --op allreduce -b 1K -e 1K -n 60 -w 2 --id-file "$tmp/id-$exchange" >$exchange-$rank.log 2>&1 &
		workers+=($!)
		logs+=($exchange-$rank.log)
	done
	for worker in "${workers[@]}"; do
		wait "$worker"; is $? 0 "$exchange: a worker ends well"
	done
	wait $nboxd; is $? 0 "$exchange: nboxd, too"
	"$NBOX" report --csv $exchange >$exchange.csv
	is "$(awk -F, 'NR > 1 { n[$4]++ } END { print (n[0] == n[1]), (n[0] == n[2]), (n[0] > 100) }' $exchange.csv)" "1 1 1" "$exchange: all ops of all ranks are in the record"
	is "$(awk -F, 'NR > 1 && ($15 < $14 || $13 < $12)' $exchange.csv | wc -l)" 0 "$exchange: by its worker's own clock no gate opened early, no op started before its arrival"
	# an op starts at the last arrival; between two arrivals of a rank there is one op of 20 ms
	is "$(awk -F, 'NR > 1 { if ($4 in last && $12 < last[$4]) bad++; last[$4] = $12 } END { print bad + 0 }' $exchange.csv)" 0 "$exchange: each rank's times go forward"
	is "$(json $exchange/summary.json 'd["clock_error_us"] > 0')" True "$exchange: the summary says how well the clocks are known"
done
nothing_left
finish

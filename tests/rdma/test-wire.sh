#!/usr/bin/env bash
# Workers on device rxa, nboxd on rxb, between them a wire that delays and loses (./scripts/vm --devices two --netem ...).
. "$(dirname "$0")/lib.sh"
packets() { cat /sys/class/net/va/statistics/tx_packets; }
dropped() { tc -s qdisc show dev va | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'; }
# two devices: the first with an address, unless one is named
exits 0 "nbox doctor finds both devices" "$NBOX" doctor --no-self-test --device host --link rdma
says "used               device rxa port 1, GID 1 RoCE v2" "nbox doctor says which device would be used"
exits 0 "nbox doctor looks at the device that --hca names" "$NBOX" doctor --no-self-test --device host --link rdma --hca rxb
says "used               device rxb port 1, GID 1 RoCE v2" "--hca chooses the device"
says "rdma:10.79.0.2" "--hca chooses the address"
exits 1 "a GID without an address is refused" env NBOX_IB_GID_INDEX=0 "$NBOX" doctor --no-self-test --device host --link rdma
says "that NBOX_IB_PORT and NBOX_IB_GID_INDEX allow" "nbox doctor names the variables that allow no address"
perf="$PERF --op allreduce -b 1K -e 64K -f 8 -n 4 -w 1 --no-check"

# frames of all sizes, each byte compared, and what was registered released (counted in the process)
before=$(packets)
NBOX_IB_HCA=rxa check "frames of all sizes arrive whole" timeout 400 "$BUILD/tests/unit/core/links/test-links-rdma-device"
is "$([ $(($(packets) - before)) -gt 1000 ] && echo crossed)" crossed "the packets crossed the wire"

# one run over shm, one over the wire: the same messages, the same modelled times
for link in shm rdma; do
	where=(--link shm); [ $link = rdma ] && where=(--link rdma --addr "rdma:$NBOX_TEST_RDMA:0" --token wire)
	for exchange in messages payload; do
		# shellcheck disable=SC2086
		exits 0 "$exchange over $link" timeout 400 "$NBOX" run --quiet --nodes 8 --gpus-per-node 2 --model ring --exchange $exchange --out "$link-$exchange" "${where[@]}" -- \
			env NBOX_IB_HCA=rxa $perf
		"$NBOX" report --csv "$link-$exchange" >$link-$exchange.csv
	done
done
column() { awk -F, -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i } NR > 1 { print $c }' "$1"; }
for exchange in messages payload; do
	is "$(column rdma-$exchange.csv messages | sort | uniq -c)" "$(column shm-$exchange.csv messages | sort | uniq -c)" "$exchange: as many messages as over shm"
	is "$(column rdma-$exchange.csv model_ns | sort | uniq -c)" "$(column shm-$exchange.csv model_ns | sort | uniq -c)" "$exchange: the same modelled times"
done
# a ring of n ranks: each rank gets and sends 2 (n - 1) messages, of 16 ranks here, for each channel and chunk
is "$(column rdma-messages.csv messages | awk '$1 <= 0 || $1 % 30 { bad++ } END { print (NR > 8) " " bad + 0 }')" "1 0" "as the schedule has them: multiples of 2 (16 - 1)"
nothing_registered "queue pairs and memory are given back"
echo "# packets $(packets), lost by the wire: $(dropped)"
nothing_left
finish

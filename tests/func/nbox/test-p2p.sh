#!/usr/bin/env bash
# Point-to-point traffic in a whole run: 4 real ranks of 16, of which only some meet at a time.
. "$(dirname "$0")/lib.sh"
pipeline=$BUILD/tests/apps/pipeline

exits 0 "plain: every number is right" "$NBOX" run --plain --procs 4 --quiet -- "$pipeline" --check all --rounds 3
for exchange in none messages payload; do
	exits 0 "$exchange: 4 of 16 ranks" "$NBOX" run --nodes 4 --gpus-per-node 4 --model alphabeta --exchange $exchange --out "o-$exchange" \
		--json $exchange.json -- "$pipeline" --rounds 3
	"$NBOX" report --csv "o-$exchange" >$exchange.csv
	is "$(awk -F, '$6 == "SendRecv" { n[$4]++ } END { print n[0], n[1], n[2], n[3] }' $exchange.csv)" "15 12 21 6" "$exchange: one row a rank and op of its own"
	is "$(awk -F, '$6 == "SendRecv" && $2 != n[$4]++ { bad++ } END { print bad + 0 }' $exchange.csv)" 0 "$exchange: each rank counts its own"
	is "$(awk -F, '$6 == "AllReduce" { n[$3 "/" $2]++ } END { for (i in n) if (n[i] != 4) bad++; print length(n), bad + 0 }' $exchange.csv)" "6 0" \
		"$exchange: the collectives beside them count alike for all"
	is "$(awk -F, 'NR > 1 && ($15 < $14 || $13 < $12)' $exchange.csv | wc -l)" 0 "$exchange: no gate opened early, no op started before its arrival"
	# ranks 1 and 2 exchange among themselves; rank 0 meets virtual ranks; rank 3 waits for what rank 2 sends it, not for what it sends to rank 4
	is "$(awk -F, '$6 == "SendRecv" && $2 == 0 { print $4, $11, $17 }' $exchange.csv | sort | tr '\n' ';')" \
		"0 12000 5240.000;1 24000 1030.000;2 24000 1030.000;3 8008 1010.010;" "$exchange: the first op of each rank, its bytes and modelled time"
done
for real in 0,2,9 5 12-15; do
	for exchange in none payload; do
		exits 0 "$exchange: real ranks $real" "$NBOX" run --quiet --nodes 4 --gpus-per-node 4 --real $real --model alphabeta --exchange $exchange --link tcp \
			--what-if jitter:dist=uniform,min=0us,max=100us --out "r-$exchange-$real" -- "$pipeline" --check none --rounds 2
	done
done
exits 0 "512 ranks, large calls" "$NBOX" run --quiet --nodes 128 --gpus-per-node 4 --exchange payload --chunk 64KiB --out big -- "$pipeline" --rounds 1 --elements 200000
nothing_left
finish

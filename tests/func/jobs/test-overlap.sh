#!/usr/bin/env bash
# Ops that are in the network at the same time, as rank 0 of 16 whose ports carry 100 MB/s: together they take no less than their bytes
# through its port. How far apart they begin is the machine's: from the first arrival to the last end it is at least that, and from the
# last arrival not much more.
. "$(dirname "$0")/../nbox/lib.sh"

# took FILE BYTES MOST: of the ops of more than 4 bytes in a table of ops
took() {
	python3 -IS -c 'import csv, sys
ops = [r for r in csv.DictReader(open(sys.argv[1])) if int(r["bytes"]) > 4 and r["world_rank"] == "0"]
begin, end = [int(r["virtual_arrive_ns"]) for r in ops], max(int(r["virtual_end_ns"]) for r in ops)
port_ms = int(sys.argv[2]) / 100e6 * 1e3
first_ms, last_ms = (end - min(begin)) / 1e6, (end - max(begin)) / 1e6
print(f"{first_ms:.6f} {last_ms:.6f} of {port_ms:.6f}", "at the bound" if port_ms <= first_ms + 1e-5 and last_ms < port_ms * float(sys.argv[3]) else "not at it")' "$@"
}

# case, bytes that rank 0 sends or receives, how much longer it may take; 1 MiB = 1048576:
#   group    8 all-reduces of 1 MiB, of which a port carries 2 x 15/16 each:             157.3 ms
#   comms    2 of these:                                                                  39.3 ms
#   gather   the blocks of ranks 1 to 15, (2 + ... + 16) x 64 KiB = 135 x 65536:          88.5 ms; and once round the ring, a block of 64 KiB
#   root     2 x 15/16 MiB; what it broadcasts lies in its buffers, and takes its share:    19.7 ms
#   sends    2 x 1 MiB:                                                                   21.0 ms
while read -r case bytes most; do
	for exchange in none messages; do
		exits 0 "$case, exchange $exchange" timeout 100 "$NBOX" run --quiet --nodes 16 --gpus-per-node 1 --real 0 --exchange $exchange \
			--model pinned:chunk=64K --inter-bandwidth 100MB/s --inter-latency 0us --out "$case-$exchange" -- "$BUILD/tests/func/jobs/overlap" "$case"
		"$NBOX" report --csv "$case-$exchange" >ops.csv
		took=$(took ops.csv "$((bytes))" "$most")
		is "$(awk -F, 'NR > 1 && ($24 != $26 || $25 != $27)' ops.csv | wc -l)" 0 "$case, exchange $exchange: without what-ifs plain times are the virtual ones"
		is "${took#* of * }" "at the bound" "$case, exchange $exchange: ms from the first and last arrival: $took"
	done
done <<'T'
group 8*1048576*2*15/16 1.001
comms 2*1048576*2*15/16 1.001
gather 135*65536 1.2
root 1048576*2*15/16 1.6
sends 2*1048576 1.001
T
nothing_left
finish

#!/usr/bin/env bash
# What of a run cannot be written: the job goes on and keeps its exit code, the summary says first what is lost.
. "$(dirname "$0")/lib.sh"
first() { grep -m 1 '^-- nbox' <<<"$out"; }
# run DIR ARGS...: 205 ops of one real rank
run() { local dir=$1; shift; timeout 300 "$NBOX" run --nodes 4 --gpus-per-node 1 --model const:time=1us --out "$dir" "$@" -- "$PERF" --op allreduce -b 1K -e 1K -n 100 -w 5 --no-check; }

# nboxd alone may not write files of more than 4 KiB
printf '#!/bin/bash\nulimit -f 4\nexec "%s" "$@"\n' "$BUILD/nboxd" >small-nboxd
chmod +x small-nboxd
NBOX_NBOXD=$tmp/small-nboxd exits 0 "a record that may not grow" run small --link tcp
fit=$(json small/summary.json 'd["ops"]') lost=$(json small/summary.json 'd["lost"]["ops"]')
is "$((fit + lost)) $((fit > 0))" "205 1" "nothing goes uncounted"
is "$(first)" "-- nbox: NOT WHOLE: $lost of 205 ops are lost, since the record could not be written (File too large): the figures are of the first $fit" "the summary's first line counts what is lost"
says "nbox WARN the results cannot be written any more (File too large)" "nboxd has said so at once"
is "$(json small/summary.json 'd["ops"], d["lost"]')" "($fit, {'ops': $lost, 'notes': 0, 'why': 'File too large'})" "so does summary.json"
exits 0 "report" "$NBOX" report small
is "$(first)" "-- nbox: NOT WHOLE: $lost of 205 ops are lost, since the record could not be written (File too large): the figures are of the first $fit" "says the same again"
NBOX_NBOXD=$tmp/small-nboxd exits 0 "--quiet" run quiet --quiet --link tcp
says "nbox run: NOT WHOLE: $(json quiet/summary.json 'd["lost"]["ops"]') of 205 ops are lost" "says that all the same"

# a start that cannot be written leaves nothing that would refuse the next one
sed 's/-f 4/-f 0/' small-nboxd >tiny-nboxd
chmod +x tiny-nboxd
NBOX_NBOXD=$tmp/tiny-nboxd exits 1 "a record without a head" run tiny
says "nboxd: cannot write the record tiny/record.nbox: File too large" "says so"
exits 0 "the same folder again" run tiny --quiet
head -c 1000 /dev/zero >ready
exits 1 "a ready line that is cut off" timeout 60 bash -c 'ulimit -f 1; exec "$0" --nodes 2 --gpus-per-node 1 >>ready' "$BUILD/nboxd"
says "nboxd: cannot write the ready line: File too large" "says so"

# a whole disk; summary.json fits into what nboxd.addr has left
if unshare -Urm sh -c 'mkdir -p full && mount -t tmpfs -o size=36k none full' 2>/dev/null; then
	mkdir -p full
	exits 0 "a disk that is full" unshare -Urm sh -c 'mount -t tmpfs -o size=32k none full && cd full && timeout 300 "$0" run --nodes 4 --gpus-per-node 1 --model const:time=1us \
		--out out -- "$1" --op allreduce -b 1K -e 1K -n 500 -w 5 --no-check && cp -r out ..' "$NBOX" "$PERF"
	case $(first) in "-- nbox: NOT WHOLE: "*" of 1005 ops are lost, since the record could not be written (No space left on device)"*) pass "is told first" ;; *) fail "is told first" "$out" ;; esac
	is "$(json out/summary.json 'd["ops"] + d["lost"]["ops"], d["ops"] > 0')" "(1005, True)" "nothing goes uncounted"
fi

# summary.json itself: a folder of its name comes once nbox has looked
printf '#!/bin/bash\nmkdir nosum/summary.json\nexec "%s" "$@"\n' "$BUILD/nboxd" >busy-nboxd
chmod +x busy-nboxd
NBOX_NBOXD=$tmp/busy-nboxd exits 0 "a summary.json that cannot be written" run nosum
is "$(first)" "-- nbox: NOT WHOLE: nosum/summary.json: cannot be written: Is a directory" "is told first"
says "AllReduce            205" "and the rest of the summary follows"

# nbox itself meets the limit
printf '#!/bin/bash\nulimit -S -f unlimited\nexec "%s" "$@"\n' "$BUILD/nboxd" >free-nboxd
chmod +x free-nboxd
limited() { (ulimit -S -f 1; run "$@"); }
NBOX_NBOXD=$tmp/free-nboxd exits 0 "a summary.json that may not grow" limited lim
is "$(first)" "-- nbox: NOT WHOLE: lim/summary.json: cannot be written: File too large" "is told first"

# the line that says why a communicator was aborted
mkdir -p abort/aborts.txt
exits 1 "an aborted job" run abort --what-if fail:rank=2,after=50
is "$(first)" "-- nbox: NOT WHOLE: 1 of the lines for notes.txt, versions.txt, aborts.txt and ends.txt could not be written (Is a directory)" "a line that is lost is told first"
is "$(json abort/summary.json 'd["lost"]["notes"], d["lost"]["ops"]')" "(1, 0)" "and counted"
is "$(find . -name summary.json -size 0)" "" "no half summary is left"
if ! is_sanitized; then
	exits 0 "a folder that is removed during the run" timeout 300 "$NBOX" run --nodes 4 --gpus-per-node 1 --out gone -- bash -c 'rm -r gone; exec "$0" --op allreduce -b 1K -e 1K -n 5 --no-check' "$PERF"
	says "nbox run: there is no summary: cannot open gone/record.nbox: No such file or directory" "is told"
fi
nothing_left
finish

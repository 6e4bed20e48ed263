#!/usr/bin/env bash
# A decision file: the model decides by it, nbox explain shows it beside nbox's own rules, a run keeps it. (One op: test-perf.sh.)
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
unset NBOX_MODEL
cp "$here/decisions.txt" made.txt
world=(--preset dgx-a100 --nodes 8 --gpus-per-node 2)
by=(--model nccl:decisions=made.txt)

exits 0 "an op of the file" "$NBOX" explain allreduce 1MiB "${world[@]}" "${by[@]}"
says "candidates  by the costs of NCCL 2.28.9 itself, by made.txt of 2026-11-24" "has NCCL's own costs"
says "beside them those of nbox's own rules (NCCL 2.28.9, as the decision file)" "beside nbox's"
says "tree     LL128        230.00 us" "as they stand there"
is "$(grep -c -e '<- taken' <<<"$out") $(grep '<- taken' <<<"$out" | grep -c 'tree     LL128')" "1 1" "the cheapest is taken"
is "$(grep -c "<- nbox's own rules take this" <<<"$out")" "1" "what nbox would take is marked"
says "tree     Simple            - " "what NCCL does not consider has no cost"
says "not considered, by the decision file" "... and says why"
says "choice      tree LL128, 3 channels" "the channels are the file's"
"$NBOX" explain allreduce 1MiB "${world[@]}" "${by[@]}" --json >op.json
is "$(json op.json '(d["plan"]["algo"], d["plan"]["channels"], d["plan"]["own"]["algo"], [c["cost_us"] for c in d["plan"]["candidates"] if c["algo"] == "tree" and c["proto"] == "LL128"], all("own_cost_us" in c for c in d["plan"]["candidates"] if "cost_us" in c))')" \
	"('tree', 3, 'ring', [230.0], True)" "--json has both"
exits 0 "without the file" "$NBOX" explain allreduce 1MiB "${world[@]}" --json
is "$(grep -c own <<<"$out")" "0" "there is nothing beside"
exits 0 "a kind that the file does not have" "$NBOX" explain reduce 1MiB "${world[@]}" "${by[@]}"
says "by the costs of NCCL 2.28.9, as the decision file; this is not in made.txt" "is decided by nbox's rules"
exits 0 "nbox perf" "$NBOX" perf allreduce -b 8 -e 1K "${world[@]}" "${by[@]}"
says "# warning: delay model nccl: the decision file is of NCCL 2.28.9 and 16 ranks on 8 nodes, 512 on 64; nbox's own rules decide for others" "says what the file has"
exits 0 "a parameter" "$NBOX" explain allreduce 1MiB "${world[@]}" --model nccl:decisions=made.txt,algo=ring
says "choice      ring LL128" "narrows the file's choice"

exits 0 "the whole file" "$NBOX" explain --decisions made.txt --preset dgx-a100 --gpus-per-node 2
says "decisions   made.txt: NCCL 2.28.9, 2026-11-24; 8 x a GPU of tests, by hand, for tests" "is named"
says "            AllReduce     4 decisions, 1 the same, 3 other; costs at most" "each kind is counted"
says "8 B to 1 KiB: NCCL takes ring LL, nbox's own rules tree LL" "what differs is named by sizes"
says "1 MiB: NCCL takes tree LL128, nbox's own rules ring LL128" "... each by its own"
says "AllGather     1 decision, 1 the same, 0 other" "a size that no call has is not asked"
says "; 1 sizes are no call's" "... and counted"
says "1 communicator of the file has no place in 64 nodes of 2: give --nodes, or the preset of the machine" "what does not fit is named"
"$NBOX" explain --decisions made.txt --preset dgx-a100 --gpus-per-node 2 --json >all.json
is "$(json all.json '(d["decisions"], d["same"], d["other"], d["outside"], [(o["op"], o["other"]) for o in d["ops"]])')" \
	"(5, 2, 3, 1, [('AllReduce', 3), ('AllGather', 0)])" "--json counts the same"
exits 0 "nbox validate" "$NBOX" validate made.txt
says "made.txt: what NCCL 2.28.9 decides for 16 ranks on 8 nodes, 512 on 64" "knows such a file"
exits 2 "an op and a whole file" "$NBOX" explain allreduce 1MiB --decisions made.txt
says "nbox explain: --decisions goes through the whole file; for one op give --model nccl:decisions=made.txt" "are not both"
exits 2 "a model and a whole file" "$NBOX" explain --decisions made.txt --model nccl
says "--decisions goes with no --model: it is nccl:decisions=made.txt" "are not both"
exits 2 "no file" "$NBOX" explain --decisions none.txt --preset dgx-a100
says "nbox explain: cannot read none.txt: No such file or directory" "is said"
sed 's/^at 1024 = ring/at 1024 = tree/' made.txt >changed.txt
exits 2 "a choice that is not the cheapest" "$NBOX" explain allreduce 1MiB "${world[@]}" --model nccl:decisions=changed.txt
says "changed.txt:18: NCCL would take ring/ll, of 21 us, before what stands here" "is refused with its line"
exits 2 "another version" "$NBOX" explain allreduce 1MiB "${world[@]}" --model nccl:decisions=made.txt,version=2.21.5
says "version=2.21.5, but the decision file is of NCCL 2.28.9: leave version out" "is refused"

if is_sanitized; then finish; fi # its libnbox.so cannot be preloaded into nbox-perf
export NBOX_TEST_NCCL=$BUILD/emulator/standins/libnccl.so.2
exits 0 "a job" "$NBOX" run "${world[@]}" "${by[@]}" --out job -- "$PERF" --op allreduce -b 1M -e 1M -n 2 -w 0 --no-check
says "decided by     NCCL 2.28.9 itself, by made.txt of 2026-11-24" "is decided by the file"
mv job moved && rm made.txt
exits 0 "its record, moved, without the file" "$NBOX" retime moved
says "NCCL 2.28.9 itself, by made.txt of 2026-11-24" "has the copy that the run kept"
nothing_left
finish

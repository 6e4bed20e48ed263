#!/usr/bin/env bash
# Wrong inputs: each of wrong-inputs.txt ends with its exit code and says its sentence, and nothing else. Starts no job.
table=$(realpath "$(dirname "$0")")/wrong-inputs.txt
. "$(dirname "$0")/lib.sh"
PATH=$BUILD:$BUILD/tests/func/jobs:$PATH # nbox, nboxd, and a torchrun that is a stand-in
unset "${!NBOX_@}"

printf 'cluster:\n\tnodes: 4\n' >tab.yaml
printf 'cluster:\n  nodes: 4\nmodle: ring\n' >key.yaml
printf 'model: ring\nmodel: tree\n' >twice.yaml
: >empty.yaml
printf 'nodes: 4\n' >flat.yaml
head -c 300 /dev/zero >binary.yaml
printf 'model: ring: bw\n' >colon.yaml
printf 'network:\n  inter: {bandwidth: 400}\n' >unit.yaml
printf 'what_if: add:delay=1ms\n' >list.yaml
printf 'model: none\nwhat_if:\n  - add:delay=1ms\n  - fail:op=all_reduce,after=3\n  - slow:rank=1\n' >third.yaml
printf 'hello world\n' >words.csv
printf 'kind,time\nallreduce,1us\n' >head.csv
printf 'bytes,us\n8,1\n4,2\n' >fall.csv
: >empty.csv
printf 'kind,bytes,us\nalreduce,8,1\n' >kind.csv
: >file
printf 'node_hour: {default: 3, default: 4}\n' >twice.prices
printf 'currency: ""\n' >empty.prices
echo '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 1}]}' >host.json
echo '{"traceEvents": []}' >cpu.json && gzip -c cpu.json >trace.json.gz
kernel() # kernel KEY=VALUE...: a trace of one collective
{
	printf '[{"ph": "X", "cat": "kernel", "name": "ncclKernel", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"Collective name": "allreduce", "Process Group Name": "0", %s}}]' "$1"
}
kernel '"Group size": 2147483648' >groups.json
kernel '"In msg nelems": -5' >counts.json
kernel '"Group size": 2, "Process Group Ranks": "[0, 1]"' >rank-5.json
echo '[][]' >two.json
printf 'a 1us\nb\n' >bad.kernels
printf 'print()\n' >train.py
printf '#!/bin/sh\r\n' >from-windows && chmod +x from-windows
head -c 5000 /dev/zero | tr '\0' x >garbage.nbox
before=$(ls -A)

while IFS= read -r input; do
	case $input in ''|\#*) continue ;; esac
	IFS= read -r expected && expected=${expected#$'\t'}
	want=${expected%% *} sentence=${expected#* }
	out=$(eval "timeout 60 env $input" </dev/null 2>&1)
	code=$?
	if [ "$code" != "$want" ]; then fail "$input" "exit code $code, wanted $want" "$out"
	elif [ "$out" = "$sentence" ] || [[ $sentence = *\* && $out = "${sentence%\*}"* ]]; then pass "$input"
	else fail "$input" "wanted: $sentence" "got:    $out"
	fi
done <"$table"
is "$(ls -A)" "$before" "nothing is left"
no_nboxd && pass "no nboxd runs" || fail "no nboxd runs"
[ $n -ge 120 ] && pass "there are many" || fail "there are many" "$n"
finish

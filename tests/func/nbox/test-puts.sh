#!/usr/bin/env bash
# NCCL's one-sided calls: among real ranks on host NCCL.
. "$(dirname "$0")/lib.sh"
puts=$BUILD/tests/apps/puts

while read -r ranks right; do
	exits 0 "$ranks ranks put into each other's windows" timeout 60 "$NBOX" run --plain --procs "$ranks" --quiet -- "$puts" --rounds 2
	is "$(grep -c "of $ranks: $right right, 0 of other ranks" <<<"$out")" "$ranks" "$ranks ranks: every number is right"
done <<'T'
1 4000
2 8000
4 12000
T
export NCCL_SHM_DISABLE=1
exits 0 "over tcp, megabytes" timeout 60 "$NBOX" run --plain --procs 3 --quiet -- "$puts" --elements 300000 --rounds 1
nothing_left
finish

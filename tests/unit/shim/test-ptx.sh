#!/bin/sh
# $1 prints the footprint kernels; $2, the vendor's assembler, must take them for a few architectures.
set -eu
: "${MESON_EXE_WRAPPER=}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2086 # what runs programs of another machine: nothing, or some words
$MESON_EXE_WRAPPER "$1" >"$dir/hold.ptx"
[ "$(grep -c '^.visible .entry ncclDevKernel_' "$dir/hold.ptx")" = 6 ]
n=0
for arch in sm_70 sm_75 sm_80 sm_90 sm_100; do
	if ! "$2" --gpu-name "$arch" --output-file "$dir/hold.cubin" "$dir/hold.ptx" >"$dir/log" 2>&1; then
		grep -q "not defined for option 'gpu-name'" "$dir/log" && continue # too old or too new
		cat "$dir/log"
		exit 1
	fi
	n=$((n + 1))
done
[ "$n" -gt 0 ]

#!/usr/bin/env bash
# An installed tree works from where it lies, and does not become anybody else's NCCL: libnbox.so has NCCL's SONAME, and
# ldconfig gives a library to whoever asks for its SONAME.
. "$(dirname "$0")/../cli/lib.sh"
export PATH=$PATH:/usr/sbin:/sbin
if ! DESTDIR=$tmp/stage meson install -C "$BUILD" --no-rebuild --quiet >install.log 2>&1; then
	fail "meson install" "$(cat install.log)"
	finish
fi
pass "meson install"
bin=$(dirname "$(find "$tmp/stage" -type f -name nbox | head -n 1)") prefix=$(dirname "$bin")
is "$("$bin/nbox" preload)" "$bin/../lib/nbox/libnbox.so" "nbox preload names the installed library"
is "$(find "$tmp/stage" -name 'libnccl.so*' -not -path '*/nbox/hostgpu/*')" "" "nothing is called libnccl.so.2"

# what ldconfig would do with all folders that a distribution may list
if command -v ldconfig >/dev/null; then
	find "$prefix" -type d -path '*/lib*' -not -path '*/lib/nbox*' >conf
	echo "$prefix/lib" >>conf
	# shellcheck disable=SC2046 # folders, one a word
	ldconfig -n $(cat conf) 2>/dev/null
	is "$(find "$tmp/stage" -name 'libnccl.so*' -not -path '*/nbox/hostgpu/*')" "" "ldconfig makes no link of that name"
	ldconfig -X -f conf -C cache 2>/dev/null
	is "$(ldconfig -C cache -p 2>/dev/null | grep "libnccl.so.2 .*$tmp")" "" "its cache does not lead from libnccl.so.2 to nbox"
	# the same with the library in a listed folder: the check can fail
	mkdir bad && cp "$prefix/lib/nbox/libnbox.so" bad/ && ldconfig -n "$tmp/bad" 2>/dev/null
	is "$(readlink bad/libnccl.so.2)" "libnbox.so" "(a listed folder would have given libnbox to everybody)"
fi

export PATH=$BUILD/tests/func/launch:$PATH TMPDIR=$tmp
exits 0 "a job runs from the installed tree" "$bin/nbox" run --quiet --nodes 4 --model ring --device host --out r -- \
	torchrun --nproc-per-node=2 "$BUILD/tests/func/launch/flaky"
check "and its models are found" "$bin/nbox" models
finish

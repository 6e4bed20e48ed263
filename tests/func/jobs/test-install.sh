#!/usr/bin/env bash
# An installed tree works from where it lies, also after it was moved, with plug-ins made outside of nbox's tree and with its man pages
# and completion; and it does not become anybody else's NCCL: libnbox.so has NCCL's SONAME, and
# ldconfig gives a library to whoever asks for its SONAME.
test=$(realpath "$0")
. "$(dirname "$0")/../nbox/lib.sh"
export PATH=$PATH:/usr/sbin:/sbin
if ! DESTDIR=$tmp/stage meson install -C "$BUILD" --no-rebuild --quiet >install.log 2>&1; then
	fail "meson install" "$(cat install.log)"
	finish
fi
pass "meson install"
bin=$(dirname "$(find "$tmp/stage" -type f -path '*/bin/nbox' | head -n 1)") prefix=$(dirname "$bin")
is "$("$bin/nbox" preload)" "$bin/../lib/nbox/libnbox.so" "nbox preload names the installed library"
is "$(find "$tmp/stage" -name 'libnccl.so*' -not -path '*/nbox/standins/*')" "" "nothing is called libnccl.so.2"

# what ldconfig would do with all folders that a distribution may list
if command -v ldconfig >/dev/null; then
	find "$prefix" -type d -path '*/lib*' -not -path '*/lib/nbox*' >conf
	echo "$prefix/lib" >>conf
	# shellcheck disable=SC2046 # folders, one a word
	ldconfig -n $(cat conf) 2>/dev/null
	is "$(find "$tmp/stage" -name 'libnccl.so*' -not -path '*/nbox/standins/*')" "" "ldconfig makes no link of that name"
	ldconfig -X -f conf -C cache 2>/dev/null
	is "$(ldconfig -C cache -p 2>/dev/null | grep "libnccl.so.2 .*$tmp")" "" "its cache does not lead from libnccl.so.2 to nbox"
	# the same with the library in a listed folder: the check can fail
	mkdir bad && cp "$prefix/lib/nbox/libnbox.so" bad/ && ldconfig -n "$tmp/bad" 2>/dev/null
	is "$(readlink bad/libnccl.so.2)" "libnbox.so" "(a listed folder would have given libnbox to everybody)"
fi

# from here on it lies elsewhere
mv "$prefix" moved && prefix=$tmp/moved && bin=$prefix/bin
export PATH=$BUILD/tests/func/jobs:$PATH TMPDIR=$tmp NBOX_DEVICE=host
exits 0 "a launcher's job runs from the installed tree" "$bin/nbox" run --quiet --nodes 4 --model ring --out r -- \
	torchrun --nproc-per-node=2 "$BUILD/tests/func/jobs/flaky"
exits 0 "the trainer runs, too" "$bin/nbox" run --nodes 8 --gpus-per-node 2 --model ring --out trained -- "$BUILD/tests/apps/trainer" --steps 3
says "nbox: 16 ranks (8 nodes x 2), 2 real" "and its ranks are told"
exits 0 "nbox perf finds its program" "$bin/nbox" perf --live allreduce --nodes 8 --gpus-per-node 1 -b 8 -e 8 -n 1 -w 0 --quiet --out p

# a plug-in made with what is installed, and nothing else
out=$(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --define-prefix --variable=modeldir nbox-delaymodel)
is "$out" "$prefix/lib/nbox/delaymodels" "pkg-config names the folder of delay models"
cflags=$(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --define-prefix --cflags nbox-delaymodel)
is "${cflags% }" "-I$prefix/include" "and that of their header"
sed -n '/^```c$/,/^```$/{/^```/!p}' "$(dirname "$test")/../../../delaymodels/README.md" | head -n 20 >linear.c
# shellcheck disable=SC2086 # flags
check "the README's model is built with them" cc -shared -fPIC -Wall -Wextra -Werror -fvisibility=hidden $cflags -o linear.so linear.c
cp linear.so "$prefix/lib/nbox/delaymodels/"
exits 0 "the installed nbox lists it" "$bin/nbox" models linear
says "per_rank=<time>" "with its parameters"
exits 0 "and runs with it" "$bin/nbox" perf --live allreduce --nodes 8 --gpus-per-node 1 -b 8 -e 8 -n 1 -w 0 --model linear:per_rank=2us --out with-linear
says " 16.00 " "8 ranks take 16 us"
rm "$prefix/lib/nbox/delaymodels/linear.so"
exits 2 "which is gone with it" "$bin/nbox" models linear
NBOX_MODEL_PATH=$tmp exits 0 "NBOX_MODEL_PATH has it, too" "$bin/nbox" models linear

# readers of records, with what is installed and nothing else
sed -n '/^```c$/,/^```$/{/^```/!p}' "$prefix/share/doc/nbox/RECORD.md" >reader.c
check "RECORD.md's reader is built" cc -Wall -Wextra -Werror -I"$prefix/include" -o reader reader.c -lzstd
is "$(./reader trained/record.nbox | sort)" "$("$bin/nbox" record dump --json --kind op trained |
	python3 -ISc 'import json, sys
for o in map(json.loads, sys.stdin): print(o["world_rank"], o["virtual_end_ns"] - o["virtual_arrive_ns"])' | sort)" "it reads each op of a run"
is "$(python3 -I "$prefix/share/nbox/nbox_record.py" trained/record.nbox | wc -l)" "$("$bin/nbox" record dump trained | wc -l)" "so does the reader in Python"

# man pages: of what was built for this machine, without sanitizers
if [ -e "$BUILD/share/nbox.1" ]; then
	man=$prefix/share/man
	for page in man1/nbox.1 man8/nboxd.8 man5/nbox.yaml.5; do
		check "$page is installed" test -s "$man/$page"
		if command -v man >/dev/null && man --version 2>/dev/null | grep -q '^man 2'; then
			is "$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$man/$page" 2>&1 >"$(basename "$page").txt")" "" "$page has no faults"
		fi
	done
	options=$(for c in $("$bin/nbox" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do "$bin/nbox" "$c" --help; done | grep -oE -e '--[a-z][a-z-]+' | sort -u)
	is "$(for o in $options; do grep -qF -e "${o//-/\\-}" "$man/man1/nbox.1" || echo "$o"; done)" "" \
		"nbox.1 has each of the $(wc -w <<<"$options") options that --help has"
	keys=$("$bin/nboxd" --help | sed -nE 's/^ +NBOX_[A-Z_]+, ([a-z_.]+).*/\1/p')
	is "$(for k in $keys; do grep -qxF -e "\\fB$k\\fR" "$man/man5/nbox.yaml.5" || echo "$k"; done)" "" "nbox.yaml.5 has each of the $(wc -w <<<"$keys") keys"
	sed -n '/^\.SH EXAMPLE/,/^\.SH SEE/{/^\.nf$/,/^\.fi$/{/^\./!p}}' "$man/man5/nbox.yaml.5" | sed 's/\\-/-/g' >example.yaml
	exits 0 "its example is a cluster file" "$bin/nboxd" --check --config example.yaml
	says 'nodes: "16"' "and means what it says"
fi

# completion, by what bash gives to its function: the name, the word that it cuts out
. "$prefix/share/bash-completion/completions/nbox"
completes() { # LINE WORDS
	COMP_LINE=$1 COMP_POINT=${#1}
	_nbox "${1%% *}" "${1##*[ =:]}" 2>/dev/null
	is "${COMPREPLY[*]}" "$2" "completes '$1'"
}
PATH=$bin:$PATH
completes "nbox pe" "perf"
completes "nbox run --gpus" "--gpus-per-node"
completes "nbox kernels --o" "--out"
completes "nbox run --exchange " "none messages payload"
completes "nbox run --link=r" "rdma"
completes "nbox run --model r" "ring:"
completes "nbox run --model ring:bw=1GB/s,al" "1GB/s,alpha="
completes "nbox run --model ring:bw=1GB/s," "1GB/s,alpha= 1GB/s,chunk="
completes "nbox run --links alphab" "alphabeta:"
completes "nbox run --what-if add:op" "op="
completes "nbox run --what-if f" "fail:"
completes "nbox perf red" "reducescatter reduce"
completes "nbox perf --live red" "reducescatter reduce"
completes "nbox explain allr" "allreduce"
completes "nbox explain --pres" "--preset"
completes "nboxd --as" "--as-node"
completes "nbox run -- ls --mod" ""

# the dynamic linker divides its lists at spaces, colons and semicolons
mkdir "a b: c; d" && cp -r "$prefix" "a b: c; d/" && odd="$tmp/a b: c; d/$(basename "$prefix")/bin/nbox"
exits 0 "from a folder with a space, a colon and a semicolon" timeout -k 5 120 "$odd" run --nodes 4 --model ring --device host --out odd -- \
	torchrun --nproc-per-node=2 "$BUILD/tests/func/jobs/flaky"
is "$(json odd/summary.json '(d["world_size"], d["ops"])')" "(8, 1)" "the job runs inside the virtual cluster"
exits 1 "nbox preload there" "$odd" preload
says "divides LD_PRELOAD at spaces and colons" "refuses, since nothing can quote them"
mkdir "it's" && cp -r "$prefix" "it's/" && odd="$tmp/it's/$(basename "$prefix")/bin/nbox"
is "$(eval "$("$odd" preload --print)" && echo "$LD_PRELOAD")" "$("$odd" preload)" "nbox preload --print is a line for a shell"
is "$(LD_PRELOAD=$BUILD/libnbox.so; eval "$("$bin/nbox" preload --print)" && echo "$LD_PRELOAD")" "$("$bin/nbox" preload):$BUILD/libnbox.so" \
	"which leaves what is preloaded already"
finish

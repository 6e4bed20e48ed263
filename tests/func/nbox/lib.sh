# Shared by the tests of nbox's command line: BUILD is the build folder, $tmp a folder that goes away, and every check names itself.
# shellcheck shell=bash disable=SC2034
set -uo pipefail
BUILD=${1:?usage: test BUILD-FOLDER}
NBOX=$BUILD/nbox PERF=$BUILD/nbox-perf
tmp=$(mktemp -d)
export XDG_RUNTIME_DIR=$tmp
export NBOX_MODEL=none # where a test names no model, nor a file that does
cd "$tmp" || exit 1
n=0 bad=0
trap 'rm -rf "$tmp"' EXIT
pass() { n=$((n + 1)); echo "ok $n - $1"; }
logs=() # files whose ends a failure prints: what programs in the background said
fail() {
	n=$((n + 1)) bad=$((bad + 1))
	echo "not ok $n - $1"; shift
	printf '%s\n' "$@" | sed 's/^/# /' | tail -n 30
	local f
	for f in "${logs[@]}"; do [ -s "$f" ] && { echo "# -- $f ends with"; tail -n 30 "$f" | sed 's/^/# | /'; }; done
}
# within SECONDS COMMAND...: until it succeeds; the bound is for what never comes, and far above what a busy machine needs
within() {
	local until=$((SECONDS + $1)); shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.05
	done
}
# ops_recorded DIR N: more than N ops are in the record of the run: the job is under way
ops_recorded() { [ "$("$NBOX" report --csv "$1" 2>/dev/null | wc -l)" -gt $(($2 + 1)) ]; }
# check NAME COMMAND...: the command succeeds
check() { local name=$1; shift; local out; if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "$out"; fi; }
# exits CODE NAME COMMAND...: the command ends with CODE; its output is in $out
exits() { local want=$1 name=$2; shift 2; out=$("$@" 2>&1); local got=$?; if [ "$got" = "$want" ]; then pass "$name"; else fail "$name" "exit code $got, wanted $want" "$out"; fi; }
# says TEXT NAME: $out of the last command contains TEXT
says() { case $out in *"$1"*) pass "$2" ;; *) fail "$2" "wanted: $1" "got: $out" ;; esac; }
# readme_block FILE LINE: the rest of the block of a README that begins with LINE, without its indent
readme_block() {
	python3 -c 'import sys, textwrap
for block in open(sys.argv[1], encoding="utf-8").read().split("\n\n"):
    if block.startswith("    " + sys.argv[2]):
        print(textwrap.dedent(block).removeprefix(sys.argv[2]).strip("\n"))' "$1" "$2"
}
json() { python3 -IS -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2], {"d": d}))' "$1" "$2"; }
is() { if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "got: $1" "wanted: $2"; fi; }
# is_quiet FOLDER: of a live run's results. Where its steps are unlike, this machine was busy, and what they say is not judged.
is_quiet() {
	[ "$(json "$1/summary.json" 'd["steps"]["ms"]["p95"] < 1.2 * d["steps"]["ms"]["p50"] and d["steps"]["ms"]["mean"] < 1.05 * d["steps"]["ms"]["p50"]')" = True ]
}
not_quiet() { pass "$2 # SKIP the steps of $1 are unlike: the machine was busy"; }
# is_if_quiet RUN GOT WANTED NAME
is_if_quiet() { if is_quiet "nbox-out/$1"; then is "$2" "$3" "$4"; else not_quiet "$1" "$4"; fi; }
# holds_if_quiet FOLDER NAME: the test's own holds NAME, with standard input
holds_if_quiet() { if is_quiet "$1"; then holds "$2"; else not_quiet "$1" "$2"; fi; }
# Nothing of ours is left: processes whose environment or command names our folder
nboxds_left() {
	local p comm
	for p in /proc/[0-9]*; do
		read -r comm 2>/dev/null <"$p/comm" && [ "$comm" = nboxd ] && grep -qsa -- "$tmp" "$p/cmdline" "$p/environ" || continue
		{ tr '\0' ' ' <"$p/cmdline"; grep -ao 'NBOX_OUT=[^[:cntrl:]]*' "$p/environ" || echo; } 2>/dev/null
	done
	return 0
}
no_nboxd() { [ -z "$(nboxds_left)" ]; }
nothing_left() {
	within 200 no_nboxd
	is "$(nboxds_left)" "" "no nboxd is left"
	is "$(find "$tmp" -name '*.sock' 2>/dev/null)" "" "no socket is left"
}
# A sanitized libnbox.so cannot be preloaded into programs that are not: shells, for one
is_sanitized() { [ -n "$(nm -D "$BUILD/libnbox.so" | grep -E ' U __(asan|tsan)_' | head -n 1)" ]; }
finish() { echo "1..$n"; exit $((bad > 0)); }

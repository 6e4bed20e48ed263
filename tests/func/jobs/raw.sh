# Shared by the tests of the raw line: LD_PRELOAD and variables, no nbox run.
# shellcheck shell=bash disable=SC2034
. "$(dirname "$0")/../nbox/lib.sh"
here=$BUILD/tests/func/jobs
if is_sanitized; then # the agent is in C, but env is not
	echo "1..0 # SKIP a sanitized libnbox.so cannot be preloaded into env"
	exit 0
fi
unset NBOX_MODEL # a variable without a number of nodes is told of
# raw VARIABLES... -- COMMAND...: the model is none where nothing names one
raw() {
	local vars=()
	while [ "$1" != -- ]; do vars+=("$1"); shift; done
	shift
	[[ " ${vars[*]}" != *" NBOX_NODES="* || " ${vars[*]}" == *" NBOX_MODEL="* || -e nbox.yaml ]] || vars+=(NBOX_MODEL=none)
	timeout -k 5 120 env LD_PRELOAD="$BUILD/libnbox.so" "${vars[@]}" "$@"
}
none_names() { ! nboxds_left | grep -q -- "$1"; }

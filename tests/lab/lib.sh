# Shared by the tests of the lab: $LAB the script, $lab the name of this test's own lab, which goes away with the test.
# shellcheck shell=bash disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/../func/nbox/lib.sh"
LAB=${2:?usage: test BUILD-FOLDER SCRIPTS/LAB}
lab=test-$$
trap '"$LAB" down --name "$lab"; rm -rf "$tmp"' EXIT
# lab_up OPTIONS...: this test's lab; where there can be none, the test ends with the reason
lab_up() {
	out=$("$LAB" up --name "$lab" "$@" 2>&1)
	case $? in
	0) pass "lab up $*" ;;
	77) echo "1..0 # SKIP $out"; exit 0 ;;
	*) fail "lab up $*" "$out"; finish ;;
	esac
}
lab_run() { "$LAB" run --name "$lab" "$@"; }
holder() { "$LAB" status --name "$lab" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["holder"])'; }

#!/bin/sh
# Every delay model on the command line exports nbox_delaymodel and nothing else.
set -eu
bad=0
for so in "$@"; do
	names=$(nm -D --defined-only "$so" | awk '{ print $3 }' | grep -v '^__\(asan\|odr\)' | tr '\n' ' ')
	if [ "$names" != "nbox_delaymodel " ]; then
		echo "$so exports: $names"
		bad=1
	fi
done
exit $bad

#!/usr/bin/env bash
# planted.sh - must_fail.sh for checks that may be skipped, with status 77, which is not to fail.
#
# usage: planted.sh TEXT COMMAND [ARGUMENT...]
output=$(bash "$(dirname "$0")/../support/must_fail.sh" "$@" 2>&1)
status=$?
printf '%s\n' "$output"
if grep -qx 'status 77' <<<"$output"; then exit 77; fi
exit "$status"

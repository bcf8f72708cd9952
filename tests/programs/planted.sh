#!/usr/bin/env bash
# planted.sh - shows that the comparisons can fail: runs one of the scripts on a library with a
# planted fault and demands that it fails, for the expected reason.
# usage: planted.sh REASON SCRIPT LIBRARY WITNESS
#   REASON  part of the message that the failure has to carry (extended regular expression)
set -u
reason=$1
shift

TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/snug-planted.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
output=$(bash "$@" 2>&1)
status=$?
printf '%s\n' "$output" | head -c 3000 | cat -v

case $status in
77) exit 77 ;; # the program is not installed: skipped here too
1) ;;
*)
    echo "FAIL: status $status instead of 1"
    exit 1
    ;;
esac
if ! grep -qE "^FAIL: .*($reason)" <<<"$output"; then
    echo "FAIL: it failed, but not because of: $reason"
    exit 1
fi
echo "the planted fault was caught"

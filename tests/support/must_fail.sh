#!/bin/sh
# Runs a command over a planted fault and passes if, and only if, the command fails and says so in
# the words that its checker uses. A test that cannot fail is no test.
#
#   must_fail.sh TEXT COMMAND [ARGUMENT...]
#
# TEXT is an extended regular expression for the output, after which a line `status N` stands. A
# command that is skipped is neither. Where threads must meet for the fault to show, MUST_FAIL_TRIES
# says in how many runs they may.
expected=$1
shift
tries=${MUST_FAIL_TRIES:-1}
status=0
while [ "$status" -eq 0 ] && [ "$tries" -gt 0 ]; do
    output=$("$@" 2>&1)
    status=$?
    tries=$((tries - 1))
done
output=$(printf '%s\nstatus %s' "$output" "$status")
printf '%s\n' "$output"
if [ "$status" -eq 77 ]; then
    exit 77
fi
if [ "$status" -eq 0 ]; then
    echo "must_fail: the command passed over a planted fault" >&2
    exit 1
fi
if ! printf '%s\n' "$output" | grep -E -- "$expected" >/dev/null; then
    echo "must_fail: it failed, but not with: $expected" >&2
    exit 1
fi

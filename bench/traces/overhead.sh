#!/usr/bin/env bash
# What recording costs: overhead.sh [ROUNDS]. Each program runs plainly and recorded in turn; printed
# is the median time of each in seconds, the median of the ratios, and bytes in the file for each
# operation. The last two programs do nothing but allocate, in one and in two threads.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
input=$root/tests/programs/input
rounds=${1:-7}
snug=$root/build/bin/snug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PYTHONMALLOC=malloc LC_ALL=C

awk -f "$input/make_c.awk" -v functions=100 >large.c
awk -f "$input/make_sql.awk" -v rows=40000 >notes.sql
cat >words.py <<'END'
import json
rows = [{"key": i, "name": str(i) * 3, "list": [1.5 * i, None, {"x": i}]} for i in range(60000)]
for _ in range(3):
    rows = json.loads(json.dumps(rows))
END

seconds() { # CMD...: prints how long it took
    local from=$EPOCHREALTIME
    "$@" <notes.sql >/dev/null 2>&1
    awk -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", to - from }'
}

median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

measure() { # NAME CMD...
    local name=$1 round
    shift
    : >plain && : >recorded
    for ((round = 0; round < rounds; round++)); do
        seconds "$@" >>plain
        seconds "$snug" record -q --children -o a.trace -- "$@" >>recorded
    done
    operations=$("$snug" replay --info=json a.trace |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["totals"]["operations"])')
    printf '%-18s %8s %8s %6s %10s %6s\n' "$name" "$(median <plain)" "$(median <recorded)" \
        "$(paste plain recorded | awk '{ printf "%.2f\n", $2 / $1 }' | median)" "$operations" \
        "$(awk -v bytes="$(stat -c %s a.trace)" -v of="$operations" 'BEGIN { printf "%.2f", bytes / of }')"
}

printf '%-18s %8s %8s %6s %10s %6s\n' program plain recorded ratio operations bytes
measure cpython "$(python3 -c 'import sys; print(sys.executable)')" words.py
measure gcc gcc -O2 -c large.c -o large.o
measure sqlite sqlite3 -batch :memory:
measure one-thread "$root/build/bench/pairs" freed-at-once 9
measure two-threads "$root/build/bench/pairs" producer-consumer 9

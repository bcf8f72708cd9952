#!/usr/bin/env bash
# What recording costs: overhead.sh [ROUNDS]. Each program runs plainly and recorded in turn; printed
# are the median time of each in seconds, the median of the ratios, the ratio of the least processor
# time of all that runs (what a machine without a processor to spare would see, and what other work
# on it hardly changes), and bytes in the file for each operation. The last programs do nothing but
# allocate, in one and in two threads.
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

seconds() { # CMD...: prints how long it took, and the processors' time
    local TIMEFORMAT='%3R %3U %3S'
    { time "$@" <notes.sql >/dev/null 2>&1; } 2>&1 | awk '{ print $1, $2 + $3 }'
}

least() { sort -n | head -n 1; }

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
    printf '%-18s %8s %8s %6s %6s %10s %6s\n' "$name" "$(median <plain)" "$(median <recorded)" \
        "$(paste plain recorded | awk '{ printf "%.2f\n", $3 / $1 }' | median)" \
        "$(cut -d' ' -f2 recorded | least | awk -v plain="$(cut -d' ' -f2 plain | least)" '{ printf "%.2f", $1 / plain }')" "$operations" \
        "$(awk -v bytes="$(stat -c %s a.trace)" -v of="$operations" 'BEGIN { printf "%.2f", bytes / of }')"
}

printf '%-18s %8s %8s %6s %6s %10s %6s\n' program plain recorded ratio cpu operations bytes
measure cpython "$(python3 -c 'import sys; print(sys.executable)')" words.py
measure gcc gcc -O2 -c large.c -o large.o
measure sqlite sqlite3 -batch :memory:
measure one-thread "$root/build/bench/pairs" freed-at-once 9
measure last-first "$root/build/bench/pairs" reverse-100 24
measure random-sizes "$root/build/bench/pairs" random-16-1024 24
measure two-threads "$root/build/bench/pairs" producer-consumer 9
measure four-threads "$root/build/bench/larson" 4

#!/usr/bin/env bash
# peak_rss.sh - peak resident memory and time of real programs on several allocators.
#
# usage: peak_rss.sh [OPTIONS] [PROGRAM...]
#   -n ROUNDS          how often each program runs on each allocator (5)
#   -s LIBRARY.so      snug (build/lib/libsnug.so); -s '' leaves it out
#   -p NAME=LIBRARY.so another allocator; may be given several times
#   -o FILE            keep every single figure, as CSV
#   -l                 list the programs and say which are not installed
#
# In each round every program runs once on each allocator, one straight after the other, the one
# that begins moving on from round to round. The table gives the medians: for glibc the peak of the
# largest process in MiB and the seconds, for the others the ratio to glibc.
#
# A program may bring an allocator along (Debian's redis-server is linked with jemalloc), so for
# glibc the C library itself is preloaded: its malloc is found first then. Needs GNU time.
set -euo pipefail
export LC_ALL=C

# shellcheck source=allocators.sh
. "$(dirname "$0")/allocators.sh"
# shellcheck disable=SC2034 # read by peak_rss_programs.sh
inputs=$here/../tests/programs/input
# shellcheck source=peak_rss_programs.sh
. "$here/peak_rss_programs.sh"

rounds=5
csv=
libraries=("$(ldd "$(command -v env)" | awk '$1 ~ /^libc\.so/ { print $3 }')")

# Sets `command` for a program, or fails and sets `reason`.
choose_command() { # PROGRAM
    local declared
    command=()
    declared=$(declare -F "command_${1//-/_}") || die "there is no program $1; see $0 -l"
    "$declared" >"$scratch/reason" || {
        reason=$(cat "$scratch/reason")
        return 1
    }
}

list_programs() {
    local program
    for program in "${programs[@]}"; do
        choose_command "$program" && echo "$program" || echo "$program ($reason)"
    done
}

prepare() { # PROGRAM
    local function=prepare_${1//-/_}
    mkdir "$scratch/$1"
    if declare -F "$function" >/dev/null; then (cd "$scratch/$1" && "$function"); fi
}

# Runs a program once and adds a line to the figures.
measure() { # PROGRAM ALLOCATOR-INDEX ROUND
    local figure=$scratch/figure
    (
        cd "$scratch/$1"
        choose_command "$1"
        /usr/bin/time -q -f '%M,%e' -o "$figure" env LD_PRELOAD="${libraries[$2]}" "${command[@]}" \
            >output 2>errors </dev/null
    ) || {
        tail -n 5 "$scratch/$1/errors" >&2
        die "$1 failed on ${names[$2]}"
    }
    echo "$1,${names[$2]},$3,$(tail -n 1 "$figure")" >>"$scratch/figures"
}

measure_all() {
    local round program turn
    for ((round = 0; round < rounds; round++)); do
        for program in "${chosen[@]}"; do
            for ((turn = 0; turn < ${#names[@]}; turn++)); do
                [ -t 2 ] && printf '\r\033[Kround %d of %d: %s' $((round + 1)) "$rounds" "$program" >&2
                measure "$program" $(((turn + round) % ${#names[@]})) "$round"
            done
        done
    done
    [ -t 2 ] && printf '\r\033[K' >&2
    return 0
}

print_table() {
    awk -F, -v programs="${chosen[*]}" -v names="${names[*]}" '
    function median(list,   n, i, j, t, v) {
        n = split(list, v, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    { kib[$1, $2] = kib[$1, $2] " " $4; seconds[$1, $2] = seconds[$1, $2] " " $5 }
    END {
        many = split(programs, program, " ")
        count = split(names, name, " ")
        printf "%-16s %9s %7s", "", "glibc MiB", "s"
        for (k = 2; k <= count; k++) printf "  %10.10s %6s", name[k], "time"
        print ""
        for (p = 1; p <= many; p++) {
            base = median(kib[program[p], name[1]])
            time = median(seconds[program[p], name[1]])
            printf "%-16s %9.1f %7.2f", program[p], base / 1024, time
            for (k = 2; k <= count; k++)
                printf "  %10.3f %6.2f", median(kib[program[p], name[k]]) / base,
                    (time > 0) ? median(seconds[program[p], name[k]]) / time : 0
            print ""
        }
    }' "$scratch/figures"
}

choose_programs() { # PROGRAM...
    local program
    chosen=()
    [ $# -gt 0 ] || set -- "${programs[@]}"
    for program in "$@"; do
        if choose_command "$program"; then
            chosen+=("$program")
        else
            echo "without $program: $reason" >&2
        fi
    done
    [ ${#chosen[@]} -gt 0 ] || die "no program is left"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
peers=()
while getopts n:s:p:o:lh option; do
    case $option in
    n) rounds=$OPTARG ;;
    s) snug=$OPTARG ;;
    p) peers+=("$OPTARG") ;;
    o) csv=$OPTARG ;;
    l) list_programs && exit 0 ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -x /usr/bin/time ] || die "needs GNU time (package time)"

if [ -n "$snug" ]; then add_allocator snug "$snug"; fi
add_peers "${peers[@]}"
choose_programs "$@"
for program in "${chosen[@]}"; do prepare "$program"; done
measure_all
print_table
if [ -n "$csv" ]; then
    { echo program,allocator,round,peak_kib,seconds; cat "$scratch/figures"; } >"$csv"
fi

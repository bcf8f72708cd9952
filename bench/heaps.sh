#!/usr/bin/env bash
# heaps.sh - the workload `heaps` on snug and on mimalloc: heaps of their own beside malloc, and
# freeing a million blocks at once beside freeing them one by one.
#
# usage: heaps.sh [OPTIONS] [ROW...]       the rows of `heaps --list`; all of them
#   -n ROUNDS          how often each is run (7)
#   -b FOLDER          where the program is (build/bench)
#   -p NAME=LIBRARY.so an allocator; may be given several times (snug=build/lib/libsnug.so, and each
#                      version of mimalloc that Debian's packages or ./dev bench --install-peers
#                      brought)
#
# In each round every allocator has one run of each way, a process of its own, one straight after
# the other. Printed are nanoseconds for an operation, the median over the runs of the best time
# within each, and in parentheses what a block cost to take while the heap was filled for the next
# clearing. A dash: the allocator has no such thing.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build
programs=$build/bench
rounds=7
peers=()

die() {
    echo "heaps.sh: $*" >&2
    exit 2
}

usage() {
    sed -n '/^# usage/,/^#  *brought/p' "$0" | sed -e 's/^# \{0,1\}//'
}

add_installed() { # NAME PATTERN
    local library
    library=$(find /usr/lib "$build/peers" -name "$2" 2>/dev/null | sort | head -n 1)
    if [[ $library ]]; then peers+=("$1=$library"); else echo "without $1: it is not installed" >&2; fi
}

median() {
    sort -n | awk '{ value[NR] = $1 }
        END { if (NR) printf "%.2f", (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

run_once() { # FILE ROW WAY LIBRARY
    local status=0
    LD_PRELOAD=$4 "$programs/heaps" "$2" "$3" >>"$1" 2>"$scratch/said" || status=$?
    ((status == 0 || status == 77)) || die "heaps $2 $3 under $4: $(cat "$scratch/said")"
}

cell() { # FILE
    local time fill
    time=$(sed 's/.* ns_per_op=\([0-9.]*\) .*/\1/' "$1" | median)
    fill=$(sed 's/.* fill_ns=\([0-9.]*\) .*/\1/' "$1" | median)
    if [[ ! $time ]]; then
        printf -- '-'
    elif [[ $fill == 0.00 ]]; then
        printf '%s' "$time"
    else
        printf '%s (%s)' "$time" "$fill"
    fi
}

measure_row() { # ROW
    local row=$1 way peer round
    for ((round = 0; round < rounds; round++)); do
        for way in "${ways[@]}"; do
            for peer in "${peers[@]}"; do
                run_once "$scratch/$row.$way.${peer%%=*}" "$row" "$way" "${peer#*=}"
            done
        done
    done
    for way in "${ways[@]}"; do
        printf '%-16s %-8s' "$row" "$way"
        for peer in "${peers[@]}"; do printf ' %18s' "$(cell "$scratch/$row.$way.${peer%%=*}")"; done
        printf '\n'
    done
}

while getopts n:b:p:h option; do
    case $option in
    n) rounds=$OPTARG ;;
    b) programs=$OPTARG ;;
    p) peers+=("${OPTARG%%=*}=$(realpath -e "${OPTARG#*=}")") || die "there is no ${OPTARG#*=}" ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[[ -x $programs/heaps ]] || die "there is no $programs/heaps; ./dev build makes it"
if ((${#peers[@]} == 0)); then
    peers=("snug=$(realpath -e "$build/lib/libsnug.so")")
    add_installed mimalloc2 'libmimalloc.so.2'
    add_installed mimalloc3 'libmimalloc.so.3'
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ways=(malloc heap plain buffer)
printf '%-16s %-8s' row way
for peer in "${peers[@]}"; do printf ' %18s' "${peer%%=*}"; done
printf '\n'
if (($# == 0)); then mapfile -t rows < <("$programs/heaps" --list); else rows=("$@"); fi
for row in "${rows[@]}"; do measure_row "$row"; done

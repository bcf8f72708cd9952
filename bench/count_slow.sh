#!/usr/bin/env bash
# count_slow.sh - instructions of a malloc that finds its magazine empty, and of a free that finds it
# full, counted by callgrind, on builds of snug.
#
# usage: count_slow.sh [-b DIRECTORY] NAME=LIBRARY.so...
#   -b DIRECTORY   where count_slow is (build/bench)
#
# Three places may serve such a call: the thread's spare magazine, the depot, and the slabs. For each
# the number of blocks in a round makes sure that it is this one, and snug's own counters say how many
# such calls a round has. The figure is the mean of those calls alone: what a round of calls that all
# find what they need takes is subtracted. Needs valgrind.
set -euo pipefail

readonly few=50 rounds=300
build=$(dirname "$0")/../build/bench
while getopts b: option; do
    case $option in
    b) build=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

# shellcheck source=bench/callgrind.sh
source "$(dirname "$0")/callgrind.sh"

# collected HALF BLOCKS ROUNDS: instructions of all take_all or give_all
collected() {
    instructions "$library" --toggle-collect="$1" "$build/count_slow" "$2" "$3"
}

# of_rounds COMMAND ARGUMENT... : what `rounds` more rounds add, with the warm-up subtracted
of_rounds() {
    local once twice
    once=$("$@" $rounds)
    twice=$("$@" $((2 * rounds)))
    echo $((twice - once))
}

# counter NAME BLOCKS ROUNDS: one of snug's own counters at the end
counter() {
    LD_PRELOAD=$library SNUG_STATS=stderr SNUG_STATS_FORMAT=json "$build/count_slow" "$2" "$3" 2>&1 |
        grep -o "\"$1\": *[0-9]*" | head -n 1 | grep -o '[0-9]*$'
}

# mean HALF COUNTER BLOCKS: slow calls in a round, and instructions of one
mean() {
    local all calls fast
    fast=$(of_rounds collected "$1" $few)
    all=$(of_rounds collected "$1" "$3")
    calls=$(of_rounds counter "$2" "$3")
    awk -v all="$all" -v calls="$calls" -v fast="$fast" -v few=$few -v n="$3" -v rounds=$rounds \
        'BEGIN { print calls / rounds, (all - (n * rounds - calls) * fast / (few * rounds)) / calls }'
}

print_row() { # NAME PLACE BLOCKS
    local malloc free
    local -a numbers
    malloc=$(mean take_all refills "$3")
    free=$(mean give_all flushes "$3")
    read -ra numbers <<<"$malloc $free"
    printf '%-12s %-8s %8.1f %12.1f %8.1f %12.1f\n' "$1" "$2" "${numbers[@]}"
}

printf '%-12s %-8s %8s %12s %8s %12s\n' library from 'a round' malloc 'a round' free
for peer in "$@"; do
    library=$(realpath -e "${peer#*=}")
    print_row "${peer%%=*}" spare 150
    print_row "${peer%%=*}" depot 992
    SNUG_DEPOT=0 print_row "${peer%%=*}" slabs 992
done

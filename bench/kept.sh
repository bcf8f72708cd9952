#!/usr/bin/env bash
# kept.sh - what allocators keep of memory that a program has freed: resident memory after a peak
# while the program is idle, through producers and consumers, and through many threads; what a
# sawtooth takes; and the system calls of a small program.
#
# usage: kept.sh [OPTIONS] [PART...]       parts: idle sawtooth elsewhere threads calls; all of them
#   -b FOLDER          where the programs are (build/bench)
#   -s LIBRARY.so      snug (build/lib/libsnug.so)
#   -p NAME=LIBRARY.so another allocator; may be given several times
#   -t SECONDS         how long is watched (60)
#   -o FOLDER          where the CSV files and the plots go (kept)
#
# jemalloc, mimalloc, tcmalloc and tbbmalloc are measured where Debian's packages have put them. The
# plots are made by matplotlib (Debian: apt-get install python3-matplotlib); `calls` needs strace.
set -euo pipefail
export LC_ALL=C

# shellcheck source=allocators.sh
. "$(dirname "$0")/allocators.sh"

seconds=60
folder=kept
rounds=14

# Runs a program under every allocator at the same time, with --csv=NAME, into one file.
all_at_once() { # FILE PROGRAM ARGUMENT...
    local file=$1 turn
    shift
    for ((turn = 0; turn < ${#names[@]}; turn++)); do
        LD_PRELOAD=${libraries[turn]} "$@" "--csv=${names[turn]}" >"$file.$turn" &
    done
    wait
    cat "$file".[0-9]* >"$file"
    rm "$file".[0-9]*
}

plot() { # FILE.csv TITLE
    local python
    if python=$(python_with_plots); then
        "$python" "$here/kept_plot.py" "$1" "${1%.csv}.svg" "$2"
    else
        echo "without a plot: there is no matplotlib (apt-get install python3-matplotlib)" >&2
    fi
}

part_idle() {
    all_at_once "$folder/idle.csv" "$programs/peaks" --sizes=all "--watch-s=$seconds"
    plot "$folder/idle.csv" "resident memory after a peak of 1 GiB was freed at random, idle"
}

# Of each kind: the median of the rounds after the first two, in which snug learns. Its two settings
# run at the same time, so that both have the same machine.
part_sawtooth() {
    local sizes delay turn
    for sizes in small medium large all; do
        for delay in 10s -1; do
            SNUG_PURGE_DELAY=$delay LD_PRELOAD=$snug saw "$sizes" >"$folder/saw.$delay" &
        done
        wait
        printf 'sawtooth %s SNUG_PURGE_DELAY 10s, -1: ' "$sizes"
        paste "$folder/saw.10s" "$folder/saw.-1" | awk '{ print $1, $2, $1 / $2 }' | medians
    done
    for ((turn = 0; turn < ${#names[@]}; turn++)); do
        if [ "${names[turn]}" = snug ]; then continue; fi
        printf 'sawtooth all %s: ' "${names[turn]}"
        LD_PRELOAD=${libraries[turn]} saw all | medians
    done
}

# Milliseconds of work of each round.
saw() { # SIZES
    "$programs/peaks" "--sizes=$1" --mib=1024 "--rounds=$rounds" --gap-ms=1000 |
        sed -n 's/^round=\([0-9]*\) .*fill_ms=\([0-9.]*\) free_ms=\([0-9.]*\) .*/\1 \2 \3/p' |
        LD_PRELOAD='' awk '$1 >= 2 { print $2 + $3 }'
}

# The median of each column.
medians() {
    python3 -c 'import statistics, sys
columns = zip(*([float(word) for word in line.split()] for line in sys.stdin))
names = ("median_ms", "median_ms", "median_ratio")
print(*(f"{name}={statistics.median(column):.3f}" for name, column in zip(names, columns)))'
}

part_elsewhere() {
    all_at_once "$folder/elsewhere.csv" "$programs/free_elsewhere" "--seconds=$seconds"
    plot "$folder/elsewhere.csv" "producers, and consumers that only free"
}

part_threads() {
    local turn
    for ((turn = 0; turn < ${#names[@]}; turn++)); do
        printf 'threads %s ' "${names[turn]}"
        LD_PRELOAD=${libraries[turn]} "$programs/thread_series" 100000 |
            LD_PRELOAD='' awk -F= '{ printf "%s ", $3 } END { print "KiB" }'
    done
}

# System calls for memory, beyond those of an empty program with an empty library preloaded.
count_calls() { # COMMAND...
    strace -f -c -e trace=mmap,munmap,mremap,madvise,brk,mprotect -o "$folder/calls" -- "$@" >/dev/null
    awk '$NF == "total" { print $(NF - 1) == "total" ? $3 : $4 }' "$folder/calls"
}

part_calls() {
    command -v strace >/dev/null || die "calls needs strace"
    local turn empty all
    empty=$(count_calls env "LD_PRELOAD=$(realpath "$programs/libempty_calls.so")" true)
    for ((turn = 0; turn < ${#names[@]}; turn++)); do
        all=$(count_calls env "LD_PRELOAD=${libraries[turn]}" "$programs/random_frees" 100000 1000 256)
        printf 'calls %s beyond_empty=%d ' "${names[turn]}" $((all - empty))
        LD_PRELOAD=${libraries[turn]} "$programs/random_frees" 100000 1000 256
    done
}

peers=()
while getopts b:s:p:t:o:h option; do
    case $option in
    b) programs=$OPTARG ;;
    s) snug=$OPTARG ;;
    p) peers+=("$OPTARG") ;;
    t) seconds=$OPTARG ;;
    o) folder=$OPTARG ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -x "$programs/peaks" ] || die "there is no $programs/peaks; ./dev build makes it"
mkdir -p "$folder"
add_allocator snug "$snug"
snug=${libraries[1]}
add_packaged
add_peers "${peers[@]}"

if [ $# -eq 0 ]; then set -- idle sawtooth elsewhere threads calls; fi
for part in "$@"; do
    declare -F "part_$part" >/dev/null || die "there is no part $part"
    "part_$part"
done

#!/usr/bin/env bash
# cells.sh - the workload `cells` on snug's cells, on the reference, and on malloc of each allocator;
# as a table, with the slopes, and as a plot.
#
# usage: cells.sh [OPTIONS]
#   -n ROUNDS          how often each is run (10)
#   -b FOLDER          where the programs are (build/bench)
#   -s LIBRARY.so      snug (build/lib/libsnug.so); -s '' leaves it out
#   -p NAME=LIBRARY.so another allocator; may be given several times
#   -o FILE            the plot, SVG or PNG (cells.svg); FILE.csv beside it has every run
#
# In each round every method has one run, one straight after the other. jemalloc, mimalloc and
# tcmalloc are measured where Debian's packages have put them. The plot is made by matplotlib
# (Debian: apt-get install python3-matplotlib).
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
rounds=10
programs=$here/../build/bench
snug=$here/../build/lib/libsnug.so
plot=cells.svg
names=(glibc)
libraries=('')

die() {
    echo "cells.sh: $*" >&2
    exit 2
}

usage() {
    sed -n '/^# usage/,/^# In each/p' "$0" | sed -e '$d' -e 's/^# \{0,1\}//'
}

add_allocator() { # NAME LIBRARY
    local path
    path=$(realpath -e "$2") || die "there is no $2"
    # The dynamic linker only warns of what it cannot preload.
    [ -z "$(LD_PRELOAD=$path env true 2>&1)" ] || die "$path cannot be preloaded"
    names+=("$1")
    libraries+=("$path")
}

# The first library of the system whose name begins so, or nothing.
packaged() { # START
    local found
    found=$(find /usr/lib -name "$1*" 2>/dev/null | sort | head -n 1)
    echo "$found"
}

add_packaged() {
    local pair library
    for pair in jemalloc=libjemalloc.so.2 mimalloc=libmimalloc.so. tcmalloc=libtcmalloc_minimal.so.4; do
        library=$(packaged "${pair#*=}")
        if [ -n "$library" ]; then
            add_allocator "${pair%%=*}" "$library"
        else
            echo "without ${pair%%=*}: it is not installed" >&2
        fi
    done
}

# Not every Python on a machine sees Debian's packages.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import matplotlib' 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    die "needs matplotlib; on Debian: apt-get install python3-matplotlib"
}

measure() { # CSV
    local round turn
    echo method,iterations,ms >"$1"
    for ((round = 0; round < rounds; round++)); do
        [ -t 2 ] && printf '\r\033[Kround %d of %d' $((round + 1)) "$rounds" >&2
        "$programs/cells" --csv --rounds=1 first-fit next-fit bins threshold | tail -n +2 >>"$1"
        for ((turn = 0; turn < ${#names[@]}; turn++)); do
            LD_PRELOAD=${libraries[turn]} "$programs/cells_malloc" --csv --rounds=1 \
                "malloc:${names[turn]}" | tail -n +2 >>"$1"
        done
    done
    [ -t 2 ] && printf '\r\033[K' >&2
    return 0
}

peers=()
while getopts n:b:s:p:o:h option; do
    case $option in
    n) rounds=$OPTARG ;;
    b) programs=$OPTARG ;;
    s) snug=$OPTARG ;;
    p) peers+=("$OPTARG") ;;
    o) plot=$OPTARG ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ -x "$programs/cells" ] || die "there is no $programs/cells; ./dev build makes it"
find_python
if [ -n "$snug" ]; then add_allocator snug "$snug"; fi
add_packaged
for peer in "${peers[@]}"; do add_allocator "${peer%%=*}" "${peer#*=}"; done

measure "$plot.csv"
"$python" "$here/cells_plot.py" "$plot.csv" "$plot"

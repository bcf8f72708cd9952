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
# In each round every method has one run, one straight after the other. jemalloc, mimalloc, tcmalloc
# and tbbmalloc are measured where Debian's packages have put them. The plot is made by matplotlib
# (Debian: apt-get install python3-matplotlib).
set -euo pipefail
export LC_ALL=C

# shellcheck source=allocators.sh
. "$(dirname "$0")/allocators.sh"

rounds=10
plot=cells.svg

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
python=$(python_with_plots) || die "needs matplotlib; on Debian: apt-get install python3-matplotlib"
if [ -n "$snug" ]; then add_allocator snug "$snug"; fi
add_packaged
add_peers "${peers[@]}"

measure "$plot.csv"
"$python" "$here/cells_plot.py" "$plot.csv" "$plot"

# shellcheck shell=bash
# common.sh - runs a scenario twice, on the system's malloc and on the library under test, and
# compares byte for byte what both runs left behind. To be sourced by the scripts beside it:
#
#   . "$(dirname "$0")/common.sh"
#   need git                     # or the test is skipped (status 77), with the reason
#   scenario() {                 # runs in an empty directory; a failing command fails the test
#       on git --version >version.txt
#   }
#   runs_on_library git          # these programs must have found malloc in the library
#   compare_runs "$@"            # LIBRARY WITNESS
#
# Both runs happen in a directory of the same name, so that paths in the output are the same too.
# Everything the scenario leaves there is compared; what may differ by nature (times, inode
# numbers) it has to remove. With SNUG_TEST_FULL=1 scenarios are larger.

set -u
set -o pipefail
export LC_ALL=C TZ=UTC
here_scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for the scripts
input=$here_scripts/input
test_name=$(basename "$0" .sh)
must_run=()
beside_library= # a library that is preloaded behind the one under test

# shellcheck source=../support/verdict.sh
. "$here_scripts/../support/verdict.sh"

fail() {
    echo "FAIL: $test_name: $*"
    exit 1
}

# Names of executables (patterns) that have to run on the library.
runs_on_library() {
    must_run+=("$@")
}

# on CMD ARGS... : runs a command, and its children, on the malloc of this run.
on() {
    env LD_PRELOAD="$preload" WITNESS_LOG="$witness_log" "$@"
}

# become CMD ARGS... : the same, in place of this shell: `become CMD &` makes $! the program's own.
become() {
    exec env LD_PRELOAD="$preload" WITNESS_LOG="$witness_log" "$@"
}

# scaled SMALL LARGE: a size, by whether the short or the full tests run.
scaled() {
    if [ "${SNUG_TEST_FULL:-0}" = 1 ]; then echo "$2"; else echo "$1"; fi
}

run_once() { # SIDE PRELOAD
    local side=$1 status started=$SECONDS
    preload=$2
    witness_log=$work/$side.witness
    mkdir "$work/here"
    (
        set -e
        cd "$work/here"
        scenario
    )
    status=$?
    [ $status = 0 ] || fail "the run on $side ended with status $status (see $work/here)"
    mv "$work/here" "$work/$side"
    echo "run on $side: $((SECONDS - started)) s"
}

check_witness() { # LIBRARY
    local name log=$work/library.witness
    [ -s "$log" ] || fail "no process was seen with the library preloaded"
    for name in "${must_run[@]}"; do
        cut -f1 "$log" | grep -E "/$name\$" >/dev/null || fail "$name was not seen running"
        awk -F'\t' -v library="$1" -v name="/$name\$" '
            $1 ~ name && $2 != library { print $1 " has its malloc from " $2; bad = 1 }
            END { exit bad }' "$log" || fail "$name did not run on $1"
    done
    echo "processes by executable and where malloc was found:"
    sort "$log" | uniq -c
    if cut -f2 "$work/system.witness" | grep -xF "$1" >/dev/null; then
        fail "the run that should be without the library had it"
    fi
}

compare_outputs() {
    local files
    files=$(find "$work/library" -type f | wc -l)
    [ "$files" -gt 0 ] || fail "the scenario left nothing to compare"
    if ! diff -r "$work/system" "$work/library" >"$work/difference" 2>&1; then
        head -c 2000 "$work/difference" | cat -v
        echo
        fail "output differs from the run without the library (see $work)"
    fi
    echo "$files files, $(du -sb "$work/library" | cut -f1) bytes, are equal"
}

compare_runs() { # LIBRARY WITNESS
    [ $# = 2 ] || { echo "usage: $0 LIBRARY WITNESS"; exit 2; }
    local library witness
    # Symbolic links stay: one may be there to avoid a blank, which LD_PRELOAD cannot hold.
    library=$(realpath -es "$1") || exit 2
    witness=$(realpath -es "$2") || exit 2
    work=$(mktemp -d "${TMPDIR:-/tmp}/snug-programs-$test_name.XXXXXX")
    run_once system "$witness"
    run_once library "$witness:$library${beside_library:+:$beside_library}"
    check_witness "$library"
    compare_outputs
    rm -rf "$work"
}

# shellcheck shell=bash
# callgrind.sh - counts the instructions of a program on a preloaded allocator, by callgrind. Sourced
# by count.sh and count_slow.sh. Needs valgrind.

command -v valgrind >/dev/null || {
    echo "${0##*/} needs valgrind" >&2
    exit 2
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# instructions LIBRARY [OPTION...] PROGRAM [ARGUMENT...]: all that callgrind counts; OPTIONs are its own
instructions() {
    local library=$1 out=$scratch/callgrind.out
    shift
    LD_PRELOAD=$library valgrind --tool=callgrind --callgrind-out-file="$out" "$@" \
        >"$scratch/log" 2>&1 || {
        echo "valgrind failed with LD_PRELOAD=$library:" >&2
        tail -n 5 "$scratch/log" >&2
        return 1
    }
    awk '/^(summary|totals):/ { print $2; exit }' "$out"
}

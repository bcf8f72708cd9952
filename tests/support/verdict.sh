# shellcheck shell=bash
# How a test in a script ends before its end. Sourced by the scripts of tests/.

# What the test needs is not here: it is skipped, which nobody takes for passed.
skip() {
    echo "SKIP: $*"
    exit 77
}

wrong() {
    echo "WRONG: $*"
    exit 1
}

# Usage: need PROGRAM...
need() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || skip "there is no $name"; done
}

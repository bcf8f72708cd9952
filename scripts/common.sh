# shellcheck shell=bash
# What every command of ./dev uses to speak. Sourced by ./dev.

# A line about what is going on, apart from the output of what is run.
say() {
    printf 'dev: %s\n' "$*" >&2
}

fail() {
    say "$*"
    exit 1
}

usage_error() {
    say "$*; see ./dev help"
    exit 2
}

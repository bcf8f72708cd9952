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

# Usage: plain_path DIRECTORY: prints a path of the directory that LD_PRELOAD can hold, in which
# blanks and colons separate paths: the path itself, or else that of a symbolic link to it, which
# stays the same, in a folder that belongs to the user alone.
plain_path() {
    local folder=/tmp/snug-$UID link
    if [[ $1 != *[[:space:]:]* ]]; then
        printf '%s' "$1"
        return
    fi
    mkdir -m 700 "$folder" 2>/dev/null || [[ -d $folder && ! -L $folder && -O $folder ]] ||
        fail "the path of this directory has a blank or a colon in it, and $folder is not usable"
    link=$folder/$(printf '%s' "$1" | cksum | tr ' ' -)
    ln -sfn "$1" "$link"
    printf '%s' "$link"
}

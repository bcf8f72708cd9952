# shellcheck shell=bash
# allocators.sh - what the scripts of this folder share: which allocators there are, a Python with
# matplotlib, the usage in a script's head, and how to refuse. Sourced by them.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # read by the scripts
programs=$here/../build/bench
# shellcheck disable=SC2034
snug=$here/../build/lib/libsnug.so
names=(glibc)
libraries=('')
packages=(jemalloc=libjemalloc.so.2 mimalloc=libmimalloc.so. tcmalloc=libtcmalloc_minimal.so.4
    tbbmalloc=libtbbmalloc_proxy.so.2)

die() {
    echo "${0##*/}: $*" >&2
    exit 2
}

# The lines of the script's head from "usage" on, up to an empty one.
usage() {
    sed -n '/^# usage/,/^#$/p' "$0" | sed -e '$d' -e 's/^# \{0,1\}//'
}

add_allocator() { # NAME LIBRARY
    local path
    path=$(realpath -e "$2") || die "there is no $2"
    # The dynamic linker only warns of what it cannot preload.
    [ -z "$(LD_PRELOAD=$path env true 2>&1)" ] || die "$path cannot be preloaded"
    names+=("$1")
    libraries+=("$path")
}

# Those that options named, as NAME=LIBRARY.
add_peers() {
    local peer
    for peer in "$@"; do add_allocator "${peer%%=*}" "${peer#*=}"; done
}

# Those that Debian's packages have put somewhere.
add_packaged() {
    local pair library
    for pair in "${packages[@]}"; do
        library=$(find /usr/lib -name "${pair#*=}*" 2>/dev/null | sort | head -n 1)
        if [ -n "$library" ]; then
            add_allocator "${pair%%=*}" "$library"
        else
            echo "without ${pair%%=*}: it is not installed" >&2
        fi
    done
}

# Prints a Python that has matplotlib, or fails: not every Python sees Debian's packages.
python_with_plots() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import matplotlib' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

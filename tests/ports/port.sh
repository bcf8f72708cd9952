#!/usr/bin/env bash
# Builds the library with another compiler or for another machine, links a program with it in two
# ways, and runs it: port.sh musl | aarch64. Exits 77, with the reason, where the tools are missing.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need() {
    command -v "$1" >/dev/null || {
        echo "SKIP: $1 is not installed"
        exit 77
    }
}

case $1 in
    musl)
        compiler=musl-gcc
        need $compiler
        run() { LD_LIBRARY_PATH=$work "$@"; }
        ;;
    aarch64)
        compiler=aarch64-linux-gnu-gcc
        need $compiler
        need qemu-aarch64
        run() { qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$work" "$@"; }
        ;;
    *)
        echo "there is no port '$1'" >&2
        exit 2
        ;;
esac

flags=(-std=c17 -D_GNU_SOURCE -I"$root/src" -I"$root/include" -O2 -fPIC -fvisibility=hidden
       -Wall -Wextra -Werror -fno-builtin-malloc -fno-builtin-calloc -DSNUG_OVERRIDE)
objects=()
for source in "$root"/src/*/*.c; do
    case $source in *_doc.c) continue ;; esac
    object=$work/$(basename "$(dirname "$source")")_$(basename "$source" .c).o
    "$compiler" "${flags[@]}" -ftls-model=initial-exec -c "$source" -o "$object"
    objects+=("$object")
done
"$compiler" -shared -pthread "${objects[@]}" -o "$work/libsnug.so"
program=("$here/program.c" -std=c17 -D_GNU_SOURCE -I"$root/include" -O1 -fno-builtin -Wall -Wextra -Werror
         -pthread)
"$compiler" "${program[@]}" -o "$work/shared" "$work/libsnug.so"
# A C program has no use for operator new, which would bring dlopen along.
"$compiler" "${program[@]}" -static -o "$work/static" "${objects[@]/*api_new.o/-lpthread}"
run "$work/shared"
run "$work/static"

# The recorder and the replayer are built, and the replayer says what it wants.
trace=(-std=c17 -D_GNU_SOURCE -I"$root/bench" -O2 -fno-builtin -Wall -Wextra -Werror -pthread)
"$compiler" "${trace[@]}" -shared -fPIC -ftls-model=initial-exec "$root"/trace/recorder/*.c \
    -o "$work/libsnugrecord.so" -ldl
"$compiler" "${trace[@]}" "$root"/trace/replayer/*.c "$root/bench/meter.c" -o "$work/snugreplay"
said=$(run "$work/snugreplay" 2>&1 || true)
[[ $said == "snugreplay: does not understand"* ]]

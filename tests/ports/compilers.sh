#!/usr/bin/env bash
# Builds the library with each compiler of gcc's and clang's that is installed, in several ways, and runs a program
# on it: compilers.sh. What is not installed is said.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=0

# Usage: try COMPILER FLAG...: CMake builds it with these flags; a linked program, one preloaded and a static one run.
try() {
    local compiler=$1 build=$work/build program
    rm -rf "$build"
    {
        cmake -S "$root" -B "$build" -G Ninja -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$compiler" \
            "-DCMAKE_C_FLAGS=${*:2}" && ninja -C "$build" snug_shared snug_static
    } >"$work/log" 2>&1 || { tail -n 20 "$work/log" && echo "WRONG: $* does not build the library" && return 1; }
    program=(-std=c17 -D_GNU_SOURCE -I"$root/include" -O1 -fno-builtin -pthread "$root/tests/ports/program.c")
    "$compiler" "${program[@]}" -o "$work/shared" "$build/src/libsnug.so" -Wl,-rpath,"$build/src" -Wl,-z,now
    "$compiler" "${program[@]}" "${@:2}" -o "$work/static" -static-pie -fPIE "$build/src/libsnug.a"
    [[ $("$work/shared") == ok && $("$work/static") == ok ]] || { echo "WRONG: $* makes a library that does not work" && return 1; }
    echo "$*: ok"
    tried=$((tried + 1))
}

ways=(-O0 -O1 -O2 -O3 "-O2 -fno-plt -march=native" "-O2 -flto -fno-fat-lto-objects")
for name in gcc-{10,11,12,13,14} clang-{14,15,16,17,18,19}; do
    if ! command -v "$name" >/dev/null; then
        echo "$name is not installed"
        continue
    fi
    for flags in "${ways[@]}"; do
        # shellcheck disable=SC2086 # words
        try "$name" $flags
    done
done
((tried > 0)) || { echo "SKIP: no compiler of a known version is installed"; exit 77; }
echo "compilers: $tried builds are as they should be"

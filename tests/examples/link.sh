#!/usr/bin/env bash
# link.sh WAY CMAKE BUILD EXAMPLE COMPILER GENERATOR: installs the library somewhere, builds the
# example on it by CMake's find_package or by pkg-config, shared and static, and runs it.
set -euo pipefail
way=$1 cmake=$2 build=$3 example=$4 compiler=$5 generator=$6
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/a prefix"

expect_snug() { # PROGRAM
    local said
    said=$("$@")
    echo "$said"
    [[ $said == "snug 0.1.0, 112 usable bytes of 100, checked: sound" ]]
}

"$cmake" --install "$build" --prefix "$prefix" >"$scratch/log"
case $way in
    cmake)
        "$cmake" -G "$generator" -S "$example" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
            -DCMAKE_C_COMPILER="$compiler" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
        "$cmake" --build "$scratch/build" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
        expect_snug "$scratch/build/with_shared"
        expect_snug "$scratch/build/with_static"
        ;;
    pkg_config)
        command -v pkg-config >/dev/null || { echo "SKIP: there is no pkg-config" && exit 77; }
        # pkg-config and blanks do not go together.
        ln -s "$prefix" "$scratch/prefix"
        PKG_CONFIG_PATH=$(find "$scratch/prefix/" -name pkgconfig)
        export PKG_CONFIG_PATH
        flags=(--define-variable=prefix="$scratch/prefix" --cflags --libs)
        # shellcheck disable=SC2046 # words
        "$compiler" "$example/main.c" -o "$scratch/shared" $(pkg-config "${flags[@]}" snug) \
            -Wl,-rpath,"$(dirname "$PKG_CONFIG_PATH")"
        # shellcheck disable=SC2046
        "$compiler" "$example/main.c" -o "$scratch/static" $(pkg-config "${flags[@]}" snug-static)
        expect_snug "$scratch/shared"
        expect_snug "$scratch/static"
        # A program that never names snug has it too.
        # shellcheck disable=SC2016
        printf '#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }\n' >"$scratch/plain.c"
        # shellcheck disable=SC2046
        "$compiler" -fno-builtin "$scratch/plain.c" -o "$scratch/plain" \
            $(pkg-config "${flags[@]}" snug) -Wl,--as-needed -Wl,-rpath,"$(dirname "$PKG_CONFIG_PATH")"
        SNUG_STATS=stderr "$scratch/plain" 2>&1 | grep '^snug: statistics' >/dev/null
        ;;
esac

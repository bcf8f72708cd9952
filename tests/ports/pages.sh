#!/usr/bin/env bash
# Builds the library for pages of so many bytes, more than this machine's, with all invariants
# checked, and runs the model and the sums of statistics on it, and threads on hardened heaps, whose slabs
# may be parts of a page: pages.sh BYTES.
set -euo pipefail

root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Nobody looks at it with a debugger, and what one needs takes a part of the time.
cmake -S "$root" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSNUG_DEBUG=ON -DBUILD_TESTING=ON \
    -DCMAKE_C_FLAGS_DEBUG=-g0 -DSNUG_PAGE_BYTES="$1" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work" --target model_test stress_sums stress_exchange_heap >"$work/log" || { cat "$work/log"; exit 1; }
cd "$work"
ctest --output-on-failure -R '^(model\.(seed\.1|with\.dirty_0|with\.check_full)|stress\.sums|stress\.exchange\.heap\.hardened)$' | tee "$work/log"
grep -q '100% tests passed, 0 tests failed out of 5' "$work/log"

#!/usr/bin/env bash
# crates.sh [ROUNDS]: collections of Rust on snug's crate and on those of mimalloc and jemalloc, beside the system's malloc. A row for
# each collection: the least nanoseconds of an operation in all rounds, and the peak in KiB. The allocators take turns.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$here/../build/crates
rounds=${1:-9}
allocators=(system snug mimalloc jemalloc)
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "crates.sh: '$rounds' is no number of rounds" >&2; exit 2; }

for allocator in "${allocators[@]}"; do
    features=()
    if [[ $allocator != system ]]; then features=(--features "$allocator"); fi
    cargo build --release --quiet --manifest-path "$here/crates/Cargo.toml" --target-dir "$build" "${features[@]}"
    cp "$build/release/collections" "$build/$allocator"
done

declare -A least peak
mapfile -t names < <("$build/system")
for ((round = 0; round < rounds; round++)); do
    for name in "${names[@]}"; do
        for allocator in "${allocators[@]}"; do
            read -r time kib <<<"$("$build/$allocator" "$name")"
            key=$name/$allocator
            if [[ ! ${least[$key]-} ]] || awk "BEGIN { exit !($time < ${least[$key]}) }"; then least[$key]=$time; fi
            if ((kib > ${peak[$key]-0})); then peak[$key]=$kib; fi
        done
    done
done

echo "| ns an operation, peak in KiB | system | snug | mimalloc | jemalloc |"
echo "| --- | --- | --- | --- | --- |"
for name in "${names[@]}"; do
    printf '| %s |' "$name"
    for allocator in "${allocators[@]}"; do printf ' %s, %s |' "${least[$name/$allocator]}" "${peak[$name/$allocator]}"; done
    echo
done

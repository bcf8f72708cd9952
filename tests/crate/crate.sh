#!/usr/bin/env bash
# crate.sh SOURCE tests | package | outside | features | ripgrep | planted: one part of what the crate in rust/ promises.
set -euo pipefail
source=$1 part=$2
crate=$source/rust
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CARGO_TARGET_DIR=$source/build/cargo-crate CARGO_TERM_COLOR=never

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

PATH=$PATH:${CARGO_HOME:-${HOME-}/.cargo}/bin
command -v cargo >/dev/null || skip "there is no Rust"
cd "$crate"
# A machine without the crates and without a network has nothing to build it with.
cargo fetch --locked --quiet 2>"$scratch/log" || skip "the crates cannot be had: $(tail -n 1 "$scratch/log")"

part_tests() {
    cargo test --release --locked 2>&1
}

part_features() {
    local said
    cargo test --release --locked --features override,profile 2>&1
    said=$(cargo test --release --locked --features hardened 2>&1) || wrong "$said"
    [[ $said == *"freed_memory_waits_and_is_cleared ... ok"* ]] || wrong "the feature 'hardened' was not tested: $said"
    # A stable compiler is made to take it.
    RUSTC_BOOTSTRAP=1 cargo check --release --locked --features allocator_api 2>&1
}

# The package has all that it needs, is built from nothing else, and cargo has nothing to say of it.
# In a short run it is not built again.
part_package() {
    local said
    local -a built=(--no-verify)
    if [[ ${SNUG_TEST_FULL:-0} == 1 ]]; then built=(); fi
    said=$(cargo package --allow-dirty --locked "${built[@]}" 2>&1) || wrong "$said"
    [[ $said != *warning* ]] || wrong "$said"
    said=$(cargo package --allow-dirty --locked --list)
    for file in c/include/snug/snug.h c/src/api/malloc.c c/src/options/options.def LICENSE README.md; do
        grep -qx "$file" <<<"$said" || wrong "$file is not in the package"
    done
}

# A program with the crate, looked at by the tool; and C code in it has the same malloc.
part_outside() {
    local said sites snug=$source/build/bin/snug
    [[ -x $snug ]] || skip "the tool is not built"
    mkdir -p "$scratch/program/src"
    cat >"$scratch/program/Cargo.toml" <<END
[package]
name = "program"
version = "0.0.0"
edition = "2021"
[dependencies]
snug = { path = "$crate", features = ["override", "profile"] }
[workspace]
END
    cat >"$scratch/program/src/main.rs" <<'END'
#[global_allocator]
static ALLOCATOR: snug::Snug = snug::Snug;
extern "C" {
    fn strdup(text: *const std::ffi::c_char) -> *mut std::ffi::c_char;
}
#[inline(never)]
fn keep() -> Vec<u8> {
    vec![1u8; 123_456_789]
}
fn main() {
    snug::profile::begin().unwrap();
    let kept = keep();
    let before = snug::stats().blocks;
    let copies: Vec<_> = (0..1000).map(|_| unsafe { strdup(c"a text that is copied".as_ptr()) }).collect();
    assert!(snug::stats().blocks >= before + 1000, "strdup has another malloc");
    println!("ready {}", copies.len() + kept.len());
    std::io::stdin().lines().next();
}
END
    cp "$crate/Cargo.lock" "$scratch/program/" # for the same versions
    # The tests have the library as it is; in a short run it is not made fast a second time.
    if [[ ${SNUG_TEST_FULL:-0} != 1 ]]; then export CFLAGS=-O0; fi
    (cd "$scratch/program" && cargo build --release --quiet 2>&1) || wrong "the program does not build"
    coproc "$CARGO_TARGET_DIR/release/program"
    read -r -t 60 said <&"${COPROC[0]}" || wrong "the program did not begin"
    [[ $said == "ready 123457789" ]] || wrong "$said"
    said=$("$snug" stats --json "$COPROC_PID") || wrong "the tool cannot look at it"
    sites=$("$snug" profile "$COPROC_PID") || wrong "the tool cannot show its profile"
    echo >&"${COPROC[1]}"
    [[ $said =~ \"live_large\":([0-9]+) ]] || wrong "$said"
    ((BASH_REMATCH[1] > 123456789)) || wrong "its block is not seen: $said"
    [[ $sites == *program::keep* ]] || wrong "who allocated it is not seen: $sites"
}

# A program of others, ripgrep, with the crate as its allocator: its own tests, which run it some hundred times.
part_ripgrep() {
    local said place version=14.1.1
    mkdir "$scratch/fetch"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\nripgrep = "=%s"\n[workspace]\n' \
        "$version" >"$scratch/fetch/Cargo.toml"
    : >"$scratch/fetch/lib.rs"
    (cd "$scratch/fetch" && cargo fetch --quiet 2>/dev/null) || skip "ripgrep cannot be had"
    place=$(find "${CARGO_HOME:-${HOME-}/.cargo}/registry/src" -maxdepth 2 -name "ripgrep-$version" | head -n 1)
    cp -r "$place" "$scratch/ripgrep"
    cd "$scratch/ripgrep"
    printf '\n[dependencies.snug]\npath = "%s"\nfeatures = ["override"]\n[workspace]\n' "$crate" >>Cargo.toml
    printf '#[global_allocator]\nstatic SNUG: snug::Snug = snug::Snug;\n' >>crates/core/main.rs
    said=$(cargo test --release 2>&1) || wrong "$said"
    [[ $said =~ ([0-9]+)\ passed\;\ 0\ failed ]] || wrong "$said"
    grep -o '[0-9]* passed; 0 failed' <<<"$said"
    said=$(nm "$CARGO_TARGET_DIR/release/rg")
    [[ $said == *" snug_malloc"* ]] || wrong "ripgrep has no snug in it"
}

# Large alignments go where only 16 bytes are kept.
part_planted() {
    cp -rL "$crate" "$scratch/crate"
    sed -i 's/^const ALIGNMENT: usize = 16;/const ALIGNMENT: usize = 32768;/' "$scratch/crate/src/global.rs"
    cd "$scratch/crate"
    CARGO_TARGET_DIR=$scratch/target cargo test --release --locked --test program 2>&1
}

"part_$part"
echo "crate: $part is as it should be"

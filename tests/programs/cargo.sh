#!/usr/bin/env bash
# cargo.sh - cargo builds a crate without dependencies (offline), tests it (in full runs) and runs
# it; the executable and what it prints are compared. Rust's own builds of rustc bring their malloc along,
# so of the compiler only what runs on the library is required: cargo, the build script, the linker
# and the program.
. "$(dirname "$0")/common.sh"
need cargo rustc cc

unset CARGO_TARGET_DIR RUSTC_WRAPPER RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never CARGO_BUILD_JOBS=2
PARTS=$(scaled 20 120)
# rustc has a malloc of its own: what it does longer tests nothing.
CARGO_PROFILE_RELEASE_OPT_LEVEL=$(scaled 0 3)
export PARTS CARGO_PROFILE_RELEASE_OPT_LEVEL

scenario() {
    cp -r "$here_scripts/crate" crate
    cd crate
    on cargo build -q --offline --release --locked 2>../messages.txt
    if [ "$(scaled short full)" = full ]; then
        on cargo test -q --offline --locked 2>&1 | sed 's/; finished in .*//' >../tested.txt
    fi
    on target/release/counted >../printed.txt
    cp target/release/counted ../executable
    cp target/release/build/counted-*/out/parts.rs ..
    on cargo metadata --offline --format-version 1 >../metadata.json
    cd ..
    rm -rf crate/target
}

runs_on_library cargo build-script-build counted '.*ld(\.bfd|\.gold|\.lld)?'
compare_runs "$@"

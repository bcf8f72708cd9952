# shellcheck shell=bash
# Measures snug beside other allocators, and brings those in. Sourced by ./dev.

peer_packages=(
    libjemalloc2
    'libmimalloc3|libmimalloc2.0'
    'libtcmalloc-minimal4t64|libtcmalloc-minimal4'
    libtbbmalloc2
    'libclang-rt-19-dev|libclang-rt-14-dev' # scudo
)
peer_wheel=cmeel-mimalloc # mimalloc 3 from PyPI
bench_needs=(g++:g++)     # for a workload in C++

# Unpacks mimalloc from PyPI into build/peers.
install_wheel() {
    local peers=$build/peers wheel version
    need_packages python3:python3
    python3 -m pip --version >/dev/null 2>&1 || want_packages python3-pip
    mkdir -p "$peers"
    rm -f "$peers"/*.whl
    python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$peers" "$peer_wheel" || {
        say "could not get $peer_wheel from PyPI"
        return 1
    }
    for wheel in "$peers"/*.whl; do
        python3 -m zipfile -e "$wheel" "$peers"
        version=$(cut -d - -f 2 <<<"${wheel##*/}")
        rm "$wheel"
        find "$peers" -name 'libmimalloc.so.3' -exec sh -c 'echo "$2" >"$1.version"' sh {} "$version" \;
    done
    say "other allocators from PyPI:" && find "$peers" -name 'lib*.so*' >&2
}

# What snmalloc calls sn_malloc and so on; the linker adds the names that programs call.
snmalloc_names=(malloc free calloc realloc aligned_alloc memalign posix_memalign valloc pvalloc
    malloc_usable_size reallocarray cfree free_sized free_aligned_sized)

# Builds snmalloc and rpmalloc, which come as crates, and links each to a library that can be
# preloaded, into build/peers. rpmalloc is told to take over malloc, which its crate does not do; the
# threads' own variables are to be reached as in any library that is there from the start.
install_crates() {
    local archives=$build/peers-cargo/release name tls=-ftls-model=initial-exec
    local -a aliases=()
    need_packages g++:g++
    need_rust || return
    mkdir -p "$build/peers"
    (
        cd "$root/bench/peers" && unset CARGO_BUILD_TARGET &&
            CFLAGS="-fPIC $tls -DENABLE_OVERRIDE=1" CXXFLAGS="-fPIC $tls" \
                CARGO_TARGET_DIR=$build/peers-cargo cargo build --release --locked
    ) || {
        say "could not build snmalloc and rpmalloc"
        return 1
    }
    for name in "${snmalloc_names[@]}"; do
        aliases+=("-Wl,-u,sn_$name" "-Wl,--defsym=$name=sn_$name")
    done
    link_crate rpmalloc -Wl,-u,malloc "$archives/libpeer_rpmalloc.a" -ldl
    link_crate snmalloc "${aliases[@]}" "$archives/libpeer_snmalloc.a" -static-libstdc++
}

# Usage: link_crate NAME ARGUMENT...: leaves build/peers/libpeer_NAME.so, and its version beside it.
link_crate() {
    local library=$build/peers/libpeer_$1.so
    g++ -shared -o "$library" "${@:2}" -Wl,--gc-sections -lpthread -static-libgcc &&
        awk -v name="name = \"$1-sys\"" '$0 == name { getline; gsub(/[^0-9.]*"|"$/, ""); print }' \
            "$root/bench/peers/Cargo.lock" >"$library.version" &&
        say "built $library"
}

# Leaves build/peers/libpeer_scudo.so, the newest of LLVM's that is installed, and its version beside it.
link_scudo() {
    local library=$build/peers/libpeer_scudo.so runtime
    runtime=$(printf '%s\n' /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-"$(uname -m)".so |
        sort -V | tail -n 1)
    if [[ ! -e $runtime ]]; then
        say "could not find scudo"
        return 1
    fi
    mkdir -p "$build/peers"
    ln -sf "$runtime" "$library"
    runtime=${runtime#/usr/lib/llvm-*/lib/clang/}
    echo "LLVM ${runtime%%/*}" >"$library.version"
    say "found scudo of LLVM ${runtime%%/*}"
}

cmd_bench() {
    if [[ ${1-} == --install-peers ]]; then
        want_packages "${peer_packages[@]}"
        link_scudo
        install_wheel
        install_crates
        return
    fi
    need_packages "${build_needs[@]}" "${bench_needs[@]}"
    build_all require_tool >&2
    exec "$build/bin/snug" bench "$@"
}

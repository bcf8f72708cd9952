# shellcheck shell=bash
# Measures snug beside other allocators, and brings those in. Sourced by ./dev.

peer_packages=(
    libjemalloc2
    'libmimalloc3|libmimalloc2.0'
    'libtcmalloc-minimal4t64|libtcmalloc-minimal4'
    libtbbmalloc2
)
peer_wheel=cmeel-mimalloc # mimalloc 3 from PyPI

# Unpacks mimalloc from PyPI into build/peers.
install_wheel() {
    local peers=$build/peers wheel
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
        rm "$wheel"
    done
    say "other allocators from PyPI:" && find "$peers" -name 'lib*.so*' >&2
}

cmd_bench() {
    if [[ ${1-} == --install-peers ]]; then
        want_packages "${peer_packages[@]}"
        install_wheel
        return
    fi
    need_packages "${build_needs[@]}"
    build_all require_tool >&2
    exec "$build/bin/snug" bench "$@"
}

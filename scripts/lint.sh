# shellcheck shell=bash
# Checks style, warnings and layers, and changes nothing. Sourced by ./dev.

# Our files that end in one of the suffixes, separated by NUL. Usage: our_files SUFFIX...
our_files() {
    local suffix
    local -a test=(-false)
    for suffix in "$@"; do test+=(-o -name "*$suffix"); done
    find "$root/include" "$root/src" "$root/bench" "$root/tests" "$root/scripts" "$root/tool" \
        -name target -prune -o -type f \( "${test[@]}" \) -print0
}

lint_format() {
    our_files .c .h .cc .cpp .hpp | xargs -0 -r clang-format --dry-run -Werror
}

# With the flags of the release build, of which clang need not know every one.
lint_tidy() {
    configure release >/dev/null || return
    find "$root/src" -name '*.c' -print0 |
        xargs -0 -r -n 4 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' \
            -p "$build/cmake-release" \
            --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument
}

lint_shell() {
    # The files of ./dev make sense only together, so they are checked from where they are sourced.
    (cd "$root" && shellcheck --external-sources --check-sourced dev .ci/run) &&
        find "$root/bench" "$root/tests" -name '*.sh' -print0 |
        (cd "$root" && xargs -0 -r shellcheck --external-sources)
}

lint_layers() {
    python3 "$root/scripts/check_layers.py" "$root"
}

lint_rustfmt() {
    tool_cargo fmt --check
}

lint_clippy() {
    tool_cargo clippy --quiet --locked --all-targets -- -D warnings
}

# rustfmt and clippy, from Debian or as components of rustup.
need_rust_lints() {
    if ! cargo fmt --version >/dev/null 2>&1; then want_packages rustfmt; fi
    if ! cargo clippy --version >/dev/null 2>&1; then want_packages rust-clippy; fi
}

cmd_lint() {
    local check
    local -a checks=(format tidy shell layers) wrong=()
    (($# == 0)) || usage_error "lint takes no arguments"
    need_packages "${build_needs[@]}" "${lint_needs[@]}"
    if need_rust; then
        need_rust_lints
        build_library release || fail "clippy needs the library, which does not build"
        publish_library
        checks+=(rustfmt clippy)
    else
        say "the tool is not checked"
    fi
    for check in "${checks[@]}"; do
        say "lint: $check"
        "lint_$check" || wrong+=("$check")
    done
    ((${#wrong[@]} == 0)) || fail "lint found fault: ${wrong[*]}"
    say "lint: nothing to say"
}

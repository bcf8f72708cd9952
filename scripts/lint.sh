# shellcheck shell=bash
# Checks style, warnings and layers. Sourced by ./dev.

# Our files that end in one of the suffixes, separated by NUL. Usage: our_files SUFFIX...
our_files() {
    local suffix
    local -a test=(-false)
    for suffix in "$@"; do test+=(-o -name "*$suffix"); done
    find "$root/include" "$root/src" "$root/bench" "$root/trace" "$root/tests" \
        "$root/scripts" "$root/tool" \
        -name target -prune -o -type f \( "${test[@]}" \) -print0
}

# One version everywhere, from PyPI, since each formats a little differently.
clang_format_version=21.1.8
clang_format=$build/lint/clang_format/data/bin/clang-format

need_clang_format() {
    if [[ $("$clang_format" --version 2>/dev/null) == *" $clang_format_version"* ]]; then return; fi
    say "installing clang-format $clang_format_version from PyPI into build/lint"
    python3 -m pip --version >/dev/null 2>&1 || want_packages python3-pip
    rm -rf "$build/lint"
    python3 -m pip install --quiet --root-user-action=ignore --target "$build/lint" \
        "clang-format==$clang_format_version"
}

lint_format() {
    need_clang_format && our_files .c .h .cc .cpp .hpp |
        xargs -0 -r "$clang_format" --dry-run -Werror
}

# Lets the formatters rewrite what they would complain about.
fix_format() {
    need_clang_format && our_files .c .h .cc .cpp .hpp | xargs -0 -r "$clang_format" -i
    if rust_is_there; then tool_cargo fmt && (cd "$root/rust" && cargo fmt); fi
}

# With the flags of the release build, of which clang need not know every one. A file that is built
# in several variants is checked in one: the last, which has the names of libc.
lint_tidy() {
    local database=$build/tidy
    mkdir -p "$database" && configure release || return
    python3 - "$build/cmake-release" "$database" <<'END' || return
import json, sys
commands = json.load(open(sys.argv[1] + "/compile_commands.json"))
last = {command["file"]: command for command in commands}
json.dump(list(last.values()), open(sys.argv[2] + "/compile_commands.json", "w"))
END
    find "$root/src" -name '*.c' -print0 |
        xargs -0 -r -n 4 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' -p "$database" \
            --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument \
            2> >(grep -v ' generated\.$' >&2)
}

lint_shell() {
    # The files of ./dev make sense only together, so they are checked from where they are sourced.
    # Tests run under the errexit of what they source, so that a failing `cd` ends them.
    (cd "$root" && shellcheck --check-sourced dev .ci/run) &&
        find "$root/bench" "$root/tests" -name '*.sh' -print0 |
        (cd "$root" && xargs -0 -r shellcheck --exclude=SC2103,SC2164) && lint_pipes
}

# Where a reader leaves early, what writes to it may die of that, and under pipefail the pipe has failed: by chance.
lint_pipes() {
    if (cd "$root" && grep -rnE --include='*.sh' --include=dev '[^|]\| *grep +-[A-Za-z]*q' dev scripts bench tests); then
        say "grep -q behind a pipe leaves early; say grep >/dev/null"
        return 1
    fi
}

lint_layers() {
    python3 "$root/scripts/check_layers.py" "$root"
}

lint_rustfmt() {
    tool_cargo fmt --check && (cd "$root/rust" && cargo fmt --check)
}

# The tool is not built without the library that it carries.
lint_clippy() {
    build_library release && publish_library &&
        tool_cargo clippy --quiet --locked --all-targets -- -D warnings &&
        (cd "$root/rust" && CARGO_TARGET_DIR=$build/cargo-crate cargo clippy --quiet --locked --all-targets -- -D warnings)
}

# rustfmt and clippy, from Debian or as components of rustup.
need_rust_lints() {
    if ! cargo fmt --version >/dev/null 2>&1; then want_packages rustfmt; fi
    if ! cargo clippy --version >/dev/null 2>&1; then want_packages rust-clippy; fi
}

cmd_lint() {
    local check fix=${1-}
    local -a checks=(format tidy shell layers) wrong=()
    [[ $# == 0 || $* == --fix ]] || usage_error "lint does not know '$*'"
    need_packages "${build_needs[@]}" "${lint_needs[@]}"
    if need_rust; then
        need_rust_lints
        checks+=(rustfmt clippy)
    else
        say "the tool is not checked"
    fi
    if [[ $fix ]]; then fix_format; fi
    for check in "${checks[@]}"; do
        say "lint: $check"
        "lint_$check" || wrong+=("$check")
    done
    ((${#wrong[@]} == 0)) || fail "lint found fault: ${wrong[*]}"
    say "lint: nothing to say"
}

# shellcheck shell=bash
# Builds the library with CMake and the tool with cargo. Sourced by ./dev.

# Usage: configure PRESET [tests]: configures a preset if that was not done, or done for another
# place, for other settings, or without the tests that are now wanted. Only they need more than the
# compiler, and their limits depend on SNUG_TEST_FULL. Later changes to a CMakeLists.txt are noticed
# by the build itself.
configure() {
    local preset=$1 directory=$build/cmake-$1 log=$build/log/cmake-$1.log
    local -a tests=()
    if [[ ${2-} ]]; then tests=("BUILD_TESTING:BOOL=ON" "SNUG_TEST_FULL:BOOL=${SNUG_TEST_FULL:-0}"); fi
    if [[ $directory/build.ninja -nt $root/CMakePresets.json ]] &&
        is_set "$preset" "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "${tests[@]}"; then
        return
    fi
    if ((${#tests[@]} == 0)); then tests=("BUILD_TESTING:BOOL=OFF"); fi
    mkdir -p "$build/log"
    cmake -S "$root" --preset "$preset" --fresh "${tests[@]/#/-D}" >"$log" 2>&1 || {
        cat "$log" >&2
        return 1
    }
}

# Usage: is_set PRESET LINE...: succeeds if the cache of the preset has all these lines.
is_set() {
    local line cache=$build/cmake-$1/CMakeCache.txt
    shift
    for line in "$@"; do
        grep -qxF "$line" "$cache" 2>/dev/null || return
    done
}

# Usage: build_library PRESET [tests]
build_library() {
    say "building the library ($1)"
    local -a quiet=()
    if [[ ! -t 1 ]]; then quiet=(-- --quiet); fi
    configure "$@" && cmake --build "$build/cmake-$1" "${quiet[@]}"
}

# Usage: publish FROM TO: the copy is replaced whole, so that a program that runs on the old one
# keeps it, and left alone if it is the same, so that nothing is built again because of it.
publish() {
    cmp -s "$1" "$2" && return
    mkdir -p "$(dirname "$2")" && cp "$1" "$2.new" && mv -f "$2.new" "$2"
}

# Copies what the release preset built to where people look for it.
publish_library() {
    local from=$build/cmake-release workload
    local file
    for file in libsnug.so libsnug.a libsnug-compat.so libsnugrecord.so snugreplay; do
        publish "$(find_built "$file")" "$build/lib/$file" || return
    done
    # By these names a program that is linked with one asks for it.
    for file in libsnug.so libsnug-compat.so; do
        ln -sf "$file" "$build/lib/$file.0" || return
    done
    for workload in "$from"/bench/*; do
        if [[ -f $workload && -x $workload ]]; then
            publish "$workload" "$build/bench/${workload##*/}" || return
        fi
    done
}

# The path of a file in the release build, or nothing.
find_built() {
    find "$build/cmake-release" -name "$1" -not -path '*/CMakeFiles/*' -print -quit
}

# cargo, for the tool, with the library that goes into it. Usage: tool_cargo COMMAND [ARGUMENT...]
tool_cargo() {
    (
        cd "$root/tool" && unset CARGO_BUILD_TARGET &&
            SNUG_LIBRARY=$build/lib/libsnug.so CARGO_TARGET_DIR=$build/cargo cargo "$@"
    )
}

# Usage: build_tool [CARGO-OPTION...]: needs the published library, and Rust.
build_tool() {
    say "building the tool"
    tool_cargo build --release --locked "$@" &&
        publish "$build/cargo/release/snug" "$build/bin/snug"
}

# Usage: build_all [require_tool]: without the word, a machine without Rust gets the library alone.
build_all() {
    build_library release || fail "the library does not build"
    publish_library || fail "the library was built, but could not be copied to build/lib"
    if need_rust; then
        build_tool || fail "the tool does not build"
        say "built: build/lib build/bench build/bin"
    elif [[ ${1-} == require_tool ]]; then
        fail "the tool was left out, and it is needed for this"
    else
        say "built: build/lib build/bench; the tool was left out"
    fi
}

cmd_build() {
    local preset=release part=all
    while (($# > 0)); do
        case $1 in
            --preset)
                (($# > 1)) || usage_error "--preset needs a name"
                preset=$2
                shift
                ;;
            --preset=*) preset=${1#*=} ;;
            lib | tool) part=$1 ;;
            *) usage_error "build does not know '$1'" ;;
        esac
        shift
    done
    need_packages "${build_needs[@]}"
    case $preset,$part in
        release,all) build_all ;;
        release,tool) build_all require_tool ;;
        release,lib) build_library release && publish_library && say "built: build/lib build/bench" ;;
        debug,all | debug,lib | asan,all | asan,lib | tsan,all | tsan,lib)
            build_library "$preset" && say "built: build/cmake-$preset"
            ;;
        *) usage_error "there is no preset '$preset' for $part" ;;
    esac
}

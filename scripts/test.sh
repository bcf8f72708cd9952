# shellcheck shell=bash
# Builds and runs every test and sums up the results. Sourced by ./dev.
#
# Each step leaves what it has to say in build/test/: `ctest` a PRESET.xml, cargo a tool.log, and
# a step that could not even begin a line `name: why` in broken.txt. scripts/test_summary.py counts.

test_presets=(release asan tsan)
test_full_presets=(release debug asan tsan)
test_wants=(
    'libclang-rt-19-dev|libclang-rt-14-dev'      # clang's fuzzer
    strace valgrind                              # what the lab counts with
    chromium                                     # a browser for its page
    python3-jsonschema python3-prometheus-client # statistics read back:
    libxml2-utils                                # JSON, OpenMetrics, XML and SVG
    tmux                                         # snug top in a terminal
    pkg-config                                   # an example that is built with it
    gdb                                          # the script for gdb
    man-db groff mandoc zsh fish                 # the manual and the completions
    build-essential                              # make, for what is built as its users build it
    ruby nginx-light 'postgresql-15|postgresql-17' # the recipes
    systemd python3-yaml
)
# What only the long form takes: to unpack the source of glibc, to run on the library, bare systems, images,
# packagers' tools, and other machines.
test_full_wants=(xz-utils stress-ng debootstrap buildah golang-go rpm debhelper fakeroot lintian
    g++-aarch64-linux-gnu g++-riscv64-linux-gnu cpio qemu-system-arm qemu-system-misc)
# What the short form does in one preset only, release: it shows that each checker finds its planted fault, and
# runs programs that are linked with snug in all ways.
test_planted='^(api|attacks|fuzz\.replay|guard|model|profile|programs|stress|traps)\..*\.planted'
declare -A test_once=([release]='' [asan]=$test_planted [tsan]=$test_planted)
test_seconds=600 # for the tests of the tool together; tests of the library have limits of their own

# Installs the real programs that are run on snug, and what else single tests need. What cannot be
# had is skipped.
want_test_programs() {
    local -a packages
    mapfile -t packages < <(bash "$root/tests/programs/missing_packages.sh")
    if [[ ${SNUG_TEST_FULL-} ]]; then packages+=("${test_full_wants[@]}"); fi
    want_packages "${packages[@]}" "${test_wants[@]}"
}

broken() {
    say "$1: $2"
    printf '%s: %s\n' "$1" "$2" >>"$results/broken.txt"
}

# Usage: timed WHAT COMMAND...: runs the command, and says how long it took.
timed() {
    local begun=$SECONDS status=0
    "${@:2}" || status=$?
    say "$1 took $((SECONDS - begun)) s"
    return "$status"
}

# Builds what the tests need, and leaves in `built` the presets that have a result to test, and in `tool_build`
# the process that goes on to build the tool, if any: what compiles its own code is one process for a third of
# the time. Packages that tests want come in while the first preset is built, which asks for none of them.
build_for_tests() {
    local preset installing
    built=() tool_build=''
    want_test_programs &
    installing=$!
    for preset in "${test_presets[@]}"; do
        if timed "building $preset" build_library "$preset" tests; then
            built+=("$preset")
        else
            broken "$preset" "does not build, so its tests did not run"
        fi
        [[ $preset == release ]] || continue
        wait "$installing" || true # it has said what cannot be had
        publish_library || broken "build/lib" "the library could not be copied there"
        if need_rust; then
            timed "building the tool" build_tool_with_tests &
            tool_build=$!
        fi
    done
}

wait_for_tool() {
    [[ ! $tool_build ]] || wait "$tool_build" || broken "tool" "does not build"
    tool_build=''
}

build_tool_with_tests() {
    build_tool --bins --test all --test skippable && tool_units tool_cargo --no-run
}

# Usage: tool_units CARGO [ARGUMENT...]: the tests that are part of the tool's own code, which for them is compiled as it
# stands: to make it small takes most of the time. All that the tool is built on has a level of its own, and is shared.
tool_units() {
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 "$1" test --release --locked --bins "${@:2}"
}

# Usage: run_library_tests PRESET FILTER
run_library_tests() {
    local preset=$1 filter=$2 once=''
    local -a prefix=()
    if [[ ! ${SNUG_TEST_FULL-} && ! $filter ]]; then once=${test_once[$preset]}; fi
    # ThreadSanitizer cannot place its shadow under the address randomisation of some kernels.
    if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then prefix=(setarch -R); fi
    say "testing the library ($preset)"
    ( # One more at a time than there are processors, for some mostly wait.
        cd "$root" && "${prefix[@]}" ctest --preset "$preset" --parallel "$(($(nproc) + 1))" \
            --output-junit "$results/$preset.xml" --test-output-size-passed 65536 \
            ${filter:+--tests-regex "$filter"} ${once:+--exclude-regex "$once"}
    ) || touch "$results/$preset.failed"
}

run_tool_tests() {
    say "testing the tool"
    build_tool_with_tests || {
        broken "tool" "its tests do not build"
        return
    }
    shown_from "$results/tool.log" both_tool_tests || touch "$results/tool.failed"
}

both_tool_tests() {
    local status=0
    tool_units tool_cargo_timed --no-fail-fast || status=$?
    tool_cargo_timed test --release --locked --no-fail-fast --test all --test skippable || status=$?
    return "$status"
}

# Usage: shown_from FILE COMMAND...: what the command says goes into a file, which `tail` shows until
# `shown` is gone. A pipe would stay open for as long as what a test has left behind goes on.
shown_from() (
    : >"$1"
    sleep infinity &
    shown=$!
    trap 'kill "$shown"; wait' EXIT
    tail -f --lines=+1 --pid="$shown" "$1" &
    "${@:2}" >>"$1" 2>&1
)

# cargo as tool_cargo runs it, but not for ever, and with one test more at a time than there are processors, as above.
tool_cargo_timed() {
    (
        cd "$root/tool" && unset CARGO_BUILD_TARGET &&
            SNUG_LIBRARY=$build/lib/libsnug.so CARGO_TARGET_DIR=$build/cargo RUST_TEST_THREADS=$(($(nproc) + 1)) \
                CARGO_TERM_COLOR=never timeout --kill-after=10 "$test_seconds" cargo "$@"
    )
}

cmd_test() {
    local filter='' preset i
    while (($# > 0)); do
        case $1 in
            --full) export SNUG_TEST_FULL=1 && test_seconds=36000 && test_presets=("${test_full_presets[@]}") ;;
            -R) ;;
            -*) usage_error "test does not know '$1'" ;;
            *)
                [[ ! $filter ]] || usage_error "test takes one filter, not '$filter' and '$1'"
                grep -qE -- "$1" /dev/null 2>/dev/null || (($? == 1)) ||
                    usage_error "'$1' is no regular expression"
                filter=$1
                ;;
        esac
        shift
    done
    need_packages "${build_needs[@]}" "${test_needs[@]}"

    results=$build/test
    rm -rf "$results" && mkdir -p "$results"
    build_for_tests
    for ((i = ${#built[@]} - 1; i >= 0; i--)); do # the last ones built need no tool
        preset=${built[i]}
        [[ $preset == [at]san ]] || wait_for_tool
        timed "testing $preset" run_library_tests "$preset" "$filter"
    done
    wait_for_tool
    if [[ ! $filter || tool =~ $filter ]]; then
        if rust_is_there; then
            timed "testing the tool" run_tool_tests
        else
            echo "tool: no Rust $rust_needed or newer" >"$results/skipped.txt"
        fi
    fi
    python3 "$root/scripts/test_summary.py" "$results"
}

#!/usr/bin/env bash
# Builds the library with another compiler or for another machine, links a program with it in two
# ways, and runs it: port.sh musl | aarch64 | riscv64. Exits 77, with the reason, where the tools are missing.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=../support/verdict.sh
. "$here/../support/verdict.sh"

# What is not built with this libc, as src/CMakeLists.txt finds out by itself.
absent=none
case $1 in
    musl)
        compiler=musl-gcc
        absent=api/dlopen.c # there is no RTLD_DEEPBIND
        need $compiler
        run() { LD_LIBRARY_PATH=$work "$@"; }
        run_recorded() { LD_PRELOAD=$work/libsnugrecord.so run "$@"; }
        ;;
    aarch64 | riscv64)
        machine=$1
        compiler=$machine-linux-gnu-gcc
        need "$compiler"
        need "qemu-$machine"
        run() { "qemu-$machine" -L "/usr/$machine-linux-gnu" -E LD_LIBRARY_PATH="$work" "$@"; }
        run_recorded() { run_preloaded "$work/libsnugrecord.so" "$@"; }
        run_preloaded() { run -E LD_PRELOAD="$1" "${@:2}"; }
        ;;
    *)
        echo "there is no port '$1'" >&2
        exit 2
        ;;
esac

# Speed is measured elsewhere, and warnings of -O2 are for full runs.
optimised=-O2 steps=20000
if [[ ${SNUG_TEST_FULL:-0} != 1 ]]; then
    optimised=-O0 steps=4000
fi
flags=(-std=c17 -D_GNU_SOURCE -I"$root/src" -I"$root/include" "$optimised" -fPIC -fvisibility=hidden
       -Wall -Wextra -Werror -fno-builtin-malloc -fno-builtin-calloc -DSNUG_OVERRIDE)
objects=()
compile() { # NAME FILE
    "$compiler" "${flags[@]}" -ftls-model=initial-exec -c "$2" -o "$work/$1.o" && objects+=("$work/$1.o")
}
# Most of the time goes to the headers, which a layer that is compiled as one file reads once. That is for a short
# run, and for layers in which no two files have something of one name, and which are linked as a whole.
compile_as_one() { # LAYER FILE...
    [[ ${SNUG_TEST_FULL:-0} != 1 && $1 != api ]] || return 1
    printf '#include "%s"\n' "${@:2}" >"$work/$1.c"
    compile "$1" "$work/$1.c" 2>/dev/null
}
for layer in "$root"/src/*/; do
    layer=$(basename "$layer") sources=()
    for source in "$root/src/$layer"/*.c; do
        case $source in *_doc.c | */$absent) ;; *) [[ ! -e $source ]] || sources+=("$source") ;; esac
    done
    if ((${#sources[@]} == 0)) || compile_as_one "$layer" "${sources[@]}"; then continue; fi
    for source in "${sources[@]}"; do compile "${layer}_$(basename "$source" .c)" "$source"; done
done
"$compiler" -shared -pthread "${objects[@]}" -o "$work/libsnug.so"
program=("$here/program.c" -std=c17 -D_GNU_SOURCE -I"$root/include" -O1 -fno-builtin -Wall -Wextra -Werror
         -pthread)
"$compiler" "${program[@]}" -o "$work/shared" "$work/libsnug.so"
# A C program has no use for operator new, which would bring dlopen along; and dlopen itself and the
# registering of fork handlers are taken over by the shared library only.
objects=("${objects[@]/*api_dlopen.o/-lpthread}")
objects=("${objects[@]/*api_atfork.o/-lpthread}")
"$compiler" "${program[@]}" -static -o "$work/static" "${objects[@]/*api_new.o/-lpthread}"
run "$work/shared"
run "$work/static"

# The hardened preset where memory has tags, as it has with the emulator's newest processor, and where it has none. Of an access by
# `dc zva`, with which libc's memset clears, QEMU 7.2 does not find the page if the pointer has a tag: one for a processor without it serves.
check_tags() {
    local hardened=(-E SNUG_PRESET=hardened -E GLIBC_TUNABLES=glibc.cpu.name=kunpeng920) said
    "$compiler" "${program[@]/program.c/tags.c}" -o "$work/tags" "$work/libsnug.so"
    said=$(run -cpu max "${hardened[@]}" "$work/tags" on 2>&1) || { tail -n 3 <<<"$said"; return 1; }
    said=$(run -cpu cortex-a57 "${hardened[@]}" "$work/tags" off 2>&1 && run -cpu max "${hardened[@]}" -E SNUG_TAGS=0 "$work/tags" off 2>&1) ||
        { tail -n 3 <<<"$said"; return 1; }
    # The planted fault: tags that nobody has begun.
    said=$(run -cpu max "${hardened[@]}" -E SNUG_TAGS=0 "$work/tags" on 2>&1 || true)
    [[ $said == *FAILED* ]]
    # What judges blocks in use in the middle of a free that does so, too.
    run -cpu max "${hardened[@]}" -E SNUG_CHECK_ON=interval -E SNUG_STATS_EVERY=500 "$work/shared" "$steps"
}
if [[ $1 == aarch64 ]]; then check_tags; fi

# The program of the traps that opens plugins through the library, from where its RUNPATH says.
traps=$root/tests/traps
test_flags=(-std=c17 -D_GNU_SOURCE -I"$root/tests/support" -O1 -fno-builtin -Wall -Wextra -Werror)
test_program() { # NAME
    "$compiler" "${test_flags[@]}" -pthread -rdynamic "$traps/$1.c" "$root/tests/support/check.c" \
        -o "$work/$1" -ldl
}
test_module() { # NAME FILE FLAGS...
    "$compiler" "${test_flags[@]}" -shared -fPIC "$traps/$1.c" -o "$work/$2" "${@:3}" -ldl
}
open_plugins() {
    local case library=$work/opens/library.so
    mkdir -p "$work/opens/plugins"
    test_program dlopen
    test_program deepbind
    test_module dlopen_plugin opens/plugins/plugin.so
    test_module dlopen_library opens/library.so "-Wl,--enable-new-dtags,-rpath,\$ORIGIN/plugins"
    test_module dlopen_called called.so
    test_module deepbind_plugin alone.so
    for case in runpath origin failure handles; do
        run_preloaded "$work/libsnug.so" "$work/dlopen" $case "$library"
    done
    run_preloaded "$work/libsnug.so" "$work/dlopen" clash "$library" 1
    run_preloaded "$work/libsnug.so" "$work/dlopen" spaces "$library" "$work/alone.so"
    run_preloaded "$work/libsnug.so" "$work/deepbind" exchange "$work/alone.so"
    # The planted fault: a wrapper that calls, instead of going on.
    said=$(run_preloaded "$work/called.so" "$work/dlopen" runpath "$library" 2>&1 || true)
    [[ $said == *"the caller's directory does not count"* ]]
    echo "plugins were opened through the library"
}
if [[ $absent != api/dlopen.c ]]; then open_plugins; fi

# The recorder and the replayer are built, and the replayer says what it wants.
trace=(-std=c17 -D_GNU_SOURCE -I"$root/bench" -O2 -fno-builtin -Wall -Wextra -Werror -pthread)
"$compiler" "${trace[@]}" -shared -fPIC -ftls-model=initial-exec "$root"/trace/recorder/*.c \
    -o "$work/libsnugrecord.so" -ldl
"$compiler" "${trace[@]}" "$root"/trace/replayer/*.c "$root/bench/meter.c" -o "$work/snugreplay"
said=$(run "$work/snugreplay" 2>&1 || true)
[[ $said == "snugreplay: does not understand"* ]]

# The tool of this machine records the program through that recorder: what they share is a file in
# memory, whoever maps it. Then that replayer does the same.
snug=$root/build/bin/snug
[[ -x $snug ]] || {
    echo "the tool is not built, so nothing was recorded"
    exit 0
}
export -f run run_recorded
if declare -F run_preloaded >/dev/null; then export -f run_preloaded; fi
export work machine
"$snug" record -q --children -o "$work/a.trace" -- \
    bash -c "unset LD_PRELOAD; run_recorded '$work/shared'"
info=$("$snug" replay --info=json "$work/a.trace")
value() { grep -o "\"$1\":[0-9]*" <<<"${info#*\"totals\"}" | head -n 1 | cut -d : -f 2; }
"$snug" replay --export="$work/a.program" "$work/a.trace"
replayed=$(run "$work/snugreplay" "$work/a.program")
echo "recorded: $(value threads) threads, $(value operations) operations; replayed: $replayed"
# Four threads with 20,000 allocations and nearly as many frees each, and some resizes; a fifth, main,
# where its libc allocates for it. What the child of a fork did is not in it.
[[ $(value threads) == [45] && $(value lost) == 0 && $(value missing_frees) == 0 ]]
(($(value operations) > 150000 && $(value operations) < 200000 && $(value end_live_blocks) < 100))
[[ " $replayed" == *" ops=$(value operations) "* && " $replayed " == *" live=$(value end_live_blocks) "* ]]

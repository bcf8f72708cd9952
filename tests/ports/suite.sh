#!/usr/bin/env bash
# Builds the library and its tests for another machine or libc, with all invariants checked, and runs them there:
# suite.sh PORT FOLDER [TESTS [BUT]]. FOLDER gets results.xml, of which table.py makes docs/platforms.md. PORT is
#   musl                                       on this machine
#   aarch64, riscv64                           in QEMU's user mode, which answers the system's calls itself
#   aarch64-4k, aarch64-16k, riscv64-4k        on Debian's kernel with pages of that size, in a whole machine that QEMU plays
# Which tests: those that match TESTS and not BUT; else units, model, stress, and the API as programs in C have it: this system's
# interpreters, and what is in C++, do not run on another libc or machine. An emulator in user mode is no kernel:
# what needs one is skipped there, and says so. Exits 77, with the reason, where tools are missing.
set -euo pipefail

# As many rounds as in a short run, whose limits the tests are built with.
export SNUG_TEST_FULL=0

root=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..")
port=$1 work=$2

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

machine=${port%%-*}
emulator='' kernel='' flags='' cross=$machine-linux-gnu
case $port in
    # The kernel's headers are not musl's, and Debian's stand among those of glibc.
    musl) compiler=musl-gcc cxx=false flags="-I$root/tests/ports/musl -idirafter $work/kernel" ;;
    aarch64 | riscv64)
        compiler=$cross-gcc cxx=$cross-g++
        emulator="qemu-$port;-L;/usr/$cross"
        need "qemu-$port"
        need "$cxx"
        ;;
    aarch64-4k | aarch64-16k | riscv64-4k)
        compiler=$cross-gcc cxx=$cross-g++ kernel=$port
        need "$cxx" "qemu-system-$machine"
        ;;
    *) skip "there is no port '$port'" ;;
esac
need "$compiler"

# cmocka, from the distribution's source package: one file.
source=$(bash "$root/tests/foreign/glibc_source.sh" "$root/build/cmocka-source" cmocka) || { echo "$source"; exit 77; }
rm -rf "$work" && mkdir -p "$work/cmocka" "$work/kernel"
for headers in linux asm-generic mtd "$(gcc -print-multiarch)/asm"; do
    if [[ $port == musl && -e /usr/include/$headers ]]; then ln -s "/usr/include/$headers" "$work/kernel/${headers##*/}"; fi
done
"$compiler" -O1 -fPIC -w -D_GNU_SOURCE -DHAVE_GCC_THREAD_LOCAL_STORAGE=1 -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_STDINT_H -DHAVE_INTTYPES_H \
    -DHAVE_SIGNAL_H -DHAVE_SETJMP_H -DHAVE_UNISTD_H -DHAVE_TIME_H -DHAVE_STRUCT_TIMESPEC=1 -DHAVE_CLOCK_GETTIME=1 -DHAVE_CLOCK_REALTIME=1 \
    -DHAVE_STRSIGNAL=1 -DHAVE_SNPRINTF=1 -DHAVE_VSNPRINTF=1 -DHAVE_STDIO_H -DHAVE_STDDEF_H -I"$work/cmocka" -I"$source/include" -c "$source/src/cmocka.c" \
    -o "$work/cmocka/cmocka.o" -include stdint.h -include inttypes.h
ar rcs "$work/cmocka/libcmocka.a" "$work/cmocka/cmocka.o"

# Programs that a library is preloaded for are linked without it, and musl lacks some functions that they call: so they are linked
# with a library of those names alone. It says that it is libm.so, which musl's loader takes for the libc that is there already.
# Static programs have an empty archive.
names=''
if [[ $port == musl ]]; then
    sed -n 's/^[a-z].*[ *]\([a-z_0-9]*\)(.*);$/void \1(void);\nvoid \1(void) {}/p' "$root/tests/ports/musl/malloc.h" >"$work/names.c"
    "$compiler" -shared -nostdlib -fPIC -fno-builtin -Wl,-soname,libm.so "$work/names.c" -o "$work/libnames.so"
    ar rcs "$work/libnames.a"
    names="-L$work -lnames"
fi

{
    echo -n "$("$compiler" --version | head -n 1)"
    if [[ -n $emulator ]]; then echo -n "; $("qemu-$port" --version | head -n 1)"; fi
    if [[ -n $emulator ]]; then echo -n "; without what the emulator cannot do (suite.sh says what and why), which is in the row of Debian's kernel"; fi
    if [[ $port == musl ]]; then echo -n "; without faults planted in the API, as the library that has them stands on glibc's malloc"; fi
    echo "; $(nproc) processors, Linux $(uname -r | cut -d . -f 1,2)"
} >"$work/about"

configure=(-S "$root" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSNUG_DEBUG=ON -DBUILD_TESTING=ON -DSNUG_TEST_FULL=0
    -DCMAKE_C_COMPILER="$compiler" -DCMOCKA_LIBRARY="$work/cmocka/libcmocka.a" -DCMOCKA_INCLUDE_DIR="$source/include" "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_C_STANDARD_LIBRARIES=$names")
# A compiler for C++ there may not be; what is written in C++ is not built then.
if [[ $cxx == false ]]; then
    configure+=(-DCMAKE_CXX_COMPILER=g++)
else
    configure+=(-DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" "-DCMAKE_CROSSCOMPILING_EMULATOR=$emulator")
fi
cmake "${configure[@]}" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
# Only the parts that TESTS names are built.
tests=${3:-^(unit|model|stress|api)\.} parts=(src/all)
but=${4:-'^api\.(operators|heaps_cxx|cxx_in_c|replaced|exports|places|resident|statistics|misuse|options|providers|reports|secure|copies|gdb)'}
# An emulator in user mode: what is preloaded meets the emulator itself, and what another program starts is not emulated. Its own memory
# is in the process (churn, hardened, moving, small_machine), children of threads stop at an assertion of its own (fork), it counts no page
# faults (report), and takes limits of memory for its own (cache_limits, exhaustion, exhaustion_heap). All that runs in a whole machine: PORT-4k.
if [[ -n $emulator ]]; then
    but="$but|planted|\\.preload\$|^stress\\.(fork|churn)|^unit\\.(cache_limits|exhaustion(_heap)?|hardened|report)\$|^api\\.(moving|small_machine|fork)"
fi
if [[ $port == musl ]]; then but="$but|^api\\.[a-z_]+\\.planted\\."; fi
for part in unit model stress api; do
    if [[ $tests == *$part* ]]; then parts+=("tests/$part/all"); fi
done
if [[ $tests == *api* ]]; then parts+=(tests/traps/libsnug_planted.so); fi
ninja -C "$work/build" -k 0 "${parts[@]}" >"$work/build.log" 2>&1 ||
    grep -A3 FAILED "$work/build.log" | grep -E 'FAILED|error' | sed -n 1,40p
if [[ $kernel ]]; then
    exec bash "$root/tests/ports/kernel.sh" "$kernel" "$work" "$tests" "$but"
fi
if [[ $emulator ]]; then export SNUG_TEST_SLOWER=10; fi
cd "$work/build"
ctest --parallel "$(nproc)" --timeout 600 -R "$tests" -E "$but" --output-junit "$work/results.xml" --test-output-size-failed 4000 --test-output-size-passed 4000 |
    tee "$work/ctest.log" | grep -vE 'Passed|Start ' | tail -n 80

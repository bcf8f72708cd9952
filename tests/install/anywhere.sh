#!/usr/bin/env bash
# anywhere.sh SOURCE PART [planted]: what ./dev package makes besides Debian's packages, as its users have it.
#   older   what the library asks of glibc, 2.31 had
#   glibc   the tarball in a bare Debian 11, whose glibc is 2.31      full runs only, as all that follow:
#   musl    the tarball for musl in a root that has nothing else      they need the packages, which
#   rpm     installed, used and removed in a root                     install.packages leaves in build/packages
#   wheel   in an environment of Python's
#   conan, vcpkg   as far as they go without their servers
set -euo pipefail
source=$1 part=$2 planted=${3-}
packages=$source/build/packages
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

quietly() {
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
}

# Usage: package_of PATTERN: prints the path of the package.
package_of() {
    compgen -G "$packages/$1" || true
}

need_package() {
    [[ $(package_of "$1") ]] || skip "there is no $1 in build/packages; a full run of install.packages makes it"
}

need_root() {
    ((EUID == 0)) || skip "only root may go into another root"
}

# Usage: in_root ROOT COMMAND...
in_root() {
    # shellcheck disable=SC2016 # bash's
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root unshare --mount --fork bash -c \
        'mkdir -p "$1/proc" "$1/dev" && mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"' bash "$@"
}

part_older() {
    need python3 nm readelf ldd
    local libc
    libc=$(ldd /bin/sh | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
    [[ $libc ]] || skip "this system has no glibc"
    local -a files=("$source"/build/lib/{libsnug.so,libsnug-compat.so,libsnugrecord.so,snugreplay})
    if [[ $planted ]]; then
        # close_range came with 2.34.
        printf '#define _GNU_SOURCE\n#include <unistd.h>\nint f(void) { return close_range(9, 9, 0); }\n' >"$scratch/newer.c"
        cc -shared -fPIC "$scratch/newer.c" -o "$scratch/newer.so"
        files+=("$scratch/newer.so")
    fi
    python3 "$source/scripts/older_libc.py" 2.31 "$libc" --check "${files[@]}"
}

part_glibc() {
    need_package 'snug-*-linux-gnu.tar.xz'
    need debootstrap
    need_root
    quietly debootstrap --variant=minbase bullseye "$scratch/root" ||
        skip "debootstrap could not make a Debian 11: $(tail -n 1 "$scratch/log")"
    tar -C "$scratch/root/opt" --strip-components=1 -xJf "$(package_of 'snug-*-linux-gnu.tar.xz')"
    [[ $(in_root "$scratch/root" ldd --version | head -n 1) == *2.31* ]] || wrong "that root has another glibc"
    use_tree "$scratch/root" "perl -e 1"
}

part_musl() {
    need_package 'snug-*-linux-musl.tar.xz'
    need musl-gcc
    need_root
    local loader root=$scratch/root
    loader=$(compgen -G '/lib/ld-musl-*.so.1') || skip "there is no musl"
    mkdir -p "$root/opt" "$root/lib" "$root/bin" "$root/tmp"
    cp -L "$loader" "$root/lib/"
    tar -C "$root/opt" --strip-components=1 -xJf "$(package_of 'snug-*-linux-musl.tar.xz')"
    # As Alpine's programs are: for musl, with nothing of glibc's beside them.
    musl-gcc -std=c17 -D_GNU_SOURCE -I"$source/include" -O1 -fno-builtin -pthread "$source/tests/ports/program.c" -o "$root/bin/linked" \
        "$root/opt/lib/libsnug.so"
    musl-gcc -std=c17 -D_GNU_SOURCE -I"$source/include" -O1 -fno-builtin -pthread "$source/tests/ports/program.c" -o "$root/bin/static" -static \
        -no-pie "$root/opt/lib/libsnug.a"
    # Says whether the library is there.
    cat >"$scratch/plain.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    static char maps[1 << 16];
    FILE *file = fopen("/proc/self/maps", "r");
    fread(maps, 1, sizeof(maps) - 1, file);
    free(malloc(99));
    puts(strstr(maps, "libsnug") ? "on snug" : "not on snug");
    return 0;
}
C
    musl-gcc -fno-builtin "$scratch/plain.c" -o "$root/bin/plain"
    [[ $(in_root "$root" "/lib/${loader##*/}" --library-path /opt/lib /bin/linked) == ok ]] || wrong "the library does not work"
    [[ $(in_root "$root" /bin/plain) == "not on snug" ]] || wrong "the plain program has snug by itself"
    [[ $(in_root "$root" "/lib/${loader##*/}" --preload /opt/lib/libsnug.so /bin/plain) == "on snug" ]] ||
        wrong "a program is not on snug when it is preloaded"
    [[ $(in_root "$root" /opt/bin/snug run /bin/plain) == "on snug" ]] || wrong "the tool does not run a program on snug there"
}

# Usage: use_tree ROOT COMMAND: what was unpacked to /opt there is used.
use_tree() {
    local said
    said=$(in_root "$1" /opt/bin/snug --version)
    [[ $said == *"libsnug 0"* ]] || wrong "the tool does not run there: $said"
    # shellcheck disable=SC2086 # words
    said=$(in_root "$1" /opt/bin/snug run --stats $2 2>&1)
    [[ $said == *"peak"* ]] || wrong "the tool runs nothing on snug there: $said"
    # shellcheck disable=SC2086
    said=$(in_root "$1" env LD_PRELOAD=/opt/lib/libsnug.so.0 SNUG_STATS=stderr $2 2>&1)
    [[ $said == *"snug: statistics"* ]] || wrong "the library cannot be preloaded there: $said"
    said=$(in_root "$1" env LD_PRELOAD="/opt/lib/libsnug.so.0 /opt/lib/libsnug-compat.so.0" cat /proc/self/maps 2>&1)
    [[ $said == *libsnug-compat* && $said != *"cannot be preloaded"* ]] || wrong "libsnug-compat cannot be preloaded there: $said"
    # shellcheck disable=SC2086
    said=$(in_root "$1" /opt/bin/snug record -q -o /tmp/a.trace -- $2 2>&1 && in_root "$1" /opt/bin/snug replay /tmp/a.trace 2>&1) ||
        wrong "recording or replaying failed there: $said"
    if ldd "$1/opt/bin/snug" >/dev/null 2>&1; then wrong "the tool is not static"; fi
}

part_rpm() {
    need rpm
    need_package 'snug-0*.rpm'
    need_root
    local root=$scratch/root file
    rpm -qp --requires "$(package_of 'snug-libs-*.rpm')" | grep 'libc.so.6(GLIBC_' >/dev/null || wrong "the library asks for no libc"
    # A root with the libc of this system: what the packages need, and rpm does not know of.
    mkdir -p "$root"/{lib64,usr/lib64,bin,dev,proc,tmp}
    for file in $(ldd /bin/ls | grep -o '/[^ ]*'); do mkdir -p "$root/$(dirname "$file")" && cp -L "$file" "$root/$file"; done
    for file in libpthread.so.0 libdl.so.2; do cp -L "$(dirname "$(readlink -f "$(ldd /bin/ls | grep -o '/[^ ]*libc.so.6')")")/$file" "$root/lib/x86_64-linux-gnu/"; done
    cp -L /bin/ls "$root/bin/ls"
    quietly rpm --root "$root" --initdb
    (cd "$root" && find usr lib64 ! -type d | sort) >"$scratch/before"
    quietly rpm --root "$root" -i --nodeps --ignorearch "$packages"/snug-*.rpm
    local said
    said=$(rpm --root "$root" -V --nodeps snug snug-libs snug-devel 2>&1) || wrong "an installed file is damaged: $said"
    for file in usr/include/snug/snug.h usr/lib64/libsnug.a usr/lib64/pkgconfig/snug.pc usr/share/man/man1/snug-run.1; do
        [[ -e $root/$file ]] || wrong "$file is not installed"
    done
    in_root "$root" /usr/bin/snug run SNUG_STATS=stderr /bin/ls / 2>&1 | grep '^snug: statistics' >/dev/null || wrong "the tool does not work there"
    env -i LD_PRELOAD=/usr/lib64/libsnug.so.0 SNUG_STATS=stderr /usr/sbin/chroot "$root" /bin/ls / 2>&1 | grep '^snug: statistics' >/dev/null ||
        wrong "the library does not work there"
    quietly rpm --root "$root" -e --nodeps snug snug-libs snug-devel
    (cd "$root" && find usr lib64 ! -type d | sort) | diff "$scratch/before" - || wrong "left behind or gone"
}

part_wheel() {
    local wheel python=$scratch/env/bin/python said
    need_package 'snug-*-manylinux*.whl'
    wheel=$(package_of 'snug-*-manylinux*.whl')
    python3 -m venv "$scratch/env" >"$scratch/log" 2>&1 || skip "no environment can be made: $(tail -n 1 "$scratch/log")"
    quietly "$python" -m pip install --no-index "$wheel"
    echo 'import ctypes, os; print("maps" if "libsnug" in open("/proc/self/maps").read() else "none", os.environ.get("PYTHONMALLOC"))' >"$scratch/script.py"
    cd "$scratch"
    said=$("$python" -m snug run script.py)
    [[ $said == "maps None" ]] || wrong "python -m snug run: $said"
    said=$("$scratch/env/bin/snug" run SNUG_CHECK=full "$python" script.py)
    [[ $said == "maps None" ]] || wrong "snug run: $said"
    # shellcheck disable=SC2016 # Python's
    said=$(LD_PRELOAD=$("$python" -c 'import snug; print(snug.library)') "$python" script.py)
    [[ $said == "maps None" ]] || wrong "preloaded: $said"
    said=$("$python" -m snug run -- false; echo $?)
    [[ $said == 1 ]] || wrong "the exit status is $said"
    quietly "$python" -m pip check
    # The tag is true: nothing in the wheel is newer.
    "$python" -m zipfile -e "$wheel" "$scratch/files"
    said=$(find "$scratch/files" -type f -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 || true)
    [[ $(printf '%s\nGLIBC_2.31\n' "$said" | sort -V | tail -n 1) == GLIBC_2.31 ]] || wrong "the wheel needs $said"
    quietly "$python" -m pip uninstall -y snug
    [[ ! -e $(compgen -G "$scratch/env/lib/python3*/site-packages/snug*") ]] || wrong "something is left"
}

part_conan() {
    local shared
    python3 -m venv "$scratch/env" >"$scratch/log" 2>&1 || skip "no environment can be made: $(tail -n 1 "$scratch/log")"
    "$scratch/env/bin/pip" install -q conan >"$scratch/log" 2>&1 || skip "conan cannot be had: $(tail -n 1 "$scratch/log")"
    export CONAN_HOME=$scratch/conan
    quietly "$scratch/env/bin/conan" profile detect
    for shared in True False; do
        quietly "$scratch/env/bin/conan" create "$source/packaging/conan" --no-remote -o "snug/*:shared=$shared"
        grep -q 'checked: sound' "$scratch/log" || { cat "$scratch/log" && wrong "the program did not run (shared=$shared)"; }
    done
}

# vcpkg's own functions are not here; these do what their documentation says of them.
part_vcpkg() {
    need cmake
    cat >"$scratch/run.cmake" <<'CMAKE'
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(COMMAND cmake -S ${arg_SOURCE_PATH} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_install)
  execute_process(COMMAND cmake --build ${WORK}/build --target install COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/snugConfig.cmake)
    message(FATAL_ERROR "nothing for CMake is in ${arg_CONFIG_PATH}")
  endif()
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT})
endfunction()
include(${PORTFILE})
CMAKE
    python3 -c 'import json, sys; port = json.load(open(sys.argv[1])); assert port["name"] == "snug" and sys.argv[2] == port["version"], port' \
        "$source/packaging/vcpkg/vcpkg.json" "$(sed -n 's/^project(snug VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
    quietly cmake "-DWORK=$scratch" "-DCURRENT_PACKAGES_DIR=$scratch/out" -DPORT=snug \
        "-DPORTFILE=$source/packaging/vcpkg/portfile.cmake" -P "$scratch/run.cmake"
    [[ -e $scratch/out/lib/libsnug.a && -e $scratch/out/share/snug/usage && -e $scratch/out/share/snug/LICENSE ]] || wrong "something is missing"
    echo "vcpkg itself is not here: the port ran with functions in its place"
}

"part_$part"
echo "anywhere: $part is as it should be"

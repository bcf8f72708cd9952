#!/usr/bin/env bash
# installed.sh CMAKE BUILD SOURCE COMPILER GENERATOR PART [planted]: installs into a staged tree,
# moves it, and uses one part of it as people do. With `planted`, breaks that part first.
set -euo pipefail
cmake=$1 build=$2 source=$3 compiler=$4 generator=$5 part=$6 planted=${7-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
tool=$source/build/bin/snug

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

# Usage: install_under PREFIX: into $scratch/stage.
install_under() {
    DESTDIR=$scratch/stage "$cmake" --install "$build" --prefix "$1" >"$scratch/log" 2>&1 ||
        { cat "$scratch/log" && exit 1; }
}

quietly() {
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
}

install_under /opt/snug
mv "$scratch/stage/opt/snug" "$prefix"
lib=$(dirname "$(find "$prefix" -name libsnug.so)")

part_files() {
    local file
    for file in include/snug/snug.h include/snug/snug.hpp "${lib#"$prefix/"}"/{libsnug.so.0,libsnug.so.0.*[0-9],libsnug.a,libsnug-compat.so.0} \
        "${lib#"$prefix/"}"/{pkgconfig/snug.pc,pkgconfig/snug-static.pc,cmake/snug/snugConfig.cmake} \
        share/doc/snug/LICENSE; do
        # shellcheck disable=SC2086 # a pattern
        compgen -G "$prefix/$file" >/dev/null || wrong "$file is not installed"
    done
    [[ $(readlink -f "$lib/libsnug.so") == "$lib"/libsnug.so.0.*.* ]] || wrong "libsnug.so leads elsewhere"
    # Moved, so nothing may know where it was.
    ! grep -rlI /opt/snug "$prefix" || wrong "these know the prefix"
    ! grep -rlI "$source" "$prefix" || wrong "these know where snug was built"
    # Of a thread's variable that is reached in two ways, riscv64's linker gives a static program a wrong address.
    file=$(readelf -rW "$lib/libsnug.a" | grep -E 'TLSGD|TLSLD|TLSDESC' || true)
    [[ ! $file ]] || wrong "a thread's variable is reached by a call: $file"
    [[ -x $tool ]] || skip "the tool is not built; what belongs to the library is there"
    cmp "$tool" "$prefix/bin/snug"
    for file in man/man1/snug.1 man/man1/snug-run.1 man/man3/snug_malloc.3 man/man7/snug-options.7 \
        bash-completion/completions/snug zsh/site-functions/_snug fish/vendor_completions.d/snug.fish; do
        [[ -s $prefix/share/$file ]] || wrong "share/$file is not installed"
    done
}

# What people download and load stays small.
part_sizes() {
    local bytes most=6000000 rust
    strip -o "$scratch/stripped" "$lib/libsnug.so"
    if [[ $planted ]]; then head -c 100000 /dev/zero >>"$scratch/stripped"; fi
    bytes=$(stat -c %s "$scratch/stripped")
    echo "libsnug.so stripped: $bytes bytes"
    # The file grows by whole pages: another compiler may be over where this one is just below.
    local offset length
    while read -r offset length; do
        echo "  a segment of it could have $((4096 - (offset + length) % 4096)) bytes more for nothing"
    done < <(readelf -lW "$scratch/stripped" | awk '$1 == "LOAD" { print $2, $5 }')
    ((bytes < 307200)) || wrong "libsnug.so has $bytes bytes when stripped, which is too much"
    [[ -x $tool ]] || return 0
    bytes=$(stat -c %s "$tool")
    echo "the tool: $bytes bytes"
    # Of the oldest Rust the standard library, and the code that is made, are a twentieth larger.
    rust=$(PATH=$PATH:${CARGO_HOME:-${HOME-}/.cargo}/bin rustc --version 2>/dev/null) || rust=''
    if [[ $rust =~ ^rustc\ 1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 90)); then most=6400000; fi
    ((bytes < most)) || wrong "the tool has $bytes bytes, which is too much"
}

# Three programs by the three targets, in a tree whose path has a blank; and a component that is not there.
part_cmake() {
    mv "$prefix" "$scratch/a prefix" && mkdir "$scratch/program" && lib="$scratch/a prefix/${lib#"$prefix/"}"
    # Without headers.
    echo '#include <stdlib.h>
          int main(int count, char **words) { free(malloc(count)); return words == NULL; }' >"$scratch/program/main.c"
    cat >"$scratch/program/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(program LANGUAGES C)
find_package(snug 0.1 REQUIRED COMPONENTS ${WANTED})
foreach(kind ${WANTED})
  add_executable(with_${kind} main.c)
  target_link_libraries(with_${kind} PRIVATE snug::${kind})
endforeach()
END
    # shellcheck disable=SC2054 # the list is CMake's
    local -a configure=("$cmake" -G "$generator" -S "$scratch/program" -B "$scratch/out" -DCMAKE_C_COMPILER="$compiler"
                        -DCMAKE_PREFIX_PATH="$scratch/a prefix")
    quietly "${configure[@]}" "-DWANTED=snug;static;override"
    quietly "$cmake" --build "$scratch/out"
    local kind said
    for kind in snug static override; do
        said=$(SNUG_STATS=stderr "$scratch/out/with_$kind" 2>&1)
        [[ $said == "snug: statistics"* ]] || wrong "with_$kind has another malloc: $said"
    done
    rm "$lib/libsnug.a"
    said=$("${configure[@]}" --fresh "-DWANTED=static" 2>&1) && wrong "a component that is missing was found"
    [[ $said == *"The component static of snug is not"* ]] || wrong "$said"
}

part_pkg_config() {
    need pkg-config
    export PKG_CONFIG_PATH=$lib/pkgconfig
    if [[ $planted ]]; then sed -i 's|^prefix=.*|prefix=/opt/snug|' "$lib/pkgconfig/snug.pc"; fi
    [[ $(readlink -f "$(pkg-config --variable=libdir snug)") == "$(readlink -f "$lib")" ]] ||
        wrong "pkg-config does not know where snug is: $(pkg-config --variable=libdir snug)"
    # shellcheck disable=SC2046 # words
    "$compiler" "$source/examples/link/main.c" -o "$scratch/shared" $(pkg-config --cflags --libs snug) -Wl,-rpath,"$lib"
    # shellcheck disable=SC2046
    "$compiler" "$source/examples/link/main.c" -o "$scratch/static" $(pkg-config --cflags --libs snug-static)
    "$scratch/shared" | grep 'checked: sound' >/dev/null
    "$scratch/static" | grep 'checked: sound' >/dev/null
    [[ $(readelf -d "$scratch/shared") == *"[libsnug.so.0]"* ]] || wrong "it is not linked by the library's name"
    [[ $(readelf -d "$scratch/static") != *libsnug* ]] || wrong "the static library was not taken"
    # A plugin with it inside stays loaded: threads that have used it look for it when they end.
    # shellcheck disable=SC2046
    "$compiler" -shared -fPIC "$source/examples/link/main.c" -o "$scratch/plugin.so" $(pkg-config --cflags --libs snug-static)
    [[ $(readelf -d "$scratch/plugin.so") == *NODELETE* ]] || wrong "a plugin with the static library could be unloaded"
}

# gdb loads the script by itself, from a place that it trusts.
part_gdb() {
    need gdb
    local said program
    program=$(readlink -f "$(command -v sleep)")
    ask() {
        gdb -nx -batch -iex "set debuginfod enabled off" "$@" -ex "set environment LD_PRELOAD $lib/libsnug.so" \
            -ex "set breakpoint pending on" -ex "break snug_malloc" -ex run -ex "snug-block 64" --args "$program" 0 2>&1
    }
    said=$(ask -iex "add-auto-load-safe-path $prefix")
    [[ $said == *"0x40: not in a heap of snug"* ]] || wrong "$said"
    # From another place it says what to do.
    said=$(ask || true)
    [[ $said == *"auto-loading has been declined"* && $said == *"add-auto-load-safe-path"* ]] || wrong "$said"
    # Under /usr it stands where gdb trusts what it finds, by the path that the library has there.
    install_under /usr
    compgen -G "$scratch/stage/usr/share/gdb/auto-load/usr/lib*/libsnug.so.0.*-gdb.py" >/dev/null ||
        compgen -G "$scratch/stage/usr/share/gdb/auto-load/usr/lib/*/libsnug.so.0.*-gdb.py" >/dev/null ||
        wrong "gdb would not find it under /usr"
}

part_manual() {
    local page said linted=''
    [[ -x $tool ]] || skip "the tool is not built"
    if [[ $planted ]]; then sed -i '/^\.SH NAME/,/^\.SH/d' "$prefix/share/man/man1/snug-run.1"; fi
    if command -v mandoc >/dev/null; then
        linted=1
        # Those that only lead to others have nothing else to look at.
        said=$(cd "$prefix/share/man" && grep -L '^\.so ' man*/* | xargs mandoc -T lint -W warning) || wrong "$said"
    fi
    if command -v man >/dev/null && command -v groff >/dev/null; then
        linted=1
        for page in "$prefix"/share/man/man*/*; do
            said=$(cd "$prefix/share/man" && LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
                man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
            [[ ! $said ]] || wrong "$page: $said"
            grep -q -e '^\.SH NAME' -e '^\.so man3/' "$page" || wrong "$page: missing section NAME"
        done
    fi
    [[ $linted ]] || skip "there is neither mandoc nor man"
}

part_completions() {
    [[ -x $tool ]] || skip "the tool is not built"
    local bash_script=$prefix/share/bash-completion/completions/snug zsh_script=$prefix/share/zsh/site-functions/_snug
    local fish_script=$prefix/share/fish/vendor_completions.d/snug.fish said
    if [[ $planted ]]; then echo 'if (' >>"$bash_script"; fi
    # bash: what it offers for `snug comp` and `snug stats --j`.
    offered() {
        bash --norc -c 'source "$1" && COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) && $(complete -p snug | sed "s/.*-F \([^ ]*\).*/\1/") \
            snug "${*: -1}" "${*: -2:1}" && printf "%s " "${COMPREPLY[@]}"' bash "$bash_script" "$@"
    }
    [[ $(offered snug comp) == "compare completions " ]] || wrong "bash offers $(offered snug comp)"
    [[ $(offered snug stats --j) == "--json " ]] || wrong "bash offers $(offered snug stats --j)"
    if command -v zsh >/dev/null; then
        # shellcheck disable=SC2016 # zsh's
        said=$(zsh -fc 'fpath=('"$(dirname "$zsh_script")"' $fpath); autoload -Uz compinit && compinit -D -u && print $_comps[snug]')
        [[ $said == _snug ]] || wrong "zsh has no completions: $said"
        zsh -fn "$zsh_script"
    fi
    if command -v fish >/dev/null; then
        said=$(HOME=$scratch fish --no-config -c "source '$fish_script'; complete -C 'snug comp'" | cut -f 1 | sort | tr '\n' ' ')
        [[ $said == "compare completions " ]] || wrong "fish offers $said"
    fi
    command -v zsh >/dev/null && command -v fish >/dev/null || echo "only the shells that there are were tried"
}

# The crates in the tool have licences that let it be given away with them, and those are listed.
part_licences() {
    need cargo python3
    python3 "$source/scripts/crates.py" licences "$source/tool" >"$scratch/licences"
    python3 "$source/scripts/crates.py" sbom "$source/tool" >"$scratch/sbom"
    python3 - "$scratch/licences" "$scratch/sbom" <<'END'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
free = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "Unlicense", "CC0-1.0", "Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception", "MIT-0", "BSL-1.0", "CDDL-1.0"}  # fmt: skip
crates = json.load(open(sys.argv[2]))["components"]
names = {crate["name"] for crate in crates}
assert {"clap", "ratatui", "zstd-sys"} <= names and not {"cc", "png", "serde_derive", "libtest-mimic"} & names, names
for crate in crates:
    assert f"  {crate['name']} {crate['version']}: " in text, crate
    expression = crate["licenses"][0]["expression"]
    parts = [set(part.strip(" ()").split(" OR ")) for part in expression.split(" AND ")]
    assert all(part & free for part in parts), (crate["name"], expression)
assert "Permission is hereby granted" in text and len(re.findall("^-{80}$", text, re.M)) > 10
END
}

# ./dev install and uninstall: what was there before stays, and a list that leads elsewhere is refused.
part_dev() {
    need cargo python3
    export DESTDIR="$scratch/a root"
    local said root="$scratch/a root/opt/tree"
    mkdir -p "$root/bin" "$root/share"
    "$source/dev" install --prefix=/opt/tree >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
    "$root/bin/snug" --version | grep '^libsnug 0' >/dev/null
    [[ -s $root/share/doc/snug/licences.txt && -e $root/lib/libsnug.so.0 ]] || wrong "something is missing"
    touch "$root/include/snug/of_the_user.h"
    # Again, over what is there.
    "$source/dev" install --prefix /opt/tree >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
    cp "$root/share/snug/installed" "$scratch/list"
    echo ../../elsewhere >>"$root/share/snug/installed"
    said=$("$source/dev" uninstall --prefix /opt/tree 2>&1) && wrong "a list that leads elsewhere was followed"
    [[ $said == *"so nothing is removed"* && -x $root/bin/snug ]] || wrong "$said"
    cp "$scratch/list" "$root/share/snug/installed"
    "$source/dev" uninstall --prefix /opt/tree
    said=$(cd "$root" && find . | sort | tr '\n' ' ')
    [[ $said == ". ./bin ./include ./include/snug ./include/snug/of_the_user.h ./share " ]] || wrong "left: $said"
    said=$("$source/dev" uninstall --prefix /opt/tree 2>&1) && wrong "nothing was removed"
    [[ $said == *"nothing was installed under"* ]] || wrong "$said"
    # A directory that was made for it goes as well, and not the one that it is in.
    "$source/dev" install --prefix=/opt/new/tree >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
    "$source/dev" uninstall --prefix=/opt/new/tree
    said=$(cd "$scratch/a root/opt/new" && find .)
    [[ $said == . ]] || wrong "left: $said"
    said=$(DESTDIR='' "$source/dev" install --prefix /dev/null/x 2>&1) && wrong "installed into /dev/null"
    [[ $said == *"cannot be written to"* ]] || wrong "$said"
}

"part_$part"
echo "installed: $part is as it should be"

# shellcheck shell=bash
# Makes what runs anywhere: tarballs of a static tool and the library, for glibc and for musl, and of the same an
# rpm and Python's wheels. Sourced by ./dev.
#
# The library for glibc is linked with an older one's names (scripts/older_libc.py).

oldest_glibc=2.31
anywhere_needs=(musl-gcc:musl-tools rpmbuild:rpm readelf:binutils)

# The path of this machine's glibc.
libc_path() {
    ldd /bin/sh | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p'
}

# Usage: build_packaged_library glibc|musl: in build/package/LIBC; what goes into the tool, in build/package/lib-LIBC.
build_packaged_library() {
    local libc=$1 older=$build/package/older file
    local -a configure=(-S "$root" -B "$build/package/$libc" -G Ninja -DBUILD_TESTING=OFF -DSNUG_COMPAT=ON
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr/local -DCMAKE_INSTALL_LIBDIR=lib
        "-DCMAKE_C_FLAGS_RELEASE=-O2 -g -gz -ffile-prefix-map=$root=.")
    say "building the library for the packages ($libc)"
    case $libc in
        glibc)
            python3 "$root/scripts/older_libc.py" "$oldest_glibc" "$(libc_path)" "$older" &&
                cc -O2 -fPIC -c "$root/packaging/older_libc.c" -o "$older/older_libc.o" || return
            configure+=("-DCMAKE_SHARED_LINKER_FLAGS=-L$older" "-DCMAKE_EXE_LINKER_FLAGS=-L$older"
                "-DCMAKE_C_STANDARD_LIBRARIES=-Wl,--no-as-needed -lpthread -ldl -Wl,--as-needed $older/older_libc.o -l:libc_nonshared.a")
            ;;
        musl) configure+=(-DCMAKE_C_COMPILER=musl-gcc) ;;
    esac
    { cmake "${configure[@]}" && cmake --build "$build/package/$libc" --target snug_shared snug_static snug_compat snugrecord snugreplay; } \
        >"$build/log/package-$libc.log" 2>&1 || {
        tail -n 20 "$build/log/package-$libc.log" >&2
        return 1
    }
    for file in src/libsnug.so trace/libsnugrecord.so trace/snugreplay; do
        publish "$build/package/$libc/$file" "$build/package/lib-$libc/${file##*/}" || return
    done
}

# Usage: build_packaged_tool NAME LIBC [static]: the tool with that library in it, as build/package/tool-NAME. A static one
# runs on any libc.
build_packaged_tool() {
    local name=$1 libc=$2 flags='' target=$build/package/cargo cargo_home=${CARGO_HOME:-$HOME/.cargo} machine
    local -a options=(--release --locked)
    machine=$(rustc -vV | sed -n 's/^host: //p')
    if [[ ${3-} ]]; then
        flags='-C target-feature=+crt-static ' target=$build/package/cargo-static options+=(--target "$machine")
    fi
    say "building the tool for the packages ($name)"
    (
        cd "$root/tool" && unset CARGO_BUILD_TARGET &&
            RUSTFLAGS="$flags--remap-path-prefix=$root=. --remap-path-prefix=$cargo_home=/cargo" \
                CFLAGS="-ffile-prefix-map=$root=. -ffile-prefix-map=$cargo_home=/cargo" \
                SNUG_LIBRARY=$build/package/lib-$libc/libsnug.so CARGO_TARGET_DIR=$target cargo build "${options[@]}"
    ) || return
    if [[ ${3-} ]]; then target=$target/$machine; fi
    publish "$target/release/snug" "$build/package/tool-$name"
}

# The newest version of glibc that something in a tree asks for, by the names of symbols.
glibc_needed() {
    find "$1" -type f \( -name '*.so*' -o -perm -u+x \) -exec objdump -T {} + 2>/dev/null |
        grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2
}

# Usage: stage_tree LIBC TREE PREFIX LIBDIR: what `cmake --install` lays down, under TREE.
stage_tree() {
    local libc=$1 tree=$2
    rm -rf "$tree" && mkdir -p "$tree"
    {
        cmake -DCMAKE_INSTALL_LIBDIR="$4" -DSNUG_TOOL="$(tool_for "$libc")" -DSNUG_LICENCES="$build/share/licences.txt" \
            "$build/package/$libc" && DESTDIR=$tree cmake --install "$build/package/$libc" --prefix "$3"
    } >"$build/log/package-tree.log" 2>&1
}

# The tool that goes beside the library for a libc: the one that ./dev was given, or the static one.
tool_for() {
    if [[ $given_tool ]]; then echo "$given_tool"; else echo "$build/package/tool-$1"; fi
}

# Usage: package_tarball LIBC DIRECTORY: one folder that may stand anywhere.
package_tarball() {
    local libc=$1 tree=$build/package/tree-$1 name newest
    name=snug-$(package_version)-$(uname -m)-linux-${libc/glibc/gnu}
    stage_tree "$libc" "$tree" "/$name" lib || return
    if [[ $libc == glibc ]]; then
        newest=$(glibc_needed "$tree/$name/lib")
        [[ $(printf '%s\n' "$newest" "$oldest_glibc" | sort -V | tail -n 1) == "$oldest_glibc" ]] ||
            { say "the library needs glibc $newest" && return 1; }
        say "the tarball needs glibc $newest or newer"
    fi
    tar -C "$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
        --format=gnu -c "$name" | xz -T1 >"$2/$name.tar.xz"
}

# Usage: package_rpm DIRECTORY: the same tree as rpm packages, for Fedora and its relatives.
package_rpm() {
    local work=$build/package/rpm
    stage_tree glibc "$work/tree" /usr lib64 || return
    rpmbuild -bb --quiet --define "_topdir $work" --define "tree $work/tree" --define "version $(package_version)" \
        --define "_rpmdir $work/out" --buildroot "$work/root" "$root/packaging/rpm/snug.spec" >"$build/log/package-rpm.log" 2>&1 || {
        tail -n 20 "$build/log/package-rpm.log" >&2
        return 1
    }
    find "$work/out" -name '*.rpm' -exec cp {} "$1" \;
}

# Usage: package_wheel LIBC DIRECTORY: for Python, with library and tool in it.
package_wheel() {
    local libc=$1 tag
    tag=manylinux_${oldest_glibc/./_}
    if [[ $libc == musl ]]; then tag=musllinux_1_2; fi # what Debian 12's musl is, and all after it
    python3 "$root/scripts/wheel.py" --version "$(package_version)" --tag "${tag}_$(uname -m)" --library "$build/package/lib-$libc/libsnug.so" \
        --tool "$(tool_for "$libc")" --licences "$build/share/licences.txt" --to "$2"
}

# Usage: package_anywhere DIRECTORY
package_anywhere() {
    local libc
    for libc in glibc musl; do
        [[ $given_tool ]] || build_packaged_tool "$libc" "$libc" static || return
        package_tarball "$libc" "$1" && package_wheel "$libc" "$1" || return
    done
    package_rpm "$1"
}

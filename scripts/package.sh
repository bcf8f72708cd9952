# shellcheck shell=bash
# Makes the packages that people get: Debian's, and a tarball. Sourced by ./dev.
#
# Two builds of one source, wherever and whenever they are done, give the same bytes: no path of the
# build is in them, and their dates are that of packaging/debian/changelog.

package_needs=(dpkg-buildpackage:dpkg-dev dh:debhelper fakeroot:fakeroot objdump:binutils xz:xz-utils python3:python3)

# The library and what goes into the tool with it, in build/package/library.
build_packaged_library() {
    local -a configure=(-S "$root" -B "$build/package/library" -G Ninja -DBUILD_TESTING=OFF
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr/local -DCMAKE_INSTALL_LIBDIR=lib
        "-DCMAKE_C_FLAGS_RELEASE=-O2 -g -gz -ffile-prefix-map=$root=.")
    say "building the library for the packages"
    { cmake "${configure[@]}" && cmake --build "$build/package/library"; } >"$build/log/package-library.log" 2>&1 || {
        tail -n 20 "$build/log/package-library.log" >&2
        return 1
    }
    publish "$build/package/library/src/libsnug.so" "$build/package/lib/libsnug.so" &&
        for file in libsnugrecord.so snugreplay; do
            publish "$(find "$build/package/library" -name "$file" -not -path '*/CMakeFiles/*')" "$build/package/lib/$file" || return
        done
}

# The tool with that library in it, in build/package/cargo.
build_packaged_tool() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo}
    say "building the tool for the packages"
    (
        cd "$root/tool" && unset CARGO_BUILD_TARGET &&
            RUSTFLAGS="--remap-path-prefix=$root=. --remap-path-prefix=$cargo_home=/cargo" \
                CFLAGS="-ffile-prefix-map=$root=. -ffile-prefix-map=$cargo_home=/cargo" \
                SNUG_LIBRARY=$build/package/lib/libsnug.so CARGO_TARGET_DIR=$build/package/cargo \
                cargo build --release --locked
    )
}

# Our files, without what was built: all that git has, or else all that there is.
copy_source() {
    mkdir -p "$1"
    (
        cd "$root"
        if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
            git ls-files -co --exclude-standard -z | while IFS= read -r -d '' name; do
                [[ ! -e $name ]] || printf '%s\0' "$name"
            done
        else
            find . \( -path ./build -o -path ./tool/target -o -name .git \) -prune -o -type f -print0
        fi | tar -c --null -T - | tar -x -C "$1"
    )
}

package_version() {
    sed -n '1s/.*(\(.*\)).*/\1/p' "$root/packaging/debian/changelog"
}

# Usage: package_deb DIRECTORY: Debian's packages.
package_deb() {
    local work source
    work=$build/package/deb
    source=$work/snug-$(package_version)
    rm -rf "$work" && copy_source "$source" && cp -r "$source/packaging/debian" "$source/debian" || return
    say "building Debian's packages"
    (
        cd "$source" && unset DESTDIR &&
            SNUG_TOOL=$packaged_tool SNUG_LICENCES=$build/share/licences.txt \
                dpkg-buildpackage -b -us -uc -j"$(nproc)" >"$build/log/package-deb.log" 2>&1
    ) || {
        tail -n 20 "$build/log/package-deb.log" >&2
        return 1
    }
    cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$1"
}

# The newest version of glibc that something in a tree asks for, by the names of symbols.
glibc_needed() {
    find "$1" -type f \( -name '*.so*' -o -perm -u+x \) -exec objdump -T {} + 2>/dev/null |
        grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2
}

# Usage: package_tarball DIRECTORY: what `cmake --install` lays down, as one folder that may stand anywhere.
package_tarball() {
    local tree machine name
    tree=$build/package/tree
    machine=$(gcc -dumpmachine)
    name=snug-$(package_version)-$machine
    rm -rf "$tree" && mkdir -p "$tree"
    cmake -DSNUG_TOOL="$packaged_tool" -DSNUG_LICENCES="$build/share/licences.txt" "$build/package/library" \
        >"$build/log/package-tarball.log" 2>&1 || return
    DESTDIR=$tree cmake --install "$build/package/library" --prefix "/$name" >"$build/log/package-tarball.log" 2>&1 ||
        return
    say "the tarball needs glibc $(glibc_needed "$tree") or newer"
    tar -C "$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
        --format=gnu -c "$name" | xz -T1 >"$1/$name.tar.xz"
}

# Usage: check_packages_place DIRECTORY: fails if something in it would be lost.
check_packages_place() {
    [[ ! -e $1 ]] && return
    [[ -d $1 && ! $(find "$1" -mindepth 1 ! -name 'snug*' ! -name 'libsnug*' ! -name SHA256SUMS) ]] ||
        fail "$1 has something in it that is no package of snug"
}

# The licences of the crates and the tool, if there is none yet; and the library, which it and the tarball take.
prepare_packages() {
    mkdir -p "$build/log" "$build/share"
    python3 "$root/scripts/crates.py" licences "$root/tool" >"$build/share/licences.txt" ||
        fail "the licences of the crates in the tool could not be listed"
    if [[ $1 == all || ! $packaged_tool ]]; then
        build_packaged_library || fail "the library does not build"
    fi
    if [[ ! $packaged_tool ]]; then
        build_packaged_tool || fail "the tool does not build"
        packaged_tool=$build/package/cargo/release/snug
    fi
}

cmd_package() {
    local to=$build/package/out file packaged_tool='' part=all
    while (($# > 0)); do
        case $1 in
            --to=*) to=$(realpath -ms "${1#*=}") ;;
            --tool=*) packaged_tool=$(realpath -ms "${1#*=}") ;;
            deb) part=deb ;;
            *) usage_error "package does not know '$1'" ;;
        esac
        shift
    done
    check_packages_place "$to"
    [[ ! $packaged_tool || -x $packaged_tool ]] || fail "there is no tool $packaged_tool"
    need_packages "${build_needs[@]}" "${package_needs[@]}"
    need_rust || fail "the packages need the tool"
    SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$root/packaging/debian/changelog" -S Timestamp)
    export SOURCE_DATE_EPOCH
    umask 022
    prepare_packages "$part"
    rm -rf "$to" && mkdir -p "$to"
    package_deb "$to" || fail "Debian's packages could not be made; the log is in build/log/package-deb.log"
    if [[ $part == all ]]; then package_tarball "$to" || fail "the tarball could not be made"; fi
    python3 "$root/scripts/crates.py" sbom "$root/tool" >"$to/snug-$(package_version).cdx.json" ||
        fail "the bill of materials could not be made"
    (cd "$to" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
    for file in "$to"/*; do say "made $file"; done
}

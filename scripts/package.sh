# shellcheck shell=bash
# Makes the packages that people get: Debian's here, the others in scripts/tarball.sh. Sourced by ./dev.
#
# Two builds of one source, wherever and whenever they are done, give the same bytes: no path of the
# build is in them, and their dates are that of packaging/debian/changelog.

package_needs=(dpkg-buildpackage:dpkg-dev /usr/share/build-essential/list:build-essential dh:debhelper fakeroot:fakeroot objdump:binutils xz:xz-utils python3:python3)

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

# Usage: check_packages_place DIRECTORY: fails if something in it would be lost.
check_packages_place() {
    [[ ! -e $1 ]] && return
    [[ -d $1 && ! $(find "$1" -mindepth 1 ! -name 'snug*' ! -name 'libsnug*' ! -name SHA256SUMS) ]] ||
        fail "$1 has something in it that is no package of snug"
}

# The licences of the crates; the libraries that go into packages; and the tool for Debian's, if none was given.
prepare_packages() {
    mkdir -p "$build/log" "$build/share"
    python3 "$root/scripts/crates.py" licences "$root/tool" >"$build/share/licences.txt" ||
        fail "the licences of the crates in the tool could not be listed"
    if [[ $1 == all || ! $given_tool ]]; then
        build_packaged_library glibc || fail "the library does not build"
    fi
    if [[ $1 == all ]]; then
        build_packaged_library musl || fail "the library does not build for musl"
    fi
    packaged_tool=$given_tool
    if [[ ! $given_tool ]]; then
        build_packaged_tool debian glibc || fail "the tool does not build"
        packaged_tool=$build/package/tool-debian
    fi
}

cmd_package() {
    local to=$build/package/out file packaged_tool given_tool='' part=all
    while (($# > 0)); do
        case $1 in
            --to=*) to=$(realpath -ms "${1#*=}") ;;
            --tool=*) given_tool=$(realpath -ms "${1#*=}") ;;
            deb) part=deb ;;
            *) usage_error "package does not know '$1'" ;;
        esac
        shift
    done
    check_packages_place "$to"
    [[ ! $given_tool || -x $given_tool ]] || fail "there is no tool $given_tool"
    need_packages "${build_needs[@]}" "${package_needs[@]}"
    if [[ $part == all ]]; then need_packages "${anywhere_needs[@]}"; fi
    need_rust || fail "the packages need the tool"
    SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$root/packaging/debian/changelog" -S Timestamp)
    export SOURCE_DATE_EPOCH
    umask 022
    prepare_packages "$part"
    rm -rf "$to" && mkdir -p "$to"
    package_deb "$to" || fail "Debian's packages could not be made; the log is in build/log/package-deb.log"
    if [[ $part == all ]]; then package_anywhere "$to" || fail "the packages for other systems could not be made"; fi
    python3 "$root/scripts/crates.py" sbom "$root/tool" >"$to/snug-$(package_version).cdx.json" ||
        fail "the bill of materials could not be made"
    (cd "$to" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
    for file in "$to"/*; do say "made $file"; done
}

#!/usr/bin/env bash
# glibc_source.sh - fetches the source package of this machine's glibc, or another, and unpacks it; prints where.
#
# usage: glibc_source.sh FOLDER [PACKAGE]
#
# apt gets lists of sources of its own, in FOLDER, made from the entries that the machine has: what the
# machine has itself is not changed. What was fetched before is not fetched again. What cannot be had
# is a reason to skip the tests (status 77).
set -u
set -o pipefail

skip() {
    echo "SKIP: $*"
    exit 77
}

# The machine's entries for packages, as entries for their sources. Usage: make_entries FOLDER
make_entries() {
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        if [[ -f $file ]]; then sed -n 's/^deb\(-src\)\? /deb-src /p' "$file" >>"$1/from-lists.list"; fi
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        if [[ -f $file ]]; then sed 's/^Types:.*/Types: deb-src/' "$file" >"$1/${file##*/}"; fi
    done
}

apt_here() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/entries" \
        -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o APT::Sandbox::User= "$@" </dev/null >>"$folder/apt.log" 2>&1
}

fetch() {
    local version
    version=$(dpkg-query --show --showformat='${source:Version}' libc6 2>/dev/null) ||
        skip "there is no package libc6, so glibc is not from a distribution that is known here"
    if [[ $package != glibc ]]; then version=any; fi
    rm -rf "$folder/entries" "$folder/lists" "$folder/cache"
    mkdir -p "$folder/entries" "$folder/lists/partial" "$folder/cache/archives/partial"
    make_entries "$folder/entries"
    apt_here update || skip "no lists of source packages; see $folder/apt.log"
    (cd "$folder" && { apt_here source --download-only "$package=$version" ||
        apt_here source --download-only "$package"; }) ||
        skip "no source package of $package; see $folder/apt.log"
}

package=${2-glibc}
mkdir -p "$1" && folder=$(cd "$1" && pwd) || exit 1
if [[ ! -e $folder/unpacked ]]; then
    command -v apt-get >/dev/null || skip "there is no apt-get"
    command -v xz >/dev/null || skip "there is no xz"
    fetch
    rm -rf "$folder/source" && mkdir "$folder/source"
    tar -xf "$(find "$folder" -maxdepth 1 -name "${package}_*.orig.tar.*" ! -name '*.asc')" --strip-components=1 -C "$folder/source" || exit 1
    touch "$folder/unpacked"
fi
echo "$folder/source"

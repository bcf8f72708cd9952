#!/usr/bin/env bash
# packages.sh SOURCE deb|full [planted FAULT]: makes Debian's packages, has lintian look at them, and
# installs, uses and removes them: in this system with a layer over it that takes what is written, or,
# with `full`, in bare systems too; `full` also builds all twice in two places, and compares. With `deb`
# nothing is optimised.
set -euo pipefail
source=$1 form=$2 fault=${4-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

# ---- In the system that has the packages ----

# Run by the root of that system, with the packages in /packages: `packages.sh SOURCE inside`.
inside() {
    local name said
    export LC_ALL=C DEBIAN_FRONTEND=noninteractive
    cd /packages
    # To list all manuals of the system anew takes longer than all of this.
    rm -f /var/lib/man-db/auto-update
    find /etc /usr -xdev | sort >/packages/before
    dpkg -i ./libsnug0_*.deb ./libsnug-compat0_*.deb ./libsnug-dev_*.deb ./snug_*.deb >/packages/log 2>&1 || { cat /packages/log && exit 1; }
    for name in libsnug0 libsnug-compat0 libsnug-dev snug; do
        [[ $(dpkg --verify "$name") == '' ]] || wrong "$name is damaged"
    done
    snug --version | grep '^libsnug 0' >/dev/null
    # shellcheck disable=SC2016 # sh's
    said=$(snug run sh -c 'cat /proc/$$/maps' 2>/packages/log) || wrong "$(cat /packages/log)"
    [[ $said == *libsnug* ]] || wrong "sh did not run on snug"
    if [[ ${PLANTED-} != left ]]; then use_packages; fi
    dpkg --purge snug libsnug-dev libsnug-compat0 libsnug0 >/packages/log 2>&1 || { cat /packages/log && exit 1; }
    if [[ ${PLANTED-} == left ]]; then touch /usr/lib/libsnug.left; fi
    find /etc /usr -xdev | sort >/packages/after
    said=$(diff /packages/before /packages/after | grep -v -e '__pycache__' -e '^[0-9]' || true)
    [[ ! $said ]] || wrong "left behind or gone: $said"
    echo "installed, used and removed"
}

# As far as that system has what they are used by.
use_packages() {
    local name said
    said=$(LD_PRELOAD=libsnug.so.0 SNUG_STATS=stderr ls / 2>&1)
    [[ $said == *"snug: statistics"* ]] || wrong "the library cannot be preloaded by its name"
    said=$(LD_PRELOAD="libsnug.so.0 libsnug-compat.so.0" cat /proc/self/maps 2>&1)
    [[ $said == *libsnug-compat.so.0* && $said != *"cannot be preloaded"* ]] || wrong "libsnug-compat cannot be preloaded by its name"
    if command -v cc >/dev/null && command -v pkg-config >/dev/null; then
        # shellcheck disable=SC2046 # words
        cc /packages/main.c -o /packages/main $(pkg-config --cflags --libs snug)
        /packages/main | grep 'checked: sound' >/dev/null
        echo "a program was built with it"
    fi
    if command -v man >/dev/null; then
        for name in "1 snug-run" "3 snug_heap_create" "3 snug_free" "7 snug-options"; do
            # shellcheck disable=SC2086 # words
            [[ -s $(man -w $name) ]] || wrong "there is no page $name"
        done
        echo "the manual is found"
    fi
    if command -v gdb >/dev/null; then
        said=$(gdb -nx -batch -iex "set debuginfod enabled off" -ex "set environment LD_PRELOAD libsnug.so.0" \
            -ex "set breakpoint pending on" -ex "break snug_malloc" -ex run -ex "help snug-block" --args /bin/sleep 0 2>&1 || true)
        [[ $said == *"snug-block ADDRESS: the block"* ]] || wrong "gdb does not find the script: $said"
        echo "gdb finds its script"
    fi
}

if [[ $form == inside ]]; then
    inside
    exit
fi

# Usage: in_root ROOT: runs the above there.
in_root() {
    mkdir -p "$1/packages/install" "$1/packages/support"
    cp "$packages"/*.deb "$source/examples/link/main.c" "$1/packages/"
    cp "$source/tests/install/packages.sh" "$1/packages/install/"
    cp "$source/tests/support/verdict.sh" "$1/packages/support/"
    # shellcheck disable=SC2016 # bash's
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PLANTED="$fault" \
        unshare --mount --fork bash -c 'mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" &&
            exec chroot "$1" bash /packages/install/packages.sh / inside' bash "$1"
}

# ---- Here ----

need dpkg-buildpackage dh fakeroot cargo
tool=$source/build/bin/snug
[[ -x $tool ]] || skip "the tool is not built"
packages=$scratch/packages
if [[ $fault ]]; then
    # Made by the test before this one.
    [[ -d $source/build/test-packages ]] || skip "there are no packages to damage"
    cp -r "$source/build/test-packages" "$packages"
else
    cp "$tool" "$scratch/built-tool" # whatever it is called
    # In a short run without optimisation, which the tests of the tree have, and which is half of the build; nor are files made
    # as small as can be.
    if [[ $form != full ]]; then export DEB_BUILD_OPTIONS=noopt DPKG_DEB_COMPRESSOR_LEVEL=1; fi
    "$source/dev" package deb --tool="$scratch/built-tool" --to="$packages" 2>"$scratch/log" || { cat "$scratch/log" && exit 1; }
    rm -rf "$source/build/test-packages" && cp -r "$packages" "$source/build/test-packages"
fi

version=$(sed -n 's/^project(snug VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
[[ -e $(compgen -G "$packages/libsnug0_${version}_*.deb") ]] || wrong "the packages have another version than $version"
(cd "$packages" && sha256sum --quiet -c SHA256SUMS)

linted=("$packages"/*.deb)
if [[ $fault == lint ]]; then
    linted=("$packages"/libsnug-dev_*.deb)
    dpkg-deb -R "${linted[0]}" "$scratch/tree"
    rm "$scratch/tree/usr/share/doc/libsnug-dev/copyright"
    dpkg-deb -b "$scratch/tree" "${linted[0]}" >/dev/null
fi
if [[ $fault != left ]] && command -v lintian >/dev/null; then
    # The project has no mail address.
    lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
        "${linted[@]}" || wrong "lintian has something to say"
    echo "lintian has nothing to say"
fi

layer=$scratch/layer
mkdir -p "$layer"/{upper,work,root}
if ((EUID != 0)) || ! unshare --mount mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root" 2>/dev/null; then
    skip "no layer over the system can be made here; the packages were built and looked at"
fi
# shellcheck disable=SC2016 # bash's
unshare --mount bash -c 'mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" && exec bash -c "$2" bash "$1/root"' \
    bash "$layer" "$(declare -f in_root); packages='$packages' source='$source' fault='$fault'
        in_root \"\$1\""
[[ $form == full ]] || exit 0

# ---- In bare systems, and a second time ----

need debootstrap
for release in bookworm trixie; do
    debootstrap --variant=minbase "$release" "$scratch/$release" >"$scratch/log" 2>&1 ||
        skip "debootstrap could not make a $release: $(tail -n 1 "$scratch/log")"
    in_root "$scratch/$release"
    echo "in a bare $release"
done

# The same source elsewhere, the tool included.
copy=$scratch/elsewhere/snug
mkdir -p "$copy"
(cd "$source" && tar -c --exclude=./build --exclude=./tool/target --exclude=.git . | tar -x -C "$copy")
"$source/dev" package --to="$scratch/first" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
"$copy/dev" package --to="$scratch/second" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
for file in "$scratch"/first/*.{deb,tar.xz,json,rpm,whl}; do
    cmp "$file" "$scratch/second/${file##*/}"
done
# For the tests of the others.
rm -rf "$source/build/packages" && cp -r "$scratch/first" "$source/build/packages"
echo "two builds gave the same bytes"

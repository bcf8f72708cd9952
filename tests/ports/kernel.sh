#!/usr/bin/env bash
# Runs tests that suite.sh built in a whole machine of QEMU's, on Debian's kernel for it: kernel.sh PORT FOLDER TESTS BUT.
# The machine's root is what Debian calls minbase, unpacked and not installed, and FOLDER's programs; all of it lies in memory, so
# no module of the kernel is needed. guest.py makes the list of what runs, and results.xml of what the machine wrote to its line.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
port=$1 work=$2 tests=$3 but=$4

# shellcheck source=../support/verdict.sh
. "$here/../support/verdict.sh"
need debootstrap cpio timeout

# What Debian calls the machine and its kernel, and how QEMU plays it.
case $port in
    aarch64-*)
        debian=arm64 kernel=linux-image-arm64 line=ttyAMA0
        play=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on")
        ;;
    riscv64-*)
        debian=riscv64 kernel=linux-image-riscv64 line=ttyS0
        play=(qemu-system-riscv64 -M virt)
        ;;
esac
if [[ $port == *-16k ]]; then kernel+=-16k; fi

# Once for all runs: it is the same each time.
kept=$root/build/kernels/$port
if [[ ! -e $kept/complete ]]; then
    rm -rf "$kept" && mkdir -p "$kept/kernel"
    debootstrap --foreign --variant=minbase --arch="$debian" --include="$kernel" trixie "$kept/root" >"$kept/log" 2>&1 ||
        skip "debootstrap could not make a root for $debian: $(tail -n 1 "$kept/log")"
    for package in "$kept"/root/var/cache/apt/archives/linux-image-[0-9]*.deb; do dpkg-deb -x "$package" "$kept/kernel"; done
    rm -rf "$kept"/root/{var/cache/apt,debootstrap,usr/share/{doc,locale,man,zoneinfo,info}} "$kept/kernel/usr"
    # It may have made links of them, to this machine's.
    rm -f "$kept"/root/{proc,sys} 2>/dev/null || true
    mkdir -p "$kept"/root/{proc,sys}
    touch "$kept/complete"
fi
vmlinuz=$(echo "$kept"/kernel/boot/vmlinu[xz]-*)

# The root, the sources of the tests and the programs, where they are here.
guest=$work/guest
rm -rf "$guest" && cp -a "$kept/root" "$guest"
mkdir -p "$guest$work" "$guest$root"
cp -a "$root/tests" "$guest$root/"
(cd "$work/build" && find . \( -name CMakeFiles -o -name Testing \) -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print0 -o -type l -print0 |
    cpio -0 -pdm --quiet "$guest$work/build")
find "$guest$work/build" -type f -exec "${port%%-*}-linux-gnu-strip" -g {} + 2>/dev/null || true
python3 "$here/guest.py" list "$work/build" "$tests" "$but" >"$work/list"
cp "$work/list" "$guest/list"
cp "$here/guest_init.sh" "$guest/init" && chmod +x "$guest/init"
(cd "$guest" && find . -print0 | cpio -0 -o -H newc --quiet) >"$work/initramfs"
rm -rf "$guest"

timeout 6600 "${play[@]}" -smp "$(nproc)" -m 4096 -nographic -no-reboot -nic none -kernel "$vmlinuz" -initrd "$work/initramfs" \
    -append "console=$line rdinit=/init panic=-1 quiet" </dev/null >"$work/console" || echo "the machine was stopped"
rm -f "$work/initramfs"
python3 "$here/guest.py" results "$work/console" "$work"

#!/bin/bash
# The first program of the machine that kernel.sh plays: runs what /list says, as many at a time as there are processors, and
# writes what came of each to the machine's line, in one piece. Then the machine ends.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts && mount -t tmpfs shm /dev/shm && mount -t devpts pts /dev/pts
ln -sf /proc/self/fd /dev/fd
ip link set lo up 2>/dev/null
ulimit -c 0
mkdir -p /said

# Usage: one NAME SECONDS COMMAND
one() {
    local status start=$SECONDS said=/said/$1
    setsid timeout -k 10 "$2" bash -c "$3" >"$said" 2>&1 </dev/null
    status=$?
    # shellcheck disable=SC2016 # the inner shell's
    flock /list bash -c 'echo; echo "@@ $1 $2 $3"; tail -c 4000 "$4" | tr -cd "\11\12\40-\176" | sed "s/^/@> /"; echo "@."' \
        bash "$1" "$status" $((SECONDS - start)) "$said"
    rm -f "$said"
}
export -f one

echo "@@@ $(uname -mr), pages of $(getconf PAGE_SIZE) bytes, $(nproc) processors"
# shellcheck disable=SC2016 # bash's
tr '\n' '\0' </list | xargs -0 -n 3 -P "$(nproc)" bash -c 'one "$@"' bash
echo "@@@ end"
sync
echo o >/proc/sysrq-trigger
sleep 60

#!/usr/bin/env bash
# Tests tell_loader of scripts/install.sh: the loader's list is made anew where the loader looks under the prefix, however
# long that list is, and nowhere else. ldconfig is replaced by one that prints a long list and notes what it was asked.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
# shellcheck source=tests/support/verdict.sh
source "$root/tests/support/verdict.sh"
# shellcheck source=scripts/install.sh
source "$root/scripts/install.sh"
((EUID == 0)) || skip "only root makes the loader's list"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/ldconfig" <<'LDCONFIG'
#!/bin/sh
echo "ldconfig $*" >>"${0%/*}/asked"
[ $# -gt 0 ] || exit 0
echo "/opt/a+b/lib: (from /etc/ld.so.conf.d/snug.conf:1)"
yes "	libnone.so.1 -> libnone.so.1.0.0" | head -n 10000
LDCONFIG
chmod +x "$scratch/ldconfig"
PATH=$scratch:$PATH
unset DESTDIR

# Usage: expect PREFIX TIMES: how often a list is made for it.
expect() {
    : >"$scratch/asked"
    tell_loader "$1"
    local times
    times=$(grep -cx 'ldconfig ' "$scratch/asked" || true)
    [[ $times == "$2" ]] || wrong "for $1 the list was made $times times: $(cat "$scratch/asked")"
}

expect /opt/a+b 1
expect /opt/aab 0
expect /opt 0
echo "the loader's list is made anew where it has to be"

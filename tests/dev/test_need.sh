#!/usr/bin/env bash
# Tests scripts/need.sh: what is missing is seen, and a version is compared as a version. Nothing
# is installed: may_install is replaced by a machine that says no.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
export root build=$root/build
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"
# shellcheck source=scripts/need.sh
source "$root/scripts/need.sh"

failures=0

# Usage: expect WHAT EXPECTED GOT
expect() {
    if [[ $2 != "$3" ]]; then
        printf '%s:\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
        failures=$((failures + 1))
    fi
}

yes_or_no() { if "$@"; then echo yes; else echo no; fi; }

expect "a program that is there" "" "$(missing_packages bash:bash)"
expect "a program that is not" "nowhere" "$(missing_packages bash:bash no-such-program:nowhere)"
expect "a file that is there" "" "$(missing_packages /bin/sh:dash)"
expect "a file that is not" "libnone-dev" "$(missing_packages /no/such.h:libnone-dev)"

expect "1.85.1 is new enough" yes "$(yes_or_no version_at_least 1.85.1 1.85)"
expect "1.85 is new enough" yes "$(yes_or_no version_at_least 1.85 1.85)"
expect "1.100.0 is new enough" yes "$(yes_or_no version_at_least 1.100.0 1.85)"
expect "1.84.9 is too old" no "$(yes_or_no version_at_least 1.84.9 1.85)"
expect "0.66.0+ds1-1 is too old" no "$(yes_or_no version_at_least 0.66.0+ds1-1 1.85)"

# While apt-get runs, services are left alone, whatever becomes of it; and a policy of somebody's own stays.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/apt-get" <<'END'
#!/bin/sh
sh "${0%/*}/policy-rc.d" x start
echo "policy $?"
cp "${0%/*}/policy-rc.d" "${0%/*}/kept"
[ "$5" = works ]
END
chmod +x "$scratch/apt-get"
# Usage: asked works|fails: what such an apt-get has seen, and what it leaves.
asked() (
    as_root() { :; }
    PATH=$scratch:$PATH build=$scratch service_policy=$scratch/policy-rc.d
    rm -f "$scratch/log/apt.log"
    if apt_get install "$1"; then echo worked; fi
    cat "$scratch/log/apt.log"
    if [[ -e $service_policy ]]; then echo left; fi
)
expect "no service is touched while apt-get runs" "worked policy 101" "$(asked works | xargs)"
expect "nor if it fails" "policy 101" "$(asked fails | xargs)"
status=0
sh "$scratch/kept" x start || status=$?
expect "a policy that was left behind says yes" 0 "$status"
mv "$scratch/kept" "$scratch/policy-rc.d"
expect "and is replaced" "worked policy 101" "$(asked works | xargs)"
echo "exit 104" >"$scratch/policy-rc.d"
expect "a policy of one's own holds, and stays" "worked policy 104 left" "$(asked works | xargs)"

may_install() { return 1; }
status=0
output=$(need_packages bash:bash no-such-program:first /no/such.h:second 2>&1) || status=$?
expect "what is missing and cannot be installed ends the command" 1 "$status"
expect "and the command that installs it is printed" "yes" \
    "$(yes_or_no grep -q 'apt-get install first second$' <<<"$output")"
expect "with nothing missing it goes on" "" "$(need_packages bash:bash 2>&1)"

# What apt knows and what is installed, instead of asking it.
apt_candidate() { if [[ $1 == new || $1 == known ]]; then echo 1.0; fi; }
package_is_installed() { [[ $1 == installed ]]; }
choose_packages known installed 'old|new|known' 'other|installed' 'no|none'
expect "what is not installed is chosen, the first alternative that there is" "known new" "${chosen[*]}"
expect "what is no package is named" "no|none" "${unknown[*]}"
status=0
output=$(want_packages known nowhere 2>&1) || status=$?
expect "what is only wanted does not end the command" 0 "$status"
expect "the command that installs it is printed" "yes" \
    "$(yes_or_no grep -q 'apt-get install known$' <<<"$output")"
expect "and what there is not" "yes" \
    "$(yes_or_no grep -q 'there is no package nowhere' <<<"$output")"

exit $((failures > 0))

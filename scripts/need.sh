# shellcheck shell=bash
# Brings in what a command needs: Debian packages, and Rust. Sourced by ./dev.
#
# A need is written `probe:package`. The probe is a program's name, or the path of a file; if it is
# not there, the Debian package is what brings it. So a machine that has everything is not asked a
# second time, whatever brought it there.

build_needs=(gcc:gcc /usr/include/stdio.h:libc6-dev cmake:cmake ninja:ninja-build)
run_needs=(python3:python3)
test_needs=(g++:g++ make:make python3:python3 /usr/include/cmocka.h:libcmocka-dev git:git)
lint_needs=(clang-tidy:clang-tidy shellcheck:shellcheck python3:python3)
rust_needed=1.85

# Prints the packages of those needs that are not met.
missing_packages() {
    local need probe
    for need in "$@"; do
        probe=${need%%:*}
        case $probe in
            /*) [[ -e $probe ]] ;;
            *) command -v "$probe" >/dev/null ;;
        esac || printf '%s\n' "${need#*:}"
    done
}

# The words that make a command run as root: none for root, sudo if it asks for no password.
# Fails if there is no way.
as_root() {
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || return 1
        printf 'sudo -n'
    fi
}

may_install() {
    command -v apt-get >/dev/null && as_root >/dev/null
}

# What Debian asks before it starts, stops or restarts a service because of a package.
service_policy=/usr/sbin/policy-rc.d

# For `sh -c`, with arguments POLICY COMMAND...: runs the command, and meanwhile the policy is that no service is touched:
# servers that come in for tests do not listen on the machine. Somebody's own policy is left alone. Ours says no only
# for as long as its process is there, so that it does no harm where nobody was left to remove it.
# shellcheck disable=SC2016 # sh's
services_untouched='
    policy=$1 mark="made by ./dev of snug"
    shift
    exec 9<"${policy%/*}" && flock 9
    if { [ ! -e "$policy" ] && [ ! -L "$policy" ]; } || grep -qs "$mark" "$policy"; then
        trap "rm -f \"$policy\"" EXIT
        trap "exit 1" HUP INT TERM
        { printf "#!/bin/sh\n# %s, for one apt-get\n[ ! -e /proc/%d ] || exit 101\n" "$mark" $$ >"$policy" &&
            chmod 755 "$policy"; } || exit
    fi
    "$@" 9<&-
'

apt_get() {
    local -a privileged
    read -ra privileged <<<"$(as_root)"
    mkdir -p "$build/log"
    "${privileged[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$services_untouched" sh "$service_policy" \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$build/log/apt.log" 2>&1
}

# Installs packages, with fresh lists if those at hand do not know them.
install_packages() {
    say "installing $*"
    apt_get install --yes --no-install-recommends "$@" && return
    apt_get update && apt_get install --yes --no-install-recommends "$@"
}

install_command() {
    local prefix=
    ((EUID == 0)) || prefix='sudo '
    printf '%sapt-get install %s' "$prefix" "$*"
}

# Usage: need_packages NEED...: what is missing is there afterwards, or this was all.
need_packages() {
    local -a missing
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]} > 0)) || return 0
    if ! may_install; then
        say "missing on this machine; install it with"
        say "    $(install_command "${missing[@]}")"
        exit 1
    fi
    install_packages "${missing[@]}" || {
        tail -n 5 "$build/log/apt.log" >&2
        fail "could not install ${missing[*]}; the log is in build/log/apt.log"
    }
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]} == 0)) || fail "still missing after the installation: ${missing[*]}"
}

package_is_installed() {
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# The version of a package that apt would install, or nothing.
apt_candidate() {
    LC_ALL=C apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# Usage: choose_packages NAME...: leaves in `chosen` the packages that are not installed but can be,
# and in `unknown` the names that are no package here. A name may be alternatives, `one|other`:
# what one library is called in different releases of Debian; the first that there is counts.
choose_packages() {
    local alternatives name
    chosen=() unknown=()
    for alternatives in "$@"; do
        for name in ${alternatives//|/ }; do
            if package_is_installed "$name"; then continue 2; fi
        done
        for name in ${alternatives//|/ }; do
            if [[ $(apt_candidate "$name") ]]; then
                chosen+=("$name")
                continue 2
            fi
        done
        unknown+=("$alternatives")
    done
}

# Usage: want_packages NAME...: installs what can be had; whoever uses the rest does without. Names
# are as for choose_packages.
want_packages() {
    local name
    local -a chosen unknown
    choose_packages "$@"
    if ((${#unknown[@]} > 0)) && may_install && apt_get update; then choose_packages "$@"; fi
    for name in "${unknown[@]}"; do
        say "there is no package ${name//|/ or }; what needs it will be skipped"
    done
    ((${#chosen[@]} > 0)) || return 0
    if ! may_install; then
        say "what needs these packages will be skipped; install them with"
        say "    $(install_command "${chosen[@]}")"
        return 0
    fi
    install_packages "${chosen[@]}" && return
    for name in "${chosen[@]}"; do
        package_is_installed "$name" || apt_get install --yes --no-install-recommends "$name" ||
            say "could not install $name; what needs it will be skipped"
    done
}

# ---- Rust ---------------------------------------------------------------------------------------

# Succeeds if the first version is not lower than the second.
version_at_least() {
    [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]
}

rust_is_there() {
    local version
    if ! command -v cargo >/dev/null && [[ -x ${CARGO_HOME:-${HOME-}/.cargo}/bin/cargo ]]; then
        PATH=${CARGO_HOME:-${HOME-}/.cargo}/bin:$PATH
    fi
    command -v cargo >/dev/null || return 1
    version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) && [[ $version ]] &&
        version_at_least "$version" "$rust_needed"
}

# Usage: need_rust: fails, with the reason said, if there is no Rust that is new enough.
need_rust() {
    local candidate
    if ! rust_is_there; then
        candidate=$(apt_candidate cargo)
        if [[ ! $candidate ]] && may_install && apt_get update; then
            candidate=$(apt_candidate cargo)
        fi
        if [[ ! $candidate ]] || ! version_at_least "$candidate" "$rust_needed"; then
            say "the tool needs Rust $rust_needed or newer, which this system does not have;" \
                "see https://rustup.rs"
            return 1
        fi
        if ! may_install; then
            say "the tool needs Rust; install it with"
            say "    $(install_command cargo)"
            return 1
        fi
        install_packages cargo || return 1
    fi
    # cargo fetches over TLS, and Debian's cargo does not bring the certificates.
    if [[ -e /etc/debian_version && ! -e /etc/ssl/certs/ca-certificates.crt ]]; then
        want_packages ca-certificates
    fi
    rust_is_there
}

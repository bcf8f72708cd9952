# shellcheck shell=bash
# Installs what was built, and takes it away again. Sourced by ./dev.
#
# src/install.cmake says what goes where. What was installed under a prefix is listed there, in
# share/snug/installed, so that it can be removed without the tree that it was built in.

install_needs=(python3:python3)
install_list=share/snug/installed

# Leaves the licences of the crates in the tool where src/install.cmake looks for them.
write_licences() {
    [[ -e $build/bin/snug ]] || return 0
    rust_is_there || return 0
    mkdir -p "$build/share"
    python3 "$root/scripts/crates.py" licences "$root/tool" >"$build/share/licences.txt.new" &&
        mv "$build/share/licences.txt.new" "$build/share/licences.txt"
}

# Usage: parse_prefix COMMAND ARGUMENT...: leaves in `prefix` an absolute path.
parse_prefix() {
    local command=$1
    shift
    prefix=/usr/local
    while (($# > 0)); do
        case $1 in
            --prefix)
                (($# > 1)) || usage_error "--prefix needs a directory"
                prefix=$2
                shift
                ;;
            --prefix=*) prefix=${1#*=} ;;
            *) usage_error "$command does not know '$1'" ;;
        esac
        shift
    done
    [[ $prefix ]] || usage_error "--prefix needs a directory"
    prefix=$(realpath -ms "$prefix")
}

# Fails, before anything is done, if nothing can be written to a directory or made in its place.
ensure_writable() {
    local directory=$1
    while [[ ! -e $directory ]]; do directory=$(dirname "$directory"); done
    [[ -d $directory && -w $directory ]] || fail "$1 cannot be written to; say --prefix, or be root"
}

# Usage: list_staged STAGE PLACE: prints what is about to go from STAGE to PLACE: files, then the
# directories that are not there yet, or that an earlier installation made, deepest first, PLACE itself
# last, as `./`.
list_staged() {
    local stage=$1 place=$2 name
    (cd "$stage" && find . ! -type d -printf '%P\n')
    printf '%s\n' "$install_list"
    {
        {
            printf '%s\n' "${install_list%/*}"
            (cd "$stage" && find . -mindepth 1 -type d -printf '%P\n')
        } | sort -ru
        echo .
    } | while IFS= read -r name; do
        if [[ ! -e $place/$name ]] || grep -qsxF "$name/" "$place/$install_list"; then
            printf '%s/\n' "$name"
        fi
    done
}

# Usage: tell_loader PREFIX: where the loader looks there for libraries, it does so by a list, which is made anew.
tell_loader() {
    local PATH=$PATH:/usr/sbin:/sbin places
    [[ ! ${DESTDIR-} ]] && ((EUID == 0)) && command -v ldconfig >/dev/null || return 0
    # Into a variable: a pipe to a reader that leaves early would end ldconfig, and so count as "no".
    places=$(ldconfig -N -X -v 2>/dev/null) || true
    if [[ $'\n'$places =~ $'\n'"$1/lib"[^:$'\n']*: ]]; then ldconfig; fi
}

cmd_install() {
    local prefix place list stage=$build/stage
    parse_prefix install "$@"
    place=${DESTDIR-}$prefix
    ensure_writable "$place"
    need_packages "${build_needs[@]}" "${install_needs[@]}"
    build_all
    write_licences || fail "the licences of the crates in the tool could not be listed"
    rm -rf "$stage"
    DESTDIR=$stage cmake --install "$build/cmake-release" --prefix "$prefix" \
        >"$build/log/install.log" 2>&1 || {
        tail -n 5 "$build/log/install.log" >&2
        fail "could not install; the log is in build/log/install.log"
    }
    list=$(list_staged "$stage$prefix" "$place")
    # Files are replaced, not written to: programs may run on the old ones.
    if ! mkdir -p "$place/${install_list%/*}" ||
        ! cp -dR --preserve=mode,timestamps --remove-destination "$stage$prefix/." "$place" ||
        ! printf '%s\n' "$list" >"$place/$install_list"; then
        fail "could not install under $place"
    fi
    tell_loader "$prefix"
    say "installed under $place"
}

# Removes what the list names, and of its directories those that are empty then.
cmd_uninstall() {
    local prefix place name
    local -a names
    parse_prefix uninstall "$@"
    place=${DESTDIR-}$prefix
    [[ -f $place/$install_list ]] || fail "nothing was installed under $place by ./dev install"
    mapfile -t names <"$place/$install_list"
    for name in "${names[@]}"; do
        # A list that was tampered with must not lead elsewhere.
        [[ $name && $name != /* && "/$name/" != */../* ]] ||
            fail "$place/$install_list names '$name', so nothing is removed"
    done
    for name in "${names[@]}"; do
        case $name in
            ./) [[ $place == /usr/local ]] || rmdir "$place" 2>/dev/null || true ;;
            */) rmdir "$place/$name" 2>/dev/null || true ;;
            *) rm -f "$place/$name" || fail "$place/$name cannot be removed" ;;
        esac
    done
    tell_loader "$prefix"
    say "removed what was installed under $place"
}

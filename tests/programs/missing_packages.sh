#!/usr/bin/env bash
# missing_packages.sh - prints the Debian packages of packages.txt that this machine wants for the
# tests, one a line.
set -u

while IFS= read -r line; do
    case $line in
    '' | '#'*) continue ;;
    esac
    probe=${line%:*}
    case $probe in
    /*) [ -e "$probe" ] ;;
    *' '*) bash -c "$probe" >/dev/null 2>&1 ;;
    *) command -v "$probe" >/dev/null ;;
    esac || echo "${line##*:}"
done <"$(dirname "$0")/packages.txt"

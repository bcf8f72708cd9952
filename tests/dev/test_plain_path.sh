#!/usr/bin/env bash
# Tests plain_path of scripts/common.sh: a directory whose path LD_PRELOAD cannot hold gets another
# one that it can, always the same.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

die() {
    printf 'FAIL: %s\n' "$*"
    exit 1
}

[[ $(plain_path "$folder") == "$folder" ]] || die "a path that is fine was changed"

for name in "with blanks" "with:colon"; do
    mkdir "$folder/$name"
    plain=$(plain_path "$folder/$name")
    [[ $plain != *[[:space:]:]* ]] || die "'$plain' has a blank or a colon in it"
    [[ $plain -ef $folder/$name ]] || die "'$plain' is not '$folder/$name'"
    [[ $(plain_path "$folder/$name") == "$plain" ]] || die "the second time it is another path"
    rm "$plain"
done

#!/usr/bin/env bash
# git.sh - git imports a generated history, clones, packs, checks and queries it; the pack itself
# and the answers are compared.
. "$(dirname "$0")/common.sh"
need git awk

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=Some GIT_AUTHOR_EMAIL=some@body.example GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=Some GIT_COMMITTER_EMAIL=some@body.example
export GIT_COMMITTER_DATE='1700000000 +0000'
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

import_and_pack() {
    on git init -q -b main first
    awk -f "$input/make_history.awk" -v commits="$(scaled 150 6000)" -v files=120 |
        on git -C first fast-import --quiet --done
    # One thread, as several share the search for deltas by who is first; gc below uses all.
    on git -C first -c pack.threads=1 repack -q -a -d -f --depth=30 --window=20
    on git -C first gc -q
    on git -C first fsck --full --strict >fsck.txt 2>&1
    cp first/.git/objects/pack/*.pack first.pack
}

clone_and_ask() {
    on git clone -q --no-local --no-hardlinks first second 2>clone.txt
    cd second
    on git log --all --stat --format='%H %T %P %ad %s' >../log.txt
    on git log -p --follow part1/file1.txt >../patches.txt
    on git blame part2/file2.txt >../blame.txt
    on git diff --find-renames main~50 main >../difference.txt
    on git grep -n -E '[a-f]{3}[0-9]' >../found.txt
    on git cat-file --batch-check --batch-all-objects >../objects.txt
    on git archive --format=tar main >../archive.tar
    cd ..
}

change_and_merge() {
    cd second
    on git checkout -q -b work main~10
    sed -i 's/a/A/g' part3/*.txt
    on git commit -q -a -m 'letters'
    on git merge -q -m 'join' origin/side -X ours >../merge.txt 2>&1
    on git status --porcelain=v2 --branch >../status.txt
    on git ls-tree -r HEAD >../tree.txt
    on git fsck --full >../fsck2.txt 2>&1
    cd ..
}

scenario() {
    import_and_pack
    clone_and_ask
    change_and_merge
    rm -rf first/.git second/.git # stat data and times; what they held is in the files above
}

runs_on_library git
compare_runs "$@"

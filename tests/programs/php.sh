#!/usr/bin/env bash
# php.sh - PHP works with documents, tables, regular expressions and JSON, with its own allocator and
# without (USE_ZEND_ALLOC=0). Versions that open their extensions with RTLD_DEEPBIND have both sides
# free what the other has allocated.
. "$(dirname "$0")/common.sh"
need php
extensions=$(php -m)
for extension in dom SimpleXML PDO pdo_sqlite 'Zend OPcache' json; do
    grep -qxF "$extension" <<<"$extensions" || skip "PHP has no extension $extension"
done

scenario() {
    local own
    for own in 1 0; do
        mkdir "own$own"
        cd "own$own"
        USE_ZEND_ALLOC=$own on php -d opcache.enable_cli=1 -d opcache.file_update_protection=0 \
            -d memory_limit=-1 -d display_errors=stderr -d log_errors=0 -d error_reporting=-1 \
            "$input/objects.php" "$(scaled 2000 40000)" >printed.txt 2>messages.txt
        cd ..
    done
}

runs_on_library 'php[0-9.]*'
compare_runs "$@"

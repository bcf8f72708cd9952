#!/usr/bin/env bash
# sqlite.sh - sqlite3 runs a generated script, in a file and in memory; answers, a dump and the
# database file itself are compared.
. "$(dirname "$0")/common.sh"
need sqlite3 awk

scenario() {
    awk -f "$input/make_sql.awk" -v rows="$(scaled 6000 400000)" >script.sql
    on sqlite3 -batch file.db <script.sql >answers.txt 2>&1
    on sqlite3 -batch file.db .dump >dump.sql
    on sqlite3 -batch :memory: <script.sql >answers-in-memory.txt 2>&1
    on sqlite3 -batch again.db <dump.sql
    on sqlite3 -batch -json again.db 'SELECT * FROM note ORDER BY body' >notes.json
}

runs_on_library sqlite3
compare_runs "$@"

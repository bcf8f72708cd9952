#!/usr/bin/env bash
# Records the traces in this folder anew: record.sh [FOLDER]. Each is of a real program of Debian,
# short enough that its trace stays below 1 MB. Traces made on another release differ; figures are
# comparable only between runs of the same file.
#
#   cpython   parses and writes JSON, all objects from malloc     one thread
#   cc1       gcc's compiler, with -O2; also the driver and as    one thread each
#   sqlite    joins, updates, indexes in memory                   one thread
#   perl      hashes of lists, regular expressions, threads       seven threads
#   git       pack-objects with four workers                      five threads
#   node      V8, objects and buffers                             six threads
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
input=$root/tests/programs/input
to=$(readlink -f "${1:-$here}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

record() { # NAME [OPTION...] -- CMD...
    local name=$1
    shift
    "$root/build/bin/snug" record -o "$to/$name.trace" "$@" >/dev/null
}

cat >words.py <<'END'
import json, collections
text = [{"key": i, "name": str(i * 7919 % 10007), "list": [i, i / 3, None, {"x": str(i)}]} for i in range(1500)]
for _ in range(3):
    text = json.loads(json.dumps(text))
count = collections.Counter(word for row in text for word in row["name"])
print(sorted(count.items()))
END
PYTHONMALLOC=malloc record cpython -- /usr/bin/python3 words.py

awk -f "$input/make_c.awk" -v functions=12 >large.c
record cc1 --children -- gcc -std=c17 -O2 -c large.c -o large.o

awk -f "$input/make_sql.awk" -v rows=3000 >notes.sql
record sqlite -- sqlite3 -batch :memory: <notes.sql

cp "$input/lists.pl" .
record perl -- perl lists.pl 1000

git init -q --bare repository
awk -f "$input/make_history.awk" -v commits=300 | git -C repository fast-import --quiet
git -C repository rev-list --all --objects | cut -d ' ' -f 1 >objects
(cd repository &&
    record git -- git pack-objects --quiet --threads=4 --window=50 --no-reuse-delta --no-reuse-object p <../objects)

cat >objects.js <<'END'
const rows = Array.from({length: 3000}, (_, i) => ({key: i, name: 'x'.repeat(i % 50), buffer: Buffer.alloc(1 + i % 3000)}));
console.log(JSON.stringify(rows).length);
END
record node -- node objects.js

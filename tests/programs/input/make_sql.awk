# make_sql.awk - prints an SQL script for sqlite3: awk -f make_sql.awk -v rows=20000
#
# It fills related tables, then updates, deletes, indexes and asks: joins, groups, windows,
# recursion, text search by LIKE, JSON and blobs. The same arguments print the same script.

function random(limit) {
    seed = (seed * 16807) % 2147483647
    return seed % limit
}

function letter() {
    return 97 + random(26)
}

function text(words,   out) {
    out = ""
    for (; words > 0; words--)
        out = out sprintf("%c%c%c%d ", letter(), letter(), letter(), random(99))
    return out
}

function fill(   i) {
    print "BEGIN;"
    for (i = 1; i <= rows / 20; i++)
        printf "INSERT INTO person VALUES(%d,'%s',%d);\n", i, text(2), random(100)
    for (i = 1; i <= rows; i++)
        printf "INSERT INTO note VALUES(%d,%d,%d,'%s',x'%04x%04x');\n", \
            i, 1 + random(rows / 20), random(10000), text(3 + random(30)), \
            random(65536), random(65536)
    print "COMMIT;"
}

function ask() {
    print "SELECT p.name, count(*), sum(n.worth) FROM note n JOIN person p ON p.id = n.person"
    print "  GROUP BY p.id ORDER BY 3 DESC, 1 LIMIT 500;"
    print "SELECT id, worth, rank() OVER (PARTITION BY person ORDER BY worth, id) FROM note"
    print "  WHERE worth % 7 = 3 ORDER BY id;"
    print "SELECT count(*), group_concat(id) FROM note"
    print "  WHERE body LIKE '%ab1%' OR body GLOB '*x[1-5] *';"
    print "WITH RECURSIVE f(n, a) AS (SELECT 1, '1' UNION ALL"
    print "  SELECT n + 1, a || n FROM f WHERE n < 900) SELECT n, length(a), substr(a, -20) FROM f;"
    print "SELECT json_group_array(json_object('id', id, 'worth', worth, 'body', body))"
    print "  FROM (SELECT * FROM note WHERE id % 9 = 0 ORDER BY body);"
    print "SELECT DISTINCT substr(body, 1, 3) AS s, hex(data) FROM note"
    print "  ORDER BY s DESC, 2 LIMIT 3000;"
}

BEGIN {
    seed = 99991
    if (!rows) rows = 20000
    print "PRAGMA journal_mode=WAL;"
    print "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, age INT);"
    print "CREATE TABLE note(id INTEGER PRIMARY KEY, person INT REFERENCES person, worth INT,"
    print "  body TEXT, data BLOB);"
    fill()
    print "CREATE INDEX note_person ON note(person);"
    print "CREATE INDEX note_body ON note(body);"
    print "UPDATE note SET worth = worth + length(body), data = data || zeroblob(id % 300);"
    print "DELETE FROM note WHERE id % 11 = 5;"
    ask()
    print "ANALYZE; REINDEX; VACUUM; PRAGMA integrity_check;"
    ask()
}

# make_history.awk - prints a history for `git fast-import`:
#   awk -f make_history.awk -v commits=300 -v files=120
#
# Text files of some hundred lines grow and change line by line over two branches that merge now
# and then, so that packing has deltas to find. The same arguments print the same history.

function random(limit) {
    seed = (seed * 16807) % 2147483647
    return seed % limit
}

function line_of_text(   text, words) {
    text = ""
    for (words = 3 + random(9); words > 0; words--)
        text = text word[random(400)] " "
    return text "\n"
}

function put(path, text) {
    printf "M 100644 inline %s\ndata %d\n%s\n", path, length(text), text
}

function commit(branch, n, message) {
    printf "commit refs/heads/%s\nmark :%d\n", branch, n
    printf "committer Some Body <some@body.example> %d +0000\n", 1600000000 + n * 600
    printf "data %d\n%s\n", length(message), message
}

function change_file(f,   i, text) {
    for (i = 0; i < 4; i++)
        line[f, random(lines[f])] = line_of_text()
    line[f, lines[f]++] = line_of_text()
    text = ""
    for (i = 0; i < lines[f]; i++)
        text = text line[f, i]
    put("part" f % 7 "/file" f ".txt", text)
}

BEGIN {
    seed = 4711
    if (!commits) commits = 300
    if (!files) files = 120
    for (i = 0; i < 400; i++)
        word[i] = sprintf("%c%c%x", 97 + random(26), 97 + random(26), random(65536))
    commit("main", 1, "the beginning")
    for (f = 0; f < files; f++) {
        for (lines[f] = 0; lines[f] < 40 + f; lines[f]++)
            line[f, lines[f]] = line_of_text()
        change_file(f)
    }
    for (n = 2; n <= commits; n++) {
        branch = n % 5 == 3 ? "side" : "main"
        commit(branch, n, "change " n ": " line_of_text())
        if (n == 3)
            print "from :2"
        if (n % 25 == 0)
            print "merge refs/heads/side"
        for (i = 0; i < 4; i++)
            change_file(random(files))
    }
    print "done"
}

# shellcheck shell=bash
# peak_rss_programs.sh - the real programs that peak_rss.sh runs. To be sourced by it.
#
# For each name in `programs` there is a function command_NAME (with _ for -) that sets `command`, or
# fails with a reason if the program is not there; a function prepare_NAME, if there is one, makes
# its input once. Both run in an empty directory of the program's own. $inputs are the generators
# of tests/programs, $here the directory of this file.

# shellcheck disable=SC2034 # read by peak_rss.sh
programs=(python-json python-objects gcc g++ clang++ git-log git-repack sqlite node redis perl awk
    bash)

is_there() {
    command -v "$1" >/dev/null || {
        echo "$1 is not installed"
        return 1
    }
}

# The interpreter itself: what is called python3 may be a script that looks for one.
real_python() {
    is_there python3 && python3 -c 'import sys; print(sys.executable)'
}

# A large JSON document is made, parsed and rewritten; small objects come from CPython's own pools.
command_python_json() {
    local python
    python=$(real_python) || { echo "$python"; return 1; }
    command=(env PYTHONHASHSEED=0 "$python" "$inputs/rewrite_json.py" 30000)
}

# A graph of objects, every one of them a block of malloc's.
command_python_objects() {
    local python
    python=$(real_python) || { echo "$python"; return 1; }
    command=(env PYTHONHASHSEED=0 PYTHONMALLOC=malloc "$python" "$here/input/many_objects.py" 60000)
}

# Compilers: one large C file; a C++ file that includes much of the standard library.
prepare_gcc() { awk -f "$inputs/make_c.awk" -v functions=150 >large.c; }
command_gcc() { is_there gcc && command=(gcc -std=c17 -O2 -c large.c -o large.o); }
command_g++() { is_there g++ && command=(g++ -std=c++17 -O2 -c "$inputs/words.cpp" -o words.o); }
command_clang++() {
    is_there clang++ && command=(clang++ -std=c++17 -O2 -c "$inputs/words.cpp" -o words.o)
}

# git: a log with all patches, and finding deltas anew for all objects.
make_repository() { # COMMITS
    is_there git >/dev/null || return 0
    git init -q --bare repository
    awk -f "$inputs/make_history.awk" -v commits="$1" -v files=200 |
        git -C repository fast-import --quiet --done
}
prepare_git_log() { make_repository 1500; }
command_git_log() {
    is_there git && command=(git -C repository --no-pager log --all -p --stat -M --output=../log.txt)
}
# Once beforehand, as what the first run finds is not what later runs find. One thread, as several
# share the work differently in every run.
prepare_git_repack() {
    make_repository 1500
    if command_git_repack >/dev/null; then "${command[@]}"; fi
}
command_git_repack() {
    is_there git &&
        command=(git -C repository -c pack.threads=1 repack -q -a -d -f --depth=40 --window=30)
}

# A database in memory: filled, indexed, asked.
prepare_sqlite() { awk -f "$inputs/make_sql.awk" -v rows=60000 >script.sql; }
command_sqlite() {
    is_there sqlite3 && command=(sqlite3 -batch :memory: '.output answers.txt' '.read script.sql')
}

# Objects, buffers and worker threads.
command_node() { is_there node && command=(node "$inputs/objects.js" 10000); }

# A server that is filled with values of many sizes, of which half are deleted again. The driver is
# small; the largest process is the server.
prepare_redis() {
    awk 'BEGIN {
        seed = 31
        for (i = 0; i < 150000; i++) {
            seed = (seed * 16807) % 2147483647
            printf "SET key:%d \"%*d\"\r\n", i, 8 + seed % (i % 40 ? 250 : 5000), i
            if (i % 4 == 0) printf "HSET hash:%d field:%d %d\r\n", i % 900, i, seed
            if (i % 5 == 0) printf "ZADD sorted:%d %d member:%d\r\n", i % 30, seed % 9999, i
            if (i % 2 == 1) printf "DEL key:%d\r\n", seed % i
        }
    }' >commands.txt
    cat >session.sh <<'END'
redis-server --port 0 --unixsocket ./redis.sock --save '' --logfile server.log --daemonize no &
until redis-cli -s ./redis.sock ping >/dev/null 2>&1; do sleep 0.05; done
LD_PRELOAD= redis-cli -s ./redis.sock --pipe <commands.txt
LD_PRELOAD= redis-cli -s ./redis.sock shutdown nosave
wait
END
}
command_redis() { is_there redis-server && is_there redis-cli && command=(bash session.sh); }

# Scripts: hashes, strings and lists.
command_perl() {
    is_there perl && command=(env PERL_HASH_SEED=0 perl "$inputs/lists.pl" 50000)
}
command_awk() {
    # shellcheck disable=SC2016 # awk's own variables
    is_there awk && command=(awk 'BEGIN {
        for (seed = 5; lines++ < 600000;) {
            seed = (seed * 16807) % 2147483647
            key[seed % 300000] = key[seed % 300000] substr(seed, 1, 4)
            if (seed % 5 == 0) delete key[seed % 70000]
        }
        for (k = 0; k < 300000; k++) sum += length(key[k])
        print sum }')
}
command_bash() { is_there bash && command=(bash "$inputs/shell_work.sh" 25000); }

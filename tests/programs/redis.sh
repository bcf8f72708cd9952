#!/usr/bin/env bash
# redis.sh - redis-server under load: mass insertion, a benchmark with many clients,
# deletion, a save in a forked child, a restart from that file. Then all values are read back.
. "$(dirname "$0")/common.sh"
need redis-server redis-cli redis-benchmark awk
# Debian's are linked with jemalloc and call its own functions, those of Debian 13 for blocks too.
if grep -qaE 'mallctl|mallocx' "$(command -v redis-server)"; then
    beside_library=${TEST_COMPAT:?}
fi

ask() { on redis-cli -s ./redis.sock "$@"; }

start_server() {
    # Should the script be killed, the server must not stay.
    become timeout "$(scaled 250 7000)" redis-server --port 0 --unixsocket ./redis.sock --save '' \
        --dir . --logfile server.log --io-threads 2 --hash-max-listpack-entries 16 --activedefrag no &
    server=$!
    trap 'kill $server 2>/dev/null || true' EXIT # not left behind if a step fails
    for _ in $(seq 600); do
        if [ "$(ask ping 2>/dev/null)" = PONG ]; then return 0; fi # and not that it is loading
        sleep 0.1
    done
    echo "redis-server did not answer"
    return 1
}

load() { # KEYS
    awk -v keys="$1" 'BEGIN {
        seed = 31
        for (i = 0; i < keys; i++) {
            seed = (seed * 16807) % 2147483647
            v = sprintf("%d-%*d", seed, 8 + seed % (i % 50 ? 200 : 6000), i)
            printf "SET text:%d \"%s\"\r\n", i, v
            printf "HSET hash:%d field:%d \"%s\"\r\n", i % 500, i, v
            printf "RPUSH list:%d \"%s\"\r\n", i % 97, v
            printf "ZADD sorted:%d %d member:%d\r\n", i % 13, seed % 100000, i
            printf "APPEND grown:%d \"%s\"\r\n", i % 40, v
            if (i % 3 == 1) printf "DEL text:%d\r\n", i - 1
        }
    }' >commands.txt
    ask --pipe <commands.txt >loaded.txt 2>&1
    rm commands.txt
}

benchmark() { # every value and key is fixed, so that the end is; the figures are not kept
    on redis-benchmark -s ./redis.sock -q -c 50 -P 8 --threads 2 -n "$1" -d 900 -t set,get \
        >/dev/null
    on redis-benchmark -s ./redis.sock -q -c 20 -n "$1" incr counted >/dev/null
}

read_back() { # FILE
    ask --scan --pattern 'text:*' | sort | sed 's/^/GET /' >questions.txt
    awk 'BEGIN {
        print "DBSIZE\nGET counted\nGET key:__rand_int__"
        for (i = 0; i < 40; i++) print "GET grown:" i
        for (i = 0; i < 97; i++) print "LRANGE list:" i " 0 -1"
        for (i = 0; i < 13; i++) print "ZRANGE sorted:" i " 0 -1 WITHSCORES"
    }' >>questions.txt
    ask <questions.txt >"$1"
    # The order inside a hash is by a random seed: one field with its value on a line, sorted.
    awk 'BEGIN { for (i = 0; i < 500; i++) print "HGETALL hash:" i }' >questions.txt
    ask <questions.txt | paste - - | sort >>"$1"
    rm questions.txt
}

scenario() {
    start_server
    load "$(scaled 5000 300000)"
    benchmark "$(scaled 6000 1000000)"
    read_back values.txt
    ask save >saved.txt
    ask shutdown nosave || true
    wait $server
    start_server
    read_back values-after-restart.txt
    cmp values.txt values-after-restart.txt
    ask shutdown nosave || true
    wait $server
    rm -f server.log dump.rdb redis.sock
}

runs_on_library 'redis-(server|check-rdb)' 'redis-cli' 'redis-benchmark'
compare_runs "$@"

#!/usr/bin/env bash
# recipes.sh SOURCE NAME [planted]: runs the lines that docs/recipes.md gives for NAME, each as it stands there,
# and looks whether what they start really has its memory from snug, serves and stops. With `planted`,
# the library is one that is not snug. Exits 77, with the reason, where a program is missing.
set -euo pipefail
source=$1 name=$2 planted=${3-}
apps=$source/tests/recipes/apps
sum=1087466 # what the servers answer: 1 MiB, and the digits of the numbers below 10,000
export LC_ALL=C

# shellcheck source=../support/verdict.sh
. "$source/tests/support/verdict.sh"

scratch=$(mktemp -d)
server='' # a process of the recipe that must not stay if the test fails
clean() {
    local pid children
    for pid in $server; do
        if [[ -d /proc/$pid && $(readlink "/proc/$pid/cwd") == "$scratch/here" ]]; then
            children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true) # those of a master that is killed would stay
            # shellcheck disable=SC2086
            kill -9 "$pid" $children 2>/dev/null || true
        fi
    done
    rm -rf "$scratch"
}
trap clean EXIT

# As after an installation: by name. Copies, which another user may read.
mkdir "$scratch/lib" "$scratch/bin" "$scratch/here"
for file in libsnug libsnug-compat; do
    [[ -e $source/build/lib/$file.so ]] || skip "build/lib/$file.so is not built"
    cp "$source/build/lib/$file.so" "$scratch/lib/$file.so"
    ln -s "$file.so" "$scratch/lib/$file.so.0"
done
[[ -x $source/build/bin/snug ]] || skip "the tool is not built"
cp "$source/build/bin/snug" "$scratch/bin/snug"
if [[ $planted ]]; then
    rm "$scratch/lib/libsnug.so"
    ln -s "$(ldconfig -p | sed -n 's/.*libm\.so\.6.*x86-64.*=> //p' | head -n 1)" "$scratch/lib/libsnug.so"
fi
export LD_LIBRARY_PATH=$scratch/lib LIBRARY_PATH=$scratch/lib PATH=$scratch/bin:$PATH
cd "$scratch/here"

# The port in the recipe may be taken here.
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export PORT
sed -n "/^## $name\$/,/^## /s/^    //p" "$source/docs/recipes.md" | sed "s/8080/$PORT/g" >"$scratch/recipe"
[[ -s $scratch/recipe ]] || wrong "docs/recipes.md has no recipe for $name"
(($(wc -l <"$scratch/recipe") <= 4)) || wrong "the recipe for $name has more than four lines"

on_snug() { # PID...
    local pid
    for pid in "$@"; do
        grep -q 'libsnug' "/proc/$pid/maps" || wrong "process $pid is not on snug: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}

# A child that ends meanwhile, as a database's do, says nothing.
children_on_snug() { # PID
    local pid maps
    for pid in $(pgrep -P "$1"); do
        maps=$(cat "/proc/$pid/maps" 2>/dev/null) || continue
        [[ ! $maps || $maps == *libsnug* ]] || wrong "process $pid, a child of $1, is not on snug"
    done
}

wait_for() { # COMMAND...: until it succeeds, or 30 seconds
    local _
    for _ in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    wrong "this did not happen: $*"
}

gone() { ! kill -0 "$1" 2>/dev/null; }

fetch() { # PATH
    python3 -c 'import sys, urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={"Accept-Encoding": "identity"}), timeout=20).read().decode())' \
        "http://127.0.0.1:$PORT/$1"
}

# The lines one after the other, in this shell; `after N` is what else is done behind the Nth of them.
follow() {
    local line number=0
    while IFS= read -r line <&3; do
        number=$((number + 1))
        echo "\$ $line"
        # A server that is stopped is no failure.
        eval "$line" 3<&- >"$scratch/said" 2>&1 || { cat "$scratch/said"; wrong "'$line' failed"; }
        head -n 3 "$scratch/said"
        if [[ $line == *'&' ]]; then server=$!; fi
        if [[ $line == *'snug stats'* ]]; then
            grep -q '^snug: statistics' "$scratch/said" || wrong "there are no statistics: $(cat "$scratch/said")"
        fi
        after "$number"
    done 3<"$scratch/recipe"
}

# A program that answers on $PORT: the line that starts it ends with &, and kill is the last.
serve() { # FILE COMMAND...
    need python3 "${@:2}"
    cp "$apps/$1" .
    after() {
        if [[ $server && ! ${served-} ]]; then
            served=1
            wait_for fetch ''
            for _ in 1 2 3 4 5; do [[ $(fetch '') == "sum $sum" ]] || wrong "it answers: $(fetch '')"; done
            on_snug "$server"
        fi
    }
    follow
    wait_for gone "$server"
}

# ---- The recipes ----

recipe_Python() { serve server.py python3; }
recipe_Node() { serve server.js node; }
recipe_Ruby() { serve server.rb ruby; }
recipe_PHP() { serve server.php php; }
# A program in one file is compiled when it starts.
recipe_Java() { serve Server.java java javac; }

recipe_Go_with_cgo() {
    PATH=$PATH:/usr/local/go/bin
    need go gcc
    [[ ${SNUG_TEST_FULL:-0} == 1 ]] || skip "it compiles Go's own packages with cgo, which takes most of a minute: in full runs only"
    cp "$apps/main.go" .
    export GOCACHE=$source/build/go-cache GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=1
    go mod init program >"$scratch/log" 2>&1
    after() { :; }
    follow
    [[ $(cat "$scratch/said") == "sum 155560 0."* ]] || wrong "it said: $(cat "$scratch/said")"
}

recipe_PostgreSQL() {
    PATH=$PATH:$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    need initdb psql
    if ((EUID == 0)); then
        # It refuses to be root.
        command -v setpriv >/dev/null || skip "there is no setpriv"
        cp "$source/tests/recipes/recipes.sh" "$scratch/recipes.sh"
        mkdir -p "$scratch/tree/docs" "$scratch/tree/build" "$scratch/tree/tests/support" && chmod 755 "$scratch"
        cp "$source/docs/recipes.md" "$scratch/tree/docs/"
        cp "$source/tests/support/verdict.sh" "$scratch/tree/tests/support/"
        cp -r "$scratch/lib" "$scratch/bin" "$scratch/tree/build/"
        setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/nonexistent TMPDIR=/tmp \
            bash "$scratch/recipes.sh" "$scratch/tree" PostgreSQL "$planted"
        return
    fi
    export PGHOST=$PWD PGPORT=$PORT PGDATABASE=postgres
    after() {
        if [[ $1 == 1 ]]; then
            printf "listen_addresses = ''\nunix_socket_directories = '%s'\nport = %s\n" "$PWD" "$PORT" >>data/postgresql.conf
        elif [[ $1 == 2 ]]; then
            server=$(head -n 1 data/postmaster.pid)
            psql -q -c 'create table t as select i, repeat(i::text, 50) as v from generate_series(1, 20000) i;'
            [[ $(psql -At -c 'select sum(length(v)) from t join (select i from t order by v desc) u using (i);') == 4444700 ]] ||
                wrong "the sum is another"
            on_snug "$server"
            children_on_snug "$server"
        fi
    }
    follow
    wait_for gone "$server"
}

recipe_nginx() {
    need nginx python3
    if ((EUID == 0)); then chmod 755 "$scratch"; fi # its workers are another user's
    sed "s/8080/$PORT/" "$apps/nginx.conf" >nginx.conf
    seq 20000 >numbers
    after() {
        if [[ $1 == 2 ]]; then
            wait_for test -s nginx.pid
            server=$(cat nginx.pid)
            wait_for fetch numbers
            fetch numbers | grep -v '^$' | cmp - numbers || wrong "the file came as another"
            on_snug "$server"
            children_on_snug "$server"
        fi
    }
    follow
    wait_for gone "$server"
}

recipe_redis_and_valkey() {
    need redis-server redis-cli
    after() {
        if [[ $1 == 2 ]]; then
            wait_for test -s redis.pid
            server=$(cat redis.pid)
            wait_for redis-cli -p "$PORT" ping
            for i in $(seq 2000); do echo "SET key:$i $((i * 77777))"; done | redis-cli -p "$PORT" >"$scratch/said"
            [[ $(redis-cli -p "$PORT" get key:1234) == 95976818 && $(redis-cli -p "$PORT" dbsize) == 2000 ]] || wrong "it lost something"
            on_snug "$server"
        fi
    }
    follow
    wait_for gone "$server"
}

# systemd reads a unit with the drop-in in its place, and has nothing to say; of a damaged one it has.
recipe_systemd() {
    need systemd-analyze
    mkdir -p units/program.service.d
    printf '[Unit]\nDescription=A program\n[Service]\nExecStart=/bin/true\nMemoryMax=512M\n' >units/program.service
    cp "$scratch/recipe" units/program.service.d/snug.conf
    if [[ $planted ]]; then sed -i 's/^Environment=LD/Environments=LD/' units/program.service.d/snug.conf; fi
    local said
    said=$(SYSTEMD_UNIT_PATH="$PWD/units:" systemd-analyze verify --man=no --recursive-errors=no units/program.service 2>&1) || wrong "systemd says: $said"
    ! grep -F "$PWD/units" <<<"$said" || wrong "systemd has something to say of it"
    echo "systemd has nothing to say of the unit"
    # What the drop-in sets does what it says.
    # shellcheck disable=SC2046 # words
    env $(sed -n 's/^Environment=//p' "$scratch/recipe") SNUG_STATS=stderr /bin/true 2>&1 | grep '^snug: statistics' >/dev/null ||
        wrong "a program with these variables is not on snug"
}

recipe_Kubernetes() {
    local python packages=$source/build/kubernetes-validate
    for python in python3 /usr/bin/python3 ''; do
        [[ $python ]] || skip "there is no Python with yaml"
        if "$python" -c 'import yaml' 2>/dev/null; then break; fi
    done
    if [[ ${SNUG_TEST_FULL:-0} == 1 && ! -d $packages ]]; then
        "$python" -m pip install -q --target "$packages" 'kubernetes-validate>=1.30' setuptools >"$scratch/log" 2>&1 || rm -rf "$packages"
    fi
    if [[ $planted ]]; then sed -i 's/value:/values:/' "$scratch/recipe"; fi
    if [[ -d $packages ]]; then
        "$python" "$apps/manifest.py" "$scratch/recipe" "$packages"
    else
        "$python" "$apps/manifest.py" "$scratch/recipe"
        echo "its schema is not here: the manifest was only parsed"
    fi
}

# An image is built and a program run in it, where that can be done without a server of Docker's; of a bare
# Debian, which takes minutes.
recipe_Docker() {
    local word packages=$source/build/test-packages
    while read -r word _; do
        [[ $word =~ ^(FROM|COPY|RUN|ENV)$ ]] || wrong "a Dockerfile has no $word"
    done <"$scratch/recipe"
    echo "each line is an instruction of a Dockerfile"
    [[ ${SNUG_TEST_FULL:-0} == 1 ]] || skip "an image is built in full runs only; the lines were read"
    need buildah debootstrap
    ((EUID == 0)) || skip "only root may make a bare system"
    [[ -e $(compgen -G "$packages/libsnug0_*.deb") ]] || skip "the packages are not there; install.packages makes them"
    unset LD_LIBRARY_PATH
    export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
    local -a store=(--root "$scratch/store" --runroot "$scratch/run")
    debootstrap --variant=minbase bookworm "$scratch/debian" >"$scratch/log" 2>&1 || skip "debootstrap could not make a system: $(tail -n 1 "$scratch/log")"
    tar -C "$scratch/debian" -c . >"$scratch/debian.tar"
    printf 'FROM scratch\nADD debian.tar /\nCMD ["bash"]\n' >"$scratch/Base"
    buildah "${store[@]}" build -q -t docker.io/library/debian:12-slim -f "$scratch/Base" "$scratch" >"$scratch/log" 2>&1 || skip "buildah cannot build here: $(tail -n 1 "$scratch/log")"
    cp "$packages"/libsnug0_*.deb .
    cp "$scratch/recipe" Dockerfile
    printf 'RUN cat /proc/self/maps >/maps\n' >>Dockerfile
    buildah "${store[@]}" build --pull-never -t program -f Dockerfile . >"$scratch/log" 2>&1 || { cat "$scratch/log"; wrong "the image was not built"; }
    word=$(buildah "${store[@]}" from --pull-never program)
    grep -q libsnug "$(buildah "${store[@]}" mount "$word")/maps" || wrong "a program in the image is not on snug"
    buildah "${store[@]}" umount "$word" >/dev/null
    buildah "${store[@]}" rm -a >/dev/null
    echo "the image was built, and a program in it ran on snug"
}

"recipe_${name// /_}"
echo "recipes: $name is as it should be"

#!/usr/bin/env bash
# node.sh - Node.js runs a program of many objects with worker threads; what it prints is compared.
. "$(dirname "$0")/common.sh"
need node

scenario() {
    on node "$input/objects.js" "$(scaled 10000 100000)" >printed.txt 2>messages.txt
}

runs_on_library 'node(js)?'
compare_runs "$@"

#!/usr/bin/env bash
# perl.sh - Perl runs a program of many small values; what it prints is compared.
. "$(dirname "$0")/common.sh"
need perl

scenario() {
    PERL_HASH_SEED=0 on perl "$input/lists.pl" "$(scaled 30000 400000)" >printed.txt 2>messages.txt
}

runs_on_library 'perl[0-9.]*'
compare_runs "$@"

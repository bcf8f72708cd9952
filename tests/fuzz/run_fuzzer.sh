#!/bin/sh
# Runs the fuzzer for a bounded time, from a fixed seed.
#
#   run_fuzzer.sh FUZZER FOLDER [CORPUS]
#
# FOLDER is emptied, and gets new inputs and the one that failed, if any. With SNUG_TEST_FULL=1 it
# runs for an hour. To go on with one that failed: FUZZER FOLDER/crash-...
fuzzer=$1
folder=$2
corpus=${3-}
seconds=10
[ "${SNUG_TEST_FULL:-0}" = 1 ] && seconds=3600
[ -n "${FUZZ_SECONDS-}" ] && seconds=$FUZZ_SECONDS

rm -rf "$folder"
mkdir -p "$folder/new"
# AddressSanitizer cannot always place its shadow under the address randomisation of some kernels.
still=
setarch -R true 2>/dev/null && still="setarch -R"
exec $still "$fuzzer" -seed=1 -runs=1000000000 -max_total_time="$seconds" -max_len=2048 -timeout=60 \
    -rss_limit_mb=1024 -print_final_stats=1 -error_exitcode=1 -artifact_prefix="$folder/" \
    "$folder/new" ${corpus:+"$corpus"}

#!/usr/bin/env bash
# cpython.sh - CPython runs a part of its own test suite and rewrites a large JSON document, as it
# is and with all its objects taken from malloc (PYTHONMALLOC=malloc).
. "$(dirname "$0")/common.sh"

# The interpreter itself, not a wrapper that chooses one, and only one that has its test suite.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        python=$("$candidate" -c 'import sys, test.list_tests; print(sys.executable)' 2>/dev/null) &&
            return 0
    done
    return 1
}
command -v python3 >/dev/null || skip "python3 is not installed"
find_python || skip "no python3 with its test suite is installed (package libpython3-testsuite)"

quick="test_list test_dict test_sort test_struct test_copy test_generators test_re test_csv
    test_thread test_threadedtempfile"
long="test_descr test_functools test_memoryview test_tuple test_array test_deque test_heapq test_ordered_dict test_zlib test_set test_bytes test_json test_itertools test_gc test_weakref test_compile test_ast
    test_buffer test_pickle test_threading test_decimal test_datetime test_tokenize test_enum test_typing test_ctypes
    test_fork1 test_subprocess test_queue test_lzma test_bz2 test_unicode test_mmap test_dataclasses
    test_statistics test_random"

export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 PYTHONWARNINGS=ignore

scenario() {
    local objects modules
    modules=$(scaled "$quick" "$quick $long")
    for objects in malloc default; do
        PYTHONMALLOC=$objects on "$python" "$input/rewrite_json.py" "$(scaled 2500 100000)" \
            >"json-$objects.txt"
    done
    mkdir scratch
    cd scratch
    # shellcheck disable=SC2086 # words are module names
    PYTHONMALLOC=malloc TMPDIR=$PWD on "$python" "$input/run_unittests.py" $modules >../tests.txt
    cd ..
    rm -rf scratch
}

runs_on_library "$(basename "$(realpath "$python")")"
compare_runs "$@"

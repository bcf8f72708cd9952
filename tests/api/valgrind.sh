#!/usr/bin/env bash
# valgrind.sh LIBRARY PROGRAM: a program with the library preloaded runs under Valgrind as it does without
# it, and Valgrind finds nothing wrong; the library's functions do not get to see a block of Valgrind's.
set -euo pipefail
library=$1 program=$2

# shellcheck source=../support/verdict.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/verdict.sh"

command -v valgrind >/dev/null || skip "there is no valgrind"
said=$(LD_PRELOAD=$library valgrind -q --error-exitcode=9 "$program" 2>&1) || wrong "$said"
[[ $said == "done" ]] || wrong "$said"

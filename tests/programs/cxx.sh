#!/usr/bin/env bash
# cxx.sh - g++ and clang++ compile a program that uses much of the C++ library; objects and what
# the program prints are compared. The program itself runs on the library too, with operator new.
# usage: cxx.sh LIBRARY WITNESS COMPILER
. "$(dirname "$0")/common.sh"
compiler=${3:?a C++ compiler}
need "$compiler"

# Regular expressions are a half of what there is to compile; in a short run only clang++ has them.
defined=()
case $compiler,$(scaled short full) in
*clang*) ;;
*,short) defined=(-DWITHOUT_EXPRESSIONS) ;;
esac

scenario() {
    cp "$input/words.cpp" .
    on "$compiler" -std=c++17 "$(scaled -O0 -O2)" -g -frandom-seed=1 "${defined[@]}" -pthread -c words.cpp \
        -o words.o 2>messages.txt
    on "$compiler" -pthread words.o -o words 2>>messages.txt
    on ./words "$(scaled 20000 200000)" >printed.txt
}

runs_on_library words
case $compiler in
*clang*) runs_on_library 'clang.*' ;;
*) runs_on_library cc1plus '.*as' ;;
esac
compare_runs "$1" "$2"

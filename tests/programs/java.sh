#!/usr/bin/env bash
# java.sh - a JVM compiles a Java program to class files and runs it, in full runs from its source, with
# several threads; the class files and what it prints are compared.
. "$(dirname "$0")/common.sh"
need java javac

scenario() {
    # The program has both compilers of the JVM itself, javac only the quick one in a short run.
    # shellcheck disable=SC2046 # words
    on javac $(scaled -J-XX:TieredStopAtLevel=1 "") -d classes "$input/Churn.java" >messages.txt 2>&1
    # shellcheck disable=SC2046
    on java -Xmx256m -XX:-UsePerfData $(scaled "-cp classes Churn" "$input/Churn.java") "$(scaled 8000 150000)" \
        >printed.txt 2>>messages.txt
    on java -Xmx256m -XX:+UseSerialGC -Xint -cp classes Churn "$(scaled 100 3000)" >interpreted.txt
}

runs_on_library java javac
compare_runs "$@"

#!/usr/bin/env bash
# java.sh - a JVM compiles a Java program to class files and runs it from its source, with several
# threads; the class files and what it prints are compared.
. "$(dirname "$0")/common.sh"
need java javac

scenario() {
    on javac -d classes "$input/Churn.java" >messages.txt 2>&1
    on java -Xmx256m -XX:-UsePerfData "$input/Churn.java" "$(scaled 15000 150000)" \
        >printed.txt 2>>messages.txt
    on java -Xmx256m -XX:+UseSerialGC -Xint -cp classes Churn "$(scaled 300 3000)" >interpreted.txt
}

runs_on_library java javac
compare_runs "$@"

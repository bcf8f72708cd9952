#!/usr/bin/env bash
# shell_work.sh - a bash program of arrays, strings, functions, substitutions, subshells,
# background jobs and traps.
# usage: bash shell_work.sh COUNT
# shellcheck disable=SC2030,SC2031 # subshells change their copies on purpose
set -u
seed=77
chance() { seed=$(((seed * 16807) % 2147483647)); result=$((seed % $1)); }

declare -A counts
declare -a words
for ((i = 0; i < $1; i++)); do
    chance 100000
    printf -v word '%x-%s' "$result" "${i//[13579]/o}"
    words+=("$word")
    counts[${word:0:2}]=$((${counts[${word:0:2}]:-0} + 1))
    if ((i % 7 == 0)); then unset "words[$((i / 2))]"; fi
done
for key in $(printf '%s\n' "${!counts[@]}" | sort); do
    echo "$key ${counts[$key]}"
done

text=${words[*]}
text=${text//0/zero}
text=${text^^}
echo "${#text} ${text:100:300}"
[[ $text =~ ([A-F]+)-(ZERO)+ ]] && echo "${BASH_REMATCH[@]}"

depth() {
    if (($1 == 0)); then
        echo bottom
    else
        local -a copy=("${words[@]:0:50}")
        echo "$1 ${copy[$1]:-none} $(depth $(($1 - 1)))"
    fi
}
depth 12

for ((i = 0; i < 60; i++)); do
    eval "made_$i() { local t='$i'; echo \"\${t}\${1:0:i}\"; }"
    "made_$i" "${words[i * 3 + 1]:-gone}" # some elements were unset
done
(trap 'echo left a subshell' EXIT; words=(); echo "${#words[@]}")
for job in 1 2 3 4; do
    (for ((k = job; k < 50 * job; k++)); do t+=${words[*]:k:3}; done; echo "${#t}" >"job$job") &
done
wait
cat job1 job2 job3 job4
while IFS=- read -r left right; do sum=$((${sum:-0} + 16#$left % 97)); last=$right; done \
    < <(printf '%s\n' "${words[@]}")
echo "$sum $last"
cat <<END
${words[@]: -20}
END

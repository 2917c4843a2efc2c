#!/bin/sh
# What the small models give is what tests/runtime/golden.txt says, bit for bit, with
# every instruction set that this machine has.

set -u
. "${srcdir:-.}/tests/library.sh"
n=0

for cpu in c avx2 avxvnni avx512vnni amx neon; do
    used=$(LMQUANT_CPU=$cpu "$lmquant" --version -v |
        sed -n 's/^instruction set: //p')
    if [ "$used" != "$cpu" ]; then
        skip "$cpu: not on this machine"
        continue
    fi
    LMQUANT_CPU=$cpu "$top_builddir/tests/runtime/golden" "$work/$cpu" ||
        fail "golden with $cpu"
    diff "$srcdir/tests/runtime/golden.txt" "$work/$cpu" ||
        fail "$cpu gives other bits"
    n=$((n + 1))
done
[ $n_failed -eq 0 ] && echo "$n instruction sets: the same bits"
finish

#!/bin/sh
# The logits of the bundled model are the same bits with every instruction set
# that this machine has: the digests that test_runtime prints must be equal.

set -eu
: "${top_builddir:=.}"
program=$top_builddir/test_runtime
first=
n=0

for cpu in c avx2 avxvnni avx512vnni neon; do
    used=$(LMQUANT_CPU=$cpu "$top_builddir/lmquant" --version -v |
        sed -n 's/^instruction set: //p')
    if [ "$used" != "$cpu" ]; then
        echo "$cpu: not on this machine"
        continue
    fi
    digests=$(LMQUANT_CPU=$cpu "$program" digests | grep 'CRC-32 of the logits')
    echo "$cpu:"
    echo "$digests"
    [ -n "$first" ] || first=$digests
    if [ "$digests" != "$first" ]; then
        echo "the digests differ"
        echo "$n passed, 1 failed"
        exit 1
    fi
    n=$((n + 1))
done
echo "$n passed, 0 failed"

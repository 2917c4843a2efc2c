#!/bin/sh
#
# test_own_text.sh - calibrated by what the model writes itself, as the manual's
# example does it.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=2

expect 0 "$lmquant" convert -q "$fable" first.lmq
for seed in $(seq 20); do
    "$lmquant" run -q -n 200 -t 1 -k 0 --top-p 1 --min-p 0 --ignore-eos \
        -s "$seed" first.lmq " " || fail "seed $seed"
    echo
done > own.txt
[ "$(sort own.txt | uniq | wc -l)" -ge 20 ] || fail "it repeats itself"
expect 0 "$lmquant" convert -q --calibrate=own.txt "$fable" own.lmq

kld() {
    "$lmquant" validate -q --json -c 128 --max-tokens 4000 "$fable" "$1" \
        "$fable/held-out-b.txt" > report || fail "validate $1"
    "$is_json" kld.mean < report
}

first=$(kld first.lmq)
own=$(kld own.lmq)
awk -v x="$own" -v y="$first" 'BEGIN { exit !(x < 0.9 * y) }' ||
    fail "no better by its own text: $own, $first without"
finish

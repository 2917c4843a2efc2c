#!/bin/sh
#
# test_own_text.sh - calibrated by what the model writes itself.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=2

expect 0 "$lmquant" convert -q "$fable" first.lmq
expect 0 "$lmquant" convert --json --own-text --calibrate-tokens 6000 \
    "$fable" own.lmq
cp stdout made
[ "$("$is_json" calibration.tokens < made)" = 6000 ] ||
    fail "not as many tokens as were asked for"
own=$("$is_json" calibration.own_text < made)
expr "$own" : '[0-9a-f]\{8\}$' > /dev/null || fail "no CRC of the text: $own"
expect 0 "$lmquant" convert --dry-run --json --own-text \
    --calibrate-tokens 6000 "$fable" x.lmq
grep -q '"own_text": null' stdout || fail "a CRC of a text that nobody wrote"
[ "$("$is_json" totals.output_bytes < stdout)" = "$(wc -c < own.lmq)" ] ||
    fail "a dry run tells another size"
expect 0 "$lmquant" inspect own.lmq
grep -q "6000 tokens that it wrote itself (CRC-32 $own)" stdout ||
    fail "the container does not say what it learnt from"
# What earlier layers missed is made up for, but for --mend 0.
learn="-q -f -c 64 --calibrate-tokens 400 --calibrate $fable/held-out-a.txt"
for mend in "" --mend=0.4 --mend=0; do
    expect 0 "$lmquant" convert $learn $mend "$fable" "mend$mend.lmq"
done
cmp -s mend.lmq mend--mend=0.4.lmq || fail "--mend is not 0.4"
cmp -s mend.lmq mend--mend=0.lmq && fail "--mend 0 is ignored"

kld() {
    "$lmquant" validate -q --json -c 128 --max-tokens 4000 "$fable" "$1" \
        "$fable/held-out-b.txt" > report || fail "validate $1"
    "$is_json" kld.mean < report
}

first=$(kld first.lmq)
own=$(kld own.lmq)
awk -v x="$own" -v y="$first" 'BEGIN { exit !(x < 0.9 * y) }' ||
    fail "no better by its own text: $own, $first without"

grep -q 'trained for' stderr && fail "a note on windows of 256"
for how in "--own-text --calibrate-tokens 600" \
    "--calibrate $fable/held-out-b.txt"; do
    expect 0 "$lmquant" convert --dry-run $how --ctx 300 "$fable" x.lmq
    says "windows of 300 tokens are longer than the 256 that the checkpoint was"
done

# Misuse.
expect 2 "$lmquant" convert --own-text --calibrate "$fable/held-out-b.txt" \
    "$fable" x.lmq
grep -q -- "--own-text goes without --calibrate" stderr ||
    fail "it cannot be told which text is meant: $(cat stderr)"
expect 2 "$lmquant" convert --own-text --split-documents "$fable" x.lmq
expect 2 "$lmquant" convert --method gptq "$fable" x.lmq
grep -q -- "--own-text" stderr || fail "no hint at --own-text: $(cat stderr)"
mkdir bare
cp "$fable/model.safetensors" "$fable/config.json" bare
expect 3 "$lmquant" convert --own-text bare x.lmq
grep -q "has no tokenizer" stderr || fail "without a tokenizer: $(cat stderr)"
[ ! -e x.lmq ] || fail "an output of a conversion that failed"

# More than memory holds is told before the work.
if ! has_sanitizer; then
    for tokens in 20000000 2000000000; do
        (ulimit -v 1048576 && "$lmquant" convert --own-text -c 100000 \
            --calibrate-tokens $tokens "$fable" x.lmq) > stdout 2> stderr
        [ $? -eq 1 ] || fail "$tokens tokens: $(cat stderr)"
        grep -q "$tokens tokens" stderr || fail "$tokens: $(cat stderr)"
    done
fi
finish

#!/bin/sh
#
# test_rotate.sh - containers whose groups are rotated: the same model however
# it is stored, cut, read and written elsewhere; and what it is for.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=2
text=$fable/held-out-a.txt

expect 0 "$lmquant" convert -q "$fable" plain.lmq
expect 0 "$lmquant" convert -q --rotate --digests "$fable" r.lmq
expect 0 "$lmquant" verify -q r.lmq
"$lmquant" inspect --json r.lmq --tensors > inspected
grep -q '"rotated": true' inspected || fail "inspect does not say it"
expect 0 "$lmquant" inspect r.lmq
grep -q ' quantization .* tiles, rotated$' stdout || fail "not in words"
expect 0 "$lmquant" convert -q --set 'ffn_up=q8,rotate=yes' "$fable" rule.lmq
expect 0 "$lmquant" inspect rule.lmq
grep -q 'ffn_up: q8, rotate yes$' stdout || fail "inspect hides what a rule says"
[ "$(wc -c < plain.lmq)" -lt "$(wc -c < r.lmq)" ] || fail "no digests"

# kld FILE ACTIVATIONS
kld() {
    "$lmquant" validate -q --json -c 128 --max-tokens 2000 --activations "$2" \
        "$fable" "$1" "$text" > report || fail "validate $1 $2"
    "$is_json" kld.mean < report
}

# What it is for; and float activations tell that the weights are as good.
less() { # X Y FACTOR WHAT
    awk -v x="$1" -v y="$2" -v factor="$3" 'BEGIN { exit !(x < y * factor) }' ||
        fail "$4: $1, not below $3 of $2"
}
less "$(kld r.lmq q8)" "$(kld plain.lmq q8)" 0.95 "8 bits for activations"
less "$(kld r.lmq f32)" "$(kld plain.lmq f32)" 1.3 "float activations"

# Layouts, widths, files, threads and instruction sets do not matter.
# The text has as many tokens as some sets want before they take another way.
prompt=$(head -c 400 "$fable/held-out-a.txt")
expect 0 "$lmquant" run -q --temp 0 -n 20 --ids --activations q8 r.lmq "$prompt"
cp stdout good
for options in --layout=rows -z "--parts 3"; do
    rm -rf set && mkdir set
    expect 0 "$lmquant" convert -q --rotate $options "$fable" set/m.lmq
    file=$(ls set/*.lmq | head -n 1)
    for cpu in c avx2 avxvnni avx512vnni amx; do
        LMQUANT_CPU=$cpu "$lmquant" run -q --temp 0 -n 20 --ids \
            --activations q8 -j 1 "$file" "$prompt" > is 2> said || {
            grep -q LMQUANT_CPU said && continue
            fail "run $options $cpu: $(cat said)"
        }
        cmp -s is good || fail "another text with $options, $cpu"
    done
    expect 0 "$lmquant" convert -q -f "$file" again.lmq --rotate
    expect 0 "$lmquant" diff -q again.lmq r.lmq
done
rm -rf set parts && mkdir set parts
expect 0 "$lmquant" convert -q --rotate --parts 2 "$fable" set/m.lmq
for part in 1/2 2/2; do
    expect 0 "$lmquant" convert -q --rotate --part $part "$fable" parts/m.lmq
done
expect 0 "$lmquant" seal -q parts
diff -r set parts > said || fail "parts, sealed: $(cat said)"
rm -rf set && mkdir set
expect 0 "$lmquant" split -q --shard-size 100K r.lmq set
expect 0 "$lmquant" join -q set joined.lmq
cmp -s joined.lmq r.lmq || fail "split and join"

# What cannot hold rotated integers gets the values.
expect 0 "$lmquant" export -q -t safetensors r.lmq floats
expect 0 "$lmquant" convert -q --set '*=f32' r.lmq f32.lmq
expect 0 "$lmquant" diff -q f32.lmq r.lmq
expect 0 "$lmquant" diff -q floats r.lmq
for to in gguf compressed-tensors mlx llama2c; do
    expect 0 "$lmquant" export -q -t $to r.lmq "out.$to"
    "$lmquant" validate -q --json -c 128 --max-tokens 500 "$fable" "out.$to" \
        "$text" > report 2> said || {
        grep -q "no tokenizer" said && continue
        fail "validate $to: $(cat said)"
    }
    less "$("$is_json" kld.mean < report)" 1 0.05 "exported to $to"
done

# By matrix, and back to what is not rotated.
expect 0 "$lmquant" convert -q --set 'ffn_down=q8,rotate=yes' --set \
    'blk.0.*=q4,group=256,rotate=yes' "$fable" some.lmq
"$lmquant" inspect --json some.lmq --tensors > inspected
grep -q '"rotated": true' inspected || fail "no matrix is rotated"
grep -q '"rotated": false' inspected || fail "all matrices are rotated"
expect 0 "$lmquant" convert -q --print-recipe --rotate "$fable" x.lmq
grep -q 'rotate: .*yes' stdout || fail "no rotation in the recipe"
cp stdout r.yaml
expect 0 "$lmquant" convert -q --recipe r.yaml "$fable" by.lmq
expect 0 "$lmquant" diff -q by.lmq r.lmq
expect 0 "$lmquant" convert -q --set '*=q8,rotate=no' r.lmq back.lmq
"$lmquant" inspect --json back.lmq --tensors > inspected
grep -q '"rotated": true' inspected && fail "rotated without being asked for"
expect 0 "$lmquant" convert -q --keep '*' r.lmq kept.lmq
expect 0 "$lmquant" diff -q kept.lmq r.lmq

# Calibrated too: some rotated and some not share an input.
other=$fable/held-out-b.txt
expect 0 "$lmquant" convert -q -e q4 --calibrate "$other" "$fable" c.lmq
expect 0 "$lmquant" convert -q -e q4 --calibrate "$other" --rotate "$fable" cr.lmq
expect 0 "$lmquant" convert -q -e q4 --rotate "$fable" sr.lmq
expect 0 "$lmquant" convert -q -j 1 -e q4 --calibrate "$other" --rotate \
    "$fable" cr1.lmq
cmp -s cr.lmq cr1.lmq || fail "another calibration with one thread"
expect 0 "$lmquant" verify -q cr.lmq
less "$(kld cr.lmq q16)" "$(kld sr.lmq q16)" 0.95 "calibrated, rotated"
less "$(kld cr.lmq q8)" "$(kld c.lmq q8)" 1.1 "calibrated, 8 bits"
expect 0 "$lmquant" convert -q -e q4 --calibrate "$other" --set \
    'attn_q=q4,rotate=yes' --set 'ffn_up=q5,rotate=yes' "$fable" mixed.lmq
less "$(kld mixed.lmq q16)" "$(kld sr.lmq q16)" 1 "calibrated, some rotated"

# Groups of every size, and what is shorter, in every form.
for group in 32 64 128 256; do
    expect 0 "$lmquant" convert -q -f --rotate -g $group "$fable" g.lmq
    expect 0 "$lmquant" verify -q g.lmq
    expect 0 "$lmquant" convert -q -f --set '*=f32' g.lmq f32.lmq
    expect 0 "$lmquant" diff -q f32.lmq g.lmq
    "$lmquant" run -q --temp 0 -n 20 --ids --activations f32 f32.lmq "$prompt" > good
    expect 0 "$lmquant" run -q --temp 0 -n 20 --ids --activations f32 g.lmq "$prompt"
    cmp -s stdout good || fail "another text in groups of $group"
    rm -rf set && mkdir set
    expect 0 "$lmquant" split -q --shard-size 100K g.lmq set
    expect 0 "$lmquant" join -q -f set joined.lmq
    cmp -s joined.lmq g.lmq || fail "split and join, groups of $group"
    expect 0 "$lmquant" convert -q -f --keep '*' g.lmq kept.lmq
    expect 0 "$lmquant" diff -q kept.lmq g.lmq
done
expect 0 "$lmquant" convert -q -f --rotate -g 32 "$fable" g.lmq
expect 0 "$lmquant" convert -q -f --rotate -g 64 "$fable" wide.lmq
less "$(kld g.lmq q8)" "$(kld wide.lmq q8)" 0.95 "groups of 32"

refused() { # SENTENCE ARGUMENTS...
    sentence=$1
    shift
    expect 2 "$lmquant" convert "$@" "$fable" x.lmq
    says "$sentence"
    is_one_sentence "$*"
    [ -e x.lmq ] && fail "a refusal writes a file"
}
refused "rotate is 'perhaps'" --set 'ffn_up=q8,rotate=perhaps'
refused "mean nothing beside the encoding 'bf16'" --set 'ffn_up=bf16,rotate=yes'
finish

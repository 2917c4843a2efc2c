#!/bin/bash
# test_judge.sh - validate with several models: how texts and models are told
# apart, the table, Markdown, baselines, and all options with one model and
# three, one text and two.

set -u
. "${srcdir:-.}/tests/library.sh"
cd "$work" || exit 99

"$lmquant" convert -q "$fable" fable.lmq || fail "convert"
"$lmquant" convert -q --group-size 32 "$fable" fine.lmq || fail "convert"
"$lmquant" export -q --to gguf fable.lmq fable.gguf || fail "export"
head -c 700 "$fable/held-out-a.txt" > a.txt
head -c 500 "$fable/held-out-b.txt" > b.txt
three="fable.lmq fine.lmq fable.gguf"
few="--ctx 32 --max-tokens 60"

refused() { # STATUS TEXT ARGUMENTS...
    wanted=$1 text=$2
    shift 2
    expect "$wanted" "$lmquant" "$@"
    says "$text"
    is_one_sentence "$@"
}

# ---- What is a model, what is a text ----

expect 0 "$lmquant" validate -q $few "$fable" $three --text a.txt
expect 0 "$lmquant" validate -q $few --text=a.txt --text b.txt "$fable" $three
expect 0 "$lmquant" validate -q $few "$fable" fable.lmq a.txt b.txt
"$lmquant" validate -q --json $few "$fable" fable.lmq a.txt > old
"$lmquant" validate -q --json $few "$fable" --text a.txt fable.lmq > new
grep -v second old > old.figures
grep -v second new | cmp -s - old.figures || fail "one model, by --text"
"$lmquant" validate -q --json $few "$fable" $three --text - < a.txt > piped
[ "$("$is_json" models.2.scored < piped)" = 60 ] || fail "--text=-"

refused 3 "several models are judged at once if --text" \
    validate "$fable" fable.lmq fine.lmq
refused 3 "several models are judged at once if --text" \
    validate "$fable" fable.lmq "$fable"
refused 3 "if this is a text: with --text" \
    validate "$fable" fable.lmq a.txt --text b.txt
refused 3 "--text names what is read" \
    validate "$fable" fable.lmq --text fable.gguf
refused 3 "MODEL stands before it" validate "$fable" a.txt
refused 2 "expected: " validate "$fable" --text a.txt
refused 2 "that cannot be a pipe" validate "$fable" fable.lmq - --text a.txt
refused 2 "only once" validate "$fable" fable.lmq --text - --text -
refused 2 "in place of --text" \
    validate "$fable" fable.lmq --text a.txt --tokens a.txt
refused 2 "one too many" validate "$fable" fable.lmq a.txt --tokens ids
refused 2 "--markdown goes without" \
    validate --markdown --yaml "$fable" fable.lmq a.txt
refused 2 "wants standard output for itself" \
    validate --markdown --report - "$fable" fable.lmq a.txt

# All are opened, and fit, before anything is computed.
for bad in "$files/bad-empty.safetensors" broken.lmq \
    "$srcdir/man/example.safetensors"; do
    head -c 3000 fable.lmq > broken.lmq
    refused 3 "${bad##*/}: " validate "$fable" fable.lmq "$bad" --text a.txt
done
refused 1 "nowhere: cannot open" validate "$fable" fable.lmq nowhere \
    --text a.txt
refused 1 "hint: a larger --memory" validate --memory 1K "$fable" $three \
    --text a.txt

# Ids: all arguments are models then too.
"$lmquant" tokenize --ids --no-bos fable.lmq a.txt | tr ' ' '\n' |
    awk 'NF { printf "\\%03o\\%03o", $1 % 256, $1 / 256 }' > escapes
printf "$(cat escapes)" > ids
expect 0 "$lmquant" validate -q --json $few "$fable" fable.lmq fine.lmq \
    --tokens ids
[ "$("$is_json" models.1.scored < "$work/stdout")" = 60 ] ||
    fail "--tokens with two models"

# ---- What is shown ----

mkdir -p 'deep/er'
cp fine.lmq 'deep/er/the-name-of-this-model-is-rather-long-and-has-no-end.lmq'
expect 4 "$lmquant" validate $few --split-documents -a --floor "$fable" \
    fable.lmq deep/er/*.lmq "$fable" --text a.txt --text b.txt \
    --gate 'kld.mean<=0' --gate 'tokens>=1'
head -1 "$work/stdout" | grep -q '^FAIL: 2 of 3 models; 2 of 6 gates' ||
    fail "the verdict is not the first line: $(head -1 "$work/stdout")"
grep -q '^  PASS  .*data/fable' "$work/stdout" || fail "no verdict of each"
says "gate: fable.lmq: kld.mean<=0 does not hold"
says "is judged against itself"
sed -n '/p.ratio/,$p' "$work/stdout" | awk 'length > 80' | grep -q . &&
    fail "the table is wider than 80 columns"
grep -q '^\* .*\.\.\.' "$work/stdout" || fail "no front, or no name is cut"
[ "$(sed -n '/^from the nearest/,/^$/p' "$work/stdout" | wc -l)" = 4 ] ||
    fail "not two steps between three models"
expect 0 "$lmquant" validate -v $few "$fable" $three --text a.txt
grep -q '^all pairs' "$work/stdout" || fail "-v shows no pairs"
expect 0 "$lmquant" validate $few "$fable" fable.lmq a.txt
[ "$(head -1 "$work/stdout")" = "PASS: no gate was set" ] ||
    fail "one model has no verdict: $(head -1 "$work/stdout")"

expect 0 "$lmquant" validate -q $few -f -o page.html "$fable" $three \
    --text a.txt
grep -q 'Divergence against bytes' page.html || fail "no scatter"
expect 0 "$lmquant" validate $few -o - "$fable" $three --text a.txt
grep -q '^<!doctype html>' "$work/stdout" || fail "no page on stdout"

# ---- A quantized reference, the same model twice ----

expect 0 "$lmquant" validate $few fable.lmq "$fable" fine.lmq --text a.txt
says "note: the reference fable.lmq is quantized and the judged $fable is not"
expect 0 "$lmquant" validate $few "$fable" fine.lmq fine.lmq --text a.txt
says "note: fine.lmq is judged more than once"

# ---- Markdown ----

mkdir 'x|y`<b>@me'
cp fine.lmq 'x|y`<b>@me/*\|z.lmq'
cp fine.lmq 'x|y`<b>@me/fine.lmq'
expect 4 "$lmquant" validate --markdown $few "$fable" fable.lmq \
    'x|y`<b>@me/*\|z.lmq' --text a.txt --gate 'kld.mean<=0'
head -1 "$work/stdout" | grep -qF '**FAIL**: 0 of 2 gates held' ||
    fail "Markdown does not begin with the verdict"
[ "$(grep -c '^|' "$work/stdout")" = 4 ] || fail "no table of four rows"
grep '^|' "$work/stdout" | awk -F '|' 'NF != 11' | grep -q . &&
    fail "a name breaks the table"
sed 's/<code>//g; s,</code>,,g' "$work/stdout" | grep -q '[<>@]me\|<b>' &&
    fail "a name is markup"
grep -qF '<code>&#42;&#92;&#124;z.lmq</code> |' "$work/stdout" ||
    fail "the name is not there"
expect 0 "$lmquant" validate --markdown $few "$fable" fine.lmq \
    'x|y`<b>@me/fine.lmq' --text a.txt
grep -qF '<code>x&#124;y&#96;&#60;b&#62;&#64;me/fine.lmq</code> |' \
    "$work/stdout" || fail "one of two of a name is not told"
expect 0 "$lmquant" validate --markdown $few "$fable" fable.lmq a.txt
grep -q '^| `fable.lmq` | PASS |' "$work/stdout" || fail "Markdown of one"

# ---- Every option, one model and three, one text and two ----

combine() { # OPTIONS...
    expect 0 "$lmquant" validate -q --json $few "$@" "$fable" fable.lmq a.txt
    "$is_json" verdict.result < "$work/stdout" | grep -q PASS ||
        fail "no verdict: $*"
    expect 0 "$lmquant" validate -q --json $few "$@" "$fable" fable.lmq \
        a.txt b.txt
    expect 0 "$lmquant" validate -q --json $few "$@" "$fable" $three \
        --text a.txt
    "$is_json" models.2.verdict.result < "$work/stdout" | grep -q PASS ||
        fail "no verdict of the third: $*"
    expect 0 "$lmquant" validate -q --json $few "$@" "$fable" $three \
        --text a.txt --text b.txt
}
for options in "" "--stride 7" "--score second-half" "--split-documents" \
    "--activations q8" "--activations f32" "--kv f16" "--kv q8" \
    "--memory 64M" "-a" "--floor" "-a --floor --split-documents" \
    "--no-verify" "--no-mmap" "-f -o page.html" "-j 1" "-j 3" \
    "--gate kld.mean<=1 --gate flips.rate<=1" \
    "--tokenizer $fable/tokenizer.json" "--rope-theta 9000" \
    "--progress never"; do
    combine $options
done

finish

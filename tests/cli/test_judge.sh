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

refused 2 "expected: --attribute=tensor, with an equals sign" \
    validate $few --attribute tensor "$fable" fable.lmq a.txt

expect 0 "$lmquant" validate -q $few "$fable" $three --text a.txt
expect 0 "$lmquant" validate -q $few --text=a.txt --text b.txt "$fable" $three
expect 0 "$lmquant" validate -q $few "$fable" fable.lmq a.txt b.txt
"$lmquant" validate -q --json $few "$fable" fable.lmq a.txt > old
"$lmquant" validate -q --json $few "$fable" --text a.txt fable.lmq > new
grep -v second old > old.figures
grep -v second new | cmp -s - old.figures || fail "one model, by --text"
"$lmquant" validate -q --json $few "$fable" $three --text - < a.txt > piped
[ "$("$is_json" models.2.scored < piped)" = 60 ] || fail "--text=-"

# What is wrong is told of the file that it is wrong with.
: > empty.txt
refused 3 "empty.txt: is empty" validate "$fable" fable.lmq empty.txt
grep -q '^hint' stderr && fail "a hint about an empty text: $(cat stderr)"
iconv -t UTF-16 a.txt > wide.txt
refused 3 "wide.txt: is not UTF-8" validate "$fable" fable.lmq wide.txt
says "iconv -t UTF-8"
mkdir unknown
cp "$fable/model.safetensors" "$fable/tokenizer.json" unknown
sed 's/LlamaForCausalLM/SomethingForCausalLM/' "$fable/config.json" \
    > unknown/config.json
refused 3 "unknown: cannot be run: the architecture 'SomethingForCausalLM'" \
    validate unknown fable.lmq a.txt
refused 3 "unknown: cannot be run: the architecture 'SomethingForCausalLM'" \
    plan --text a.txt --target-bits 6 unknown
refused 2 "a window of 256 tokens with a stride of 600" \
    validate --stride 600 "$fable" fable.lmq a.txt
says "hint: --ctx sets the window"

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
for mode in q8 q16; do
    refused 2 "--activations $mode goes with a model" \
        validate --emulate q8_0 --activations $mode "$fable" --text a.txt
    expect 0 "$lmquant" validate -q $few --emulate q8_0 --activations $mode \
        "$fable" fable.lmq --text a.txt
done
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

# A GGUF fills the vocabulary up to the rows of the embedding.
expect 0 "$top_builddir/tests/make/make_family" --vocab 600 llama2 padded
cp "$fable/tokenizer.json" "$fable/tokenizer_config.json" padded
expect 0 "$lmquant" export -q --to gguf padded padded.gguf
expect 0 "$lmquant" validate -q $few padded padded.gguf --tokens ids \
    --gate 'kld.mean<=1e-9'

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
grep -q 'weights, activations; parts' "$work/stdout" || fail "no shares"
expect 0 "$lmquant" validate $few -a --kv q8 "$fable" $three --text a.txt
grep -q 'weights, activations, KV; parts' "$work/stdout" ||
    fail "keys and values of 8 bits have no share"
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

# Of the two errors the larger one.
head -c 3000 "$fable/held-out-a.txt" > long-a.txt
head -c 900 "$fable/held-out-b.txt" > long-b.txt
many="--ctx 16 --split-documents $fable fable.lmq long-a.txt long-b.txt"
expect 0 "$lmquant" validate -q --json $many
error=$(printf %.1e "$("$is_json" kld.stderr_by_document < \
    "$work/stdout")")
[ "$error" != "$(printf %.1e "$("$is_json" kld.stderr < \
    "$work/stdout")")" ] ||
    fail "the errors are equal"
for options in "" "--markdown" "-o -"; do
    expect 0 "$lmquant" validate $options $many
    grep -q "$error" "$work/stdout" || fail "another error than $error: $options"
done

# ---- A quantized reference, the same model twice ----

expect 0 "$lmquant" validate $few fable.lmq "$fable" fine.lmq --text a.txt
says "note: the reference fable.lmq is quantized and the judged $fable is not"
expect 0 "$lmquant" validate $few "$fable" fine.lmq fine.lmq --text a.txt
says "note: fine.lmq is judged more than once"

# ---- Where a gate is told, and what stands beside an emulation ----

expect 4 "$lmquant" validate -q $few "$fable" fable.lmq a.txt \
    --gate 'kld.mean<=0' --gate 'tokens<1'
[ ! -s "$work/stdout" ] && [ "$(wc -l < "$work/stderr")" -eq 2 ] ||
    fail "two gates are told as $(cat "$work/stdout" "$work/stderr")"
expect 0 "$lmquant" validate -q --json $few --emulate q8_0 "$fable" fable.lmq \
    fine.lmq
[ "$("$is_json" models.1.protocol.model.path < "$work/stdout" | tr -d '"')" = \
    fine.lmq ] || fail "--emulate takes a model for a text"

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
grep -q "^Judged against \`$fable\` (perplexity [0-9.]*) over [0-9]* tokens" \
    "$work/stdout" || fail "Markdown of one tells not how: $(cat "$work/stdout")"

# ---- Gates that a model cannot have, before anything is computed ----

refused 2 "names a tensor that is not there: fable.gguf tells the errors of 0" \
    validate $few "$fable" $three --text a.txt --gate 'tensors.0.sqnr_db>=20'
expect 0 "$lmquant" validate -q $few "$fable" fable.lmq fine.lmq \
    --text a.txt --gate 'tensors.0.sqnr_db>=20'
for metric in attribution.tensors.0.share attribution.cure.0.share; do
    refused 2 "goes with --attribute=tensor" \
        validate $few -a "$fable" fable.lmq a.txt --gate "$metric<1"
done
for metric in positions.16 worst.20 attribution.layers.99 attribution.kv.4 \
    attribution.parts.4; do
    suffix=kld
    case $metric in
    *layers* | *parts*) suffix=share ;;
    esac
    refused 2 "names what is not there: the last is ${metric%.*}" \
        validate $few -a "$fable" fable.lmq a.txt --gate "$metric.$suffix<1"
done
expect 4 "$lmquant" validate -q --max-tokens 10 "$fable" fable.lmq a.txt \
    --gate 'worst.19.kld<1'
says "gate: worst.19.kld<1 does not hold"
# An emulation has no cure; nobody has so many tensors.
expect 4 "$lmquant" validate -q $few --attribute=tensor --emulate q4_0 \
    "$fable" --text a.txt --gate 'attribution.cure.0.share<1' \
    --gate 'attribution.tensors.999.share<1'
says "gate: attribution.cure.0.share<1 does not hold"
says "gate: attribution.tensors.999.share<1 does not hold"

# ---- An interruption ----

"$lmquant" validate -q --json -j 1 --ctx 64 --memory 3M "$fable" $three \
    --text "$fable/held-out-a.txt" --text "$fable/held-out-b.txt" > stdout &
pid=$!
sleep 1
kill -TERM $pid 2> /dev/null
wait $pid
code=$?
if [ $code -eq 0 ]; then
    skip "the validation was over before SIGTERM came"
elif [ $code -ne 143 ]; then
    fail "SIGTERM: status $code"
elif [ -s stdout ]; then
    [ "$("$is_json" verdict.result < stdout)" = PARTIAL ] ||
        fail "no partial verdict"
fi

# ---- A baseline ----

"$lmquant" validate -q --json $few "$fable" fable.lmq a.txt > one.json
"$lmquant" validate -q --json $few "$fable" $three --text a.txt > three.json
# The same is no worse, to the last digit.
for old in one three; do
    expect 0 "$lmquant" validate -q --json $few "$fable" fable.lmq a.txt \
        --baseline $old.json --gate 'kld.mean<=baseline' \
        --gate 'top1_agreement >= baseline' --gate 'kld.p99<=baseline*1' \
        --gate 'ppl_ratio <= baseline + 0' --gate 'flips.rate<=baseline-0'
    [ "$("$is_json" baseline.model < "$work/stdout")" = fable.lmq ] ||
        fail "the report does not tell its baseline"
done
expect 0 "$lmquant" validate -q $few "$fable" $three --text a.txt \
    --baseline three.json --gate 'kld.mean<=baseline' \
    --gate 'layers.1.rms<=baseline*1.01'
expect 4 "$lmquant" validate -q $few "$fable" $three --text a.txt \
    --baseline three.json --gate 'kld.mean<=baseline*0.9' --gate 'tokens>=1'
says "gate: fine.lmq: kld.mean<=baseline*0.9 does not hold: it is"
says ", the bound "
expect 4 "$lmquant" validate $few "$fable" fine.lmq a.txt \
    --baseline one.json --gate 'kld.mean<=baseline-1'
says "note: the baseline is of fable.lmq, this is fine.lmq"
grep -q 'of the baseline' "$work/stdout" || fail "no figures of the baseline"
expect 0 "$lmquant" validate --markdown $few "$fable" $three --text a.txt \
    --baseline one.json
says "note: the baseline has no figures of fine.lmq"
grep '^|' "$work/stdout" | awk -F '|' 'NF != 12' | grep -q . &&
    fail "a row without baseline breaks the table"
# What was exact then.
sed 's/"sqnr_db": [0-9.]*/"sqnr_db": null/
    s/"max_abs": [0-9.e-]*/"max_abs": 0/' one.json > exact.json
exact="--baseline exact.json --gate tensors.0.sqnr_db>=baseline"
for format in "-f -o page.html" --markdown; do
    expect 4 "$lmquant" validate $few $exact $format "$fable" fable.lmq a.txt
    says ", the bound infinite"
    grep -q 'does not hold: it is [0-9.]*, the bound infinite$' \
        "$work/stdout" || fail "no infinite bound: $(head -1 "$work/stdout")"
done
grep -q '<td>infinite<td' page.html || fail "no infinite bound on the page"
# Elsewhere, but of the same name.
mkdir -p elsewhere && cp fine.lmq elsewhere/fine.lmq
expect 0 "$lmquant" validate -q $few "$fable" fable.lmq elsewhere/fine.lmq \
    --text a.txt --baseline three.json --gate 'kld.mean<=baseline'

b="--baseline one.json"
refused 3 "has no figures of fine.lmq, which the gate" validate $few $b \
    "$fable" fable.lmq fine.lmq --text a.txt --gate 'kld.mean<=baseline'
refused 3 "its text_crc32 is" validate $few $b "$fable" fable.lmq b.txt
refused 3 "its stride is 32, here it is 16" validate --ctx 32 \
    --max-tokens 60 --stride 16 $b "$fable" fable.lmq a.txt
refused 3 "its scored is 60, here it is 50" validate --ctx 32 \
    --max-tokens 50 $b "$fable" fable.lmq a.txt
refused 3 "has no number at floor.kld" validate $few --floor $b "$fable" \
    fable.lmq a.txt --gate 'floor.kld<=baseline'
refused 2 "goes with --baseline" validate $few "$fable" fable.lmq a.txt \
    --gate 'kld.mean<=baseline'
refused 2 "goes with --baseline" diff "$fable" fable.lmq \
    --gate 'missing<=baseline'
for gate in 'baseline/2' 'baseline*' 'baseline*x' 'baseline*-1' 'baselines' \
    'baseline*nan' 'baseline+1+1' '2*baseline'; do
    refused 2 "compares with no number" validate $few $b "$fable" fable.lmq \
        a.txt --gate "kld.mean<=$gate"
done
refused 1 "nowhere: cannot open" validate $few --baseline nowhere "$fable" \
    fable.lmq a.txt
expect 0 "$lmquant" validate $few $b --activations q8 --kv f16 fine.lmq \
    fable.lmq a.txt
says "note: the baseline is of another reference: its perplexity was"
says "was measured with activations q16, this with q8"
says "was measured with kv f32, this with f16"
cp one.json one.html
refused 2 "one.html: " validate $few -f -o one.html --baseline one.html \
    "$fable" fable.lmq a.txt
cmp -s one.json one.html || fail "the baseline was replaced by the page"

# Anything may stand in the file.
deep=$(head -c 20000 /dev/zero | tr '\0' '[')
for json in '' x '[]' '{}' 1 null '{"kld":1}' '{"models":{}}' \
    '{"models":[]}' '{"models":[1,"x",null]}' '{"models":[{"kld":{}}]}' \
    '{"kld":{},"kld":{}}' '{"kld":{"mean":1e999},"protocol":{}}' "$deep" \
    '{"kld":{"mean":NaN},"protocol":{}}'; do
    printf %s "$json" > hostile.json
    refused 3 "hostile.json: " validate $few --baseline hostile.json \
        "$fable" fable.lmq a.txt --gate 'kld.mean<=baseline'
done
for change in 's/"mean": [0-9.e-]*/"mean": "x"/' 's/"mean": [0-9.e-]*/"mean": null/' \
    's/"mean": [0-9.e-]*/"mean": {"mean": 1}/' 's/"partial": false/"partial": true/' \
    's/"ctx": 32/"ctx": [32]/' 's/"bos": true/"bos": 1/' \
    's/"text_crc32": "/&\\u001b[31m\\u0000/' 's/"text_crc32": "/&\\u001b[31m/'; do
    sed "$change" one.json > hostile.json
    refused 3 "hostile.json: " validate $few --baseline hostile.json \
        "$fable" fable.lmq a.txt --gate 'kld.mean<=baseline'
done
sed 's/fable\.lmq/\\u001b[31m<b>`|\\n/' one.json > hostile.json
expect 0 "$lmquant" validate $few --baseline hostile.json -f -o page.html \
    "$fable" fable.lmq a.txt
says 'note: the baseline is of \x1b[31m<b>`|\x0a, this is fable.lmq'
grep -q '<b>`' page.html && fail "a name of the baseline is markup"
gzip -c one.json > hostile.json
refused 3 "hostile.json: " validate $few --baseline hostile.json "$fable" \
    fable.lmq a.txt

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
    "--kv f16-q8" \
    "--memory 64M" "-a" "--floor" "-a --floor --split-documents" \
    "--no-verify" "--no-mmap" "-f -o page.html" "-j 1" "-j 3" \
    "--gate kld.mean<=1 --gate flips.rate<=1" \
    "--tokenizer $fable/tokenizer.json" "--rope-theta 9000" \
    "--progress never"; do
    combine $options
done
for options in "" -v -q --yaml --markdown "-o -" "-v -a --floor" \
    "--markdown -a --floor --split-documents"; do
    for texts in "a.txt" "a.txt b.txt"; do
        expect 0 "$lmquant" validate $few $options "$fable" fable.lmq $texts
        expect 0 "$lmquant" validate $few $options "$fable" $three \
            $(printf -- '--text %s ' $texts)
        [ -s "$work/stdout" ] || [ "$options" = -q ] ||
            fail "nothing is shown: $options"
        grep -qw nan "$work/stdout" && fail "nan is shown: $options"
    done
done

# ---- What only some reports have ----

# shows TEXT: stdout has it.
shows() {
    grep -qF -- "$1" "$work/stdout" || {
        fail "stdout does not say '$1':"
        sed 's/^/    /' "$work/stdout"
    }
}

{
    echo '{"prompt": "Once upon a", "choices": [" time", " fox"], "answer": 0}'
    echo '{"prompt": "The fox", "choices": [" said", " time"], "answer": 1}'
} > task.jsonl
few="$few --task task.jsonl --attribute=tensor"
expect 0 "$lmquant" validate $few "$fable" fable.lmq a.txt
shows 'questions answered right'
shows '  2 questions with 4 choices; another choice at '
shows 'less divergence with this tensor, restored to fp32:'
shows 'what would cure it, measured together:'
shows ' bits per weight:'
shows '      convert --'
expect 0 "$lmquant" validate $few "$fable" $three --text a.txt
shows 'the reference'
expect 0 "$lmquant" validate -q --json --ctx 32 --max-tokens 60 --text a.txt \
    "$fable" $three
cp "$work/stdout" three.json
expect 0 "$lmquant" validate --ctx 32 --max-tokens 60 --text a.txt \
    --baseline three.json --gate 'kld.mean<=baseline' "$fable" $three
shows 'mean divergence in the baseline, and now'

finish

#!/bin/sh
#
# test_plan.sh - plan on the command line: each kind of target, what it prints
# in each form, what it writes, and the usual mistakes.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=2
text=$fable/held-out-b.txt
plan="$lmquant plan -c 64 --max-tokens 300 --text $text"
cd "$work" || exit 99

# prints TEXT: stdout has it.
prints() {
    grep -q -- "$1" stdout || {
        fail "stdout does not say '$1':"
        sed 's/^/    /' stdout
    }
}

# ---- Targets ----

expect 0 $plan --target-bits 6.5 -o bits.yaml "$fable"
for line in '^divergence .* bits per weight$' '^measured over 3.. tokens; .*better$' \
    '^  q4/64 ' '^  bf16 ' '^- match: ' "^convert --recipe='bits.yaml' makes it$"; do
    prints "$line"
done
expect 0 "$lmquant" convert -q --recipe bits.yaml "$fable" bits.lmq
"$lmquant" inspect --json bits.lmq > inspected
bits=$("$is_json" bits_per_weight < inspected)
awk -v bits="$bits" 'BEGIN { exit !(bits > 6 && bits <= 6.5) }' ||
    fail "6.5 bits per weight were asked for: $bits"

expect 0 $plan -v --target-size 400K -o size.yaml --report size.html "$fable"
grep -q "^rules:" size.html || fail "no lines in the recipe of the page"
prints '^  front '
prints '^  plan '
prints '^tensor .* becomes '
prints '^blk.0.attn_q '
expect 0 "$lmquant" convert -q --recipe size.yaml "$fable" size.lmq
[ "$(wc -c < size.lmq)" -le 400000 ] || fail "more than 400 kB"
grep -q '</html>' size.html || fail "no page"

expect 0 $plan --target-kld 0.01 "$fable"
prints ' smaller$'
prints '^version: 1$'
grep -q 'makes it' stdout && fail "a recipe is named that is not written"
grep -q 'keys, values' stdout && fail "keys and values are weighed unasked"

grep -q 'trained for' stderr && fail "a note on windows of 64"
for part in "--target-bits 6" "--part 1/2"; do
    expect 0 $plan -c 300 $part "$fable"
    says "windows of 300 tokens are longer than the 256 that the checkpoint was"
done
expect 0 $plan --target-kld 0.01 "$fable"

# What is rotated is weighed when that is asked for.
grep -q rotat stdout && fail "rotated without being asked to"
expect 0 $plan -v --rotate --target-bits 6 -o rotate.yaml "$fable"
prints '^  q4/64 rotated '

# Keys and values are what validate finds, and named if they add little.
expect 0 $plan -q --json --kv auto --target-bits 6 -f -o kv.yaml "$fable"
cp stdout kv.json
expect 0 "$lmquant" convert -q --recipe kv.yaml "$fable" kv.lmq
for i in 0 1 2 3; do
    type=$("$is_json" kv.types.$i.type < kv.json)
    expect 0 $plan -q --json --kv "$type" --target-bits 6 "$fable"
    "$is_json" prediction.kld < stdout > own
    "$is_json" kv.chosen < stdout > said 2>&1 && fail "--kv $type chooses"
    [ $i -ne 0 ] || [ "$("$is_json" kv.types.0.kld < kv.json)" = \
        "$(cat own)" ] || fail "kv $type is not that of the plan"
    awk -v a="$("$is_json" kv.types.$i.kld < kv.json)" -v b="$(cat own)" \
        'BEGIN { exit !(a > b / 1.5 && a < b * 1.5) }' || fail "kv $type"
done
# Of 4 layers and 2 heads of 16 keys and values; 8 bits take 34 bytes a head.
set -- 1024.0 512.0 528.0 544.0
for i in 0 1 2 3; do
    [ "$("$is_json" kv.types.$i.bytes_per_token < kv.json)" = "$1" ] ||
        fail "kv.types.$i: not $1 bytes per token"
    shift
done
# They may add a tenth of what all weights of 8 bits cost.
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    [ "$("$is_json" uniform.$i.name < kv.json)" = q8/64 ] || continue
    awk -v a="$("$is_json" kv.may_add < kv.json)" \
        -v b="$("$is_json" uniform.$i.kld < kv.json)" \
        'BEGIN { exit !(a > 0.0999 * b && a < 0.1001 * b) }' ||
        fail "keys and values may add something else"
done
expect 0 $plan --kv auto --target-bits 6 "$fable"
prints "^run --kv=$("$is_json" kv.chosen < kv.json) takes the fewest"
run $plan --kv q4 --target-bits 6 "$fable"
[ "$status" -eq 2 ] || fail "--kv q4: $status"

# ---- Paragraphs ----

# Over all of a text a plan predicts what validate finds, cut in the same way.
head -c 3000 "$text" > short
paragraphs="-c 64 --split-documents --json -q"
expect 0 "$lmquant" plan $paragraphs --max-tokens 100000 --text short \
    --target-bits 6 -o short.yaml "$fable"
"$is_json" prediction.kld < stdout > predicted
expect 0 "$lmquant" convert -qf --recipe short.yaml "$fable" short.lmq
expect 0 "$lmquant" validate $paragraphs "$fable" short.lmq short
[ "$("$is_json" protocol.documents < stdout)" -gt 1 ] || fail "one paragraph"
"$is_json" kld.mean < stdout | cmp -s predicted - ||
    fail "predicted $(cat predicted), found $("$is_json" kld.mean < stdout)"

# Of paragraphs that take turns, both kinds are measured.
awk 'BEGIN { for (i = 0; i < 100; i++) print "The cat\n\nOnce upon a time " \
    "there was a cat who lived in a house and was not happy there.\n" }' > turns
turns="$lmquant plan $paragraphs --text turns --target-bits 6 $fable"
expect 0 $turns --max-tokens 100000
n=$(($("$is_json" scored < stdout) / 2))
for more in 0 20 40 60 80 100 120; do
    expect 0 $turns --max-tokens $((n + more))
    [ $((3 * $("$is_json" scored < stdout))) -gt $((2 * n)) ] ||
        fail "of $n tokens $("$is_json" scored < stdout) are scored"
done

# ---- Forms ----

expect 0 $plan -q --target-bits 6.5 "$fable"
[ -s stdout ] && fail "-q prints"
expect 0 $plan -q --json --target-bits 6.5 "$fable"
"$is_json" prediction.kld < stdout > /dev/null || fail "no JSON"
"$is_json" recipe < stdout > /dev/null || fail "no recipe in the JSON"
expect 0 $plan -q --yaml --target-bits 6.5 "$fable"
prints '^prediction:'

# The recipe and the page under two names of one file.
ln -s page link
echo old > page
for output in ./page link; do
    run $plan -q -f --target-bits 6 -o "$output" --report page "$fable"
    [ "$status" -eq 2 ] || fail "-o $output --report page: $status"
    says "same file"
    [ "$(cat page)" = old ] || fail "-o $output destroys something"
done
rm page link
run $plan -q --target-bits 6 -o ./new --report new "$fable"
[ "$status" -eq 2 ] || fail "a new file under two names: $status"

# A page in the place of what is printed.
$plan -f --json --target-bits 6 -o recipe --report same "$fable" \
    > same 2> "$work/stderr" && fail "--report over standard output"
says "same is where standard output goes"

# ---- Parts ----

for i in 1 2 3; do
    expect 0 $plan --part $i/3 -o part-$i.json "$fable"
    prints "^part $i of 3: "
done
expect 0 $plan --part 2/3 "$fable"
"$is_json" lmquant_plan_part < stdout > said || fail "no JSON of a part"
expect 0 $plan --target-bits 6.5 -o parts.yaml "$fable" part-3.json \
    part-1.json part-2.json
cmp bits.yaml parts.yaml || fail "parts make another plan"
mistaken() { # STATUS TEXT ARGUMENTS...
    wanted=$1 text=$2
    shift 2
    expect "$wanted" $plan "$@"
    says "$text"
    is_one_sentence "$*"
}
mistaken 3 "2 of 3 parts are missing: 1, 3" --target-bits 6 "$fable" \
    part-2.json
mistaken 3 "is part 2 of 3, as part-2.json is" --target-bits 6 "$fable" \
    part-2.json part-1.json ./part-2.json
mistaken 3 "is of another run: ctx is 64, in this plan it is 32" \
    --target-bits 6 -c 32 "$fable" part-*.json
# As many windows, but others: of what may become more, the first are spread
# over more of the text.
for i in 1 2 3 4; do
    cat "$fable/held-out-a.txt" "$fable/held-out-b.txt" | tail -c +${i}000
done > long.txt
expect 0 "$lmquant" plan -c 256 --text long.txt --part 1/1 -o long.json \
    "$fable"
expect 3 "$lmquant" plan -c 256 --text long.txt --max-tokens 16384 \
    --target-bits 6 "$fable" long.json
says "is of another run: tokens_crc32"
expect 0 $plan --part 1/2 -o half.json "$fable"
mistaken 3 "is one of 2 parts, part-1.json of 3" --target-bits 6 "$fable" \
    part-1.json half.json part-2.json
sed 's/"alone":"..../"alone":"7ff0/' part-1.json > bad.json
mistaken 3 "'alone' is missing or not as it should be" --target-bits 6 \
    "$fable" bad.json part-2.json part-3.json
sed 's/"uniform":"./"uniform":"/' part-1.json > bad.json
mistaken 3 "'uniform' is missing or not as it should be" --target-bits 6 \
    "$fable" bad.json part-2.json part-3.json
mistaken 3 "is no JSON" --target-bits 6 "$fable" bits.yaml
mistaken 3 "is no part of a plan" --target-bits 6 "$fable" \
    "$fable/config.json"
mistaken 1 "part-1.json: exists already" --part 1/3 -o part-1.json "$fable"
mistaken 2 "a target is for what makes the plan" --part 1/3 --target-bits 6 \
    "$fable"
mistaken 2 "--report is for what makes the plan" --part 1/3 --report x.html \
    "$fable"
mistaken 2 "their files are for what makes the plan" --part 1/3 "$fable" \
    part-1.json
mistaken 2 "expected I/N" --part 4/3 "$fable"
mistaken 2 "x.yaml" --part 1/3 -o x.yaml "$fable"
cp part-1.json part-4.json
mistaken 2 "part-4.json" -f --target-bits 6 --report part-4.json "$fable" \
    part-1.json

# ---- Memory ----

# What is said to be needed is enough.
expect 1 $plan --memory 100K --target-bits 6.5 "$fable"
says "are needed for windows of 64 tokens through 2 models"
need=$(sed -n 's/.* small: \([0-9.]*\) MB are needed.*/\1/p' stderr)
expect 0 $plan -q --memory "$(echo "$need" | awk '{print $1 * 1000000}')" \
    --target-bits 6.5 -o memory.yaml "$fable"
cmp bits.yaml memory.yaml || fail "another plan in little memory"

# ---- Mistakes ----

expect 1 $plan --target-bits 6.5 -o bits.yaml "$fable"
says "bits.yaml"
cp bits.yaml before
expect 0 $plan -qf --target-bits 6.5 -o bits.yaml "$fable"
cmp before bits.yaml || fail "another plan the second time"
expect 2 $plan "$fable"
says "name a target: --target-size, --target-bits or --target-kld"
expect 2 $plan --target-bits 6 --target-kld 1 "$fable"
says "exclude each other"
expect 2 $plan --target-bits 1 "$fable"
is_one_sentence "1 bit"
expect 2 "$lmquant" plan --target-bits 6 "$fable"
says "name a text: --text=FILE"
expect 2 $plan --tokens "$text" --target-bits 6 "$fable"
says "--tokens is in place of --text"
expect 2 "$lmquant" plan --tokens ids --split-documents --target-bits 6 "$fable"
says "--split-documents is for texts"
expect 2 $plan --target-bits 6 -o x.html --report x.html "$fable"
is_one_sentence "one file twice"
expect 2 $plan --target-bits 6 -o x.lmq "$fable"
says "x.lmq"
expect 2 $plan --target-bits many "$fable"
expect 2 $plan -c 1 --target-bits 6 "$fable"
head -c 300 "$text" > little.txt
expect 3 "$lmquant" plan --text little.txt --target-bits 6 "$fable"
is_one_sentence "a text of 300 bytes"
expect 1 "$lmquant" plan --text nowhere.txt --target-bits 6 "$fable"
says "nowhere.txt"
[ -e x.lmq ] || [ -e x.html ] && fail "an output of a mistake"

# What is wrong with a checkpoint is said with its name: NaN in the last matrix,
# before a norm of 96 floats; a head beside an embedding that is to be it.
cp -r "$fable" nan
chmod -R u+w nan
printf '\000\000\300\177' |
    dd of=nan/model.safetensors bs=1 conv=notrunc \
        seek=$(($(wc -c < nan/model.safetensors) - 97 * 4)) 2> dd.log
expect 3 $plan --target-bits 6 nan
says "lmquant: nan: tensor 'model.layers.3.self_attn.v_proj.weight' has NaN"
expect 0 "$top_builddir/tests/make/make_family" llama3 tied
sed 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' \
    tied/config.json > config.json
mv config.json tied/config.json
head -c 2000 /dev/zero > ids
expect 3 "$lmquant" plan --tokens ids --target-bits 6 tied
says "lmquant: tied: cannot be run: a head that differs from the embedding"
expect 3 "$lmquant" validate --tokens ids --ctx 32 tied tied
says "lmquant: tied: cannot be run: a head that differs from the embedding"

# The same where only the last of 61 rows of 60 differs: the embedding stands
# first in the file, then a norm, then the head.
begin=$((8 + $(od -A n -t u8 -N 8 tied/model.safetensors)))
dd if=tied/model.safetensors bs=1 skip=$begin count=$((60 * 240)) 2> dd.log |
    dd of=tied/model.safetensors bs=1 conv=notrunc seek=$((begin + 62 * 240)) \
        2> dd.log
expect 3 "$lmquant" validate --tokens ids --ctx 32 tied tied
says "lmquant: tied: cannot be run: a head that differs from the embedding"

# And where only one in the middle does, as of a token in front of padding.
dd if=tied/model.safetensors bs=1 skip=$begin count=$((61 * 240)) 2> dd.log |
    dd of=tied/model.safetensors bs=1 conv=notrunc seek=$((begin + 62 * 240)) \
        2> dd.log
expect 0 "$lmquant" validate --tokens ids --ctx 32 tied tied
head -c 240 /dev/zero |
    dd of=tied/model.safetensors bs=1 conv=notrunc \
        seek=$((begin + (62 + 30) * 240)) 2> dd.log
expect 3 "$lmquant" validate --tokens ids --ctx 32 tied tied
says "lmquant: tied: cannot be run: a head that differs from the embedding"
finish

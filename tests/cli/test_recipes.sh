#!/bin/sh
#
# test_recipes.sh - recipes on the command line: files good and bad, those that
# are installed, and that options and the recipe that they print are one.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=2
recipes=$srcdir/man/recipes
cd "$work" || exit 99

# ---- Files ----

for path in "$files"/recipes/*.yaml; do
    name=$(basename "$path")
    grep -qF "\`recipes/$name\`" "$files/README.md" ||
        fail "README.md does not mention $name"
    case $name in
    good-all.yaml) # for a mixture
        expect 0 "$top_builddir/tests/make/make_family" mixtral mixture
        expect 0 "$lmquant" convert -q --recipe "$path" mixture x.lmq
        expect 0 "$lmquant" verify -q x.lmq
        expect 0 "$lmquant" inspect --tensors x.lmq
        rm x.lmq
        ;;
    good-*)
        expect 0 "$lmquant" convert -q --recipe "$path" "$fable" x.lmq
        rm x.lmq
        ;;
    *)
        expect 3 "$lmquant" convert -q --recipe "$path" "$fable" x.lmq
        is_one_sentence "$name"
        says "$path: "
        [ -e x.lmq ] && fail "$name: there is an output"
        ;;
    esac
done

# ---- Those that are installed ----

n_recipes=0
for path in "$recipes"/*.yaml; do
    n_recipes=$((n_recipes + 1))
    for model in "$fable" mixture; do
        expect 0 "$lmquant" convert -qf --recipe "$path" "$model" x.lmq
        expect 0 "$lmquant" verify -q x.lmq
        expect 0 "$lmquant" inspect --json x.lmq
        expect 0 "$lmquant" bench -q -p 4 -n 2 -r 1 x.lmq
    done
    grep -qF "$(basename "$path")" "$srcdir/man/lmquant-recipe.5" ||
        fail "lmquant-recipe(5) does not speak of $path"
done
[ $n_recipes -ge 5 ] || fail "only $n_recipes recipes in $recipes"

# ---- Experts from either end, with a description and without one ----

cat > ends.yaml << 'end'
version: 1
rules:
- {match: ffn_up, layers: last 1, experts: "first 1, last 2", encoding: bf16}
end
for model in mixture mixture/model.safetensors; do
    expect 0 "$lmquant" convert -qf --recipe ends.yaml "$model" x.lmq
    expect 0 "$lmquant" inspect --tensors x.lmq
    ups=$(sed -n 's/^ *\(blk[^ ]*\) .* bf16 .*/\1/p' stdout | tr '\n' ' ')
    [ "$ups" = "blk.2.ffn_up.0.weight blk.2.ffn_up.4.weight \
blk.2.ffn_up.5.weight " ] || fail "first 1, last 2 of 6 experts: $ups"
done

# ---- Options are a recipe ----

# same OPTION...: what the options make, what the recipe makes that they print,
# and what the one makes that the container holds, are the same bytes.
same() {
    expect 0 "$lmquant" convert -qf "$@" "$fable" a.lmq
    expect 0 "$lmquant" convert --print-recipe -q "$@" "$fable" none.lmq
    cp stdout printed.yaml
    [ -e none.lmq ] && fail "--print-recipe writes an output"
    expect 0 "$lmquant" convert -qf --recipe printed.yaml "$fable" b.lmq
    cmp -s a.lmq b.lmq || fail "the printed recipe of $* makes another file"
    expect 0 "$lmquant" convert --print-recipe --json "$@" "$fable" none.lmq
    cp stdout printed.json
    "$is_json" < printed.json || fail "--print-recipe --json of $*"
    expect 0 "$lmquant" convert -qf --recipe printed.json "$fable" b.lmq
    cmp -s a.lmq b.lmq || fail "the recipe of $* as JSON makes another file"
}
same --keep ffn_down
same -g 32 --scales=f32 --set 'blk.[0-1].*=bf16' --keep '*.attn_q'
same --set "*=f16" --set "ffn_*=q8,group=128,method=absmax"
same --recipe "$recipes/fine-ends.yaml" --set attn_k=q8,scales=f32 -g 256
same --encoding q4 --rotate
same --recipe "$recipes/floats.yaml" --set attn_q=q8 -g 32
for path in "$recipes"/*.yaml; do
    same --recipe "$path"
done

# What is integers stays so in what nobody asks for.
expect 0 "$lmquant" convert -qf -e q4 -g 32 "$fable" four.lmq
floats=$fable
fable=four.lmq
# stays TYPE OPTION...: the same numbers, of that type.
stays() {
    type=$1
    shift
    same "$@"
    expect 0 "$lmquant" diff four.lmq a.lmq
    grep -q "the checkpoints are identical" stdout ||
        fail "convert $* changes something"
    expect 0 "$lmquant" inspect --tensors a.lmq
    grep -q "^blk.0.ffn_up.weight  *200x96  *$type " stdout ||
        fail "convert $* of 4 bits: not $type"
}
# changes OPTION...: other numbers.
changes() {
    same "$@"
    expect 0 "$lmquant" diff four.lmq a.lmq
    grep -q "the checkpoints are identical" stdout && fail "convert $* changes nothing"
}
stays q4 --method absmax
stays q4 -g 32
stays q4 -e q4
stays q5 -e q5 --scales f16
stays q8 --set '*=q8'
changes -g 64
changes -e q4 -g 64
changes --scales f32
changes --rotate
fable=$floats
expect 0 "$lmquant" convert -f --set '*=bf16' four.lmq a.lmq
says "29 of 29 matrices are quantized already: converting them again adds error"
expect 0 "$lmquant" convert -f --set '*=f32' four.lmq a.lmq
! grep -q "adds error" stderr || fail "floats with all that was there"
expect 0 "$lmquant" convert -qf --layout rows four.lmq a.lmq
expect 0 "$lmquant" diff four.lmq a.lmq
grep -q "the checkpoints are identical" stdout || fail "rows of 4 bits"

# A later one counts, whichever option it is.
expect 0 "$lmquant" convert --dry-run --set 'ffn_up=f16' --keep 'blk.0.*' \
    "$fable" none.lmq
grep -q '^blk.0.ffn_up.weight  *f32  *f32 ' stdout || fail "--keep behind --set"
grep -q '^blk.1.ffn_up.weight  *f32  *f16 ' stdout || fail "--set"
expect 0 "$lmquant" convert --dry-run --keep 'blk.0.*' --set 'ffn_up=f16' \
    "$fable" none.lmq
grep -q '^blk.0.ffn_up.weight  *f32  *f16 ' stdout || fail "--set behind --keep"

# The plan tells the exact size.
expect 0 "$lmquant" convert --dry-run --json --set 'attn_*=bf16' "$fable" x
planned=$(sed -n 's/.*"output_bytes": \([0-9]*\).*/\1/p' stdout)
expect 0 "$lmquant" convert -qf --set 'attn_*=bf16' "$fable" a.lmq
[ "$planned" = "$(wc -c < a.lmq | tr -d ' ')" ] ||
    fail "planned are $planned bytes"

# ---- Mistakes ----

# refused STATUS TEXT OPTION...
refused() {
    wanted=$1 text=$2
    shift 2
    rm -f x.lmq
    expect "$wanted" "$lmquant" convert -q "$@" "$fable" x.lmq
    says "$text"
    is_one_sentence "$*"
    [ -e x.lmq ] && fail "there is an output: $*"
}
refused 2 "--keep 'ffn_dwon' matches no matrix" --keep ffn_dwon
refused 2 "--set is 'ffn_up', expected PATTERN=TYPE" --set ffn_up
refused 2 "encoding is 'q77', expected 'keep', 'q8'" --set ffn_up=q77
refused 2 "group is '48'" --set ffn_up=q8,group=48
refused 2 "'group' is there twice" --set ffn_up=q8,group=32,group=32
refused 2 "'encoding' is no key" --set ffn_up=q8,encoding=q8
refused 2 "mean nothing beside the encoding 'f16'" --set ffn_up=f16,group=32
refused 2 "is no KEY=VALUE" --set ffn_up=q8,
refused 2 "--keep is '', expected a name" --keep ""
refused 2 "is no UTF-8" --keep "$(printf '\377')"
refused 2 "has a control character" --keep "$(printf 'a\tb')"
refused 2 "has a control character" --keep "$(printf 'a\302\205b')"
refused 2 "has a control character" --keep "$(printf 'a\357\273\277b')"
refused 2 "the head is the embedding" --keep output
refused 1 "nowhere.yaml: cannot open" --recipe nowhere.yaml
refused 3 "is a folder" --recipe .
head -c 5000000 /dev/zero > huge.yaml
refused 3 "huge.yaml: is" --recipe huge.yaml

# The recipe is a source, too.
cp printed.yaml r.lmq
expect 2 "$lmquant" convert -qf --recipe r.lmq "$fable" r.lmq
says "would destroy its source"
cmp -s printed.yaml r.lmq || fail "the recipe is destroyed"

# ---- What a container says ----

expect 0 "$lmquant" convert -qf --keep 'ffn_down' --set 'attn_q=q8,group=32' \
    "$fable" a.lmq
expect 0 "$lmquant" inspect a.lmq
grep -q '^  recipe  *q8, or as it was, where no rule says otherwise$' stdout ||
    fail "inspect: the default"
grep -q '^  *ffn_down: keep$' stdout || fail "inspect: the first rule"
grep -q '^  *attn_q: q8, group 32$' stdout || fail "inspect: the second rule"
expect 0 "$lmquant" convert -qf "$fable" a.lmq
expect 0 "$lmquant" inspect a.lmq
grep -q '^  recipe' stdout && fail "inspect: a recipe without rules"

# Sixteen rules, or all.
rules=
for role in attn_q attn_k attn_v ffn_up ffn_down; do
    for layer in 0 1 2 3; do
        rules="$rules --set blk.$layer.$role=q6"
    done
done
expect 0 "$lmquant" convert -qf $rules "$fable" a.lmq
expect 0 "$lmquant" inspect a.lmq
[ "$(grep -c ': q6$' stdout)" = 16 ] || fail "inspect: not 16 rules"
grep -q '^  *and 4 rules more$' stdout || fail "inspect: the rest"
expect 0 "$lmquant" inspect -v a.lmq
[ "$(grep -c ': q6$' stdout)" = 20 ] || fail "inspect -v: not all rules"
finish

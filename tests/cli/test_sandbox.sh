#!/bin/sh
# test_sandbox.sh - commands that only read do the same behind their sandbox as
# without it: for all formats, sets, folders of links, pipes, and what is
# refused. What fails inside is tests/base/test_sandbox's business.

set -u
. "${srcdir:-.}/tests/library.sh"

run "$lmquant" inspect -v "$fable"
grep -q '^note: lmquant .*, writes no files$' "$work/stderr" || {
    echo "the system, or this build, has no sandbox"
    exit 77
}
LMQUANT_SANDBOX=no run "$lmquant" inspect -v "$fable"
grep -q 'writes no files' "$work/stderr" && fail "LMQUANT_SANDBOX=no is no wish"
run "$lmquant" run -v -n 0 "$fable" Once
grep -q 'writes no files' "$work/stderr" && fail "run writes no files"

# same ARGUMENT...: lmquant with these, with and without; standard input is
# $input.
input=/dev/null
n_same=0
same() {
    LMQUANT_SANDBOX=no "$lmquant" "$@" < $input > "$work/out1" 2> "$work/err1"
    wanted=$?
    "$lmquant" "$@" < $input > "$work/out2" 2> "$work/err2"
    status=$?
    n_same=$((n_same + 1))
    [ $status -eq $wanted ] && cmp -s "$work/out1" "$work/out2" &&
        cmp -s "$work/err1" "$work/err2" ||
        fail "$* differs ($status, not $wanted): $(cat "$work/err2")"
}
# good ARGUMENT...: and it succeeds.
good() {
    same "$@"
    [ $wanted -eq 0 ] || fail "$*: $(cat "$work/err1")"
}

cd "$work" || exit 99
export LC_ALL=C
expect 0 "$lmquant" convert -q "$fable" behind.lmq
for command in "verify behind.lmq" "diff behind.lmq $fable" \
    "tokenize behind.lmq $fable/held-out-a.txt"; do
    run "$lmquant" $command -v
    says ', writes no files'
done

# ---- All formats, good and hostile ----

for path in "$files"/*; do
    same inspect --tensors "$path"
done
for path in "$files"/good-* "$files"/lmq/good-*; do
    same inspect --json --tensors "$path"
    same diff "$path" "$fable"
    same verify "$path"
done

# ---- Containers and sets ----

expect 0 "$lmquant" convert -q --digests "$fable" model.lmq
mkdir set
expect 0 "$lmquant" convert -q --shard-size 200K "$fable" set/model.lmq
member=$(ls set/* | sed -n 2p)
for to in gguf llama2c safetensors mlx compressed-tensors; do
    case $to in
    gguf) output=model.gguf ;;
    llama2c) output=model.bin ;;
    *) output=$to ;;
    esac
    expect 0 "$lmquant" export -q --to $to model.lmq $output
    good inspect --tensors --json $output
    good diff --json -j 3 model.lmq $output --gate 'missing<=99'
done
for model in model.lmq set $member; do
    good inspect -t $model
    good inspect --tensor output_norm.weight --stats --yaml $model
    good verify -j 3 $model
    good verify --json --progress=plain $model
    good diff -j 3 $model "$fable"
done
good verify --alone $member
rm set/*2-of*
same verify set
same inspect set

# ---- What lies elsewhere ----

mkdir cache blobs elsewhere 'with links'
for name in config.json model.safetensors tokenizer.json \
    tokenizer_config.json generation_config.json; do
    cp "$fable/$name" "blobs/$name-blob"
    ln -s "../blobs/$name-blob" "cache/$name"
done
cp "$fable/tokenizer.bin" "$fable/config.json" elsewhere
ln -s "$work/model.lmq" 'with links/renamed'
good inspect cache
good diff cache "$fable"
good inspect "$work/cache/model.safetensors"
good inspect --tokenizer elsewhere/tokenizer.bin \
    --config elsewhere/config.json blobs/model.safetensors-blob
good inspect --tokenizer model.lmq blobs/model.safetensors-blob \
    --config elsewhere/config.json
good inspect --tokenizer cache model.lmq
good verify 'with links/renamed'
same verify 'with links'
(cd cache && same inspect .)
(cd / && same inspect "$work/cache")
same inspect nowhere
same inspect nowhere/at/all
same diff model.lmq nowhere
ln -s loop loop
same inspect loop
same inspect /
same inspect ''

# ---- Texts, pipes ----

input=$fable/held-out-a.txt
for model in "$fable" model.lmq model.gguf elsewhere/tokenizer.bin cache \
    "$fable/tokenizer.json"; do
    good tokenize --ids $model
    good tokenize --json $model "$fable/held-out-b.txt"
done
good tokenize --ids model.lmq -
"$lmquant" tokenize --ids model.lmq < $input > ids
good tokenize -d model.lmq ids
[ "$(cat ids | "$lmquant" tokenize -d model.lmq | cksum)" = \
    "$(cksum < $input)" ] || fail "there and back through pipes"
mkfifo pipe
cat ids > pipe &
"$lmquant" tokenize -d model.lmq pipe > text
cmp -s text $input || fail "from a pipe with a name"
"$lmquant" tokenize -d model.lmq /dev/fd/3 3< ids > text
cmp -s text $input || fail "from a descriptor"
if [ -w /dev/full ]; then
    expect 1 sh -c "'$lmquant' inspect model.lmq > /dev/full"
fi

echo "$n_same the same"
finish

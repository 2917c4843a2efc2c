#!/bin/sh
#
# test_files.sh - every file of tests/files through every command: good ones
# work, bad ones are refused with 3 and one sentence, nothing is left behind.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=2
if has_sanitizer; then
    limited() { "$@"; }
else
    limited() { (ulimit -v 1048576 && exec "$@"); }
fi

# Bad in a way that shows only when the weights are read.
reads_well() {
    case $1 in
    bad-nan.* | bad-infinity.* | bad-v1-nan.* | bad-tie-*) true ;;
    unsupported-packed-*) true ;;
    *) false ;;
    esac
}

# Damage that only verify looks for.
converts_well() {
    case $1 in
    bad-flipped-value.lmq | bad-value.lmq | bad-scale.lmq | bad-padding.lmq)
        true ;;
    *) has_wrong_digest "$1" ;;
    esac
}
has_wrong_digest() {
    case $1 in
    bad-digests-root.lmq | bad-digests-content.lmq | \
        bad-digests-of-tensor.lmq) true ;;
    *) false ;;
    esac
}

# Whether there is a library for SHA-256.
has_sha256=yes
"$lmquant" verify "$files/lmq/good-digests.lmq" | grep -q 'not checked' &&
    has_sha256=no

out=$work/out
mkdir "$out"

nothing_left() {
    if [ -n "$(ls -A "$out")" ]; then
        fail "$1: left behind: $(ls -A "$out")"
        rm -rf "$out"
        mkdir "$out"
    fi
}

# refused NAME COMMAND...
refused() {
    name=$1
    shift
    expect 3 limited "$lmquant" "$@"
    is_one_sentence "$*"
    says "$name"
    nothing_left "$name"
}

# Those that have logits in the text beside them are computed, the others are
# refused by name.
computes() {
    if grep -q '^logits' "${1%.lmq}.txt"; then
        expect 0 limited "$lmquant" bench -q -p 4 -n 4 -r 1 "$1"
    else
        expect 3 limited "$lmquant" bench -q -p 4 -n 4 -r 1 "$1"
        says "is not understood"
    fi
}

n_files=0
for path in "$files"/good-* "$files"/bad-* "$files"/unsupported-* \
    "$files"/lmq/*.lmq; do
    name=$(basename "$path")
    n_files=$((n_files + 1))
    grep -qF "\`$name\`" "$(dirname "$path")/README.md" ||
        fail "README.md does not mention $name"
    case $name in
    good-no-tensors.lmq) # there is nothing to convert or to compare
        expect 0 limited "$lmquant" inspect --tensors "$path"
        expect 0 limited "$lmquant" verify "$path"
        ;;
    good-*)
        expect 0 limited "$lmquant" inspect --tensors "$path"
        LC_ALL=C tr -d '\n' < "$work/stdout" | LC_ALL=C grep -q '[[:cntrl:]]' &&
            fail "$name: control characters on the terminal"
        expect 0 limited "$lmquant" inspect --json --tensors "$path"
        expect 0 limited "$lmquant" convert --dry-run "$path" "$out/x.lmq"
        nothing_left "$name"
        expect 0 limited "$lmquant" convert "$path" "$out/x.lmq"
        expect 0 limited "$lmquant" verify "$out/x.lmq"
        expect 0 limited "$lmquant" diff "$path" "$out/x.lmq"
        rm -f "$out/x.lmq"
        nothing_left "$name"
        case $name in
        good-model-*) computes "$path" ;;
        esac
        case $name in
        *.lmq) expect 0 limited "$lmquant" verify "$path" ;;
        esac
        ;;
    later-*)
        # One tensor that cannot be read hides nothing else.
        expect 0 limited "$lmquant" inspect --tensors "$path"
        grep -q 'unknown' "$work/stdout" || fail "$name: nothing is unknown"
        expect 0 limited "$lmquant" verify "$path"
        expect 0 limited "$lmquant" inspect --tensor token_embd.weight \
            --stats "$path"
        refused "$name" convert --dry-run "$path" "$out/x.lmq"
        refused "$name" convert "$path" "$out/x.lmq"
        says "tensor 'blk.0.attn_q.weight' has "
        refused "$name" export --to safetensors "$path" "$out/x.safetensors"
        refused "$name" diff "$path" "$path"
        ;;
    *)
        if reads_well "$name"; then
            expect 0 limited "$lmquant" inspect --tensors "$path"
        elif ! converts_well "$name"; then
            refused "$name" inspect --tensors "$path"
            refused "$name" inspect --json "$path"
            [ -s "$work/stdout" ] && fail "$name: a refusal prints JSON"
            refused "$name" convert --dry-run "$path" "$out/x.lmq"
            refused "$name" diff "$files/good-plain.safetensors" "$path"
        fi
        converts_well "$name" || refused "$name" convert "$path" "$out/x.lmq"
        if has_wrong_digest "$name" && [ $has_sha256 = no ]; then
            expect 0 limited "$lmquant" verify "$path"
        elif [ -f "$path" ]; then
            refused "$name" verify "$path"
        fi
        ;;
    esac
done
[ $n_files -gt 100 ] || fail "only $n_files files in $files"

# ---- Sentences ----

# sentence NAME TEXT
sentence() {
    run "$lmquant" convert "$files/$1" "$out/x.lmq"
    says "lmquant: $files/$1: $2"
}

sentence bad-empty.bin "is empty"
sentence bad-text.txt "is not a checkpoint in any known format"
sentence bad-folder-without-model "the folder holds no model"
sentence unsupported-lfs-pointer.safetensors \
    "is a Git LFS pointer, not the file itself"
sentence unsupported-web-page.safetensors "is a web page, not a checkpoint"
sentence lmq/unsupported-future-major.lmq \
    "needs a reader of format version 9.0, this one reads 1.x"
sentence bad-nan.safetensors \
    "tensor 'w': NaN or infinity at element 4 (row 1, column 1)"
sentence bad-dims-wrap.safetensors \
    "tensor 'a': the product of its dimensions is too large"
sentence lmq/bad-truncated.lmq "is "
sentence bad-shard-missing/two.safetensors "cannot open: No such file"
run "$lmquant" convert "$files/bad-shard-parent" "$out/x.lmq"
says "the shard of tensor 'w' is no plain file name"
nothing_left sentences

# ---- Still what the generator makes? ----

again=$work/again
mkdir "$again"
if [ $has_sha256 = no ]; then
    skip "make_files: it cannot make digests"
elif "$top_builddir/tests/make/make_files" "$again"; then
    # Another zlib deflates otherwise.
    rm -f "$again/lmq/good-compressed.lmq"
    diff -r "$files" "$again" | grep -v 'good-compressed.lmq$' \
        > "$work/differences"
    if [ -s "$work/differences" ]; then
        fail "tests/files is not what make_files makes:"
        head -5 "$work/differences" | sed 's/^/    /'
    fi
else
    fail "make_files"
fi
n_bytes=$(cat $(find "$files" -type f) | wc -c)
# Two thirds are containers: one for nearly each rule of lmq(5), and models
# that together have all that a description says.
[ "$n_bytes" -lt 1500000 ] || fail "the corpus has $n_bytes bytes"
finish

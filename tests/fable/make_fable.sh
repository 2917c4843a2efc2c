#!/bin/sh
#
# make_fable.sh - makes the bundled model again from nothing.
#
#     make_fable.sh [--large] FOLDER
#
# Compiles the programs beside it, prints the stories, trains the tokenizer and
# the model on one thread (about half an hour) and leaves in FOLDER the files
# of tests/data/fable, but the README. The texts and the tokenizer come out the
# same everywhere; the weights depend on compiler and machine, for the trainer
# is built for speed. CC and N_STEPS can be set from outside.
#
# --large: 5.6 million parameters, rows of 256 and 768, for comparisons with
# formats whose blocks are that long; an hour, and longer texts.
set -eu

shape= stories=112 default_steps=18000
if [ "${1-}" = --large ]; then
    shape='-DFABLE_DIM=256 -DFABLE_HIDDEN=768 -DFABLE_LAYERS=7'
    shape="$shape -DFABLE_HEADS=8 -DFABLE_KV_HEADS=4 -DPEAK_RATE=1.5e-3"
    stories=300 default_steps=1600
    shift
fi
if [ $# -ne 1 ]; then
    echo "usage: make_fable.sh [--large] FOLDER" >&2
    exit 2
fi
src=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
cc=${CC:-gcc}
n_steps=${N_STEPS:-$default_steps}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

plain() {
    $cc -std=c11 -D_POSIX_C_SOURCE=200809L -I../.. -O2 -o "$@"
}

fast() {
    $cc -std=c11 -D_POSIX_C_SOURCE=200809L -I../.. -O3 -march=native \
        -ffast-math $shape -o "$@"
}

cd "$src"
plain "$tmp/fable_text" fable_text.c
plain "$tmp/fable_tokens" fable_tokens.c fable_vocab.c
plain "$tmp/fable_eval" fable_eval.c fable_bpe.c -lm
fast "$tmp/fable_train" fable_train.c fable_net.c fable_gemm.c fable_save.c \
    fable_bpe.c -lm

cd "$out"
"$tmp/fable_text" 1 180000 > "$tmp/train.txt"
"$tmp/fable_text" 1001 $stories > held-out-a.txt
"$tmp/fable_text" 1002 $stories > held-out-b.txt
"$tmp/fable_tokens" "$tmp/train.txt" .
"$tmp/fable_train" "$tmp/train.txt" held-out-a.txt tokenizer.bin "$n_steps" .
for text in held-out-a.txt held-out-b.txt; do
    "$tmp/fable_eval" fable.bin tokenizer.bin nll "$text"
done
"$tmp/fable_eval" fable.bin tokenizer.bin greedy "Once upon a time"

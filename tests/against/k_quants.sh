#!/bin/sh
#
# k_quants.sh - plans against llama.cpp's K-quants of the same size.
#
#   tests/against/k_quants.sh BUILD MODEL LEARN TEXT LLAMA [FOLDER]
#
# MODEL is a folder of safetensors with its tokenizer, of rows of 256 or
# multiples of it: tests/fable/make_fable.sh --large makes one. LEARN is the text
# of llama.cpp's importance matrix and of lmquant's plans and calibration, TEXT
# another, over which all of them are judged in one run; LLAMA has llama-imatrix
# and llama-quantize. FOLDER (default: a temporary one) keeps what is made.
# WINDOW and TOKENS can be set from outside.
set -eu

[ $# -ge 5 ] || {
    sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
lmquant=$(cd "$1" && pwd)/lmquant
model=$(cd "$2" && pwd)
learn=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
text=$(cd "$(dirname "$4")" && pwd)/$(basename "$4")
llama=$(cd "$5" && pwd)
window=${WINDOW:-256}
tokens=${TOKENS:-60000}
if [ $# -ge 6 ]; then
    mkdir -p "$6"
    cd "$6"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
fi

logged() { # NAME COMMAND...
    name=$1
    shift
    "$@" > "$name.log" 2>&1 || {
        tail -n 20 "$name.log" >&2
        exit 1
    }
}

"$lmquant" export -qf --to gguf --type f32 "$model" f32.gguf
logged imatrix "$llama/llama-imatrix" -m f32.gguf -f "$learn" -c "$window" \
    -o imatrix.gguf
models=
for type in Q4_K_M Q5_K_M Q6_K; do
    logged "$type" "$llama/llama-quantize" --imatrix imatrix.gguf f32.gguf \
        "$type.gguf" "$type"
    size=$(wc -c < "$type.gguf" | tr -d ' ')
    "$lmquant" plan -qf --text "$learn" --target-size "$size" -c "$window" \
        -o "$type.yaml" "$model"
    sed -n 's/^# //p' "$type.yaml"
    "$lmquant" convert -qf --recipe "$type.yaml" "$model" "$type-plan.lmq"
    "$lmquant" convert -qf --recipe "$type.yaml" --calibrate "$learn" \
        -c "$window" "$model" "$type-calibrated.lmq"
    models="$models $type.gguf $type-plan.lmq $type-calibrated.lmq"
done
logged q8_0 "$llama/llama-quantize" f32.gguf q8_0.gguf Q8_0
"$lmquant" convert -qf "$model" q8.lmq
"$lmquant" convert -qf --calibrate "$learn" -c "$window" "$model" \
    q8-calibrated.lmq
# shellcheck disable=SC2086
"$lmquant" validate -f --max-tokens "$tokens" -c "$window" --report front.html \
    "$model" $models q8_0.gguf q8.lmq q8-calibrated.lmq --emulate q8_0 \
    --text "$text" | tee front.txt

#!/bin/sh
#
# quality.sh - what a model loses in each way, as a table of doc/quality.md.
#
#   tests/quality.sh BUILD MODEL LEARN TEXT [FOLDER]
#
# MODEL is converted in four ways, two of which learn from the text LEARN, and
# all are judged over TEXT, with activations of 16 bits and of 8, beside what
# llama.cpp's Q8_0 computes. FOLDER (default: a temporary one) keeps what is
# made; what is there already is used. From outside: WINDOW (512), TOKENS (of
# TEXT: 60000), LEARNT (of LEARN: 32768), OPEN (options for opening MODEL, as
# --tokenizer=FILE), MADE (more options of convert, as --group-size=32), HOW (of
# validate, as --split-documents), WAYS (of the four, and of two more that learn
# from what the model writes itself: "default rotated calibrated both own
# own-both").
set -eu

[ $# -ge 4 ] || {
    sed -n '3,17s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
absolute() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }
lmquant=$(absolute "$1")/lmquant
model=$(absolute "$2")
learn=$(absolute "$3")
text=$(absolute "$4")
window=${WINDOW:-512}
if [ $# -ge 5 ]; then
    mkdir -p "$5"
    cd "$5"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
fi

# make NAME OPTION...
make() {
    out=$1.lmq
    shift
    # shellcheck disable=SC2086
    [ -e "$out" ] || "$lmquant" convert -q ${OPEN-} ${MADE-} "$@" "$model" "$out"
}

learning="--calibrate=$learn --ctx=$window --calibrate-tokens=${LEARNT:-32768}"
models= labels=
for way in ${WAYS:-default rotated calibrated both}; do
    # shellcheck disable=SC2086
    case $way in
    default) make "$way" ;;
    rotated) make "$way" --rotate ;;
    calibrated) make "$way" $learning ;;
    both) make "$way" $learning --rotate ;;
    own) make "$way" --own-text --ctx="$window" ;;
    own-both) make "$way" --own-text --ctx="$window" --rotate ;;
    esac
    models="$models $way.lmq"
    labels="$labels$(echo "$way" | sed 's/^both/calibrated and rotated/
        s/^own-both/by its own text and rotated/; s/^own$/by its own text/')/"
done

# A row for each model of a report; the last is what the others are parts of.
rows() { # REPORT NAME/NAME/...
    report=$1
    shift
    awk -v names="$*" '
        BEGIN { split(names, name, "/") }
        /^- verdict:/ { n++; in_models = 1 }
        /^[a-z]/ && $1 != "models:" { in_models = 0 }
        !in_models { next }
        /^  [a-z]/ { part = $1 }
        /^  ppl_ratio:/ { ratio[n] = $2 }
        /^  top1_agreement:/ { top[n] = $2 }
        /^    mean:/ && part == "kld:" { mean[n] = $2 }
        /^    p99:/ && part == "kld:" { p99[n] = $2 }
        /^    max:/ && part == "kld:" { max[n] = $2 }
        /^    rate:/ && part == "flips:" { flips[n] = $2 }
        END {
            for (i = 1; i <= n; i++)
                printf "| %s | %.2e | %.2f | %.2e | %.2g | %.4f | %.2f | %.2f |\n",
                    name[i], mean[i], mean[i] / mean[n], p99[i], max[i],
                    ratio[i], 100 * top[i], 100 * flips[i]
        }' "$report"
}

judge() { # ACTIVATIONS
    # shellcheck disable=SC2086
    "$lmquant" validate -q ${OPEN-} ${HOW-} --ctx="$window" --yaml \
        --max-tokens="${TOKENS:-60000}" --activations="$1" \
        --emulate=q8_0 --text="$text" "$model" $models > "$1.yaml"
}

judge q16
judge q8
awk '/^scored:/ { tokens = $2 }
    /^    ppl:/ { printf "%d tokens, perplexity %.3f.\n\n", tokens, $2; exit }' \
    q16.yaml
echo "| | mean | of Q8_0 | 99 % | max | PPL ratio | top-1 % | flips % |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
rows q16.yaml "${labels}Q8_0"
rows q8.yaml "$(echo "$labels" |
    sed 's|^|8-bit activations, |; s|/\(.\)|/8-bit activations, \1|g
         s|activations, default|activations|')" |
    sed '$d' # Q8_0 again

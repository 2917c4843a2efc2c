#!/bin/sh
# A reader that was written from lmq(5) and lmq-model(5) alone, by somebody who
# had not seen the program, agrees with it: about the corpus of containers,
# about random descriptions, about sets and digests. So the pages say enough.

set -u
. "${srcdir:-.}/tests/library.sh"
python=${PYTHON:-python3}
reader="$python -B $srcdir/tests/reader/reader.py"

if ! "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 8))' \
    2> /dev/null; then
    skip "the stranger's reader: no Python 3.8 with numpy"
    exit 77
fi

# reads ARGUMENT...: the reader has nothing against it.
reads() {
    $reader "$@" > "$work/said" 2>&1 || {
        fail "reader.py $*"
        sed 's/^/    /' "$work/said"
    }
}

# refuses RULE FILE
refuses() {
    if $reader verify "$2" > "$work/said" 2>&1; then
        fail "reader.py takes $2"
    elif ! grep -q ": $1: " "$work/said"; then
        fail "reader.py does not refuse $2 for $1"
        sed 's/^/    /' "$work/said"
    fi
}

# What is good is read to the same elements and logits, what is bad is refused
# for the rule that README.md names.
reads conformance "$files/lmq"
cat "$work/said"

"$top_builddir/tests/make/make_random" "$work/random" 60 ||
    fail "make_random"
reads compare "$work/random"
cat "$work/said"

# Sets, with digests where they can be made; then one that is not whole.
digests=--digests
"$lmquant" convert -qf --digests "$files/good-plain.safetensors" \
    "$work/with.lmq" 2> "$work/stderr" || {
    says 'without a library for SHA-256'
    skip "digests: built without a library for SHA-256"
    digests=
}
"$synth" "$work/model" > /dev/null || fail "synth"
for options in --layout=tiles "--layout=rows --scales=f32" --rotate; do
    rm -f "$work"/set-*.lmq
    expect 0 "$lmquant" convert -qf $digests $options --shard-size=100000 \
        "$work/model" "$work/set.lmq"
    reads verify "$work"/set-00001-of-*.lmq
done
last=$(ls "$work"/set-*.lmq | tail -n 1)
mv "$last" "$work/elsewhere.lmq"
refuses R49 "$work"/set-00001-of-*.lmq
refuses R49 "$work/elsewhere.lmq"
mv "$work/elsewhere.lmq" "$last"
reads verify "$last"
mkdir "$work/other"
expect 0 "$lmquant" convert -qf --method=absmax --layout=rows --scales=f32 \
    --shard-size=100000 "$work/model" "$work/other/set.lmq"
cp "$work/other/${last##*/}" "$last"
refuses R49 "$last"

# One bit of each byte flipped: nobody may take the file for intact.
expect 0 "$lmquant" convert -qf "$files/good-plain.safetensors" \
    "$work/good.lmq"
"$python" -B - "$srcdir/tests/reader" "$work/good.lmq" "$work/bad.lmq" \
    << 'END' || fail "reader.py takes damaged files for intact"
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from lmq_container import Refused, open_model
good, path = pathlib.Path(sys.argv[2]).read_bytes(), sys.argv[3]
taken = []
for at in range(len(good)):
    bad = bytearray(good)
    bad[at] ^= 1 << at % 8
    pathlib.Path(path).write_bytes(bad)
    try:
        open_model(path).verify()
        taken.append(at)
    except Refused:
        pass
sys.exit("at %s" % taken if taken else 0)
END
finish

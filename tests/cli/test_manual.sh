#!/bin/sh
# test_manual.sh - the manual says what the program does.
#
# Options against --help, keys of the reports, functions of lmquant.h, the
# pages' own form, the example program of liblmquant(3), the dump of lmq(5),
# and a reader written from the pages. What needs a tool that is not there is
# skipped, and said to be. Runs in the build folder, or finds it through
# $top_builddir, and the sources through $srcdir.
#
# test_manual.sh --update renews the bytes of the dump (after a new version
# number, say); places and remarks stay, so look at what it did.

src=${srcdir:-$(dirname "$0")/..}
man=$src/man
build=${top_builddir:-.}
lmquant=${LMQUANT:-$build/lmquant}
python=${PYTHON:-python3}
LC_ALL=C
export LC_ALL
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}
skip() {
    echo "skipped: $*"
}
has() {
    command -v "$1" >/dev/null 2>&1
}

if ! test -x "$lmquant"; then
    fail "there is no $lmquant (LMQUANT names another)"
    exit 1
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# ---- Commands and options ----

commands=$("$lmquant" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
test -n "$commands" || fail "$lmquant --help lists no commands"

for page in "$man"/lmquant-*.1; do
    name=$(basename "$page" .1)
    echo "$commands" | grep -qx "${name#lmquant-}" ||
        fail "$name.1 describes a command that does not exist"
done
for command in $commands; do
    page=$man/lmquant-$command.1
    if ! test -f "$page"; then
        fail "there is no lmquant-$command.1"
        continue
    fi
    grep -qx "\.It Cm $command" "$man/lmquant.1" ||
        fail "lmquant.1 does not list $command"
    grep -q "man/lmquant-$command\.1" "$man/man.am" ||
        fail "man.am does not install lmquant-$command.1"
    # "-j --threads=N", one option a line, in the order of each.
    "$lmquant" "$command" --help | tr -d "'" |
        sed -n 's/^  \(-.\), \(--[^ ]*\).*/\1 \2/p
                s/^      \(--[^ ]*\).*/\1/p' >"$work/help"
    sed -n 's/^\.It Fl \([a-zA-Z]\) , Fl -\([a-z-]*\)/-\1 --\2/p
            s/^\.It Fl -\([a-z-]*\)/--\1/p' "$page" |
        sed 's/ Ns Op = Ns Ar \(.*\)/[=\1]/; s/ Ns = Ns Ar /=/' >"$work/page"
    cmp -s "$work/help" "$work/page" || {
        fail "options: --help of $command (<) and its page (>) differ"
        diff "$work/help" "$work/page"
    }
done

# ---- What was checked: the same in the README and on the page ----

# "NAME: D H L", from each; what stands in brackets are exceptions.
sed -n '/^| can be run/,/^$/p' "$src/README.md" | sed '1,2d; /^$/d' |
    awk -F ' *[|] *' '{ sub(/\(.*/, "", $3); out = $2 ":"
        n = split($3, words, /[^A-Za-z0-9-]+/)
        for (i = 1; i <= n; i++)
            if (words[i] ~ /^[DHL]$/) out = out " " words[i]
        print out }' >"$work/readme"
sed -n '/^Hugging Face.s library in float64/,/^\.Ed/p' "$man/lmquant.1" |
    sed -n 's/^\([^.].*[^ ]\)   *\([DHL ]*\)$/\1: \2/p' >"$work/page"
test "$(wc -l <"$work/page")" -gt 10 || fail "lmquant.1 has no table"
cmp -s "$work/readme" "$work/page" || {
    fail "what was checked: README (<) and lmquant.1 (>) differ"
    diff "$work/readme" "$work/page"
}

# ---- pkg-config: nothing of the libraries behind ----

if has pkg-config && test -f "$build/lmquant.pc"; then
    for flags in --cflags --libs; do
        PKG_CONFIG_PATH=$build pkg-config $flags lmquant >"$work/flags" ||
            fail "pkg-config $flags lmquant"
        grep -q 'UTF8PROC\|jansson' "$work/flags" &&
            fail "pkg-config $flags leaks: $(cat "$work/flags")"
    done
    PKG_CONFIG_PATH=$build pkg-config --static --libs lmquant |
        grep -q -- '-lutf8proc' || fail "a static link lacks -lutf8proc"
else
    skip "pkg-config: not there"
fi

# ---- Reports: every key stands on the page of its command ----

# The words of .Va and .Ql, with the lines that they continue on.
words() { # PAGE...
    for page in "$@"; do
        sed -e :a -e '/\\$/N' -e 's/\\\n/ /' -e ta "$man/$page" |
            sed -n 's/^\.\(It \)*\(Va\|Ql\) //p' | tr -cs 'a-z0-9_' '\n'
    done | sort -u
}
# The keys of tensor_types are types, not words of a page.
check_keys() { # PAGE..., the report in $work/report
    grep -o '"[a-z0-9_]*":' "$work/report" | tr -d '":' |
        grep -vxE 'q8|f32|bf16|alias' | sort -u >"$work/keys"
    test -s "$work/keys" || fail "there is no report for $1"
    words "$@" | comm -23 "$work/keys" - >"$work/missing"
    test -s "$work/missing" &&
        fail "$1 does not explain: $(tr '\n' ' ' <"$work/missing")"
}

# The smallest llama2.c checkpoint: seven sizes, 38 floats.
{
    for n in 2 2 1 1 1 1 1; do printf "\\00$n\\000\\000\\000"; done
    dd if=/dev/zero bs=152 count=1 2>/dev/null
} >"$work/small.bin"
example=$man/example.safetensors
"$lmquant" convert -q --json "$work/small.bin" "$work/small.lmq" \
    >"$work/report" || fail "convert small.bin"
check_keys lmquant-convert.1 lmquant-inspect.1
"$lmquant" convert -qn --json "$example" "$work/none.lmq" >"$work/report"
check_keys lmquant-convert.1 lmquant-inspect.1
for file in "$work/small.lmq" "$work/small.bin" "$example"; do
    "$lmquant" inspect -q --json --tensors "$file" >"$work/report"
    check_keys lmquant-inspect.1
done
for format in gguf safetensors; do
    "$lmquant" export -qf --json --to $format "$work/small.lmq" \
        "$work/small.$format" >"$work/report" || fail "export to $format"
    check_keys lmquant-export.1
done
"$lmquant" inspect -q --json --tensor output_norm.weight --stats "$example" \
    >"$work/report"
check_keys lmquant-inspect.1
cp "$work/small.lmq" "$work/broken.lmq"
printf 'x' | dd of="$work/broken.lmq" bs=1 seek=130 conv=notrunc 2>/dev/null
"$lmquant" verify --json "$work/broken.lmq" >"$work/report" 2>/dev/null
check_keys lmquant-verify.1
"$lmquant" diff --json "$example" "$work/small.lmq" --gate 'missing<=99' \
    >"$work/report"
check_keys lmquant-diff.1

# A small model that has been trained, for what runs models.
fable=$src/tests/data/fable
if test -d "$fable"; then
    model=$work/fable.lmq
    "$lmquant" convert -q "$fable" "$model" || fail "convert $fable"
    "$lmquant" export -q --json --to llama2c "$model" "$work/fable.bin" \
        >"$work/report" 2>/dev/null || fail "export to llama2c"
    check_keys lmquant-export.1
    head -c 4000 "$fable/held-out-b.txt" >"$work/text"
    "$lmquant" run -q -n 4 --json "$model" 'Once' >"$work/report"
    check_keys lmquant-run.1
    "$lmquant" tokenize --json "$model" <"$work/text" >"$work/report"
    check_keys lmquant-tokenize.1
    "$lmquant" bench -q -p 8 -n 4 -r 1 --json "$model" >"$work/report"
    check_keys lmquant-bench.1 lmquant-inspect.1
    "$lmquant" validate -q --attribute=tensor --floor -c 128 --json --gate 'floor.kld<=0' \
        "$fable" "$model" "$work/text" >"$work/report" ||
        fail "the noise floor is not 0"
    check_keys lmquant-validate.1
    "$lmquant" plan -q -c 96 --max-tokens 400 --json --target-bits 7 \
        --text "$fable/held-out-b.txt" "$fable" >"$work/report" ||
        fail "plan"
    check_keys lmquant-plan.1
else
    skip "keys of run, tokenize, bench, validate: no $fable"
fi

# The metrics that gates can name: the list in validate/metrics.c.
sed -n '/metrics\[\] = {/,/};/p' "$src/validate/metrics.c" |
    grep -o '"[a-z0-9_.#]*"' | tr -d '"' | sort >"$work/metrics"
sed -n '/^The metrics are:/,/^\.Ed/p' "$man/lmquant-validate.1" |
    sed '/^\./d; /:$/d' | tr -s ' ' '\n' | sort >"$work/listed"
test -s "$work/metrics" || fail "no metrics found in validate/metrics.c"
cmp -s "$work/metrics" "$work/listed" || {
    fail "metrics.c (<) and the metrics of lmquant-validate.1 (>) differ"
    diff "$work/metrics" "$work/listed"
}

# ---- The library ----

# Declarations that are exported, whatever the line breaks.
sed '/^#/d' "$src/lmquant.h" | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*LMQ_API[^(]*[ *]\(lmq_[a-z0-9_]*\) *(.*/\1/p' |
    sort >"$work/declared"
sed -n 's/^ *\(lmq_[a-z0-9_]*\);/\1/p' "$src/lmquant.map" |
    sort >"$work/exported"
cmp -s "$work/declared" "$work/exported" || {
    fail "lmquant.h (<) and lmquant.map (>) differ"
    diff "$work/declared" "$work/exported"
}
test -s "$work/declared" || fail "no function found in lmquant.h"
sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.F[no] \(lmq_[a-z0-9_]*\).*/\1/p' \
    "$man/liblmquant.3" | sort >"$work/synopsis"
sed -n '/^\.Sh DESC/,/^\.Sh EXAMPLES/p' "$man/liblmquant.3" |
    sed -n 's/^\.\(It .* Ta \)*Fn \(lmq_[a-z0-9_]*\).*/\2/p' |
    sort -u >"$work/description"
for list in synopsis description; do
    cmp -s "$work/declared" "$work/$list" || {
        fail "lmquant.h (<) and the $list of liblmquant.3 (>) differ"
        diff "$work/declared" "$work/$list"
    }
done
for word in $(sed '/^#/d' "$src/lmquant.h" |
    grep -oE 'LMQ_(OK|(ERR|KIND|REPORT|TEXT)_[A-Z]+)' | sort -u); do
    grep -qE "^\.(It )?Dv $word( |$)" "$man/liblmquant.3" ||
        fail "liblmquant.3 does not explain $word"
done

# The structures that the page shows, member by member without comments.
structures() { # FILE
    tr '\n' ' ' <"$1" | sed 's|/\*[^*]*\(\*[^/][^*]*\)*\*/||g' |
        grep -oE 'struct lmq_[a-z_]+ \{[^}]*\}' | tr -s ' ' | sort
}
structures "$man/liblmquant.3" >"$work/shown"
structures "$src/lmquant.h" | comm -13 - "$work/shown" >"$work/wrong"
test -s "$work/shown" || fail "liblmquant.3 shows no structure"
test -s "$work/wrong" &&
    fail "liblmquant.3 shows another structure than lmquant.h:" \
        "$(cat "$work/wrong")"

# The example, as the page prints it, is C99 and C++17 without warnings; then
# it samples as "lmquant run" does.
sed -n '/^#include <stdio.h>/,/^\.Ed/p' "$man/liblmquant.3" |
    sed '/^\.Ed/d; s/\\e/\\/g' >"$work/example.c"
CC=${CC:-$(sed -n 's/^CC = //p' "$build/Makefile" 2>/dev/null)}
flags=$(sed -n 's/^EXTRA_FLAGS = //p' "$build/Makefile" 2>/dev/null)
# What the page says of options, in the words of both languages.
cat >"$work/header.c" <<'EOF'
#include <lmquant.h>
int
main(void)
{
    struct lmq_session_options session =
        LMQ_OPTIONS(struct lmq_session_options);
    struct lmq_validate_options validate =
        LMQ_OPTIONS(struct lmq_validate_options);
    validate.session = &session;
    return validate.size != sizeof(validate) ||
           session.size != sizeof(session) || validate.n_texts != 0 ||
           validate.session->kv != 0;
}
EOF
compiles() { # COMPILER... STANDARD
    if has $1; then
        "$@" -Wall -Wextra -Wpedantic -Werror -I"$src" -c -o "$work/object" \
            "$work/$program.c" >"$work/cc" 2>&1 ||
            fail "$program.c of liblmquant(3): $*: $(cat "$work/cc")"
    else
        skip "$program.c of liblmquant(3): no $1"
    fi
}
for program in header example; do
    compiles ${CC:-cc} -std=c99
    compiles ${CXX:-c++} -x c++ -std=c++17
done
if ! has ${CC:-cc}; then
    skip "the example of liblmquant(3): no compiler"
elif ! test -f "$build/liblmquant.la"; then
    skip "the example of liblmquant(3): no liblmquant.la"
elif ! "$build/libtool" --silent --tag=CC --mode=link ${CC:-cc} -std=c11 -Wall \
    -Wextra -Werror $flags -I"$src" "$work/example.c" -o "$work/example" \
    "$build/liblmquant.la" >"$work/cc" 2>&1; then
    fail "the example of liblmquant(3) does not compile"
    cat "$work/cc"
else
    out=$work/example-out.lmq
    prompt='Once upon a time'
    "$work/example" "$example" "$out" "$prompt" >"$work/said" 2>/dev/null &&
        fail "the example of liblmquant(3) runs what is no model"
    grep -q '^3 tensors, .* bits per weight$' "$work/said" ||
        fail "the example of liblmquant(3): $(cat "$work/said")"
    "$work/example" "$work/nothing" "$out" "$prompt" 2>"$work/said" &&
        fail "the example of liblmquant(3) converts what does not exist"
    grep -q 'cannot open' "$work/said" || fail "example: no message"
    if test -d "$fable"; then
        "$work/example" "$fable" "$out" "$prompt" >"$work/said" ||
            fail "the example of liblmquant(3) does not run"
        "$lmquant" run -q -n 16 --top-p=1 --min-p=0 "$out" "$prompt" \
            >"$work/text" || fail "run $out"
        test "$prompt$(tail -n +2 "$work/said")" = "$(cat "$work/text")" ||
            fail "the example of liblmquant(3) says: $(cat "$work/said")"
    fi
fi

# ---- The form of the pages ----

if has mandoc; then
    for page in "$man"/*.[135]; do
        mandoc -T lint -W warning "$page" >"$work/lint" 2>&1
        grep -v 'outdated mandoc.db' "$work/lint" >"$work/lint2"
        test -s "$work/lint2" && fail "$(cat "$work/lint2")"
        mandoc -T ascii -O width=78 "$page" |
            awk '{ gsub(/.\010/, "") }
                 length > 80 { print; found = 1 }
                 END { exit found }' >"$work/wide" ||
            fail "$page is wider than 80 columns: $(cat "$work/wide")"
    done
else
    skip "lint of the pages: no mandoc"
fi
# (An argument of a function that fills a line cannot be spread, of which groff
# 1.23 tells.)
case $(man --version 2>/dev/null) in
"man 2."*)
    for page in "$man"/*.[135]; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l "$page" \
            2>"$work/lint" >/dev/null
        grep -v 'cannot adjust line' "$work/lint" >"$work/wide" &&
            fail "$page: $(cat "$work/wide")"
    done
    ;;
*) skip "warnings of man: no man-db" ;;
esac

# ---- The dump of lmq(5) ----

# In the folder of the example: its path must not matter.
case $lmquant in
/*) program=$lmquant ;;
*) program=$(pwd)/$lmquant ;;
esac
convert_example() { # OUTPUT [OPTION]
    (cd "$man" && "$program" convert -qf --group-size=32 --method=absmax $2 \
        --force-tokenizer --tokenizer=example.vocab \
        example.safetensors "$1") ||
        fail "cannot convert the example of lmq(5)"
}
convert_example "$work/example.lmq" --layout=rows
convert_example "$work/tiles.lmq"
od -An -v -tx1 "$work/example.lmq" | tr -s ' ' '\n' | sed '/^$/d' \
    >"$work/bytes"

# Prints the page with the bytes of the file in the place of its own; says
# what does not fit.
cat >"$work/dump.awk" <<'EOF'
function number(hex,  i, n) {
    for (i = 1; i <= length(hex); i++)
        n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return n
}
function problem(text) {
    if (broken++ < 10)
        print FILENAME ":" FNR ": " text >"/dev/stderr"
}
function ascii(from, n,  i, c, text) {
    for (i = from; i < from + n; i++) {
        c = number(byte[i])
        c = c < 32 || c > 126 ? "." : sprintf("%c", c)
        text = text (c == "\\" ? "\\e" : c)
    }
    return text ~ / $/ ? text "\\&" : text
}
FILENAME != page { byte[size++] = $1; next }
/^[0-9a-f][0-9a-f][0-9a-f]  [0-9a-f][0-9a-f]( |$)/ {
    at = number(substr($0, 1, 3))
    if (zeros && at < next_at)
        problem("overlap")
    for (; zeros && next_at < at; next_at++)
        if (byte[next_at] != "00")
            problem("byte " next_at " is " byte[next_at] ", not 00")
    if (at != next_at)
        problem("begins at " at ", expected " next_at)
    zeros = substr($0, 6, 6) == "00 ..."
    if (!zeros) {
        rest = substr($0, 6)
        end = index(rest, "  ")
        remark = end ? substr(rest, end) : ""
        n = split(end ? substr(rest, 1, end - 1) : rest, old, " ")
        pad = remark
        sub(/[^ ].*/, "", pad)
        # A remark in column 55 shows the bytes as text.
        is_text = remark != pad && 5 + 3 * n - 1 + length(pad) == 54
        new = ""
        for (i = 1; i <= n; i++) {
            if (at + i - 1 >= size)
                problem("stands behind the end of the file")
            if (old[i] != byte[at + i - 1] && !update)
                problem("byte " at + i - 1 " is " byte[at + i - 1] \
                        ", not " old[i])
            new = new (i > 1 ? " " : "") byte[at + i - 1]
        }
        if (is_text && remark != pad ascii(at, n)) {
            if (!update)
                problem("the text is not that of its bytes")
            remark = pad ascii(at, n)
        }
        $0 = substr($0, 1, 5) new remark
    }
    next_at = at + (zeros ? 0 : n)
}
{ print }
END {
    if (zeros || next_at != size)
        problem("the dump ends at " next_at ", the file at " size)
    exit broken > 0
}
EOF
update=0
test "$1" = --update && update=1
if awk -v page="$man/lmq.5" -v update=$update -f "$work/dump.awk" \
    "$work/bytes" "$man/lmq.5" >"$work/lmq.5"; then
    test $update = 1 && cat "$work/lmq.5" >"$man/lmq.5"
    cmp -s "$work/lmq.5" "$man/lmq.5" ||
        fail "the dump in lmq.5 is not in the form that --update writes"
else
    fail "lmq.5 does not show the bytes of its example (see --update)"
fi
"$lmquant" verify -q "$work/example.lmq" || fail "example.lmq is not intact"

# The same with tiles: some places, with four digits.
sed -n 's/^\([0-9a-f]\{4\}\)  \([0-9a-f ]*[0-9a-f]\)  .*/\1 \2/p' \
    "$man/lmq.5" >"$work/places"
test -s "$work/places" || fail "lmq.5 shows no tiles"
while read -r at bytes; do
    found=$(od -An -v -tx1 -j "0x$at" -N $(echo "$bytes" | wc -w) \
        "$work/tiles.lmq" | tr -s ' ' ' ' | sed 's/^ //; s/ $//')
    test "$found" = "$bytes" ||
        fail "lmq.5, tiles: at $at stands $found, not $bytes"
done <"$work/places"

# ---- The reader that was written from lmq(5) ----

reader="$python -B $src/tests/formats/lmq/read_lmq.py"

# Every element that the reader finds must be the one that lmquant finds.
check_reader() { # CONTAINER
    $reader "$1" --verify --to-safetensors "$work/read.safetensors" ||
        { fail "read_lmq.py refuses $1"; return; }
    "$lmquant" diff -q "$1" "$work/read.safetensors" \
        --gate 'weights.equal>=1' --gate 'missing<=0' ||
        fail "read_lmq.py and lmquant read other values in $1"
}

# The digests that it computes must be those that the file has, or none.
check_digests() { # CONTAINER
    $reader "$1" --digests >"$work/digests" ||
        fail "read_lmq.py computes other digests for $1"
    for digest in $(cat "$work/digests"); do
        "$lmquant" verify -q --against "$digest" "$1" ||
            fail "lmquant computes other digests for $1"
    done
}

if ! has "$python" || ! "$python" -c \
    'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    skip "the reader from lmq(5): no Python 3.8"
    test $failures = 0
    exit
fi
# Ragged rows, several tiles, scales that need a multiplier, all types; and a
# container for each way to store them.
"$python" - "$work/mix.safetensors" <<'EOF' || fail "mix.safetensors"
import json, random, struct, sys
rng = random.Random(7)
def gauss(scale): return lambda: rng.gauss(0, scale)
def below(n): return lambda: rng.randrange(n)
def bf16(x): return struct.pack("<f", x)[2:]
pack = {"F32": "<f", "F16": "<e", "F64": "<d", "I32": "<i", "I64": "<q",
        "U8": "<B", "BOOL": "<B", "F8_E4M3": "<B", "F8_E5M2": "<B"}
tensors = [
    ("a.weight", "F32", [19, 130], gauss(1)),
    ("b.weight", "BF16", [33, 7], gauss(1)),
    ("c.weight", "F64", [16, 64], gauss(1)),
    ("tiny.weight", "F32", [5, 300], gauss(1e-9)),
    ("large.weight", "F32", [3, 65], gauss(1e9)),
    ("one.weight", "F16", [1, 1], gauss(1)),
    ("zeros.weight", "F32", [2, 100], lambda: 0),
    ("e4m3.weight", "F8_E4M3", [4, 70], below(127)),
    ("e5m2.weight", "F8_E5M2", [4, 70], below(120)),
    ("cube", "F32", [2, 3, 5], gauss(1)),
    ("number", "F32", [], gauss(1)),
    ("integers", "I32", [4], below(99)),
    ("wide", "I64", [3], below(10**15)),
    ("bytes", "U8", [5], below(256)),
    ("flags", "BOOL", [2, 2], below(2)),
    ("model.layers.1.self_attn.k_proj.weight", "F16", [16, 8], gauss(1)),
    ("model.layers.1.self_attn.k_proj.bias", "F32", [16], gauss(1)),
]
header, data = {}, b""
for name, kind, shape, make in tensors:
    n = 1
    for size in shape:
        n *= size
    values = [make() for _ in range(n)]
    p = b"".join(bf16(x) if kind == "BF16" else struct.pack(pack[kind], x)
                 for x in values)
    header[name] = {"dtype": kind, "shape": shape,
                    "data_offsets": [len(data), len(data) + len(p)]}
    data += p
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
EOF
for options in "--layout=rows" \
    "--layout=rows --scales=f32 --group-size=128" \
    "--group-size=32" "--scales=f32" "--group-size=256 --method=absmax"; do
    "$lmquant" convert -qf $options "$work/mix.safetensors" "$work/mix.lmq" ||
        fail "convert $options"
    check_reader "$work/mix.lmq"
done
check_reader "$work/example.lmq"
check_reader "$work/tiles.lmq"
check_reader "$work/small.lmq"

# Digests, in both layouts, of these and of rows that are longer than a leaf.
"$python" - "$work/wide.safetensors" <<'EOF'
import json, random, struct, sys
rng = random.Random(8)
data = struct.pack("<162000f", *(rng.gauss(0, 1) for i in range(162000)))
text = json.dumps({"wide.weight": {"dtype": "F32", "shape": [18, 9000],
                                   "data_offsets": [0, len(data)]}}).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
EOF
if "$lmquant" convert -qf --digests "$example" "$work/with.lmq" \
    2>"$work/stderr"; then
    for options in "--layout=rows" "--layout=tiles --group-size=32" \
        "--layout=tiles --scales=f32"; do
        for source in mix wide; do
            "$lmquant" convert -qf --digests $options \
                "$work/$source.safetensors" "$work/with.lmq" ||
                fail "convert --digests $options"
            check_digests "$work/with.lmq"
        done
    done
    check_digests "$work/tiles.lmq"
    "$lmquant" convert -qf --digests "$src/tests/files/good-folder" \
        "$work/with.lmq"
    check_digests "$work/with.lmq"
    check_reader "$work/with.lmq"
else
    grep -q 'without a library for SHA-256' "$work/stderr" ||
        fail "convert --digests: $(cat "$work/stderr")"
    skip "digests: built without a library for SHA-256"
fi

# A deflated section, and both layouts of the example element by element.
yes 'a line of a vocabulary' | head -n 100 >"$work/vocab"
"$lmquant" convert -qfz --force-tokenizer --tokenizer="$work/vocab" "$example" \
    "$work/deflated.lmq"
check_reader "$work/deflated.lmq"

# Figures: the smallest, the largest, and the root mean square.
for name in a.weight cube integers; do
    "$lmquant" inspect -q --json --tensor "$name" --stats "$work/mix.lmq" |
        awk -F'[:,]' '/"stats"/ { on = 1 }
                      on && /"(min|max|rms)"/ { print $2 }' >"$work/figures"
    $reader "$work/mix.lmq" --dump "$name" |
        awk 'NR == 1 { min = max = $1 }
             { min = $1 < min ? $1 : min; max = $1 > max ? $1 : max
               sum += $1 * $1 }
             END { print min; print max; print sqrt(sum / NR) }' |
        paste - "$work/figures" |
        awk '{ bound = 1e-5 * ($2 < 0 ? -$2 : $2)
               if ($1 - $2 > bound || $2 - $1 > bound) exit 1; n++ }
             END { exit n != 3 }' ||
        fail "statistics of $name differ from those of lmquant"
done

# --compare-raw: the error that the directory says is the one that there is.
"$python" - "$example" "$work/embedding.f32" <<'EOF'
import struct, sys
data = open(sys.argv[1], "rb").read()[-160:]
open(sys.argv[2], "wb").write(
    b"".join(b"\0\0" + data[i:i + 2] for i in range(0, 160, 2)))
EOF
error=$($reader "$work/example.lmq" --compare-raw token_embd.weight \
    "$work/embedding.f32")
test "$error" = 0.25 || fail "the example's max_err is '$error', not 0.25"

# Every container of the corpus: elements and logits of the good ones are those
# that are expected, the others are refused, and not by an accident.
"$python" - "$src/tests/formats/lmq" "$src"/tests/files/lmq/*.lmq <<'EOF' ||
import pathlib, sys, traceback
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import read_lmq
wrong = []
for path in map(pathlib.Path, sys.argv[2:]):
    is_good = path.name.startswith(("good-", "later-"))
    sys.argv[1:] = [str(path), "--verify"]
    if is_good:
        sys.argv += ["--expect", str(path.with_suffix(".txt"))]
    try:
        read_lmq.main()
        outcome = None
    except SystemExit as refusal:
        outcome = str(refusal)
    except Exception:
        outcome = traceback.format_exc()
        is_good = None
    if is_good != (outcome is None):
        wrong.append("%s: %s" % (path.name, outcome))
sys.exit("\n".join(wrong) if wrong else 0)
EOF
    fail "read_lmq.py and lmquant differ"

# One bit of each byte flipped: nobody may take the file for intact.
"$python" - "$src/tests/formats/lmq" "$work/example.lmq" "$work/flipped.lmq" <<'EOF' ||
import pathlib, struct, sys, zlib
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import read_lmq
good = pathlib.Path(sys.argv[2]).read_bytes()
path = pathlib.Path(sys.argv[3])
accepted = []
for at in range(len(good)):
    bad = bytearray(good)
    bad[at] ^= 1 << at % 8
    path.write_bytes(bad)
    try:
        read_lmq.check(read_lmq.Container(path))
        accepted.append(at)
    except (ValueError, OverflowError, struct.error, zlib.error):
        pass
sys.exit("accepted: %s" % accepted if accepted else 0)
EOF
    fail "read_lmq.py takes a damaged file for intact"

test $failures = 0

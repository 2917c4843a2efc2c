#!/bin/sh
#
# test_usage.sh - the mistakes that people make with each command: one
# sentence, the right exit status, nothing written; and "-", -q, -v, YAML,
# terminals and signals as the manual says.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=1
cd "$work" || exit 99
mkdir folder
printf 'Once upon a time there was a fox.\n' > text

# refused STATUS TEXT COMMAND...: one sentence with this text, no results.
refused() {
    wanted=$1 text=$2
    shift 2
    expect "$wanted" "$lmquant" "$@"
    says "$text"
    is_one_sentence "$*"
    [ -s stdout ] && fail "a refusal prints a result: $*"
}

# Operands that no command can open, as many as it needs.
operands() {
    case $1 in
    convert | validate | diff | export | split | join) echo nowhere none ;;
    jobs) echo convert nowhere none.lmq ;;
    *) echo nowhere ;;
    esac
}

# needed COMMAND: options without which nothing else is looked at.
needed() {
    case $1 in
    export) echo --to=gguf ;;
    split) echo --shard-size=1G ;;
    jobs) echo --nodes=2 ;;
    plan) echo --target-bits=5 --text=text ;;
    esac
}

expect 0 "$lmquant" convert -q "$fable" fable.lmq
expect 0 "$lmquant" export -q --to gguf fable.lmq fable.gguf

expect 0 "$lmquant" inspect -j 2 --progress=never --json "$fable"
expect 0 "$lmquant" tokenize -j 2 --progress=plain "$fable" \
    "$srcdir/COPYING"

# ---- Every option of every command: wrong values, before anything else ----

n_values=0
for command in $commands; do
    "$lmquant" $command --help > help || fail "$command --help"
    sed -n 's/^ *\(-., \)*--\([a-z0-9-]*\)=\([^ ]*\).*/\2 \3/p' help > options
    [ -s options ] || [ $command = inspect ] || fail "$command has no options"
    for option in $(sed -n 's/^ *\(-., \)*--\([a-z0-9-]*\)  *[^ ].*/\2/p' \
        help); do
        refused 2 "--$option takes no value" $command --$option=x
    done
    while read -r option kind; do
        # "to" of export has no default that the others could stand beside.
        before=$(needed $command)
        case $before in --$option=*) before= ;; esac
        refused 2 "--$option needs a value" $command --$option
        refused 2 "--$option needs a value" $command --$option --quiet
        case $kind in
        N)
            bad="x -1 1.5 1x 0x4 99999999999999999999 nan"
            ;;
        X)
            bad="x nan inf -inf 1e999 1,5 0.5x --1"
            ;;
        I/N)
            bad="x 0/2 3/2 1/ /2 1 1/0 -1/2 1/2/3 1/100000 01/2"
            ;;
        SIZE)
            bad="x nan -4G 4Q 4GG 1e30 0"
            ;;
        MODE | TYPE | NAME | HOW | STYLE | WHAT | FORMAT)
            [ "$command-$option" = inspect-tensor ] && continue
            bad="q9 Auto none,"
            ;;
        "'METRIC<=X'")
            bad="kld.mean <=1 kld.mean=1 kld.mean<= kld.mean<=x kld.mean<=nan"
            ;;
        PATTERN)
            bad=
            ;;
        PATTERN=TYPE)
            bad="x =q8 x="
            ;;
        DIGEST)
            bad="x 12 sha256: sha256:00 md5:00"
            ;;
        FILE)
            refused 2 "--$option cannot be standard input" $command \
                --$option - $(operands $command)
            ;;
        FILE.html | FILE.yaml | FOLDER) ;;
        TEXT)
            case $option in text | calibrate) ;; *) continue ;; esac
            refused 2 "only once" $command $before --$option - --$option - \
                $(operands $command)
            ;;
        OPTION) continue ;;
        *) fail "$command --$option=$kind: what is that?" ;;
        esac
        case $kind in
        FILE* | FOLDER | TEXT)
            refused 2 "--$option: the name is empty" $command $before \
                "--$option=" $(operands $command)
            continue
            ;;
        esac
        for value in "" $bad; do
            refused 2 "$value" $command $before "--$option=$value" \
                $(operands $command)
            n_values=$((n_values + 1))
        done
    done < options
done
[ $n_values -gt 150 ] || fail "only $n_values wrong values tried"

# range COMMAND OPTION GOOD... -- BAD...: where the borders are. A good one
# goes on to find that there is no such file.
range() {
    command=$1 option=$2 status=1
    shift 2
    for value; do
        if [ "$value" = -- ]; then
            status=2
            continue
        fi
        expect $status "$lmquant" $command $(needed $command) \
            "--$option=$value" $(operands $command)
    done
}
range run top-p 0 .5 1 -- 1.5 -.1
range run min-p 0 1 -- 1.01
range run typical 0 1 -- 2
range run temp 0 1e-3 1000 -- 1001 -0.1
range run repeat-penalty 0 1.1 -- -1
range run frequency-penalty -2 0 2 -- 1e9
range run presence-penalty -1000 -- -1001
range run tokens 0 1 -- -1
range run top-k 0 40 -- -1 ' 1' +1
range run seed 0 18446744073709551615 -- 18446744073709551616 -1
range run ctx 2 -- 0 1
range run threads 1 1024 -- 0 1025
range validate stride 1 -- 0
range validate score all second-half -- half
range validate max-tokens 1 -- 0
range validate memory 1 4G 500MB .5k 1.5g -- 0 G 1.5x 0.1
range plan max-tokens 1 -- 0
range plan memory 1 4G -- 0
range plan target-bits 1e-12 64 -- 0 65
range bench rounds 1 100 -- 0 101
range bench batch 1 65536 -- 0 65537
range bench prefill 1 -- 0
range bench decode 1 -- 0
refused 2 "'q9'" convert --set '*=q9' nowhere none
refused 2 "go with --calibrate" convert --damping 0.1 nowhere none
range convert group-size 32 64 128 256 -- 48 0 512
range convert rope-theta 10000 1e6 -- 0 -1
range convert norm-eps 1e-5 -- 0
range export shard-size 5GB 1 -- 0 5X
range split shard-size 5GB 1 -- 0 5X

# ---- Did you mean ----

refused 2 "did you mean 'lmquant convert'?" covnert
refused 2 "did you mean 'lmquant validate'?" valid
refused 2 "did you mean 'lmquant tokenize'?" tokenise
refused 2 "did you mean 'lmquant verify'?" help verfiy
refused 2 "did you mean '--group-size'?" convert --groupsize 64
refused 2 "did you mean '--tokens'?" run --token 8 x
refused 2 "did you mean '--top-p'?" run --topp=1 x
refused 2 "did you mean 'q8'?" run --activations q9 x
# A value that was forgotten, and a file in its place.
refused 2 "--group-size is 'model', expected 32, 64" \
    convert --group-size model out.lmq
refused 2 "did you mean 'second-half'?" validate --score second a b
refused 2 "did you mean 'safetensors'?" export --to safetensor a b
refused 2 "--ids goes without --json" run --ids --json x
refused 2 "--ids goes without --json" run --ids --yaml x
# A model that puts no token before a text.
mkdir bare
cp "$fable/config.json" "$fable/model.safetensors" bare
sed 's/"post_processor": {/"post_processor": null, "none": {/' \
    "$fable/tokenizer.json" > bare/tokenizer.json
refused 2 "a space is enough to begin with" run -n 1 bare ""
expect 0 "$lmquant" run -q -n 1 bare " "
refused 2 "either to -o, or to standard output" \
    plan --json --part 1/2 -o part.json --text x y
refused 2 "--output cannot be standard output" \
    plan --target-bits 6 -o - --text x y
refused 2 "--report cannot be standard output" \
    plan --target-bits 6 --report - --text x y
refused 2 "'-q' in place of a command" -q convert a b
refused 2 "'-' in place of a file" merge -
refused 2 "unknown command 'zzzzz'" zzzzz
grep -q 'did you mean' stderr && fail "zzzzz is like nothing"

# ---- Operands ----

for command in $commands; do
    refused 2 "expected: " $command
    refused 2 "exclude each other" $command -q -v $(operands $command)
    if [ $command != jobs ]; then # scripts give these to whatever they run
        refused 2 "--threads is '0'" $command -j 0 $(operands $command)
        refused 2 "expected auto" $command --progress=no $(operands $command)
    fi
    refused 2 "'-' in place of a" $command $(needed $command) - \
        $(operands $command | sed -n 's/.* //p')
    case $command in
    run | tokenize) set -- "$fable" text text ;;
    validate | plan | merge) continue ;;
    jobs) set -- --nodes 2 convert a b.lmq c ;;
    *) set -- a b c ;;
    esac
    refused 2 "unexpected argument" $command "$@"
done
refused 2 "argument 1 is empty; expected: CHECKPOINT OUTPUT.lmq" convert "" a
refused 2 "argument 2 is empty" convert "$fable" ""
refused 2 "argument 3 is empty" validate "$fable" fable.lmq ""
refused 2 "argument 1 is empty" run "" ""
refused 2 "argument 2 is empty" tokenize "$fable" ""
refused 2 "'-o': the output is an argument: CHECKPOINT OUTPUT.lmq" \
    convert "$fable" -o never.lmq
refused 2 "'--output': the output is an argument" \
    export --to gguf "$fable" --output=never.gguf
refused 2 "in place of a file" convert "$fable" -
refused 2 "in place of a file" export --to gguf fable.lmq -
refused 2 "in place of a file" diff "$fable" -
refused 2 "in place of a file" validate "$fable" - text
refused 2 "only once" validate "$fable" fable.lmq - -
refused 2 "one too many" validate --tokens text "$fable" fable.lmq text
[ -e ./- ] && fail "a file '-' was written"
cp fable.lmq ./-
expect 0 "$lmquant" verify ./-
rm -f ./-

# ---- "-" where a text is meant ----

expect 0 "$lmquant" run -q -t 0 -n 8 fable.lmq 'Once upon a time'
cp stdout wanted
echo 'Once upon a time' | "$lmquant" run -q -t 0 -n 8 fable.lmq - > found
cmp -s wanted found || fail "run - differs from run with its prompt"
for operand in "" - text; do
    "$lmquant" tokenize --ids fable.lmq $operand < text > found ||
        fail "tokenize $operand"
    [ -e first ] || cp found first
    cmp -s first found || fail "tokenize $operand differs"
done
"$lmquant" tokenize -d fable.lmq - < first | cmp -s - text ||
    fail "tokenize --decode - does not give the text back"
"$lmquant" validate -q --json fable.lmq fable.lmq - < text > stdout ||
    fail "validate -"
[ "$("$is_json" protocol.text_bytes < stdout)" = 34 ] ||
    fail "validate - read another text"
# Two tokenizers read it, and it comes once.
"$lmquant" validate -q --json "$fable" fable.gguf - < text > stdout ||
    fail "validate - with two tokenizers"
"$lmquant" validate --report=- "$fable" fable.lmq text > page 2> stderr ||
    fail "--report=-"
head -c 15 page | grep -qi '^<!doctype html>' || fail "--report=- is no page"
[ "$(tail -c 8 page)" = "</html>" ] || fail "something follows the page"
refused 2 "wants standard output for itself" validate --report=- --json \
    "$fable" fable.lmq text

# ---- What is no text ----

: > empty
gzip -c fable.gguf > packed.gz
gzip -c packed.gz > twice.gz
tar cf archive.tar text
printf 'PK\003\004\024\000\000\000' > archive.zip
printf 'GGUF is a format.\n' > about-gguf
printf 'O\0n\0c\0e\0 \0' > wide-text
printf '\0O\0n\0c\0e' > wide-text-be
for command in "validate $fable fable.lmq" "tokenize fable.lmq"; do
    refused 3 "folder: is a folder, expected a text" $command folder
    refused 3 "is a GGUF file" $command fable.gguf
    refused 3 "is a .lmq container" $command fable.lmq
    refused 3 "is a safetensors file" $command "$fable/model.safetensors"
    refused 3 "is a zip archive" $command archive.zip
    refused 3 "is a tar archive" $command archive.tar
    refused 3 "is UTF-16" $command wide-text
    refused 3 "is UTF-16" $command wide-text-be
    refused 1 "nowhere: " $command nowhere
    expect 0 "$lmquant" $command about-gguf
done
refused 3 "is a GGUF file" validate "$fable" fable.lmq packed.gz
refused 3 "is compressed by gzip" validate "$fable" fable.lmq twice.gz
refused 3 "is empty" validate "$fable" fable.lmq empty
refused 3 "hint: it looks like a GGUF file" validate --tokens fable.gguf \
    "$fable" fable.lmq
refused 3 "folder: " validate --tokens folder "$fable" fable.lmq
for command in "validate $fable fable.lmq -" "tokenize fable.lmq"; do
    "$lmquant" $command < folder > stdout 2> stderr
    [ $? -eq 3 ] || fail "$command takes a folder for a text"
    says "standard input: is a folder"
done
refused 1 'no\x1b[2Jwhere' tokenize fable.lmq "$(printf 'no\033[2Jwhere')"
refused 2 'q\x1b9' run --kv "$(printf 'q\0339')" x
"$lmquant" run fable.lmq - < fable.gguf > stdout 2> stderr
[ $? -eq 3 ] || fail "run takes a GGUF file for a prompt"
says "standard input: is a GGUF file"

# ---- A tokenizer with many steps ----

# steps N: a tokenizer.json that splits N times.
steps() {
    printf '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, '
    printf '"b": 1}, "merges": []}, "pre_tokenizer": {"type": "Sequence", '
    printf '"pretokenizers": [{"type": "Whitespace"}'
    awk -v n="$1" 'BEGIN {
        while (--n > 0) print ", {\"type\": \"Whitespace\"}" }'
    printf ']}, "normalizer": null, "decoder": null, "added_tokens": []}\n'
}
steps 64 > many.json
printf ab > ab
expect 0 "$lmquant" tokenize --ids many.json ab
steps 100 > many.json
refused 3 "more than 64 steps of one kind" tokenize --ids many.json ab

# ---- The sample ----

# From the build tree, from anywhere; and below a prefix that was moved.
expect 0 "$lmquant" validate -q --json --ctx 64 --max-tokens 200 "$fable" \
    fable.lmq
[ "$("$is_json" protocol.text_bytes < stdout)" = \
    $(wc -c < "$fable/held-out-a.txt") ] || fail "validate has another sample"
expect 0 "$lmquant" validate --max-tokens 200 "$fable" fable.lmq
says "note: no text was named: the sample that comes with lmquant was read"
mkdir -p moved/bin moved/share/lmquant
cp "$lmquant" moved/bin/
expect 0 moved/bin/lmquant --version
moved/bin/lmquant validate -q --max-tokens 200 "$fable" fable.lmq \
    > stdout 2> stderr
case $? in
0) ;; # one is installed on this machine
2) says "name a text file" ;;
*) fail "validate without a sample: status $?" ;;
esac
cp "$fable/held-out-a.txt" moved/share/lmquant/sample.txt
expect 0 moved/bin/lmquant validate -q --max-tokens 200 "$fable" fable.lmq

# ---- Arguments of validate in the wrong order ----

refused 3 "MODEL stands before it" validate "$fable" text
refused 3 "MODEL stands before it" validate "$fable" text fable.lmq
refused 3 "bad-dims-wrap.gguf: " validate "$fable" "$files/bad-dims-wrap.gguf"
grep -q 'if this is' stderr && fail "a damaged model is taken for a text"
expect 0 "$lmquant" validate --ctx 32 fable.lmq "$fable" text
says "note: the reference fable.lmq is quantized and the judged $fable is not"
expect 0 "$lmquant" validate -q --json --ctx 32 fable.lmq "$fable" text
[ -s stderr ] && fail "-q and a note"
"$is_json" notes.0 < stdout | grep -q 'is quantized' ||
    fail "the note is not in the JSON"
expect 0 "$lmquant" validate --ctx 32 "$fable" "$fable" text
says "note: $fable is judged against itself, in float32 both times"
expect 0 "$lmquant" validate --ctx 32 --kv q8 "$fable" "$fable" text
says "judged against itself, but for its keys and values in float32 both times"
printf "$(awk 'BEGIN { for (i = 1; i < 400; i++)
    printf "\\%03o\\000", i * i * 7 % 251 }')" > guesses
expect 0 "$lmquant" validate --ctx 32 --tokens guesses "$fable" fable.lmq
says "the reference does no better than to guess"
printf "$(awk 'BEGIN { for (i = 1; i < 400; i++)
    printf "\\%03o\\000\\000\\000", i * i * 7 % 251 }')" > wide
mv stdout narrow
expect 0 "$lmquant" validate --ctx 32 --tokens wide "$fable" fable.lmq
grep "^perplexity" narrow > wanted && grep "^perplexity" stdout |
    cmp -s wanted - || fail "ids of 4 bytes are others: $(cat stdout)"
# A model of zeros finds all tokens alike.
cp -r "$fable" blank && chmod -R u+w blank
set -- $(od -An -tu1 -N3 "$fable/model.safetensors") # of its header
n=$(($1 + 256 * ($2 + 256 * $3) + 8))
{
    head -c $n "$fable/model.safetensors"
    head -c $(($(wc -c < "$fable/model.safetensors") - n)) /dev/zero
} > blank/model.safetensors
expect 0 "$lmquant" validate --ctx 32 blank "$fable" text
says "the reference does no better than to guess: its perplexity is 512 with 512"
refused 2 "--split-documents is for texts: --tokens has no paragraphs" \
    validate --split-documents --tokens wide "$fable" fable.lmq
expect 0 "$lmquant" validate --ctx 32 "$fable" fable.lmq text
says "tokens are scored, which says next to nothing"
expect 0 "$lmquant" validate --ctx 32 --max-tokens 400 "$fable" fable.lmq \
    "$fable/held-out-a.txt"
grep -q '^note:' stderr && fail "a remark without need"
expect 0 "$lmquant" validate --max-tokens 400 fable.lmq fable.lmq \
    "$fable/held-out-a.txt"
says "fable.lmq is judged against itself: what its weights lost is not seen"
expect 0 "$lmquant" validate --ctx 1000 --max-tokens 400 "$fable" fable.lmq \
    "$fable/held-out-a.txt"
says "windows of 1000 tokens are longer than the"
expect 0 "$lmquant" convert -q -e q4 "$fable" narrow.lmq
cp narrow.lmq hurt.lmq
for place in 100000 100001 100002 100003; do
    printf '\125' | dd of=hurt.lmq bs=1 seek=$place conv=notrunc 2> /dev/null
done
refused 3 "is damaged: its CRC-32 is" diff "$fable" hurt.lmq
refused 2 "unexpected argument 'x'" --version x
refused 2 "unexpected argument 'x'" help convert x
expect 0 "$lmquant" validate --max-tokens 400 narrow.lmq fable.lmq \
    "$fable/held-out-a.txt"
says "the reference narrow.lmq has fewer bits per weight"
expect 0 "$lmquant" convert -q --calibrate "$fable/held-out-a.txt" "$fable" \
    flattered.lmq
expect 0 "$lmquant" validate --max-tokens 400 "$fable" flattered.lmq \
    "$fable/held-out-a.txt"
says "flattered.lmq was calibrated with this very text"
expect 0 "$lmquant" validate --max-tokens 400 "$fable" flattered.lmq \
    "$fable/held-out-b.txt" "$fable/held-out-a.txt"
says "flattered.lmq was calibrated with one of these texts"
expect 0 "$lmquant" convert -q --rope-theta=1 --norm-eps=1 "$fable" odd.lmq
expect 0 "$lmquant" validate --max-tokens 400 "$fable" odd.lmq \
    "$fable/held-out-a.txt"
says "it is hardly the same model"

# ---- The page ----

cat > strange.txt <<'END'
<script>alert(1)</script> & "quotes" <img src=x onerror=alert(2)> </table>
END
mkdir 'a<b>c'
cp fable.lmq 'a<b>c/x'"'"'y.lmq'
expect 4 "$lmquant" validate -q --report strange.html --gate 'kld.mean <= 0' \
    --gate 'tokens >= 1' "$fable" 'a<b>c/x'"'"'y.lmq' strange.txt
grep -qi '<script\|<img\|<b>c' strange.html && fail "text became markup"
grep -q 'a&lt;b&gt;c/x' strange.html || fail "the page does not name the model"
grep -q '1 of 2 does not hold' strange.html || fail "the page hides a gate"
# The probability that either gave to the token that followed.
"$lmquant" validate -q --json "$fable" fable.lmq text > stdout
nll=$("$is_json" worst.0.reference_nll < stdout)
p=$(awk -v nll="$nll" 'BEGIN { printf "%.3g", 100 * exp(-nll) }')
"$lmquant" validate -q --report=- "$fable" fable.lmq text |
    grep -qF "<td data-is='reference, p'>$p&nbsp;%" ||
    fail "the page does not say that a token had $p %"
"$lmquant" validate -q --report=- --max-tokens 1 "$fable" fable.lmq text \
    > one.html
grep -qE '(^|[^0-9.])1 (token|document|byte|window)s' one.html &&
    fail "1 of many: $(grep -oE '[^0-9.]1 (token|document|byte)s' one.html)"
expect 0 "$lmquant" validate --max-tokens 1 "$fable" fable.lmq text
! grep -q -e '+- *nan' stdout || fail 'one token has no error, which is no number'
grep -q '^1 token scored in 1 window of' stdout ||
    fail "singular: $(cat stdout)"

grep -q 'Note:.*1 token is scored, which says next to nothing' one.html ||
    fail "the page hides a remark"
"$lmquant" validate -q --markdown --max-tokens 1 "$fable" fable.lmq text |
    grep -q '^\* Note: .*next to nothing' || fail "Markdown hides a remark"
"$lmquant" validate --json -f --report same "$fable" fable.lmq text \
    > same 2> "$work/stderr" && fail "a page in the place of what is printed"
says "same is where standard output goes"

# ---- A bound that was shown holds ----

"$lmquant" validate -q --json "$fable" fable.lmq text > shown.json
kld=$("$is_json" kld.mean < shown.json)
expect 0 "$lmquant" validate -q --gate "kld.mean<=$kld" \
    --gate "kld.mean>=$kld" "$fable" fable.lmq text

# ---- Gates with spaces ----

for gate in 'kld.mean <= 0.01' ' kld.mean<=0.01 ' 'kld.mean  <0.01'; do
    expect 0 "$lmquant" validate -q --gate "$gate" "$fable" fable.lmq text
done
expect 4 "$lmquant" validate -q --gate 'kld.mean > 0.01' "$fable" fable.lmq text
says "kld.mean > 0.01 does not hold"
refused 2 "is not understood" validate --gate 'kld. mean <= 1' a b
refused 2 "is not understood" diff --gate 'snr db >= 1' a b
expect 0 "$lmquant" diff -q --gate ' missing <= 0 ' "$fable" fable.lmq

# ---- -q, -v, YAML: the same everywhere ----

# works COMMAND: a command line that works, in $@ of the loops below.
works() {
    case $1 in
    convert) echo "convert -f $fable again.lmq" ;;
    validate) echo "validate --ctx 32 $fable fable.lmq text" ;;
    plan)
        echo "plan --target-bits 6 --ctx 64 --max-tokens 300 \
            --text $fable/held-out-b.txt $fable"
        ;;
    run) echo "run -n 4 fable.lmq Once" ;;
    inspect) echo "inspect fable.lmq" ;;
    verify) echo "verify fable.lmq" ;;
    diff) echo "diff $fable fable.lmq" ;;
    export) echo "export -f --to gguf fable.lmq again.gguf" ;;
    split) echo "split -f --shard-size 1M fable.lmq folder" ;;
    join) echo "join -f fable.lmq again.lmq" ;;
    bench) echo "bench -p 8 -n 4 -r 1 fable.lmq" ;;
    tokenize) echo "tokenize fable.lmq text" ;;
    merge) echo "merge part.json" ;;
    esac
}
expect 0 "$lmquant" validate --part 1/1 -o part.json --ctx 32 "$fable" \
    fable.lmq text
for command in $commands; do
    [ $command = seal ] && continue # test_parts.sh
    [ $command = jobs ] && continue # test_jobs.sh
    expect 0 "$lmquant" $(works $command)
    [ -s stdout ] || fail "$command prints nothing"
    expect 0 "$lmquant" $(works $command) -q
    [ -s stderr ] && fail "$command -q speaks: $(cat stderr)"
    case $command in
    run | tokenize) [ -s stdout ] || fail "$command -q gives nothing" ;;
    *) [ -s stdout ] && fail "$command -q prints a summary" ;;
    esac
    expect 0 "$lmquant" $(works $command) -v
    says "note: lmquant $("$lmquant" --version | cut -d ' ' -f 2), "
    expect 0 "$lmquant" $(works $command) -q --json
    "$is_json" < stdout > /dev/null || fail "$command --json"
    expect 0 "$lmquant" $(works $command) -q --yaml
    grep -q '^[a-z_0-9]*:' stdout || fail "$command --yaml"
    "$is_json" < stdout > /dev/null 2>&1 && fail "$command --yaml is JSON"
done
expect 3 "$lmquant" verify -q "$files/lmq/bad-flipped-value.lmq"
grep -q '^damaged: ' stdout || fail "verify -q does not name the damage"

# ---- Terminals ----

expect 0 "$synth" --sparse --dim 2048 --hidden 8192 --layers 1 \
    --heads 32 --kv-heads 8 --vocab 8000 big
"$in_terminal" 80 true < /dev/null
if [ $? -eq 77 ]; then
    skip "there are no terminals here"
else
    escape=$(printf '\033')
    for width in 80 60 40 20 8 2; do
        TERM=xterm "$in_terminal" $width "$lmquant" convert -j 1 -fq big \
            big.lmq < /dev/null |
            grep -q . && fail "-q draws at $width"
        TERM=xterm "$in_terminal" $width "$lmquant" convert -j 1 -f --json big \
            big.lmq < /dev/null > screen ||
            fail "convert on a terminal of $width"
        # Each state of the line stands between \r and the next.
        tr '\r' '\n' < screen | grep "^$escape\[K" | sed "s/^$escape\[K//" |
            grep -v '^note: ' |
            awk -v w=$width 'length >= w { print; bad = 1 } END { exit bad }' ||
            fail "progress is wider than $width"
        case $width in
        80 | 60)
            grep -q '%.*weights/s \[' screen ||
                fail "no bar on a terminal of $width"
            ;;
        esac
        rm -f big.lmq
    done
    for term in dumb ''; do
        TERM=$term "$in_terminal" 60 "$lmquant" convert -j 1 big big.lmq \
            < /dev/null > screen
        grep -q "$escape" screen && fail "TERM='$term' gets escapes"
        tr -d '\n' < screen | tr '\r' '\n' | grep -q . || fail "TERM='$term'"
        # The terminal itself writes \r before \n; nobody else may.
        sed 's/\r$//' screen | grep -q "$(printf '\r')" &&
            fail "TERM='$term' gets a carriage return"
        rm -f big.lmq
    done
fi

# ---- Signals ----

for pair in TERM:143 HUP:129; do
    "$lmquant" convert -q -j 1 big big.lmq > stdout 2> stderr &
    pid=$!
    sleep 0.1
    kill -${pair%:*} $pid 2> /dev/null
    wait $pid
    status=$?
    if [ $status -eq 0 ]; then
        skip "the conversion was over before SIG${pair%:*} came"
    elif [ $status -ne "${pair#*:}" ]; then
        fail "SIG${pair%:*}: status $status, expected ${pair#*:}"
    elif [ -s stderr ]; then
        is_one_sentence "SIG${pair%:*}"
    fi
    rm -f big.lmq
done
# What waits for a text that does not come, and what decodes for long, end at
# once as well.
# ended STATUS: TERM ends the last command in the background.
ended() {
    sleep 0.3
    kill -TERM $pid 2> /dev/null
    at=0
    while kill -0 $pid 2> /dev/null && [ $at -lt 100 ]; do
        sleep 0.1
        at=$((at + 1))
    done
    kill -KILL $pid 2> /dev/null && fail "$what: goes on"
    wait $pid
    status=$?
    [ $status -eq 143 ] || fail "$what: status $status: $(cat stderr)"
}
mkfifo silent
exec 9<> silent
for what in "validate --text - $fable fable.lmq" \
    "validate --text silent $fable fable.lmq" \
    "plan --target-bits 5 --text - $fable" "tokenize fable.lmq" \
    "tokenize -d fable.lmq -" "run fable.lmq -f silent" \
    "convert --calibrate silent $fable never.lmq"; do
    # shellcheck disable=SC2086
    "$lmquant" $what <&9 > stdout 2> stderr &
    pid=$!
    ended
done
exec 9>&-
rm silent
what="bench"
"$lmquant" bench -p 1 -r 1 -n 1000000 fable.lmq > stdout 2> stderr &
pid=$!
ended

# A text without an end is refused, not read until memory is full.
if [ -c /dev/zero ]; then
    for command in "tokenize fable.lmq" "run fable.lmq -f" \
        "validate $fable fable.lmq --text"; do
        # shellcheck disable=SC2086
        refused 3 "/dev/zero: is too long" $command /dev/zero
    done
fi

# A loop of a shell ends with the command that ^C ended: bash, for one, goes on
# if that command exits as if nothing had happened. So it does if ^C comes when
# the output has its name already, which is rare: not four times in a row.
if "$in_terminal" 80 true < /dev/null; then
    for delay in 0.3 0.35 0.42 0.5; do
        {
            sleep $delay
            printf '\003'
        } | "$in_terminal" 80 "${BASH:-bash}" -c 'for i in 1 2 3 4 5 6 7 8; do
            "$@"; echo "ended with $?"; done; echo "went on"' \
            bash "$lmquant" convert -q -f -j 1 big big.lmq > screen
        grep -q 'went on' screen || break
    done
    grep -q 'went on' screen && fail "^C does not stop a loop: $(cat screen)"
fi

# ---- Small mistakes ----

expect 0 "$lmquant" help help
LMQUANT_CPU=nothing expect 0 "$lmquant" inspect "$fable"
grep -q '^note: LMQUANT_CPU=nothing is not here' stderr ||
    fail "LMQUANT_CPU=nothing: $(cat stderr)"
refused 2 "--shard-size is '0x4M'" convert --shard-size=0x4M "$fable" hex.lmq
long=$(printf '%0251d' 0).lmq
expect 0 "$lmquant" convert -q "$fable" $long
rm -f $long
[ -z "$(ls -A | grep '^\.lmq')" ] || fail "a signal leaves $(ls -A)"
finish

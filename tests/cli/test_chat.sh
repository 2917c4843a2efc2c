#!/bin/sh
#
# test_chat.sh - run --chat over a pipe and in a terminal, --stop, --file.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=1
cd "$work" || exit 99
expect 0 "$lmquant" convert -q "$fable" fable.lmq

# ---- Conversations ----

printf 'Once upon a time\n\nThe fox\\\nand the hen\n' > questions
expect 0 "$lmquant" run --chat --chat-format=llama2 --temp=0 -n 12 \
    --system=Tell fable.lmq < questions
[ "$(wc -l < stdout)" -ge 2 ] || fail "two questions have no two answers"
grep -q '^> ' stdout stderr && fail "a pipe is prompted"
says 'answers: 2;'
grep -q '\[INST\]' stdout && fail "an answer shows its frame"
cp stdout answers
expect 0 "$lmquant" run -q -j2 --chat --chat-format=llama2 --temp=0 -n 12 \
    --system=Tell fable.lmq < questions
[ -s stderr ] && fail "-q says something"
cmp -s stdout answers || fail "answers depend on threads"

# The first question as an argument, from a file, from a pipe as a whole.
printf 'Once upon a time\n' > first
expect 0 "$lmquant" run -q --chat --chat-format=zephyr --temp=0 -n 9 \
    fable.lmq 'Once upon a time' < /dev/null
cp stdout argument
expect 0 "$lmquant" run -q --chat --chat-format=zephyr --temp=0 -n 9 \
    -f first fable.lmq < /dev/null
cmp -s stdout argument || fail "--file asks something else"
expect 0 "$lmquant" run -q --chat --chat-format=zephyr --temp=0 -n 9 \
    fable.lmq - < first
cmp -s stdout argument || fail "'-' asks something else"
expect 0 "$lmquant" run -q --chat --chat-format=zephyr --temp=0 -n 9 \
    fable.lmq < first
cmp -s stdout argument || fail "a line asks something else"

# A context that is too small for all of it: the oldest goes, and that is said.
for i in 1 2 3 4 5 6; do echo 'Once upon a time there was a fox.'; done > many
expect 0 "$lmquant" run --chat --chat-format=mistral-v1 --temp=0 --ctx=96 \
    -n 20 fable.lmq < many
says 'forgotten'
says 'answers: 6;'
# What is left is answered as if nothing had been before, but for the system's
# words.
printf 'Once upon a time there was a fox.\nAnd the hen\n' > two
tail -n 1 two > second
for lines in second two; do
    expect 0 "$lmquant" run --chat --chat-format=llama2 -t 0 --ctx=96 -n 12 \
        --system=Tell fable.lmq < $lines
    tail -n 1 stdout > $lines.answer
done
says 'the oldest question, with the answer, is forgotten'
cmp -s two.answer second.answer || fail "forgotten is another: $(cat *.answer)"
expect 2 "$lmquant" run --chat --chat-format=mistral-v1 --ctx=8 fable.lmq \
    < many
says 'the context room for 8'
is_one_sentence "a question without room"

# ---- Formats ----

for data in --json --yaml; do
    expect 2 "$lmquant" run --chat-format=list $data
    says "--chat-format=list is a table"
done
expect 0 "$lmquant" run --chat-format=list
grep -q '^chatml .*Qwen' stdout || fail "the list lacks chatml"
expect 3 "$lmquant" run --chat fable.lmq < first
says 'no chat template'
says '--chat-format'
expect 2 "$lmquant" run --chat --chat-format=mars fable.lmq < first
says "'mars'"
cp -R "$fable" model
chmod -R u+w model
printf "{{ '<|im_start|>' + role }}" > model/chat_template.jinja
expect 0 "$lmquant" run -q --chat -t 0 -n 5 model < first
cp stdout folder
expect 0 "$lmquant" convert -q model model.lmq
expect 0 "$lmquant" run -q --chat -t 0 -n 5 --activations=f32 model.lmq < first
expect 0 "$lmquant" export -q --to gguf model.lmq model.gguf
expect 0 "$lmquant" run -q --chat -t 0 -n 5 model.gguf < first
printf '{{ nothing }}' > model/chat_template.jinja
expect 3 "$lmquant" run --chat model < first
says 'of no family'

# ---- Mistakes ----

for option in --system=x --chat-format=chatml; do
    expect 2 "$lmquant" run $option fable.lmq x
    says 'is for --chat'
done
for option in --json --yaml --ids; do
    expect 2 "$lmquant" run --chat $option fable.lmq x
    says 'exclude each other'
done
expect 2 "$lmquant" run -f first fable.lmq x
says 'two prompts'
expect 1 "$lmquant" run -f nowhere fable.lmq
expect 2 "$lmquant" run
says 'expected: CHECKPOINT'

# ---- Stop ----

expect 0 "$lmquant" run -q -t 0 -n 40 fable.lmq 'Once upon a time'
whole=$(cat stdout)
word=$(echo "$whole" | tr -s ' .,' '\n' | sed -n 9p)
expect 0 "$lmquant" run -q -t 0 -n 40 --stop=zzz --stop="$word" fable.lmq \
    'Once upon a time'
grep -qF "$word" stdout && fail "--stop=$word is shown: $(cat stdout)"
case $whole in
"$(cat stdout)"*) ;;
*) fail "--stop changes what is before it" ;;
esac
expect 0 "$lmquant" run -t 0 -n 40 --json --stop="$word" fable.lmq \
    'Once upon a time'
[ "$("$is_json" stopped < stdout)" = "\"$word\"" ] ||
    [ "$("$is_json" stopped < stdout)" = "$word" ] ||
    fail "the report does not say what stopped it"
expect 2 "$lmquant" run --stop= fable.lmq x
says '--stop is empty'
# shellcheck disable=SC2046
expect 2 "$lmquant" run $(yes -- --stop=z | head -n 32) fable.lmq x
says '--stop is given more than 31 times'

# ... and the token that ends a text or an answer, unless it is to be ignored.
expect 0 "$lmquant" run -q -s 1 --json fable.lmq 'Once upon a time'
[ "$("$is_json" ended < stdout)" = true ] || fail "the text has no end"
expect 0 "$lmquant" run -s 1 fable.lmq 'Once upon a time'
says ' (the text has ended)'
expect 0 "$lmquant" run -s 1 --ignore-eos fable.lmq 'Once upon a time'
says 'generated: 256 tokens'
talk="run --chat --chat-format=llama2 -s 5 fable.lmq"
expect 0 "$lmquant" $talk < first
n=$(sed -n 's/.*generated: \([0-9]*\) .*/\1/p' stderr)
[ "$n" -lt 40 ] || fail "the answer has no end: $(cat stdout)"
expect 0 "$lmquant" $talk --ignore-eos -n 40 < first
says 'generated: 40 tokens'

# What begins with a blank begins so in data, too; and behind a prompt.
expect 0 "$lmquant" run -q -t 0 -n 8 --json fable.lmq 'Once upon a time,'
printf '%s%s\n' "$("$is_json" prompt < stdout)" "$("$is_json" text < stdout)" |
    sed 's/""//; s/"//g' > told
expect 0 "$lmquant" run -q -t 0 -n 8 fable.lmq 'Once upon a time,'
cmp -s stdout told ||
    fail "the text of the report is another one: $(cat told stdout)"
case $(sed 's/^Once upon a time,\( *[^ ,.]*\).*/\1/' stdout) in
' '*)
    word=$(sed 's/^Once upon a time,\( *[^ ,.]*\).*/\1/' stdout)
    expect 0 "$lmquant" run -q -t 0 -n 8 --json --stop="$word" fable.lmq \
        'Once upon a time,'
    [ "$("$is_json" text < stdout | tr -d '"')" = "" ] ||
        fail "--stop='$word' is not found in data"
    ;;
*) fail "no word begins with a blank: $(cat stdout)" ;;
esac

# One that only may have begun when the text ends hides none behind it.
expect 0 "$lmquant" run -q -t 0 -n 40 --stop="${whole#Once upon a time}zzz" \
    --stop="$word" fable.lmq 'Once upon a time'
[ "$(cat stdout)" = 'Once upon a time,' ] ||
    fail "--stop=$word is shown: $(cat stdout)"

# A prompt that has no room is told at once, as a whole.
for i in 1 2 3 4 5 6 7 8; do cat "$fable/held-out-a.txt"; done | head -c 9000 \
    > long
expect 2 "$lmquant" run -q --ctx=128 -f long fable.lmq
says '128 of 128 positions are free'

# What is closed is not the next file that is opened.
"$lmquant" run -q --chat --chat-format=chatml fable.lmq <&- > stdout 2> stderr
[ $? -eq 1 ] || fail "a closed input: $(cat stdout stderr)"
says 'standard input: cannot read'

# In a conversation it ends an answer, which goes on being known without it.
expect 0 "$lmquant" run --chat --chat-format=llama2 -t 0 -n 40 --ctx=96 \
    fable.lmq < first
word=$(tr -s ' .,' '\n' < stdout | sed -n 5p)
cat first first > twice
expect 0 "$lmquant" run --chat --chat-format=llama2 -t 0 -n 40 --stop="$word" \
    fable.lmq < twice
says 'answers: 2;'
grep -qF "$word" stdout && fail "--stop=$word is shown: $(cat stdout)"
expect 0 "$lmquant" run --chat --chat-format=llama2 -t 0 -n 4000 --ctx=64 \
    fable.lmq < first
says 'the context of 64 is full: the answer ends here'

# ... as does the format's own token, which need not end a text: here the colon.
expect 0 "$lmquant" run -q --chat --chat-format=chatml -t 0 -n 20 fable.lmq \
    < first
case $(cat stdout) in
Moral:*) ;;
*) fail "an answer without a moral: $(cat stdout)" ;;
esac
sed 's/"id": 2, .*/&, { "id": 493, "content": "<|im_end|>", "special": true }/
    s/":": 493/"<|im_end|>": 493/' "$fable/tokenizer.json" > model/tokenizer.json
expect 0 "$lmquant" run -q --chat --chat-format=chatml -t 0 -n 20 model < first
[ "$(cat stdout)" = Moral ] || fail "the answer has no end: $(cat stdout)"

# ... and without its thought, though the token that ends that is not shown: here
# it is the colon's, and the answer "Moral: what you give away comes back." What is
# known is as long as the context that it just fits into.
sed 's|"id": 2, .*|&, { "id": 493, "content": "</think>", "special": true }|
    s|":": 493|"</think>": 493|' "$fable/tokenizer.json" > model/tokenizer.json
printf 'Once upon a time\nAnd then\n' > questions
turn() { # ROLE WORDS
    printf '<|im_start|>%s\n%s<|im_end|>\n' "$1" "$2"
}
write_down() { # WORDS: of the first answer
    turn user 'Once upon a time'
    turn assistant "$1"
    turn user 'And then'
    printf '<|im_start|>assistant\n'
}
format=qwen3
talk_in() { # TOKENS STOP: so many and a quarter of the context
    expect 0 "$lmquant" run --chat --chat-format=$format -t 0 --stop="$2" \
        --ctx=$(($1 + ($1 - 1) / 3)) model < questions
}
knows() { # WORDS STOP: of an answer that STOP ends
    write_down "$1" > told
    expect 0 "$lmquant" tokenize --special --ids model told
    n=$(wc -w < stdout)
    talk_in "$n" "$2"
    grep -q 'forgotten' stderr && fail "--stop='$2': more than '$1' is known"
    talk_in $((n - 1)) "$2"
    grep -q 'forgotten' stderr || fail "--stop='$2': less than '$1' is known"
}
knows ' what' ' you'
knows ' what you give a' 'way'
knows '' ' what'
knows 'Mora' 'l what'

# ... and where the space that " nobody is too small" begins with stands in the
# template, too, once; and what was made is not read again, but for the last
# token if the count of tokens ends an answer.
sed '/"Strip"/d; s/"Fuse" },/"Fuse" }/' "$fable/tokenizer.json" \
    > model/tokenizer.json
format=deepseek-v2
write_down() {
    printf 'User: Once upon a time\n\nAssistant:%s</s>' "$1"
    printf 'User: And then\n\nAssistant:'
}
knows ' nobody' ' is'
knows ' nobody i' 's t'
count_read() { # END: of the answer " nobody"
    expect 0 "$lmquant" run --chat --chat-format=$format -t 0 "$1" model \
        < questions
    [ "$(head -n 1 stdout)" = ' nobody' ] || fail "$1: $(head -n 1 stdout)"
    n=$(sed -n 's/.*; read: \([0-9]*\) .*/\1/p' stderr)
}
count_read -n3
most=$n
count_read '--stop= is'
[ "$n" -eq $((most - 1)) ] || fail "$n tokens are read, with one more $most"

# ---- A terminal ----

"$in_terminal" 80 true < /dev/null
if [ $? -eq 77 ]; then
    skip "there are no terminals here"
    finish
fi

printf 'Once upon a time\n\004' | "$in_terminal" 80 "$lmquant" run --chat \
    --chat-format=llama2 -t 0 -n 5 fable.lmq > screen
status=$?
[ $status -eq 0 ] || fail "^D ends with $status"
grep -q '^> ' screen || fail "nobody is asked: $(cat screen)"

# ^C at the prompt throws the line away, and nothing else. (It reads by then.)
{
    printf '\001> \001Once u\001Once u\001'
    sleep 1
    printf '\003\001> \001Once upon a time\n\001> \001\004'
} | "$in_terminal" 80 "$lmquant" run --chat --chat-format=llama2 -t 0 -n 20 \
    fable.lmq > screen
status=$?
[ $status -eq 0 ] || fail "^C and ^D end with $status: $(cat screen)"
grep -q 'answers: 1;' screen || fail "not one answer: $(cat screen)"

# ... and in an answer it ends that.
talk="run --chat --chat-format=llama2 -t 0 --ignore-eos --ctx=4096 fable.lmq"
expect 0 "$lmquant" $talk -q -n 5 < first
{
    printf '\001> \001Once upon a time\n\001%s\001\003\001> \001\004' \
        "$(head -n 1 stdout)"
} | "$in_terminal" 80 "$lmquant" $talk > screen
status=$?
[ $status -eq 0 ] || fail "^C in an answer and ^D end with $status"
grep -q 'answers: 1;' screen || fail "not one answer: $(cat screen)"
grep -q 'the context of 4096 is full' screen &&
    skip "the answer was over before ^C came"

finish

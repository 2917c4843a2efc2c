#!/bin/sh
# test_completions.sh - what shells complete is what --help and the messages
# list: all commands, all options, all words that a value may be.

set -u
. "${srcdir:-.}/tests/library.sh"

has() {
    command -v "$1" > /dev/null 2>&1
}

for shell in bash zsh fish; do
    expect 0 "$lmquant" help --completion=$shell
    mv "$work/stdout" "$work/$shell"
    expect 0 "$lmquant" help --completion $shell
    cmp -s "$work/stdout" "$work/$shell" || fail "--completion $shell differs"
done
expect 2 "$lmquant" help --completion=tcsh
says "'tcsh', expected bash, zsh or fish"
is_one_sentence help --completion=tcsh
expect 2 "$lmquant" help --completion
says "'', expected bash, zsh or fish"
expect 2 "$lmquant" help --completion bash zsh
says "unexpected argument 'zsh'"
expect 0 "$lmquant" help -h

# ---- The truth ---- "COMMAND --option" and "COMMAND --option word": the second
# as the message about a wrong value has them.

listed=$("$lmquant" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
printf '%s\n' $listed > "$work/listed"
for command in $listed; do
    "$lmquant" $command --help |
        sed 's/^\(  .....*\(--[a-z-]*\)\)\[=.*/\1\n      \2=/' |
        sed -n "s/^  \(-., \|    \)\(--[a-z-]*=*\).*/$command \2/p"
done > "$work/options"
[ "$(wc -l < "$work/options")" -gt 100 ] || fail "--help lists no options"
sed -n 's/=$//p' "$work/options" | while read -r command option; do
    # Other options that are asked for first.
    set --
    case $command in
    export) set -- --to=gguf A B.gguf ;;
    convert) set -- A B.lmq ;;
    *) set -- A B ;;
    esac
    [ $option != --to ] || shift
    LC_ALL=C "$lmquant" $command "$@" $option=@ 2>&1 |
        sed -n "s/.*$option is '@', expected \([a-z0-9_, -]* or .*\)/\1/p" |
        sed 's/ or /, /;s/, /\n/g' | sed "s/^/$command $option /"
done > "$work/words"
grep -q 'convert --scales f16' "$work/words" || fail "no words found"
grep -q 'run --progress plain' "$work/words" || fail "no shared words found"

# Compares what a shell gives, in $work/given, with the truth.
compare() {
    sort "$1" > "$work/expected"
    sort "$work/given" | diff "$work/expected" - > "$work/difference" ||
        fail "$2: $(cat "$work/difference")"
}

# ---- bash ----

# complete WORD...: what is offered for the last one.
if has bash; then
    cat > "$work/ask.bash" << 'EOS'
. "$1"
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _lmquant
    [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"
}
case $2 in
commands) complete_words lmquant '' ;;
options)
    while read -r command; do
        complete_words lmquant $command -- | sed "s/^/$command /"
    done ;;
words) # behind a space, and behind "="
    while read -r command option; do
        complete_words lmquant $command $option '' |
            sed "s/^/$command $option /"
        complete_words lmquant $command $option = |
            sed "s/^/$command $option /"
        complete_words lmquant $command $option = '' |
            sed "s/^/$command $option /"
    done ;;
one) shift 2; complete_words "$@" ;;
esac
EOS
    bash "$work/ask.bash" "$work/bash" commands > "$work/given"
    printf '%s\n' $listed help --help --version > "$work/names"
    compare "$work/names" "bash, commands"
    bash "$work/ask.bash" "$work/bash" options < "$work/listed" > "$work/given"
    compare "$work/options" "bash, options"
    cut -d ' ' -f 1,2 "$work/words" | uniq |
        bash "$work/ask.bash" "$work/bash" words > "$work/given"
    cat "$work/words" "$work/words" "$work/words" > "$work/thrice"
    compare "$work/thrice" "bash, words"
    one() { # EXPECTED WORD...
        wanted=$1
        shift
        given=$(bash "$work/ask.bash" "$work/bash" one "$@" | tr '\n' ' ')
        [ "$given" = "$wanted" ] || fail "bash, $*: '$given', not '$wanted'"
    }
    one 'convert ' lmquant con
    one 'convert ' lmquant help con
    one '--scales= ' lmquant convert a b --sca
    one 'f16 f32 ' lmquant convert --scales = f
    one 'plain ' lmquant verify --progress p
    one '64 ' lmquant convert -g 6
    # Files are the shell's business.
    one '' lmquant inspect ''
    one '' lmquant inspect --config ''
    one '' lmquant nonsense --js
else
    skip "bash: not there"
fi

# ---- zsh ---- Read without a terminal; the options stand in it as words.

if has zsh; then
    zsh -n "$work/zsh" || fail "zsh does not read its completion"
    # With an _arguments that prints what it is asked for.
    cat > "$work/ask.zsh" << 'EOS'
compdef() { : }
. $1
_describe() { : }
_arguments() {
    if [[ $1 = -C ]]; then
        state=argument
    else
        printf '%s\n' "$@" |
            sed -n "s/^[^[]*[)*]*\(--[a-z-]*=*\)\[.*/$words[1] \1/p"
    fi
}
while read -r command; do
    words=($command)
    _lmquant
done
EOS
    zsh -f "$work/ask.zsh" "$work/zsh" < "$work/listed" > "$work/given"
    compare "$work/options" "zsh, options"
else
    skip "zsh: not there"
fi

# ---- fish ----

if has fish; then
    fish -n "$work/fish" || fail "fish does not read its completion"
    cut -d ' ' -f 1,2 "$work/words" | sort -u > "$work/questions"
    HOME=$work fish -N -c 'source $argv[1]; while read -l command option
            complete -C "lmquant $command $option " |
                string replace -r "\t.*" "" |
                string replace -r "^" "$command $option "
        end' "$work/fish" < "$work/questions" | sort -u > "$work/given"
    sort -u "$work/words" > "$work/once"
    compare "$work/once" "fish, words"
    HOME=$work fish -N -c 'source $argv[1]; while read -l command
            complete -C "lmquant $command --" |
                string replace -r "\t.*" "" |
                string replace -r "^" "$command "
        end' "$work/fish" < "$work/listed" > "$work/given"
    # With a value, fish shows the name alone.
    sed 's/=$//' "$work/options" > "$work/bare"
    compare "$work/bare" "fish, options"
else
    skip "fish: not there"
fi

finish

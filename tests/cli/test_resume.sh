#!/bin/sh
#
# test_resume.sh - convert --resume, killed before calls that are chosen at
# random: whenever that is, what comes out in the end is what comes out
# undisturbed.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
shim=$top_builddir/tests/cli/fault_shim.so

expect 0 "$synth" --dim 96 --hidden 256 --layers 3 --heads 4 --kv-heads 2 \
    --vocab 900 model

# killed CLASS N COMMAND...: before the Nth call of the class.
killed() {
    class=$1 at=$2
    shift 2
    FAULT_CLASS=$class FAULT_AT=$at FAULT_ERRNO=KILL FAULT_FD=1 \
        LD_PRELOAD=$shim "$@" > stdout 2> stderr
}

# A number below $1; the seed goes on.
seed=17
random() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    echo $((seed / 65536 % $1 + 1))
}

killed write 1 "$lmquant" convert -q --resume model x.lmq 2> /dev/null
if [ $? -ne 137 ]; then
    skip "nothing can be preloaded here"
    n_kills=50 hangs=
else
    n_kills=0 hangs="--resume --part=1/1"
fi
rm -f x.lmq*
for options in "" "--layout=rows -z" "--shard-size 100K" \
    "--shard-size 60K -g 32" "--scales=f32"; do
    [ $n_kills -ge 50 ] && [ ! -d good ] && break
    rm -rf good is
    mkdir good is
    expect 0 "$lmquant" convert -q $options model good/m.lmq
    for round in 1 2 3 4 5 6 7 8; do
        rm -f is/*
        for try in 1 2 3 4; do
            case $(random 4) in
            1) killed fsync $(random 3) "$lmquant" convert -q --resume \
                $options model is/m.lmq ;;
            2) killed rename $(random 4) "$lmquant" convert -q --resume \
                $options model is/m.lmq ;;
            *) killed write $(random 40) "$lmquant" convert -q --resume \
                $options model is/m.lmq ;;
            esac
            status=$?
            [ $status -eq 137 ] || break
            n_kills=$((n_kills + 1))
        done 2> /dev/null
        case $status in
        0) ;;
        137) expect 0 "$lmquant" convert -q --resume $options model is/m.lmq ;;
        *) fail "status $status after a kill: $(cat stderr)" ;;
        esac
        diff -r good is > differences ||
            fail "resumed with '$options': $(cat differences)"
    done
done
[ $n_kills -ge 50 ] || fail "only $n_kills kills"

# flip OFFSET: a bit of the file that is read.
flip() {
    byte=$(od -An -tu1 -j "$1" -N 1 read/model.safetensors)
    printf '%b' "\\0$(printf %o $((byte ^ 128)))" |
        dd of=read/model.safetensors bs=1 seek="$1" conv=notrunc 2> /dev/null
}

# What was read before is not what stands there now, be it one norm, which is
# read in one small piece, or one number somewhere.
if [ -n "$hangs" ]; then
    cp -r model read
    killed rename 1 "$lmquant" convert -q --resume read read.lmq 2> /dev/null
    head=$(od -An -tu8 -N 8 read/model.safetensors)
    norm=$(head -c $((head + 8)) read/model.safetensors | tail -c +9 |
        sed 's/.*"model.norm.weight"[^}]*"data_offsets": *\[\([0-9]*\).*/\1/')
    size=$(wc -c < read/model.safetensors)
    for at in $((head + 8 + norm + 3)) $((head + 8)) $((size - 1)) \
        $((head + 8 + $(random 30000))) $((size - $(random 30000))); do
        flip $at
        expect 2 "$lmquant" convert -q --resume read read.lmq
        says "read.lmq.journal: is of " # its samples, or a part, are others
        flip $at
    done
    expect 0 "$lmquant" convert -q --resume read read.lmq
    expect 0 "$lmquant" convert -q read good.lmq
    cmp -s read.lmq good.lmq || fail "another file behind changes undone"
    rm -r read read.lmq good.lmq
fi

# asked_to_end CLASS N COMMAND...: before the Nth call of the class, which is
# made.
asked_to_end() {
    class=$1 at=$2
    shift 2
    FAULT_CLASS=$class FAULT_AT=$at FAULT_ERRNO=TERM FAULT_FD=9 \
        LD_PRELOAD=$shim "$@" 9> /dev/null > stdout 2> stderr
}

# A signal when names are given: none has one, and it can be gone on with; or
# all have, and the work is done.
for options in "" "--shard-size 60K"; do
    [ -n "$hangs" ] || break
    rm -rf good is
    mkdir good is
    expect 0 "$lmquant" convert -q $options model good/m.lmq
    for class in fsync rename unlink; do
        for at in 1 2 3 4 5 6 8 12; do
            rm -f is/*
            asked_to_end $class $at "$lmquant" convert -q --resume $options \
                model is/m.lmq
            status=$?
            if [ $status -eq 143 ]; then
                ls is | grep -v '\.part$\|\.journal$' > names &&
                    fail "TERM before $class $at: $(cat names)"
                expect 0 "$lmquant" convert -q --resume $options model is/m.lmq
            elif [ $status -ne 0 ]; then
                fail "TERM before $class $at: status $status: $(cat stderr)"
            fi
            diff -r good is > differences ||
                fail "TERM before $class $at: $(cat differences)"
            rm -f is/*
            echo old > is/m.lmq
            [ -z "$options" ] || continue
            asked_to_end $class $at "$lmquant" convert -q -f model is/m.lmq
            status=$?
            [ $status -ne 143 ] || echo old | cmp -s - is/m.lmq ||
                fail "TERM before $class $at, and the old output is gone"
            [ $status -ne 0 ] || cmp -s good/m.lmq is/m.lmq ||
                fail "TERM before $class $at, and the new output is not there"
        done
    done 2> /dev/null # the shell tells who was ended
done

# What schedulers send: what was done stays, and is gone on with.
expect 0 "$synth" --sparse --dim 2048 --hidden 8192 --layers 2 \
    --heads 32 --kv-heads 8 --vocab 8000 big
"$lmquant" convert -q -j 1 --resume big big.lmq > stdout 2> stderr &
pid=$!
while kill -0 $pid 2> /dev/null && [ ! -s big.lmq.journal ]; do
    sleep 0.01
done
kill -TERM $pid 2> /dev/null
wait $pid
status=$?
if [ $status -eq 143 ]; then
    [ -e big.lmq ] && fail "SIGTERM and an output"
    [ -s big.lmq.journal ] || fail "SIGTERM leaves no journal"
    [ -e big.lmq.part ] || fail "SIGTERM leaves nothing"
    # Not with other options, nor by another name for the same.
    expect 2 "$lmquant" convert -q -g 32 --resume big big.lmq
    says "big.lmq.journal: is of another conversion: --group-size is 64 there"
    expect 2 "$lmquant" convert -q -e q6 --resume big big.lmq
    says '--encoding is "q8" there, "q6" here'
    expect 2 "$lmquant" convert -q --resume model big.lmq
    says "is of another conversion"
    says "that end in '.part'"
    [ -e big.lmq.part ] || fail "a refusal takes away what was begun"
elif [ $status -ne 0 ]; then
    fail "SIGTERM: status $status"
else
    rm big.lmq # it was done before
fi
expect 0 "$lmquant" convert -q --resume big big.lmq
expect 0 "$lmquant" convert -q big same.lmq
cmp -s big.lmq same.lmq || fail "another file after SIGTERM"
[ "$(ls | grep -c '\.part$\|\.journal$')" -eq 0 ] ||
    fail "--resume leaves $(ls)"

# A step may take longer than a scheduler waits: here one that never ends.
mkfifo is_there
for option in $hangs; do
    FAULT_CLASS=write FAULT_AT=3 FAULT_ERRNO=HANG FAULT_FD=9 \
        LD_PRELOAD=$shim "$lmquant" convert -q $option model hung.lmq \
        9> is_there > stdout 2> stderr &
    pid=$!
    head -c 1 is_there > /dev/null
    kill -TERM $pid
    wait $pid
    status=$?
    [ $status -eq 143 ] ||
        fail "$option, SIGTERM in a step without end: status $status"
done
rm is_there
expect 0 "$lmquant" convert -q --resume model hung.lmq
expect 0 "$lmquant" convert -q model whole.lmq
cmp -s hung.lmq whole.lmq || fail "another file after a step without end"

# Done already, in the way, in use, not ours.
expect 1 "$lmquant" convert -q --resume big big.lmq
says "big.lmq: exists already"
expect 0 "$lmquant" convert -q -f --resume big big.lmq
cmp -s big.lmq same.lmq || fail "another file with -f"
echo 'my diary' > mine.lmq.journal
expect 1 "$lmquant" convert -q --resume big mine.lmq
says "is no journal of lmquant"
grep -q diary mine.lmq.journal || fail "somebody's file is gone"
echo 'my diary' > yours.lmq.part
expect 1 "$lmquant" convert -q --resume big yours.lmq
says "yours.lmq.part: is there, and no journal tells that it was begun"
grep -q diary yours.lmq.part || fail "somebody's file is gone"
[ ! -e yours.lmq.journal ] || fail "a journal of what was refused stays"
rm yours.lmq.part
echo 'my diary' > yours-00002-of-00003.lmq.part
for try in 1 2; do
    expect 1 "$lmquant" convert -q --resume --parts 3 big yours.lmq
    says "yours-00002-of-00003.lmq.part: is there, and no journal"
    [ "$(ls | grep -c yours)" -eq 1 ] || fail "of a refused set stays: $(ls)"
done
grep -q diary yours-00002-of-00003.lmq.part || fail "somebody's file is gone"
ln big.lmq big.lmq.part
expect 1 "$lmquant" convert -q -f --resume big big.lmq
[ -e big.lmq ] && [ -e big.lmq.part ] || fail "a name of a refused one is gone"
finish

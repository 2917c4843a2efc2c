#!/bin/sh
#
# check_cluster.sh - conversions, validations and plans in parts under a real
# Slurm and a real MPI, both of this machine alone: slurmctld, slurmd and munged
# on 127.0.0.1 in a folder of their own. make check-cluster runs it; as root,
# since slurmd wants that. What is not installed is skipped, and said.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
PATH=$top_builddir:/usr/sbin:$PATH
pids=

end() {
    for pid in $pids; do
        kill "$pid" 2> /dev/null
    done
    for pid in $pids; do
        wait "$pid" 2> /dev/null
    done
    rm -rf "$work"
}
trap end EXIT

same() { # GOOD IS WHAT
    diff -r "$1" "$2" > differences || {
        fail "$3: $(cat differences)"
        return
    }
    echo "$3: the same"
}

figures() {
    grep -v '"seconds"\|"tokens_per_second"'
}

# Dies before its 12th write, as by kill -9.
killing="FAULT_CLASS=write FAULT_AT=12 FAULT_ERRNO=KILL FAULT_FD=1"
killing="$killing LD_PRELOAD=$top_builddir/tests/cli/fault_shim.so"

n_done=0
head -c 20000 "$fable/held-out-a.txt" > text
expect 0 "$synth" --dim 96 --hidden 256 --layers 3 --heads 4 --kv-heads 2 \
    --vocab 900 other
expect 0 "$synth" --sparse --dim 2048 --hidden 8192 --layers 4 \
    --heads 32 --kv-heads 8 --vocab 8000 source
expect 0 "$lmquant" convert -q "$fable" fable.lmq
expect 0 "$lmquant" validate -q --json -c 128 "$fable" fable.lmq text
figures < stdout > good.json
plan="-c 128 --max-tokens 1500 --target-bits 6.5 --text text"
expect 0 "$lmquant" plan -q $plan -o good.yaml "$fable"
mkdir good8 good4
expect 0 "$lmquant" convert -q --parts 8 source good8/m.lmq
expect 0 "$lmquant" convert -q --parts 4 source good4/m.lmq
expect 0 "$lmquant" convert -q source direct.lmq

# ---- Slurm ----

# Until this holds, at most so many seconds.
until_true() { # SECONDS COMMAND...
    left=$1
    shift
    while ! "$@" > said 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 1
    done
}
is_idle() {
    sinfo -h -o %T | grep -q idle
}
is_empty() {
    [ -z "$(squeue -h)" ]
}

start_slurm() {
    host=$(hostname -s)
    mkdir -p slurm/state slurm/spool munge
    chmod 700 munge
    dd if=/dev/urandom of=munge/key bs=1024 count=1 2> /dev/null
    chmod 600 munge/key
    cat > slurm.conf << EOF
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16917
SlurmdPort=16918
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.pid
SlurmctldLogFile=$work/slurm/slurmctld.log
SlurmdLogFile=$work/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=check Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
    SLURM_CONF=$work/slurm.conf
    export SLURM_CONF
    munged --foreground --force --key-file="$work/munge/key" \
        --socket="$work/munge.socket" --pid-file="$work/munge/pid" \
        --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
        > munged.said 2>&1 &
    pids="$! $pids"
    until_true 20 test -S munge.socket
    slurmctld -D -f slurm.conf > slurmctld.said 2>&1 &
    pids="$! $pids"
    slurmd -D -f slurm.conf > slurmd.said 2>&1 &
    pids="$! $pids"
    until_true 60 is_idle
}

# submit SCRIPT SECONDS: and waits until nothing is left.
submit() {
    expect 0 sh "$1"
    until_true "$2" is_empty || {
        fail "$1 does not end: $(squeue)"
        squeue -h -o %A | xargs scancel
    }
}

check_slurm() {
    mkdir "a set"
    "$lmquant" jobs --nodes 8 convert -j 1 source "a set/m.lmq" > convert.sh
    submit convert.sh 300
    same good8 "a set" "8 parts by an array, sealed behind it"
    expect 0 "$lmquant" join -q "a set" joined.lmq
    same direct.lmq joined.lmq "joined, and converted directly"

    "$lmquant" jobs --nodes 4 validate -j 1 -c 128 "$fable" fable.lmq text \
        --json > validate.sh
    submit validate.sh 300
    cat slurm-*.out | sed -n '/^{/,/^}/p' | figures > is.json
    same good.json is.json "a validation in 4 parts, merged behind them"

    "$lmquant" jobs --nodes 3 plan -j 1 $plan "$fable" -o is.yaml > plan.sh
    submit plan.sh 300
    same good.yaml is.yaml "a plan in 3 parts"

    # Part 5 is killed before a write: no last step; then all again.
    rm -rf "a set"
    mkdir "a set"
    sed "s|^set -eu|&\\n[ \"\${SLURM_ARRAY_TASK_ID-}\" != 5 ] \|\| export $killing|" \
        convert.sh > killed.sh
    submit killed.sh 300
    ls "a set"/m-00005-of-00008.lmq.journal > said ||
        fail "no part was killed: $(ls "a set")"
    [ "$(ls "a set" | grep -c 'lmq$')" -eq 0 ] || fail "sealed without a part"
    submit convert.sh 300
    same good8 "a set" "a part killed, and all submitted again"

    # A calibration, part after part; the first is killed, and all again.
    mkdir alone chained
    learn="-j 1 -e q4 --calibrate text --calibrate-tokens 2000"
    expect 0 "$lmquant" convert -q $learn --parts 4 "$fable" alone/m.lmq
    "$lmquant" jobs --nodes 4 convert $learn "$fable" chained/m.lmq > learn.sh
    sed "s|^set -eu|&\\n[ \"\${SLURM_ARRAY_TASK_ID-}\" != 2 ] \|\| export $killing|" \
        learn.sh > killed.sh
    submit killed.sh 300
    [ "$(ls chained | grep -c 'lmq$')" -eq 0 ] || fail "sealed without a part"
    submit learn.sh 300
    same alone chained "a calibration, a part killed, and all submitted again"

    # A part of another source is slipped in: the last step says so.
    rm -rf "a set"
    mkdir "a set"
    sed 's/exec lmquant seal.*/exec true ;;/' convert.sh > parts.sh
    submit parts.sh 300
    rm -f "a set"/m-00003-of-00008.lmq*
    expect 0 "$lmquant" convert -q --part 3/8 other "a set/m.lmq"
    sbatch --wait --output=last.out convert.sh last > said &&
        fail "a part of another source is sealed"
    grep 'is of another conversion' last.out ||
        fail "a part of another source: $(cat last.out)"
    n_done=$((n_done + 1))
}

# ---- MPI ----

ranks() { # N COMMAND...
    n=$1
    shift
    mpirun --allow-run-as-root --oversubscribe -n "$n" "$@"
}

check_mpi() {
    mkdir ranked
    expect 0 ranks 4 "$lmquant" convert -q -j 1 source ranked/m.lmq
    same good4 ranked "4 ranks convert"
    rm -rf ranked
    mkdir ranked
    expect 0 ranks 3 "$lmquant" convert -q -j 1 --parts 8 source ranked/m.lmq
    same good8 ranked "3 ranks convert 8 parts"
    for n in 2 3 4; do
        ranks $n "$lmquant" validate -j 1 -c 128 "$fable" fable.lmq text \
            --json 2> said | figures > is.json
        same good.json is.json "$n ranks validate"
    done
    for n in 2 3; do
        expect 0 ranks $n "$lmquant" plan -q -f -j 1 $plan -o is.yaml "$fable"
        same good.yaml is.yaml "$n ranks plan"
    done
    run ranks 2 "$lmquant" plan -q -j 1 $plan -o is.yaml "$fable"
    [ $status -eq 1 ] || fail "a recipe that exists, by ranks: $status"
    run ranks 4 "$lmquant" validate -q -j 1 -c 128 "$fable" fable.lmq text \
        --gate 'kld.mean<=1e-12'
    [ $status -eq 4 ] || fail "a gate by ranks: $status"
    run ranks 2 "$lmquant" validate "$fable" fable.lmq - < text
    [ $status -eq 2 ] || fail "standard input of two ranks: $status"
    run ranks 2 "$lmquant" convert --calibrate text --parts 3 "$fable" \
        ranked/c.lmq
    [ $status -eq 2 ] || fail "a calibration by two ranks in 3 parts: $status"
    learn="convert -q -j 1 -e q4 --calibrate text --calibrate-tokens 2000"
    rm -rf ranked
    for n in 2 3; do
        rm -rf ranked learnt
        mkdir ranked learnt
        expect 0 "$lmquant" $learn --parts $n "$fable" learnt/m.lmq
        expect 0 ranks $n "$lmquant" $learn "$fable" ranked/m.lmq
        same learnt ranked "$n ranks calibrate"
    done
    rm -rf ranked
    mkdir ranked
    mpirun --allow-run-as-root --oversubscribe \
        -n 2 "$lmquant" $learn "$fable" ranked/m.lmq : \
        -n 1 env $killing "$lmquant" $learn "$fable" ranked/m.lmq \
        > said 2>&1 && fail "a rank died unnoticed while it calibrated"
    expect 0 ranks 3 "$lmquant" $learn --resume "$fable" ranked/m.lmq
    same learnt ranked "a calibrating rank killed, and gone on with"
    # A rank dies: all end, and the same command goes on.
    rm -rf ranked
    mkdir ranked
    mpirun --allow-run-as-root --oversubscribe \
        -n 3 "$lmquant" convert -q -j 1 source ranked/m.lmq : \
        -n 1 env $killing "$lmquant" convert -q -j 1 source ranked/m.lmq \
        > said 2>&1
    status=$?
    died=$status
    [ $died -ne 0 ] || fail "a rank died unnoticed"
    [ "$(ls ranked | grep -c 'lmq$')" -eq 0 ] || fail "sealed without a rank"
    expect 0 ranks 4 "$lmquant" convert -q -j 1 --resume source ranked/m.lmq
    same good4 ranked "a rank killed (mpirun: $died), and gone on with"
    n_done=$((n_done + 1))
}

if ! command -v slurmctld slurmd munged sbatch > said; then
    skip "Slurm: slurmctld, slurmd, slurm-client and munge are not all there"
elif [ "$(id -u)" -ne 0 ]; then
    skip "Slurm: slurmd wants root"
elif ! start_slurm; then
    fail "Slurm does not start: $(cat slurmctld.said slurmd.said munged.said)"
else
    check_slurm
fi
if ! command -v mpirun > said; then
    skip "MPI: there is no mpirun (openmpi-bin)"
elif ! ldd "$top_builddir/lmquant" | grep -q libmpi; then
    skip "MPI: this lmquant was built without (configure --with-mpi)"
else
    check_mpi
fi
[ $n_done -gt 0 ] || [ $n_failed -gt 0 ] || exit 77
finish

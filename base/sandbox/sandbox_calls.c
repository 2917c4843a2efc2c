/*
 * sandbox_calls.c - seccomp: system calls that reading never needs fail.
 *
 * They are refused one by one, so that what a C library does for memory,
 * threads and time stays its own business; and all calls that are newer than
 * this list are not there, as with an older kernel. Reading does not need them
 * either, since it must run on those.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if defined HAVE_LINUX_SECCOMP_H && defined HAVE_LINUX_FILTER_H && \
    defined HAVE_LINUX_AUDIT_H
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#if defined __x86_64__ && defined __LP64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __i386__
#define ARCHITECTURE AUDIT_ARCH_I386
#elif defined __aarch64__ && defined __LP64__ && defined __AARCH64EL__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __s390x__
#define ARCHITECTURE AUDIT_ARCH_S390X
#endif
#endif

#include "base/sandbox/sandbox_calls.h"

#if defined ARCHITECTURE && defined __NR_seccomp

/* set_mempolicy_home_node, of Linux 5.17. From 424 on all machines count the
 * same. */
#define NEWEST_CALL 450

static const int refused_calls[] = {
    /* ---- Programs ---- */
    __NR_execve, __NR_execveat,
#ifdef __NR_fork
    __NR_fork,
#endif
#ifdef __NR_vfork
    __NR_vfork,
#endif
    /* ---- Files, by name or by what is open ---- */
#ifdef __NR_creat
    __NR_creat, __NR_mkdir, __NR_rmdir, __NR_mknod, __NR_link, __NR_symlink,
    __NR_unlink, __NR_rename, __NR_chmod, __NR_chown, __NR_lchown,
#endif
#ifdef __NR_utime
    __NR_utime, __NR_utimes, __NR_futimesat,
#endif
#ifdef __NR_chown32
    __NR_chown32, __NR_lchown32, __NR_fchown32,
#endif
#ifdef __NR_truncate64
    __NR_truncate64, __NR_ftruncate64,
#endif
#ifdef __NR_renameat
    __NR_renameat,
#endif
    __NR_mkdirat, __NR_mknodat, __NR_linkat, __NR_symlinkat, __NR_unlinkat,
    __NR_renameat2, __NR_fchmodat, __NR_fchownat, __NR_utimensat, __NR_fchmod,
    __NR_fchown, __NR_truncate, __NR_ftruncate, __NR_fallocate,
    __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr,
    __NR_lremovexattr, __NR_fremovexattr, __NR_open_by_handle_at,
    __NR_memfd_create, __NR_copy_file_range,
    /* ---- Network and messages ---- */
#ifdef __NR_socketcall
    __NR_socketcall,
#endif
#ifdef __NR_ipc
    __NR_ipc,
#endif
#ifdef __NR_accept
    __NR_accept,
#endif
#ifdef __NR_shmget
    __NR_shmget, __NR_shmat, __NR_msgget, __NR_msgsnd, __NR_semget,
#endif
    __NR_socket, __NR_socketpair, __NR_connect, __NR_bind, __NR_listen,
    __NR_accept4, __NR_sendto, __NR_sendmsg, __NR_sendmmsg, __NR_mq_open,
    /* ---- Other processes ---- */
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp,
    __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
    __NR_pidfd_send_signal,
#ifdef __NR_pidfd_getfd
    __NR_pidfd_getfd,
#endif
    /* ---- The system ---- */
    __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_setns,
    __NR_unshare, __NR_bpf, __NR_perf_event_open, __NR_keyctl, __NR_add_key,
    __NR_request_key, __NR_userfaultfd, __NR_init_module, __NR_finit_module,
    __NR_delete_module, __NR_kexec_load, __NR_reboot, __NR_swapon,
    __NR_swapoff, __NR_sethostname, __NR_setdomainname, __NR_acct,
    __NR_settimeofday, __NR_clock_settime, __NR_adjtimex, __NR_clock_adjtime,
    __NR_personality, __NR_quotactl, __NR_syslog, __NR_vhangup,
#ifdef __NR_open_tree
    __NR_open_tree, __NR_move_mount, __NR_fsopen, __NR_fsconfig, __NR_fsmount,
    __NR_fspick,
#endif
#ifdef __NR_mount_setattr
    __NR_mount_setattr,
#endif
};

/* These are not there: who calls them has another way, where the arguments can
 * be looked at. */
static const int missing_calls[] = {
    __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
#ifdef __NR_clone3
    __NR_clone3,
#endif
#ifdef __NR_openat2
    __NR_openat2,
#endif
};

#define N_REFUSED (sizeof(refused_calls) / sizeof(refused_calls[0]))
#define N_MISSING (sizeof(missing_calls) / sizeof(missing_calls[0]))

struct program {
    struct sock_filter lines[2 * (N_REFUSED + N_MISSING) + 64];
    unsigned short n;
};

static void
add(struct program *program, unsigned code, uint32_t k, unsigned char if_true,
    unsigned char if_false)
{
    program->lines[program->n++] = (struct sock_filter){
        .code = (unsigned short)code, .jt = if_true, .jf = if_false, .k = k};
}

static void
answer(struct program *program, uint32_t what)
{
    add(program, BPF_RET | BPF_K, what, 0, 0);
}

static void
fail_with(struct program *program, int code)
{
    answer(program, SECCOMP_RET_ERRNO | ((uint32_t)code &
                                         SECCOMP_RET_DATA));
}

static void
refuse(struct program *program, int call, int code)
{
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    fail_with(program, code);
}

/* The lower half of an argument. */
static uint32_t
argument_at(unsigned argument)
{
    const uint16_t one = 1;
    unsigned half = *(const unsigned char *)&one == 1 ? 0 : 4;

    return (uint32_t)(offsetof(struct seccomp_data, args) + 8 * argument +
                      half);
}

/* Refuses a call if an argument compares (BPF_JSET: has one of the bits,
 * BPF_JEQ: is the value) as `refused_if` says, and else allows it. */
static void
look_at(struct program *program, int call, unsigned argument, unsigned compare,
        uint32_t value, bool refused_if)
{
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
    add(program, BPF_LD | BPF_W | BPF_ABS, argument_at(argument), 0, 0);
    add(program, BPF_JMP | compare | BPF_K, value, refused_if ? 0 : 1,
        refused_if ? 1 : 0);
    fail_with(program, EPERM);
    answer(program, SECCOMP_RET_ALLOW);
}

static void
write_program(struct program *program)
{
    const uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
#ifdef __s390x__
    const unsigned clone_flags = 1;
#else
    const unsigned clone_flags = 0;
#endif

    program->n = 0;
    add(program, BPF_LD | BPF_W | BPF_ABS,
        (uint32_t)offsetof(struct seccomp_data, arch), 0, 0);
    add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    fail_with(program, ENOSYS);
    add(program, BPF_LD | BPF_W | BPF_ABS,
        (uint32_t)offsetof(struct seccomp_data, nr), 0, 0);
    add(program, BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 0, 1);
    fail_with(program, ENOSYS);
#ifdef __NR_open
    look_at(program, __NR_open, 1, BPF_JSET, writing, true);
#endif
    look_at(program, __NR_openat, 2, BPF_JSET, writing, true);
    look_at(program, __NR_clone, clone_flags, BPF_JSET, CLONE_THREAD, false);
    /* To end by a signal. */
    look_at(program, __NR_kill, 0, BPF_JEQ, (uint32_t)getpid(), false);
    look_at(program, __NR_tkill, 0, BPF_JEQ, (uint32_t)getpid(), false);
    look_at(program, __NR_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), false);
    /* Typing into the terminal. */
    look_at(program, __NR_ioctl, 1, BPF_JEQ, TIOCSTI, true);
    for (size_t i = 0; i < N_REFUSED; i++)
        refuse(program, refused_calls[i], EPERM);
    for (size_t i = 0; i < N_MISSING; i++)
        refuse(program, missing_calls[i], ENOSYS);
    answer(program, SECCOMP_RET_ALLOW);
}

bool
lmq_sandbox_calls(void)
{
    struct program program;

    write_program(&program);
    struct sock_fprog all = {.len = program.n, .filter = program.lines};
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &all) == 0;
}

#else

bool
lmq_sandbox_calls(void)
{
    return false;
}

#endif

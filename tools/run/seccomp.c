// The seccomp filter. It lists the refused calls, not the allowed ones. GPU drivers, the compilers
// in them, OpenMP and the C library decide which system calls a run makes, and every release may
// change that. A list of allowed calls would end runs on untested machines, or would allow as much
// as this filter does. Its advantage, refusing calls that do not exist yet, is provided by an upper
// limit: a call with a number above the newest one known here gets ENOSYS, as on an older kernel,
// and libraries handle that.
//
// Refused calls fail with EPERM instead of ending the process, so a library that only tries a call
// continues. Landlock restricts files, except for what it does not handle (chmod, truncate before
// its version 3, ...).
#include "seccomp.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

// From 424 on every architecture has the same numbers. Older headers may lack them.
#define NR_PIDFD_SEND_SIGNAL 424
#define NR_IO_URING_SETUP 425
#define NR_IO_URING_REGISTER 427
#define NR_OPEN_TREE 428
#define NR_FSPICK 433 // 428 to 433: the new mount calls
#define NR_CLONE3 435
#define NR_PIDFD_GETFD 438
#define NR_PROCESS_MADVISE 440
#define NR_MOUNT_SETATTR 442
#define NR_QUOTACTL_FD 443
#define NR_PROCESS_MRELEASE 448
#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR 469
#define NR_NEWEST 469 // the newest call of Linux 6.17
#define X32_BIT 0x40000000u

static const uint32_t refused[] = {
    // clang-format off
    // Other programs; memory and descriptors of other processes
    SYS_execve, SYS_execveat, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
    NR_PIDFD_GETFD, NR_PIDFD_SEND_SIGNAL, NR_PROCESS_MADVISE, NR_PROCESS_MRELEASE,
    SYS_migrate_pages, SYS_move_pages,
    // System V IPC: memory, semaphores and messages of the user's other processes
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget,
    SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_unlink,
#if !SECCOMP_ALLOWS_LEAK_CHECK
    SYS_ptrace,
#endif
    // The machine: file systems, modules, kernels, clocks, names
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_quotactl,
    NR_QUOTACTL_FD, NR_MOUNT_SETATTR, NR_OPEN_TREE_ATTR, SYS_acct, SYS_reboot, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_settimeofday,
    SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname,
    SYS_syslog, SYS_vhangup, SYS_open_by_handle_at, SYS_fanotify_init,
    // Users and namespaces
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
    SYS_setfsuid, SYS_setfsgid, SYS_setgroups, SYS_capset, SYS_unshare, SYS_setns,
    // Parts of the kernel with many known vulnerabilities
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl,
    // File operations that Landlock does not handle. fchmod stays allowed: output files get their
    // modes by it.
    SYS_fchmodat, SYS_fchownat, SYS_fchown, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_truncate, NR_FCHMODAT2,
    NR_SETXATTRAT, NR_REMOVEXATTRAT, NR_FILE_SETATTR,
    // Calls that exist only on x86-64
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib,
#endif
    // clang-format on
};

static const uint32_t refused_when_closed[] = {
#if defined(SYS_fork) && !SECCOMP_ALLOWS_LEAK_CHECK
    SYS_fork, SYS_vfork,
#endif
    SYS_mq_open,
    SYS_tkill, // signals a thread of any process; tgkill also states the process
};

#define MAX_INSTRUCTIONS 600
struct filter {
    struct sock_filter code[MAX_INSTRUCTIONS];
    unsigned short n;
};

static void add(struct filter *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf) {
    if (f->n < MAX_INSTRUCTIONS) f->code[f->n] = (struct sock_filter){code, jt, jf, k};
    f->n++;
}

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define EQUALS (BPF_JMP | BPF_JEQ | BPF_K)
#define ABOVE (BPF_JMP | BPF_JGT | BPF_K)
#define AT_LEAST (BPF_JMP | BPF_JGE | BPF_K)
#define HAS_ANY (BPF_JMP | BPF_JSET | BPF_K)
#define ALLOWED SECCOMP_RET_ALLOW
#define FAILS_WITH(error) (SECCOMP_RET_ERRNO | (error))

static void end(struct filter *f, uint32_t action) {
    add(f, BPF_RET | BPF_K, action, 0, 0);
}

static void load_number(struct filter *f) {
    add(f, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
}

// Loads the low half of an argument. The kernel treats all arguments tested here as ints and
// ignores the high half. The filter must do the same, otherwise a high half could hide the value.
static void load_argument(struct filter *f, unsigned i) {
    add(f, LOAD, (uint32_t)(offsetof(struct seccomp_data, args) + i * sizeof(uint64_t)), 0, 0);
}

static void refuse_call(struct filter *f, uint32_t number, int error) {
    add(f, EQUALS, number, 0, 1);
    end(f, FAILS_WITH((uint32_t)error));
}

static void refuse_calls(struct filter *f, const uint32_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++)
        refuse_call(f, numbers[i], EPERM);
}

// Refuses the call if argument i has this value.
static void refuse_with(struct filter *f, uint32_t number, unsigned i, uint32_t value) {
    add(f, EQUALS, number, 0, 4);
    load_argument(f, i);
    add(f, EQUALS, value, 0, 1);
    end(f, FAILS_WITH(EPERM));
    load_number(f);
}

static void refuse_range(struct filter *f, uint32_t first, uint32_t last) {
    add(f, AT_LEAST, first, 0, 2);
    add(f, ABOVE, last, 1, 0);
    end(f, FAILS_WITH(EPERM));
}

// Restricts socket families. socketpair stays allowed: it reaches no other process.
static void restrict_sockets(struct filter *f, enum seccomp_step step) {
    if (step == SECCOMP_CLOSED) {
        refuse_call(f, SYS_socket, EPERM);
        return;
    }
    add(f, EQUALS, SYS_socket, 0, 5);
    load_argument(f, 0);
    add(f, EQUALS, AF_UNIX, 2, 0);
    add(f, EQUALS, AF_NETLINK, 1, 0); // the kernel reports devices through it
    end(f, FAILS_WITH(EPERM));
    load_number(f); // later rules compare the number again
}

// Allows threads; refuses new namespaces and, in the last step, processes.
static void restrict_clone(struct filter *f, enum seccomp_step step) {
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    const bool threads_only = step == SECCOMP_CLOSED && !SECCOMP_ALLOWS_LEAK_CHECK;
    // The flags of clone3 are in memory, which a filter cannot read. C libraries then fall back to
    // clone.
    refuse_call(f, NR_CLONE3, ENOSYS);
    add(f, EQUALS, SYS_clone, 0, threads_only ? 5 : 4);
    load_argument(f, 0);
    if (threads_only) {
        add(f, HAS_ANY, CLONE_THREAD, 0, 1); // not a thread: refused
        add(f, HAS_ANY, namespaces, 0, 1);   // a thread without new namespaces: allowed
    } else {
        add(f, HAS_ANY, namespaces, 0, 1);
    }
    end(f, FAILS_WITH(EPERM));
    load_number(f);
}

// Refuses typing into the terminal of the user who started the command.
static void restrict_terminal(struct filter *f) {
    add(f, EQUALS, SYS_ioctl, 0, 5);
    load_argument(f, 1);
    add(f, EQUALS, TIOCSTI, 1, 0);
    add(f, EQUALS, TIOCLINUX, 0, 1);
    end(f, FAILS_WITH(EPERM));
    load_number(f);
}

// Refuses to set the owner of a descriptor: the kernel sends signals to that process.
static void restrict_owners(struct filter *f) {
    static const uint32_t commands[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};
    static const uint32_t requests[] = {FIOSETOWN, SIOCSPGRP};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        refuse_with(f, SYS_fcntl, 1, commands[i]);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        refuse_with(f, SYS_ioctl, 1, requests[i]);
}

// Refuses signals to other processes, as Landlock does from its version 6 on, and changes of their
// limits and priorities. sched_setaffinity stays allowed: OpenMP calls it with thread ids, which
// are not known here.
static void restrict_processes(struct filter *f) {
    static const struct {
        uint32_t call, argument;
        bool zero; // 0 means the calling process
    } calls[] = {{SYS_kill, 0, false},
                 {SYS_tgkill, 0, false},
                 {SYS_rt_sigqueueinfo, 0, false},
                 {SYS_rt_tgsigqueueinfo, 0, false},
                 {SYS_prlimit64, 0, true},
                 {SYS_setpriority, 1, true},
                 {SYS_ioprio_set, 1, true},
                 {SYS_sched_setparam, 0, true},
                 {SYS_sched_setscheduler, 0, true},
                 {SYS_sched_setattr, 0, true}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        uint32_t own = (uint32_t)getpid();
        add(f, EQUALS, calls[i].call, 0, 5);
        load_argument(f, calls[i].argument);
        add(f, EQUALS, own, 2, 0);
        add(f, EQUALS, calls[i].zero ? 0 : own, 1, 0);
        end(f, FAILS_WITH(EPERM));
        load_number(f);
    }
}

static void make_filter(struct filter *f, enum seccomp_step step) {
    // Other architectures have other numbers, so their calls are refused.
    add(f, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
    add(f, EQUALS, ARCHITECTURE, 1, 0);
    end(f, FAILS_WITH(EPERM));
    load_number(f);
#ifdef __x86_64__
    // x32 reports the same architecture, but has its own numbers.
    add(f, AT_LEAST, X32_BIT, 0, 1);
    end(f, FAILS_WITH(EPERM));
#endif
    add(f, ABOVE, NR_NEWEST, 0, 1);
    end(f, FAILS_WITH(ENOSYS));
    refuse_calls(f, refused, sizeof refused / sizeof *refused);
    refuse_range(f, NR_IO_URING_SETUP, NR_IO_URING_REGISTER);
    refuse_range(f, NR_OPEN_TREE, NR_FSPICK);
    restrict_sockets(f, step);
    restrict_clone(f, step);
    restrict_terminal(f);
    restrict_owners(f);
    if (step == SECCOMP_CLOSED) {
        refuse_calls(f, refused_when_closed,
                     sizeof refused_when_closed / sizeof *refused_when_closed);
        restrict_processes(f);
    }
    end(f, ALLOWED);
}

bool seccomp_enter(enum seccomp_step step) {
    static struct filter f;
    f.n = 0;
    make_filter(&f, step);
    if (f.n > MAX_INSTRUCTIONS) {
        errno = E2BIG;
        return false;
    }
    struct sock_fprog program = {f.n, f.code};
    // TSYNC applies the filter to all threads: OpenMP, drivers and heartbeats have started some by
    // now. A positive result is the id of a thread that could not be synchronized.
    long result =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (result > 0) errno = ESRCH;
    if (result < 0 && errno == EINVAL) errno = ENOSYS; // a kernel without filters
    return result == 0;
}

#else

bool seccomp_enter(enum seccomp_step step) {
    (void)step;
    errno = ENOSYS;
    return false;
}

#endif

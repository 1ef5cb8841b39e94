// The sandbox of ree-run seen from inside: what it refuses and what it permits, in the thread that
// entered it and in a thread made before the sandbox was closed.
//
//     refusals cpu|vulkan|cuda      run it in an empty folder
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <asm/sockios.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "paths.h"
#include "sandbox.h"
#include "seccomp.h"
#include "test.h"

#define FAILS(call, error)                                                                         \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long result_ = (long)(call);                                                               \
        int errno_ = errno;                                                                        \
        CHECK_MSG(result_ == -1 && errno_ == (error), "%s, %s: gives %ld, errno %d (%s)", who,     \
                  #call, result_, errno_, strerror(errno_));                                       \
    } while (0)
#define WORKS(call)                                                                                \
    do {                                                                                           \
        long result_ = (long)(call);                                                               \
        CHECK_MSG(result_ >= 0, "%s, %s: errno %d (%s)", who, #call, errno, strerror(errno));      \
    } while (0)

static bool has_landlock, has_seccomp, uses_cuda;

static void make_file(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0);
}

static int open_and_close(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

static void check_files(const char *who) {
    WORKS(open_and_close("named/read.txt", O_RDONLY));
    FAILS(open_and_close("named/read.txt", O_WRONLY), EACCES);
    FAILS(open_and_close("named/beside.txt", O_RDONLY), EACCES);
    FAILS(open_and_close("other/secret.txt", O_RDONLY), EACCES);
    FAILS(open_and_close("other/secret.txt", O_WRONLY), EACCES);
    FAILS(open_and_close("other/secret.txt", O_WRONLY | O_TRUNC), EACCES);
    FAILS(open_and_close("other", O_RDONLY | O_DIRECTORY), EACCES);
    FAILS(open_and_close("other/new.txt", O_CREAT | O_WRONLY), EACCES);
    FAILS(open_and_close("home/.ssh/key", O_RDONLY), EACCES);
    WORKS(open_and_close("home/model.onnx", O_RDONLY));
    WORKS(open_and_close("home/weights/data.bin", O_RDONLY));
    // Links in a model's folder: to a file of a model, to a hidden file; a blob folder that is a
    // link.
    WORKS(open_and_close("home/plain.json", O_RDONLY));
    FAILS(open_and_close("home/hidden.json", O_RDONLY), EACCES);
    FAILS(open_and_close("home/.ssh/key.json", O_RDONLY), EACCES);
    WORKS(open_and_close("hub/blobs/b", O_RDONLY));
    FAILS(open_and_close("liar/blobs/secret.txt", O_RDONLY), EACCES);
    FAILS(unlink("other/secret.txt"), EACCES);
    FAILS(mkdir("other/folder", 0700), EACCES);
    FAILS(symlink("secret.txt", "other/link"), EACCES);
    // Landlock 1 refuses every move to another folder, with EXDEV.
    CHECK(rename("other/secret.txt", "out/secret.txt") != 0 && (errno == EACCES || errno == EXDEV));
    CHECK(link("other/secret.txt", "out/secret.txt") != 0 && (errno == EACCES || errno == EXDEV));
    FAILS(open_and_close("/proc/1/mem", O_RDONLY), EACCES);
    // Outputs: files in the output folder can be made, replaced and removed.
    WORKS(open_and_close("out/new.txt", O_CREAT | O_WRONLY));
    WORKS(rename("out/new.txt", "out/newer.txt"));
    WORKS(unlink("out/newer.txt"));
    FAILS(symlink("x", "out/link"), EACCES);
    WORKS(mkdir("made/below/more", 0700));
    WORKS(rmdir("made/below/more"));
    // Files that drivers and libraries use.
    WORKS(open_and_close("/proc/self/status", O_RDONLY));
    WORKS(open_and_close("/dev/null", O_WRONLY));
    WORKS(open_and_close("/dev/urandom", O_RDONLY));
    WORKS(open_and_close("/usr", O_RDONLY | O_DIRECTORY));
}

// With CUDA, a thread's files in /proc can be written, because the driver names its threads there
// (SECURITY.md). The files of the process itself and of other processes cannot be written.
static void check_thread_names(const char *who) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)syscall(SYS_gettid));
    if (uses_cuda)
        WORKS(open_and_close(path, O_CREAT | O_WRONLY | O_TRUNC));
    else
        FAILS(open_and_close(path, O_CREAT | O_WRONLY | O_TRUNC), EACCES);
    snprintf(path, sizeof path, "/proc/self/task/%ld/oom_score_adj", (long)syscall(SYS_gettid));
    if (uses_cuda)
        WORKS(open_and_close(path, O_WRONLY));
    else
        FAILS(open_and_close(path, O_WRONLY), EACCES);
    FAILS(open_and_close("/proc/self/comm", O_WRONLY), EACCES);
    FAILS(open_and_close("/proc/self/oom_score_adj", O_WRONLY), EACCES);
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)getppid());
    FAILS(open_and_close(path, O_WRONLY), EACCES);
}

static int regular_file; // opened before the sandbox

// Calls that a system may refuse to an ordinary user, or to a container. Their arguments are such
// that nothing happens where they are allowed; most then fail with another error than EPERM.
#define PERHAPS_REFUSED(X)                                                                         \
    X(socket(AF_PACKET, SOCK_RAW, 0))                                                              \
    X(mount(nowhere, nowhere, nowhere, 0, nowhere))                                                \
    X(umount2("other", 0x4000))                                                                    \
    X(chroot("missing"))                                                                           \
    X(unshare(CLONE_NEWUSER | 1))                                                                  \
    X(syscall(SYS_bpf, BPF_MAP_CREATE, &bpf, sizeof bpf))                                          \
    X(syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0))                                           \
    X(syscall(SYS_userfaultfd, 0))                                                                 \
    X(syscall(SYS_keyctl, 0, 0, 0, 0, 0))                                                          \
    X(syscall(425, 1, memory))        /* io_uring_setup */                                         \
    X(syscall(428, AT_FDCWD, ".", 0)) /* open_tree */                                              \
    X(syscall(SYS_init_module, memory, 1, ""))                                                     \
    X(syscall(SYS_kexec_load, 0, 0, NULL, 0x8000))
#define ARGUMENTS                                                                                  \
    const char *const nowhere = (const char *)1;                                                   \
    char memory[256] = {0};                                                                        \
    union bpf_attr bpf = {.map_type = BPF_MAP_TYPE_ARRAY};                                         \
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf}

static const char *refused_before[32];
static size_t n_refused_before;

// Notes the calls that fail with EPERM before the sandbox is entered: they show nothing about it.
static void note_refused(void) {
    ARGUMENTS;
    long result;
#define NOTE(...)                                                                                  \
    result = __VA_ARGS__;                                                                          \
    if (result >= 0) close((int)result);                                                           \
    if (result == -1 && errno == EPERM) refused_before[n_refused_before++] = #__VA_ARGS__;
    PERHAPS_REFUSED(NOTE)
#undef NOTE
}

static void check_calls(const char *who) {
    static char program[] = "/bin/true";
    char *const arguments[] = {program, NULL};
    char buffer[8];
    struct iovec here = {buffer, sizeof buffer}, there = {buffer, sizeof buffer};
    ARGUMENTS;
#define REFUSED(...) FAILS(__VA_ARGS__, EPERM);
    PERHAPS_REFUSED(REFUSED)
#undef REFUSED
    FAILS(execve(program, arguments, NULL), EPERM);
    FAILS(execveat(AT_FDCWD, program, arguments, NULL, 0), EPERM);
    if (!SECCOMP_ALLOWS_LEAK_CHECK) FAILS(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
    FAILS(process_vm_readv(getpid(), &here, 1, &there, 1, 0), EPERM);
    FAILS(process_vm_writev(getpid(), &here, 1, &there, 1, 0), EPERM);
    FAILS(socket(AF_INET, SOCK_STREAM, 0), EPERM);
    FAILS(socket(AF_INET, SOCK_DGRAM, 0), EPERM);
    FAILS(socket(AF_INET6, SOCK_STREAM, 0), EPERM);
    FAILS(setns(0, 0), EPERM);
    FAILS(setuid(getuid()), EPERM);
    FAILS(syscall(SYS_setresgid, -1, -1, -1), EPERM);
    FAILS(shmget(IPC_PRIVATE, 4096, 0600), EPERM);
    FAILS(semget(IPC_PRIVATE, 1, 0600), EPERM);
    FAILS(msgget(IPC_PRIVATE, 0600), EPERM);
    FAILS(syscall(SYS_mq_unlink, "none"), EPERM);
    FAILS(fcntl(STDIN_FILENO, F_SETOWN, getppid()), EPERM);
    FAILS(fcntl(STDIN_FILENO, F_SETSIG, SIGKILL), EPERM);
    int owner = getppid();
    FAILS(ioctl(STDIN_FILENO, FIOSETOWN, &owner), EPERM);
    FAILS(fsetxattr(regular_file, "user.x", "", 0, 0), EPERM);
    FAILS(chmod("other/secret.txt", 0777), EPERM);
    FAILS(chown("other/secret.txt", getuid(), getgid()), EPERM);
    FAILS(truncate("other/secret.txt", 0), EPERM);
    FAILS(ioctl(STDIN_FILENO, TIOCSTI, buffer), EPERM);
    FAILS(syscall(435, NULL, 0), ENOSYS); // clone3
    FAILS(syscall(100000), ENOSYS);       // a call number that does not exist yet
#ifdef __x86_64__
    FAILS(syscall(0x40000000 | 39), EPERM); // getpid of the x32 ABI
#endif
}

#ifdef __x86_64__
static sigjmp_buf no_i386;
static void on_fault(int signal_number) {
    (void)signal_number;
    siglongjmp(no_i386, 1);
}

// Calls getpid by its i386 number. Kernels without i386 emulation raise a signal.
static void check_i386(const char *who) {
    static volatile int result; // volatile: siglongjmp may lose a value in a register
    struct sigaction action = {.sa_handler = on_fault}, before;
    result = -EPERM;
    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(no_i386, 1) == 0) {
        int got;
        __asm__ volatile("int $0x80" : "=a"(got) : "a"(20));
        result = got;
    }
    sigaction(SIGSEGV, &before, NULL);
    CHECK_MSG(result == -EPERM, "%s: a call by the numbers of i386 gives %d", who, result);
}
#endif

static void *nothing(void *unused) {
    return unused;
}

static void check_closed(const char *who) {
    pthread_t thread;
    FAILS(socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
    FAILS(socket(AF_NETLINK, SOCK_RAW, 0), EPERM);
    if (!SECCOMP_ALLOWS_LEAK_CHECK) {
        FAILS(fork(), EPERM);
        FAILS(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), EPERM);
    }
    FAILS(kill(getppid(), 0), EPERM);
    FAILS(kill(-1, 0), EPERM);
    WORKS(kill(getpid(), 0));
    struct rlimit limit;
    FAILS(syscall(SYS_tkill, getppid(), 0), EPERM);
    FAILS(prlimit(getppid(), RLIMIT_CORE, NULL, &limit), EPERM);
    WORKS(prlimit(0, RLIMIT_CORE, NULL, &limit));
    FAILS(setpriority(PRIO_PROCESS, (id_t)getppid(), 19), EPERM);
    FAILS(sched_setscheduler(getppid(), SCHED_BATCH, &(struct sched_param){0}), EPERM);
    CHECK_MSG(pthread_create(&thread, NULL, nothing, NULL) == 0, "%s: threads can be made", who);
    pthread_join(thread, NULL);
#ifdef __x86_64__
    check_i386(who);
#endif
}

static void check_all(const char *who) {
    if (has_landlock) check_files(who);
    if (has_landlock) check_thread_names(who);
    if (has_seccomp) check_calls(who);
    if (has_seccomp) check_closed(who);
}

// A thread made before the sandbox is closed, as drivers make them.
static pthread_barrier_t closed;

static void *other_thread(void *unused) {
    pthread_barrier_wait(&closed);
    check_all("a thread from before");
    return unused;
}

static void check_before(const char *who) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    WORKS(fd);
    close(fd);
    FAILS(socket(AF_INET, SOCK_STREAM, 0), EPERM);
    pid_t child = fork();
    if (child == 0) _exit(open_and_close("other/secret.txt", O_RDONLY) == 0);
    int status = -1;
    WORKS(child);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(!has_landlock || status == 0, "a child is held by the same rules");
}

static void make_files(void) {
    static const char *const folders[] = {"named",
                                          "other",
                                          "out",
                                          "home",
                                          "home/.ssh",
                                          "home/weights",
                                          "cache",
                                          "hub",
                                          "hub/blobs",
                                          "hub/snapshots",
                                          "hub/snapshots/1",
                                          "liar",
                                          "liar/snapshots",
                                          "liar/snapshots/1"};
    static const char *const files[] = {"named/read.txt",
                                        "named/beside.txt",
                                        "other/secret.txt",
                                        "home/.ssh/key",
                                        "home/model.onnx",
                                        "home/weights/data.bin",
                                        "home/.ssh/key.json",
                                        "home/weights/vocab.json",
                                        "hub/blobs/b",
                                        "hub/snapshots/1/model.onnx",
                                        "liar/snapshots/1/model.onnx"};
    static const char *const links[][2] = {{".ssh/key.json", "home/hidden.json"},
                                           {"weights/vocab.json", "home/plain.json"},
                                           {"../other", "liar/blobs"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        REQUIRE(mkdir(folders[i], 0700) == 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(files[i]);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        REQUIRE(symlink(links[i][0], links[i][1]) == 0);
    char *here = realpath(".", NULL), path[4200];
    REQUIRE(here != NULL);
    snprintf(path, sizeof path, "%s/home", here);
    setenv("HOME", path, 1);
    snprintf(path, sizeof path, "%s/cache", here);
    setenv("XDG_CACHE_HOME", path, 1);
    free(here);
}

int main(int argc, char **argv) {
    struct ree_error err;
    pthread_t thread;
    REQUIRE(argc == 2);
    make_files();
    cli_path_add(CLI_READS, "named/read.txt");
    cli_path_add(CLI_READS_BESIDE, "home/model.onnx");
    cli_path_add(CLI_READS_BESIDE, "hub/snapshots/1/model.onnx");
    cli_path_add(CLI_READS_BESIDE, "liar/snapshots/1/model.onnx");
    cli_path_add(CLI_WRITES, "out/new.txt");
    cli_path_add(CLI_FILLS, "made/below");
    regular_file = open("named/read.txt", O_RDWR | O_CLOEXEC);
    REQUIRE(regular_file >= 0);
    note_refused();
    REQUIRE(sandbox_enter(sandbox_uses(argv[1])) == 0);
    printf("%s\n", sandbox_text());
    for (size_t i = 0; i < n_refused_before; i++)
        printf("refused without the sandbox too: %s\n", refused_before[i]);
    has_landlock = strncmp(sandbox_text(), "landlock", 8) == 0;
    has_seccomp = strstr(sandbox_text(), "no seccomp") == NULL && strstr(sandbox_text(), "seccomp");
    if (!has_landlock && !has_seccomp) return test_skip("a kernel without either");
    bool uses_driver = strcmp(argv[1], "cpu") != 0;
    uses_cuda = strcmp(argv[1], "cuda") == 0;
    if (uses_driver) check_before("before drivers are open");
    REQUIRE(pthread_barrier_init(&closed, NULL, 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    REQUIRE(sandbox_close(&err) == REE_OK);
    check_all("the thread that entered");
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);
    CHECK(access("other/secret.txt", R_OK) == 0); // the refused calls did not remove it
    sandbox_remove_unused();
    CHECK(!has_landlock || access("made", F_OK) != 0);
    return test_finish();
}

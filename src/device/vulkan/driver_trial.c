// Tries an unknown driver in a child process. A driver's compiler may crash on the first module it
// receives. The calling process must survive that and be able to use another device.
#include "base/sha256.h"
#include "device/vulkan/vulkan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Time limit for the first open. SwiftShader needs seconds. A driver that exceeds the limit is
// considered to hang.
#define PATIENCE_MS 300000
#define KILL_MS 5000 // wait for a killed process to end
#define MAX_MET 32

enum outcome { CAME_BACK, CRASHED, STUCK };
static const char alive = 'a'; // the byte that the child writes

// Keys of the drivers that went through the probe in this process, for callers that keep no record.
static pthread_mutex_t met_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char met[MAX_MET][REE_SHA256_SIZE];
static size_t n_met;

// Computes the driver's key in the record, different from the pipelines' digests.
static void key_of(const struct ree_vk *vk, unsigned char key[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-vulkan-met/1");
    memcpy(key, vk->identity, REE_SHA256_SIZE);
    if (!hasher) return;
    ree_hasher_update(hasher, vk->identity, sizeof vk->identity);
    ree_hasher_digest(hasher, key);
}

bool ree_vk_driver_is_known(const struct ree_vk *vk) {
    unsigned char key[REE_SHA256_SIZE];
    key_of(vk, key);
    bool found = ree_test_record_find(&vk->tests, key) != NULL;
    pthread_mutex_lock(&met_lock);
    for (size_t i = 0; i < n_met; i++)
        found = found || memcmp(met[i], key, sizeof key) == 0;
    pthread_mutex_unlock(&met_lock);
    return found;
}

void ree_vk_note_known_driver(struct ree_vk *vk) {
    unsigned char key[REE_SHA256_SIZE];
    if (ree_vk_driver_is_known(vk)) return;
    key_of(vk, key);
    ree_test_record_add(&vk->tests, key, REE_TEST_PASSED, NULL);
    pthread_mutex_lock(&met_lock);
    if (n_met < MAX_MET) memcpy(met[n_met++], key, sizeof key);
    pthread_mutex_unlock(&met_lock);
}

// Exit handler of the child. If a driver calls exit, the host program's atexit handlers must not
// run and its buffered streams must not be written.
static void end_now(void) {
    _exit(1);
}

// Runs in the child. A crash must end the child at once, silently and without a core dump.
static void prepare_child(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); // the parent ended before prctl
    prctl(PR_SET_DUMPABLE, 0);
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGTERM};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        signal(fatal[i], SIG_DFL);
        sigaddset(&set, fatal[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    atexit(end_now);
    // A driver's output during the probe is useless to the user and must not reach standard output.
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0) null = memfd_create("null", MFD_CLOEXEC); // a container without /dev
    if (null < 0) _exit(1);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
}

// Runs in the child; never returns. Writes one byte to `report` if the driver did not end the
// process.
static void try_device(const char *which, const struct ree_device_options *options, int report) {
    struct ree_device *device;
    struct ree_error err;
    const char *broken = ree_broken_primitive(options) ? ree_broken_primitive(options) : "";
    if (strcmp(broken, "driver") == 0) abort();
    if (strcmp(broken, "driver exit") == 0) exit(1);
    if (strcmp(broken, "driver hang") == 0) sleep(2 * PATIENCE_MS / 1000);
    if (ree_vk_open(which, options, &device, &err) == REE_OK) device->vtable->destroy(device);
    _exit(write(report, &alive, 1) == 1 ? 0 : 1);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Waits until the child writes its byte or closes its end of the pipe, which also happens when it
// ends.
static enum outcome wait_for_report(int pipe_end) {
    const int64_t deadline = now_ms() + PATIENCE_MS;
    for (;;) {
        int64_t left = deadline - now_ms();
        struct pollfd fd = {.fd = pipe_end, .events = POLLIN};
        int result = poll(&fd, 1, left > 0 ? (int)left : 0);
        if (result < 0 && errno == EINTR) continue;
        if (result <= 0) return STUCK;
        char byte = 0;
        ssize_t n = read(pipe_end, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        return n == 1 && byte == alive ? CAME_BACK : CRASHED;
    }
}

// Waits for the child to end, and describes in `out`, for a message, how it ended. If the child was
// killed, waits at most KILL_MS. The text is empty in two cases:
// - the host program ignores SIGCHLD or reaps every child, so the exit status is lost
// - the child was killed but does not end, because its thread waits in the kernel's driver
static void reap(pid_t child, bool was_killed, char *out, size_t size) {
    const int64_t deadline = now_ms() + KILL_MS;
    int status;
    pid_t reaped;
    for (;;) {
        reaped = waitpid(child, &status, was_killed ? WNOHANG : 0);
        if (reaped < 0 && errno == EINTR) continue;
        if (reaped != 0 || now_ms() >= deadline) break;
        poll(NULL, 0, 20);
    }
    out[0] = '\0';
    if (reaped != child) return;
    if (WIFSIGNALED(status))
        snprintf(out, size, " (%s)", strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, " (exit status %d)", WEXITSTATUS(status));
}

enum ree_status ree_vk_try_driver(const char *which, const struct ree_device_options *options,
                                  const char *name, void (*meanwhile)(void *user), void *user,
                                  struct ree_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return REE_OK;
    const pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        // Move the descriptor above the standard streams, because the host may have closed those.
        int report = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(ends[0]);
        if (report >= 0)
            close(ends[1]);
        else
            report = ends[1];
        prepare_child(parent);
        try_device(which, options, report);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return REE_OK;
    }
    meanwhile(user);
    enum outcome outcome = wait_for_report(ends[0]);
    close(ends[0]);
    if (outcome == STUCK) kill(child, SIGKILL);
    char how[128];
    reap(child, outcome == STUCK, how, sizeof how);
    if (outcome == STUCK)
        return ree_fail(
            err, REE_DEVICE,
            "Vulkan: the driver of '%s' did not finish the probe within %d s, so it cannot be used",
            name, PATIENCE_MS / 1000);
    if (outcome == CRASHED)
        return ree_fail(err, REE_DEVICE,
                        "Vulkan: the driver of '%s' crashed in the probe%s, so it cannot be used",
                        name, how);
    return REE_OK;
}

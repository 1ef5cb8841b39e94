// A driver that ends the process that tries it causes an error, not the end of this process,
// whatever the host program does with signals, children and its standard streams. No device may be
// open in this test: a driver that this process has already used is not tried in a child again.
#include "device/vulkan/vulkan.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ree_error err;
static pid_t self;
// Number of times that code of this program ran in a child; in shared memory.
static volatile int *in_child;

static void count_calls(void *user) {
    ++*(int *)user;
}

static bool is_refused(const char *which, const char *how) {
    struct ree_device_testing testing = {.size = sizeof testing, .break_primitive = how};
    struct ree_device_options options = {
        .size = sizeof options, .cache_dir = "", .testing = &testing};
    struct ree_device *device;
    enum ree_status status = ree_vulkan_device_open(which, &options, &device, &err);
    return status == REE_DEVICE && device == NULL && strstr(err.message, "crashed in the probe");
}

// Ways in which a driver ends its process.
static const char *const ways[] = {"driver", "driver exit"};

static void survives_crash(const char *which) {
    CHECK_MSG(is_refused(which, "driver") && strstr(err.message, strsignal(SIGABRT)), "%s",
              err.message);
    CHECK_MSG(is_refused(which, "driver exit") && strstr(err.message, "exit status 1"), "%s",
              err.message);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD); // no child is left
}

static void reap_all(int signal) {
    (void)signal;
    int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    errno = saved;
}

// The host program collects the exit status of every child.
static void survives_reaping(const char *which) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        signal(SIGCHLD, SIG_IGN);
        CHECK_MSG(is_refused(which, ways[i]), "SIGCHLD ignored, %s: %s", ways[i], err.message);
        signal(SIGCHLD, reap_all);
        CHECK_MSG(is_refused(which, ways[i]), "children reaped, %s: %s", ways[i], err.message);
    }
    signal(SIGCHLD, SIG_DFL);
}

static void note_exit(void) {
    if (getpid() != self) ++*in_child;
}

static void note_abort(int signal) {
    (void)signal;
    note_exit();
    if (getpid() != self) _exit(0);
}

// The host program's exit handlers do not run in a child, and the buffered output of its streams is
// not written twice.
static void keeps_host_out(const char *which) {
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    printf("once\n");
    signal(SIGABRT, note_abort);
    bool refused[2];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        refused[i] = is_refused(which, ways[i]);
    signal(SIGABRT, SIG_DFL);
    fflush(stdout);
    struct stat info;
    bool is_once = fstat(fileno(file), &info) == 0 && info.st_size == (off_t)strlen("once\n");
    dup2(saved, STDOUT_FILENO);
    close(saved);
    fclose(file);
    CHECK(refused[0] && refused[1]);
    CHECK(is_once);
    CHECK_MSG(*in_child == 0, "handlers of the host ran %d times", *in_child);
}

// Returns whether the process has a child that sleeps.
static bool has_sleeping_child(pid_t process) {
    char path[64], state = '\0';
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, process);
    FILE *file = fopen(path, "r");
    bool found = file && fscanf(file, "%d", &child) == 1;
    if (file) fclose(file);
    if (!found) return false;
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    file = fopen(path, "r");
    found = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file) fclose(file);
    return found && state == 'S';
}

// A child that hangs ends when the process that waits for it ends.
static void ends_with_parent(const char *which) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t parent = fork();
    REQUIRE(parent >= 0);
    if (parent == 0) {
        is_refused(which, "driver hang");
        _exit(0);
    }
    bool hangs = false; // within a minute
    for (int i = 0; i < 6000 && !hangs; i++) {
        usleep(10000);
        hangs = has_sleeping_child(parent);
    }
    CHECK(hangs);
    kill(parent, SIGKILL);
    int n_ended = 0;
    for (int i = 0; i < 100 && n_ended < 2; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            n_ended++;
        usleep(100000);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    CHECK_MSG(n_ended == 2, "%d processes ended", n_ended);
}

// A driver that works is accepted, also without standard streams, and also if no exit status is
// available.
static void passes(const char *which) {
    struct ree_device_options options = {.size = sizeof options, .cache_dir = ""};
    fflush(stdout);
    int out = dup(STDOUT_FILENO), in = dup(STDIN_FILENO), n_calls = 0;
    close(STDOUT_FILENO);
    close(STDIN_FILENO);
    enum ree_status status =
        ree_vk_try_driver(which, &options, "test", count_calls, &n_calls, &err);
    dup2(out, STDOUT_FILENO);
    dup2(in, STDIN_FILENO);
    close(out);
    close(in);
    CHECK_MSG(status == REE_OK && n_calls == 1, "without standard streams: %s", err.message);
    signal(SIGCHLD, SIG_IGN);
    struct ree_device *device;
    status = ree_vulkan_device_open(which, &options, &device, &err);
    signal(SIGCHLD, SIG_DFL);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (device) device->vtable->destroy(device);
}

int main(void) {
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    void *shared =
        mmap(NULL, sizeof *in_child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    in_child = shared;
    self = getpid();
    atexit(note_exit);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        const char *which = strchr(list[d].spec, ':') + 1;
        survives_crash(which);
        survives_reaping(which);
        keeps_host_out(which);
        ends_with_parent(which);
    }
    for (size_t d = 0; d < n_devices && d < 16; d++)
        passes(strchr(list[d].spec, ':') + 1);
    return test_finish();
}

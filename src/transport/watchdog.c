#include "transport/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// Seconds between SIGTERM and SIGKILL.
#define GRACE 5

// A process as listed in /proc.
struct process {
    pid_t pid;
    char name[32];
    // Start time: distinguishes processes that reuse a pid.
    unsigned long long started;
    char state;
};

static bool find(pid_t pid, struct process *out) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    // The text is: pid (name) state, 18 numbers, start time. The name may contain any characters.
    char *open_at = strchr(text, '('), *close_at = strrchr(text, ')');
    if (!open_at || !close_at || close_at < open_at) return false;
    *out = (struct process){.pid = pid};
    *close_at = 0;
    snprintf(out->name, sizeof out->name, "%.31s", open_at + 1);
    return sscanf(close_at + 1,
                  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%llu",
                  &out->state, &out->started) == 2;
}

static bool is_there(const struct process *p) {
    struct process now;
    return find(p->pid, &now) && now.started == p->started && now.state != 'Z';
}

static bool starts_ranks(const struct process *p) {
    static const char *const names[] = {"mpirun", "mpiexec", "orterun",
                                        "orted",  "prterun", "prted"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(p->name, names[i]) == 0) return true;
    return false;
}

// Waits for the end of the process, but not longer than `seconds`. Returns whether it has ended.
static bool wait_for_end(const struct process *p, double seconds) {
    for (double waited = 0; waited < seconds; waited += 0.1) {
        if (!is_there(p)) return true;
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return !is_there(p);
}

static void say(const struct process *starter) {
    static const char text[] = "ree-run: a rank has ended, but mpirun does not end by itself\n";
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/2", (long)starter->pid);
    int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || write(fd, text, sizeof text - 1) < 0) return;
    close(fd);
}

static void guard(int fd, const struct process *starter, double seconds) {
    char byte;
    ssize_t n;
    // mpirun kills the processes in a rank's group and session, and waits until a rank's output is
    // closed. So leave both and close the inherited files.
    setsid();
    prctl(PR_SET_NAME, "ree-watchdog");
    int limit = (int)sysconf(_SC_OPEN_MAX);
    for (int other = 0; other < (limit > 0 && limit < 4096 ? limit : 4096); other++)
        if (other != fd) close(other);
    signal(SIGPIPE, SIG_IGN);
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1 || wait_for_end(starter, seconds)) return;
    say(starter);
    kill(starter->pid, SIGTERM);
    if (!wait_for_end(starter, GRACE)) kill(starter->pid, SIGKILL);
}

struct ree_watchdog ree_watchdog_start(double seconds) {
    const struct ree_watchdog none = {.fd = -1};
    struct process starter;
    int ends[2];
    if (!find(getppid(), &starter) || !starts_ranks(&starter) || pipe2(ends, O_CLOEXEC) != 0)
        return none;
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        guard(ends[0], &starter, seconds);
        _exit(0);
    }
    close(ends[0]);
    if (child > 0) return (struct ree_watchdog){ends[1], child};
    close(ends[1]);
    return none;
}

// The watchdog ends a process called mpirun that does not end after a rank was killed. It does not
// end mpirun if the rank has ended well.
#include "transport/watchdog.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "test.h"

#define SECONDS 0.5
#define PATIENCE 120 // time limit of this test in seconds, for a busy machine

static void sleep_seconds(double s) {
    nanosleep(&(struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

enum ending { KILLED, WELL };

// The rank: starts its watchdog and ends. Writes to `to` whether it has a watchdog.
static void be_rank(enum ending ending, int to) {
    struct ree_watchdog watchdog = ree_watchdog_start(SECONDS);
    char has_one = watchdog.fd >= 0;
    if (write(to, &has_one, 1) != 1) _exit(1);
    if (ending == WELL && has_one) {
        if (write(watchdog.fd, REE_WATCHDOG_DONE, 1) != 1) _exit(1);
        waitpid(watchdog.pid, NULL, 0);
        _exit(0);
    }
    kill(getpid(), SIGKILL);
}

// Starts a process that hangs after its rank has ended.
static pid_t start(const char *name, bool is_deaf, enum ending ending, bool *out_has_one) {
    int ends[2];
    char has_one = 0;
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_NAME, name);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (is_deaf) signal(SIGTERM, SIG_IGN);
        if (fork() == 0) be_rank(ending, ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    CHECK(read(ends[0], &has_one, 1) == 1);
    close(ends[0]);
    *out_has_one = has_one;
    return pid;
}

// Returns the signal that ended the process within `seconds`; 0 if it still exists.
static int wait_for(pid_t pid, double seconds) {
    int code = 0;
    for (double waited = 0; waited < seconds; waited += 0.05) {
        if (waitpid(pid, &code, WNOHANG) == pid) return WIFSIGNALED(code) ? WTERMSIG(code) : -1;
        sleep_seconds(0.05);
    }
    return 0;
}

int main(void) {
    bool has_one;
    CHECK(wait_for(start("mpirun", false, KILLED, &has_one), PATIENCE) == SIGTERM && has_one);
    CHECK(wait_for(start("orted", true, KILLED, &has_one), PATIENCE) == SIGKILL && has_one);
    pid_t pid = start("mpirun", false, WELL, &has_one);
    CHECK(wait_for(pid, 6 * SECONDS) == 0 && has_one);
    kill(pid, SIGKILL);
    pid = start("another", false, KILLED, &has_one);
    CHECK(wait_for(pid, 6 * SECONDS) == 0 && !has_one);
    kill(pid, SIGKILL);
    return test_finish();
}

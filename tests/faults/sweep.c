// Runs ree-run once for each point, with the call at that point failing. Each run is a child forked
// from a process that has run nothing yet, which is several times faster than starting the program
// again.
//
//     sweep FOLDER KIND MODE FIRST STEP LAST -- ARGUMENTS OF ree-run
//
// KIND is memory, json, write, read or short (points.h), or write-full: write with ENOSPC instead
// of EIO. MODE is "one", "onward", or "show"; "show" is "one" and prints the stack of the failing
// call. LAST -1 means up to the last point that is reached. Point K runs in FOLDER/K, a copy of
// FOLDER/before if that exists, with standard output and error in the files "stdout" and "stderr"
// of FOLDER/K.out. For each point it prints a line:
//
//     K POINTS STATUS      POINTS: number of points passed; STATUS: exit code, or -SIGNAL
//
// Point 0 is a run without a fault; it is the first run if FIRST is 0.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "points.h"

#define LIMIT_S 60 // time limit of a run in seconds

int __real_main(int argc, char **argv); // ree-run's main
int __wrap_main(int argc, char **argv);

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "sweep: %s: %s\n", what, strerror(errno));
    exit(2);
}

// The calls in this file are points too, but points count only after fault_begin.
static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 16];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    must(in >= 0 && out >= 0, to);
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) != 0;)
        must(n > 0 && write(out, bytes, (size_t)n) == n, to);
    close(in);
    close(out);
}

static void copy_folder(const char *from, const char *to) {
    DIR *folder = opendir(from);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char source[4096], target[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        copy_file(source, target);
    }
    if (folder) closedir(folder);
}

static void redirect(int fd, const char *folder, const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, flags, 0600);
    must(file >= 0 && dup2(file, fd) == fd, path);
    close(file);
}

// Runs ree-run in FOLDER/K with the plan. Does not return.
static void run(const struct fault_plan *plan, const char *folder, long *counter, int argc,
                char **argv) {
    char before[4096], own[4096], out[4096];
    snprintf(before, sizeof before, "%s/before", folder);
    snprintf(own, sizeof own, "%s/%ld", folder, plan->at);
    snprintf(out, sizeof out, "%s/%ld.out", folder, plan->at);
    must(mkdir(own, 0700) == 0, own);
    must(mkdir(out, 0700) == 0, out);
    copy_folder(before, own);
    must(chdir(own) == 0, own);
    redirect(STDIN_FILENO, "/dev", "null", O_RDONLY);
    redirect(STDERR_FILENO, out, "stderr", O_WRONLY | O_CREAT | O_EXCL);
    redirect(STDOUT_FILENO, out, "stdout", O_WRONLY | O_CREAT | O_EXCL);
    if (getenv("REE_FAULTS_COLD")) setenv("XDG_CACHE_HOME", out, 1);
    alarm(LIMIT_S);
    fault_begin(plan, counter);
    exit(__real_main(argc, argv));
}

static const char *const kinds[] = {"memory", "json", "write", "read", "short", "write-full"};

static int usage(void) {
    fprintf(stderr,
            "sweep FOLDER memory|json|write|write-full|read|short one|onward|show FIRST STEP LAST"
            " -- ARGUMENTS\n");
    return 2;
}

int __wrap_main(int argc, char **argv) {
    if (argc < 8 || strcmp(argv[7], "--") != 0) return usage();
    char *folder = realpath(argv[1], NULL);
    must(folder != NULL, argv[1]);
    size_t kind = 0;
    while (kind < 6 && strcmp(argv[2], kinds[kind]) != 0)
        kind++;
    if (kind == 6) return usage();
    struct fault_plan plan = {.kind = kind == 5 ? FAULT_WRITE : (enum fault_kind)kind,
                              .onward = strcmp(argv[3], "onward") == 0,
                              .shows = strcmp(argv[3], "show") == 0,
                              .error = kind == 5 ? ENOSPC : EIO};
    long first = atol(argv[4]), step = atol(argv[5]), last = atol(argv[6]);
    if (first < 0 || step < 1) return usage();
    long *counter =
        mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(counter != MAP_FAILED, "mmap");
    argv[7] = argv[0];
    for (plan.at = first; last < 0 || plan.at <= last; plan.at += step) {
        int status = 0;
        *counter = 0;
        pid_t child = fork();
        must(child >= 0, "fork");
        if (child == 0) run(&plan, folder, counter, argc - 7, argv + 7);
        must(waitpid(child, &status, 0) == child, "waitpid");
        printf("%ld %ld %d\n", plan.at, *counter,
               WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        fflush(stdout);
        if (plan.at && *counter < plan.at) break; // the run ended before this point
    }
    free(folder);
    return 0;
}

#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "status.h"
#include "cli.h"
#include "driver_paths.h"
#include "landlock.h"
#include "paths.h"
#include "seccomp.h"

#define READS (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define OPENS (READS | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV)
#define WRITES                                                                                     \
    (READS | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE)
#define FILLS (WRITES | LANDLOCK_MAKE_DIR)
#define CHANGES (FILLS | LANDLOCK_REMOVE_DIR | LANDLOCK_REFER)

#define MAX_MADE 64

// One sandbox per process, hence the statics.
static char text[64] = "none";
static bool has_landlock, has_seccomp, is_closed;
static char *made[MAX_MADE]; // created folders, parents before children
static size_t n_made;

struct build {
    struct landlock_rules rules;
    // Resolved paths of the user's home: by HOME, and by the system's user database. "": unknown.
    char homes[2][4096];
    int error; // errno of the first rule that failed; 0: none
};

static void allow(struct build *b, const char *path, uint64_t access) {
    if (!landlock_allow(&b->rules, path, access) && !b->error) b->error = errno;
}

// Records that memory ran out: a missing rule would otherwise show later as a refused file.
static void lack_memory(struct build *b) {
    if (!b->error) b->error = ENOMEM;
}

// Returns realpath(path), to be released with free. NULL: the path does not resolve.
static char *real_path(struct build *b, const char *path) {
    char *whole = realpath(path, NULL);
    if (!whole && errno == ENOMEM) lack_memory(b);
    return whole;
}

// Returns folder/name, to be released with free. NULL: lack_memory was called.
static char *join(struct build *b, const char *folder, const char *name) {
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) >= 0) return path;
    lack_memory(b);
    return NULL;
}

// Returns opendir(path). NULL: the path is not a folder, or the user may not list it.
static DIR *open_folder(struct build *b, const char *path) {
    DIR *dir = opendir(path);
    if (!dir && errno == ENOMEM) lack_memory(b);
    return dir;
}

// Created folders

static void remember(const char *path) {
    char *copy = n_made < MAX_MADE ? strdup(path) : NULL;
    if (copy) made[n_made++] = copy;
}

void sandbox_remove_unused(void) {
    for (size_t i = n_made; i-- > 0;)
        rmdir(made[i]); // fails if the folder is not empty
}

// Creates the folder and its missing parents. Created folders may be removed at the end. Returns
// whether the folder exists then.
static bool make(struct build *b, const char *path, mode_t mode) {
    struct stat info;
    char *copy = strdup(path);
    if (!copy) {
        lack_memory(b);
        return false;
    }
    for (char *at = copy; *at; at++) {
        bool is_end = !at[1] && *at != '/';
        if ((*at != '/' || at == copy) && !is_end) continue;
        if (!is_end) *at = 0;
        if (mkdir(copy, mode) == 0) {
            remember(copy);
            char *slash = strrchr(copy, '/');
            if (slash && slash != copy) *slash = 0;
            // Allows removing empty child folders, nothing else.
            allow(b, slash ? (slash == copy ? "/" : copy) : ".", LANDLOCK_REMOVE_DIR);
            if (slash && slash != copy) *slash = '/';
        }
        if (!is_end) *at = '/';
    }
    bool ok = stat(copy, &info) == 0 && S_ISDIR(info.st_mode);
    free(copy);
    return ok;
}

// For driver_paths.h

static void may_read(void *user, const char *path) {
    allow(user, path, READS);
}

static void may_open(void *user, const char *path) {
    allow(user, path, OPENS);
}

static void may_change(void *user, const char *path) {
    allow(user, path, CHANGES);
}

static bool make_for_owner(void *user, const char *path) {
    return make(user, path, 0700);
}

// Paths of the command line

// True if one of the user's homes is `path` or below it.
static bool holds_home(const struct build *b, const char *path) {
    size_t n = strlen(path);
    if (n == 1) n = 0; // "/"
    for (size_t i = 0; i < 2; i++) {
        const char *home = b->homes[i];
        if (home[0] && strncmp(home, path, n) == 0 && (!home[n] || home[n] == '/')) return true;
    }
    return false;
}

static void find_homes(struct build *b) {
    const struct passwd *user = getpwuid(getuid());
    // A service may have no HOME, or that of another user.
    const char *names[2] = {getenv("HOME"), user ? user->pw_dir : NULL};
    for (size_t i = 0; i < 2; i++) {
        char *home = names[i] && names[i][0] ? real_path(b, names[i]) : NULL;
        if (home) snprintf(b->homes[i], sizeof b->homes[i], "%s", home);
        free(home);
    }
}

// Allows a folder with everything in it. In the user's home and its parents only entries that are
// not hidden are allowed: a model downloaded to the home must not expose keys and passwords.
static void allow_folder(struct build *b, const char *path) {
    char *whole = real_path(b, path);
    if (!whole) return;
    DIR *dir = holds_home(b, whole) ? open_folder(b, whole) : NULL;
    if (!dir) allow(b, whole, READS);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        char *name = entry->d_name[0] == '.' ? NULL : join(b, whole, entry->d_name);
        // d_type is not used: some file systems leave it unknown, and a link would be followed.
        if (name && lstat(name, &info) == 0 && !S_ISLNK(info.st_mode)) allow_folder(b, name);
        free(name);
    }
    if (dir) closedir(dir);
    free(whole);
}

// Returns whether an absolute path has the name of a model's file. A model's folder may contain
// links to files elsewhere. Links to weights may leave the folder only in a Hugging Face cache
// (graph/onnx/hub_cache.c); other files are read wherever links lead. A link is allowed only if its
// target has the name of a model's file, and if no hidden folder is on the way from the model's
// folder to it: a link to a key in a stranger's folder must not expose the key.
static bool is_of_model(const char *path) {
    static const char *const ends[] = {".json", ".onnx", ".txt", ".model", ".tiktoken", ".jinja"};
    const char *name = strrchr(path, '/') + 1;
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t size = strlen(ends[i]);
        if (name[0] != '.' && n > size && strcmp(name + n - size, ends[i]) == 0) return true;
    }
    return false;
}

// True if `path` has a hidden component after those that it shares with `folder`. Both paths must
// be resolved.
static bool is_hidden_from(const char *folder, const char *path) {
    size_t i = 0, same = 0;
    for (; folder[i] && folder[i] == path[i]; i++)
        if (path[i] == '/') same = i;
    if (!folder[i] && path[i] == '/') same = i;
    return strstr(path + same, "/.") != NULL;
}

// Allows the blobs of a Hugging Face cache, a folder next to `snapshots`. A link of that name is
// not followed: it could lead anywhere.
static void allow_blobs(struct build *b, const char *folder) {
    char *above = strdup(folder), *slash = above ? strrchr(above, '/') : NULL;
    if (!above) lack_memory(b);
    if (slash) *slash = 0;
    slash = slash ? strrchr(above, '/') : NULL;
    if (slash && strcmp(slash, "/snapshots") == 0) {
        struct stat info;
        *slash = 0;
        char *blobs = join(b, above, "blobs");
        if (blobs && lstat(blobs, &info) == 0 && S_ISDIR(info.st_mode)) allow_folder(b, blobs);
        free(blobs);
    }
    free(above);
}

static void allow_links(struct build *b, const char *path) {
    char *folder = real_path(b, path);
    DIR *dir = folder ? open_folder(b, folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        char *name = join(b, folder, entry->d_name), *whole = NULL;
        if (name && lstat(name, &info) == 0 && S_ISLNK(info.st_mode)) whole = real_path(b, name);
        if (whole && stat(whole, &info) == 0 && S_ISREG(info.st_mode) && is_of_model(whole) &&
            !is_hidden_from(folder, whole))
            allow(b, whole, READS);
        free(whole);
        free(name);
    }
    if (dir) closedir(dir);
    if (folder) allow_blobs(b, folder);
    free(folder);
}

// Returns the folder of a path, to be released with free. NULL: lack_memory was called.
static char *folder_of(struct build *b, const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder) lack_memory(b);
    return folder;
}

static void allow_beside(struct build *b, const char *path) {
    struct stat info;
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    char *above = is_folder ? NULL : folder_of(b, path);
    const char *folder = is_folder ? path : above;
    if (!is_folder) allow(b, path, READS); // allows the target of a link
    if (folder) {
        allow_folder(b, folder);
        allow_links(b, folder);
    }
    free(above);
}

static void allow_path(struct build *b, const struct cli_path *path) {
    char *folder = NULL;
    switch (path->kind) {
    case CLI_NO_PATH: break;
    case CLI_READS: allow(b, path->path, READS); break;
    case CLI_READS_BESIDE: allow_beside(b, path->path); break;
    case CLI_WRITES:
        folder = folder_of(b, path->path);
        if (folder) allow(b, folder, WRITES);
        break;
    case CLI_FILLS:
        if (make(b, path->path, 0777)) allow(b, path->path, FILLS);
        break;
    }
    free(folder);
}

// Steps that must precede the restrictions

// Starts nvidia-modprobe, which has more rights than the user. NVIDIA's driver starts it if the
// device nodes are missing after a boot, which the driver could not do in the sandbox.
static void make_nvidia_nodes(void) {
    static char program[] = "/usr/bin/nvidia-modprobe", minor[] = "-c", zero[] = "0", uvm[] = "-u";
    char *const arguments[] = {program, minor, zero, uvm, NULL};
    char *const environment[] = {NULL};
    pid_t child;
    if (access("/dev/nvidia-uvm", F_OK) == 0 || access(program, X_OK) != 0) return;
    if (posix_spawn(&child, program, NULL, NULL, arguments, environment) == 0)
        waitpid(child, NULL, 0);
}

// Starts OpenMP and allows its file. LLVM's OpenMP creates a shared memory file when it is first
// used, ends the process if it cannot, and removes the file at the end. Version 14 does the same in
// a child process when it is forked, and drivers of GPUs are tried in child processes.
static void start_openmp(struct build *b, unsigned uses) {
    char path[96];
    if ((uses & SANDBOX_NO_OPENMP) || omp_get_max_threads() < 1) return;
    snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%u", (int)getpid(),
             (unsigned)getuid());
    if (access(path, F_OK) != 0) return;
    allow(b, path, LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE);
    allow(b, "/dev/shm", LANDLOCK_REMOVE_FILE);
    if (uses & (SANDBOX_VULKAN | SANDBOX_CUDA)) allow(b, "/dev/shm", WRITES & ~LANDLOCK_READ_DIR);
}

// Lets CUDA's driver name its threads: it writes their names to /proc/self/task, and fails if it
// cannot. A rule is for an inode, and procfs may give the folder a new one as soon as no process
// has it open, so it stays open.
static void allow_thread_names(struct build *b) {
    static int folder = -1;
    if (folder < 0) folder = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) allow(b, "/proc/self/task", LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE);
}

unsigned sandbox_uses(const char *devices) {
    unsigned uses = SANDBOX_DEVICE;
    if (devices && strstr(devices, "vulkan")) uses |= SANDBOX_VULKAN;
    if (devices && strstr(devices, "cuda")) uses |= SANDBOX_CUDA;
    return uses;
}

static void build_rules(struct build *b, unsigned uses) {
    const struct driver_paths drivers = {may_read, may_open, may_change, make_for_owner, b};
    const struct cli_path *paths;
    size_t n = cli_paths(&paths);
    find_homes(b);
    driver_paths_of_system(&drivers);
    if (uses & SANDBOX_DEVICE) driver_paths_of_ree(&drivers);
    if (uses & SANDBOX_VULKAN) driver_paths_of_vulkan(&drivers);
    if (uses & SANDBOX_CUDA) {
        driver_paths_of_cuda(&drivers);
        allow_thread_names(b);
    }
    start_openmp(b, uses);
    for (size_t i = 0; i < n; i++)
        allow_path(b, &paths[i]);
}

// Entering

// True if this kernel or container lacks the system call.
static bool is_missing(int error) {
    return error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

static void describe(const struct landlock_rules *rules) {
    const char *why = rules->error == ENOSYS       ? "kernel without landlock"
                      : rules->error == EOPNOTSUPP ? "landlock is switched off"
                                                   : "landlock is not allowed here";
    if (has_landlock)
        snprintf(text, sizeof text, "landlock %d%s", rules->abi,
                 has_seccomp ? ", seccomp" : " (no seccomp)");
    else
        snprintf(text, sizeof text, "%s (%s)", has_seccomp ? "seccomp" : "none", why);
}

static int refused(const char *what, int error) {
    cli_error("the sandbox: %s: %s (run without it: --no-sandbox)", what, strerror(error));
    return CLI_FAILED;
}

int sandbox_enter(unsigned uses) {
    struct build b = {0};
    if (uses & SANDBOX_CUDA) make_nvidia_nodes();
    has_landlock = landlock_begin(&b.rules);
    if (!has_landlock && (b.rules.abi || !is_missing(b.rules.error)))
        return refused("Landlock", b.rules.error);
    if (has_landlock) build_rules(&b, uses);
    if (b.error) return refused("a Landlock rule", b.error);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("no_new_privs", errno);
    if (has_landlock && !landlock_enter(&b.rules)) return refused("Landlock", errno);
    is_closed = !(uses & (SANDBOX_VULKAN | SANDBOX_CUDA));
    has_seccomp = seccomp_enter(is_closed ? SECCOMP_CLOSED : SECCOMP_BEFORE_DRIVERS);
    if (!has_seccomp && !is_missing(errno)) return refused("seccomp", errno);
    describe(&b.rules);
    return 0;
}

enum ree_status sandbox_close(struct ree_error *err) {
    if (!has_seccomp || is_closed) return REE_OK;
    is_closed = true;
    if (seccomp_enter(SECCOMP_CLOSED)) return REE_OK;
    return set_error(err, REE_INTERNAL,
                     "the sandbox: seccomp for all threads: %s (run without it: --no-sandbox)",
                     strerror(errno));
}

void sandbox_skip(const char *why) {
    snprintf(text, sizeof text, "none (%s)", why);
}

const char *sandbox_text(void) {
    return text;
}

const char *sandbox_hint(const char *message) {
    bool is_refusal = has_landlock && strstr(message, strerror(EACCES));
    return is_refusal ? " (the sandbox refuses files that are not on the command line; run without "
                        "it: --no-sandbox)"
                      : "";
}

// Receipt and key files: a file exists completely or not at all, whatever happens while it is
// written.
#include "base/file.h"
#include "receipt/receipt.h"

#include "examples.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/ree_receipt_files.XXXXXX";

// Count the calls in this process, including the library's: the linker replaces libc's functions.
static int n_umask, n_synced_folders;
mode_t __real_umask(mode_t mask);
mode_t __wrap_umask(mode_t mask);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

mode_t __wrap_umask(mode_t mask) {
    n_umask++;
    return __real_umask(mask);
}

int __wrap_fsync(int fd) {
    struct stat info, ours;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) && stat(folder, &ours) == 0 &&
        info.st_ino == ours.st_ino && info.st_dev == ours.st_dev)
        n_synced_folders++;
    return __real_fsync(fd);
}

static const char *path_of(const char *name) {
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// Returns the number of entries in the folder. With `clears` it also removes them.
static int count_files(bool clears) {
    int n = 0;
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' && strchr("./", entry->d_name[1])) continue;
        n++;
        if (clears) unlink(path_of(entry->d_name));
    }
    closedir(dir);
    return n;
}

// Makes a receipt with n prompt tokens; receipts with different `variant` differ.
static void make(struct ree_receipt *out, size_t n, int variant) {
    static int32_t ids[200000];
    example_text(out);
    out->prompt.tokens = ids;
    out->prompt.n_tokens = n;
    out->context_length = 0;
    out->sampling.seed = (uint64_t)variant;
    REQUIRE(n <= 200000 && ree_receipt_seal(out, NULL) == REE_OK);
}

static enum ree_status write_one(const char *path, size_t n, int variant, struct ree_error *err) {
    struct ree_receipt receipt;
    make(&receipt, n, variant);
    enum ree_status status = ree_receipt_write(&receipt, path, err);
    ree_receipt_finish(&receipt);
    return status;
}

static bool is_valid(const char *path, uint64_t *out_seed) {
    struct ree_receipt receipt;
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS];
    bool ok = false;
    if (ree_receipt_read(path, &receipt, NULL) == REE_OK)
        ree_receipt_check(&receipt, findings, &ok);
    if (out_seed) *out_seed = receipt.sampling.seed;
    ree_receipt_finish(&receipt);
    return ok;
}

static void check_write(void) {
    struct ree_error err = {.message = ""};
    struct stat info;
    uint64_t seed = 0;
    const char *path = path_of("r.json");
    umask(027);
    int n_before = n_umask;
    CHECK_MSG(write_one(path, 10, 1, &err) == REE_OK, "%s", err.message);
    CHECK_MSG(n_umask == n_before, "the mask of the whole process stays as it is");
    CHECK_MSG(n_synced_folders == 1, "the new name is on the disk: folder synced %d times",
              n_synced_folders);
    CHECK(is_valid(path, &seed) && seed == 1);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0640);
    umask(022);
    CHECK_MSG(write_one(path, 10, 2, &err) == REE_OK, "%s", err.message);
    CHECK(is_valid(path, &seed) && seed == 2);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0644);
    CHECK(count_files(false) == 1);
    // In the current folder, with a path without a slash.
    int here = open(".", O_RDONLY);
    REQUIRE(chdir(folder) == 0);
    CHECK(write_one("plain.json", 10, 3, &err) == REE_OK && is_valid("plain.json", NULL));
    REQUIRE(fchdir(here) == 0);
    close(here);
    CHECK(count_files(true) == 2);

    CHECK(write_one(path_of("none/r.json"), 10, 1, &err) == REE_NOT_FOUND);
    CHECK(write_one(folder, 10, 1, &err) == REE_IO && strstr(err.message, "not a regular file"));
    // Does not replace a device or a pipe.
    CHECK(write_one("/dev/full", 10, 1, &err) == REE_IO);
    CHECK(stat("/dev/full", &info) == 0 && S_ISCHR(info.st_mode));
    CHECK(mkfifo(path_of("pipe"), 0600) == 0);
    CHECK(write_one(path_of("pipe"), 10, 1, &err) == REE_IO);
    CHECK(lstat(path_of("pipe"), &info) == 0 && S_ISFIFO(info.st_mode));
    CHECK(!is_valid(path_of("pipe"), NULL)); // reading a pipe does not block either
    CHECK(count_files(true) == 1);
}

// Runs `task` in a child process. Returns its exit code; -1 if a signal ended it.
static int in_child(int (*task)(void)) {
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(task());
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int write_over_limit(void) {
    struct rlimit limit = {20000, 20000};
    struct ree_error err;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return write_one(path_of("r.json"), 100000, 7, &err) == REE_IO &&
                   strstr(err.message, "cannot write it")
               ? 0
               : 1;
}

static int die_over_limit(void) {
    struct rlimit limit = {20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    write_one(path_of("r.json"), 100000, 7, NULL); // SIGXFSZ ends the process
    return 1;
}

static bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0) close(fd);
    return ok;
}

// Mounts a file system of 64 KiB on the folder, visible only in this process.
static bool mount_small_disk(void) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/gid_map", groups) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=64k") == 0;
}

static int fill_disk(void) {
    struct ree_error err;
    char what[1100];
    if (write_one(path_of("old.json"), 10, 1, &err) != REE_OK) return 1;
    for (int i = 0; i < 2; i++) {
        const char *path = path_of(i ? "r.json" : "old.json");
        if (write_one(path, 100000, 2, &err) != REE_IO) return 2;
        snprintf(what, sizeof what, "%s: cannot write it: No space left on device", path);
        if (strcmp(err.message, what) != 0) return 3;
    }
    return count_files(false) == 1 && is_valid(path_of("old.json"), NULL) ? 0 : 4;
}

// Without /proc an unnamed temporary file cannot be linked to a name; the writer then uses a
// temporary name until the file is complete.
static int write_without_proc(void) {
    uint64_t seed;
    struct ree_error err;
    if (mount("tmpfs", "/proc", "tmpfs", 0, "size=4k") != 0) return TEST_SKIPPED;
    if (fill_disk() != 0) return 11;
    for (int i = 1; i < 3; i++)
        if (write_one(path_of("r.json"), 10, i, &err) != REE_OK ||
            !is_valid(path_of("r.json"), &seed) || seed != (uint64_t)i)
            return 12;
    if (ree_file_create(path_of("r.json"), "", 0, 0600, &err) != REE_IO ||
        !strstr(err.message, "already exists"))
        return 13;
    if (ree_file_create(path_of("new"), "abc", 3, 0600, &err) != REE_OK) return 14;
    return count_files(false) == 3 ? 0 : 15;
}

static int write_full_disk(void) {
    if (!mount_small_disk()) return TEST_SKIPPED;
    int code = fill_disk();
    return code ? code : write_without_proc();
}

static void check_full(void) {
    CHECK(in_child(write_over_limit) == 0);
    CHECK(count_files(false) == 0);
    CHECK(write_one(path_of("r.json"), 10, 1, NULL) == REE_OK);
    CHECK(in_child(write_over_limit) == 0);
    CHECK(is_valid(path_of("r.json"), NULL)); // the old receipt
    CHECK(in_child(die_over_limit) == -1);
    CHECK(is_valid(path_of("r.json"), NULL));
    count_files(true);
    int code = in_child(write_full_disk);
    if (code == TEST_SKIPPED)
        printf("a full disk: skipped, no tmpfs can be mounted here\n");
    else
        CHECK_MSG(code == 0, "a full disk: step %d", code);
}

// Writes new files and replaces one file until it is killed.
static _Noreturn void write_for_ever(void) {
    signal(SIGINT, SIG_DFL); // a shell starts background jobs with SIGINT ignored
    for (int i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "new%d.json", i % 8);
        write_one(path_of(name), (size_t)(i % 3) * 20000, i, NULL);
        write_one(path_of("same.json"), (size_t)(i % 3) * 20000, i, NULL);
        if (i % 8 == 7)
            for (int k = 0; k < 8; k++) {
                snprintf(name, sizeof name, "new%d.json", k);
                unlink(path_of(name));
            }
    }
}

static void check_kills(void) {
    int n_valid = 0;
    for (int i = 0; i < 60; i++) {
        fflush(NULL);
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) write_for_ever();
        usleep((useconds_t)(2000 + i * 1300));
        kill(child, i % 4 ? SIGKILL : SIGINT);
        REQUIRE(waitpid(child, NULL, 0) == child);
        for (int k = -1; k < 8; k++) {
            char name[32];
            snprintf(name, sizeof name, "new%d.json", k);
            const char *path = path_of(k < 0 ? "same.json" : name);
            bool ok = is_valid(path, NULL);
            n_valid += ok;
            CHECK_MSG(ok || access(path, F_OK) != 0, "%s is neither valid nor absent", path);
        }
        if (i % 10 == 9) count_files(true);
    }
    printf("%d valid receipts after kills\n", n_valid);
    CHECK(n_valid > 30);
    count_files(true);
}

static void check_keys(void) {
    char hex[65], from_private[65], from_public[65];
    struct ree_error err = {.message = ""};
    struct stat info;
    void *before, *after;
    size_t n_before, n_after;
    umask(0);
    CHECK_MSG(ree_key_create(path_of("key"), hex, &err) == REE_OK, "%s", err.message);
    CHECK(stat(path_of("key"), &info) == 0 && (info.st_mode & 07777) == 0600);
    CHECK(stat(path_of("key.pub"), &info) == 0 && (info.st_mode & 07777) == 0644);
    umask(022);
    CHECK(ree_key_public(path_of("key"), from_private, &err) == REE_OK);
    CHECK(ree_key_public(path_of("key.pub"), from_public, &err) == REE_OK);
    CHECK(strcmp(hex, from_private) == 0 && strcmp(hex, from_public) == 0 && strlen(hex) == 64);

    // Existing files are not overwritten.
    REQUIRE(ree_file_read(path_of("key"), &before, &n_before, NULL) == REE_OK);
    CHECK(ree_key_create(path_of("key"), from_private, &err) == REE_IO && !from_private[0]);
    CHECK_MSG(strstr(err.message, "it already exists"), "%s", err.message);
    REQUIRE(ree_file_read(path_of("key"), &after, &n_after, NULL) == REE_OK);
    CHECK(n_before == n_after && memcmp(before, after, n_after) == 0);
    free(after);
    CHECK(unlink(path_of("key")) == 0);
    CHECK(ree_key_create(path_of("key"), from_private, &err) == REE_IO); // key.pub exists
    CHECK(access(path_of("key"), F_OK) != 0);
    CHECK(ree_file_create(path_of("key"), before, n_before, 0600, &err) == REE_OK);
    CHECK(ree_file_create(path_of("key"), before, n_before, 0600, &err) == REE_IO);
    free(before);

    // A dangling symbolic link is an existing name.
    CHECK(symlink("nowhere", path_of("link")) == 0);
    CHECK(ree_key_create(path_of("link"), from_private, &err) == REE_IO);
    CHECK(access(path_of("link.pub"), F_OK) != 0 && access(path_of("nowhere"), F_OK) != 0);
    CHECK(ree_key_create(path_of("none/key"), from_private, &err) == REE_NOT_FOUND);

    // A receipt signed with the key contains the key's public half.
    struct ree_receipt receipt;
    make(&receipt, 3, 1);
    CHECK(ree_receipt_sign(&receipt, path_of("key"), &err) == REE_OK);
    CHECK(strcmp(receipt.public_key, hex) == 0);
    char own[65];
    memcpy(own, hex, sizeof own);
    CHECK(ree_receipt_write(&receipt, path_of("r.json"), &err) == REE_OK);
    CHECK(is_valid(path_of("r.json"), NULL));
    CHECK(ree_receipt_sign(&receipt, path_of("key.pub"), &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, "private key"), "%s", err.message);
    CHECK(ree_receipt_sign(&receipt, path_of("absent"), &err) == REE_NOT_FOUND);

    // A signing key that others can read or write is refused; the message says how to correct it.
    static const mode_t wrong[] = {0640, 0604, 0644, 0620};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(chmod(path_of("key"), wrong[i]) == 0);
        CHECK(ree_receipt_sign(&receipt, path_of("key"), &err) == REE_INVALID);
        CHECK_MSG(strstr(err.message, "chmod 600"), "%s", err.message);
        // The earlier signature stays.
        CHECK(receipt.is_signed && strcmp(receipt.public_key, own) == 0);
        CHECK(ree_key_public(path_of("key"), hex, &err) == REE_OK); // reads no secret
    }
    CHECK(chmod(path_of("key"), 0600) == 0);

    // A file that contains a private key is never overwritten.
    size_t n_key;
    void *key;
    CHECK(ree_file_read(path_of("key"), &key, &n_key, &err) == REE_OK);
    struct ree_file_draft *draft;
    CHECK(ree_receipt_write(&receipt, path_of("key"), &err) == REE_IO);
    CHECK_MSG(strstr(err.message, "key: contains a private key"), "%s", err.message);
    CHECK(ree_file_write(path_of("key"), "x", 1, &err) == REE_IO);
    CHECK(ree_file_write_secret(path_of("key"), "x", 1, &err) == REE_IO);
    CHECK(ree_file_begin(path_of("key"), 0666, &draft, &err) == REE_IO);
    static const char rsa[] = "# mine\n-----BEGIN RSA PRIVATE KEY-----\n";
    CHECK(ree_file_write(path_of("other"), rsa, sizeof rsa, &err) == REE_OK);
    CHECK(ree_file_write(path_of("other"), "x", 1, &err) == REE_IO);
    CHECK(unlink(path_of("other")) == 0);
    // Text that only mentions a private key, as a receipt of a prompt may, can be overwritten.
    static const char text[] = "\n{\"text\":\"-----BEGIN PRIVATE KEY-----\"}\nPRIVATE KEY-----";
    CHECK(ree_file_write(path_of("other"), text, sizeof text, &err) == REE_OK);
    CHECK(ree_file_write(path_of("other"), "x", 1, &err) == REE_OK);
    CHECK(unlink(path_of("other")) == 0);
    size_t n_again;
    void *again;
    CHECK(ree_file_read(path_of("key"), &again, &n_again, &err) == REE_OK);
    CHECK(n_again == n_key && memcmp(again, key, n_key) == 0);
    free(again);
    free(key);
    CHECK(ree_key_public(path_of("r.json"), hex, &err) == REE_INVALID && !hex[0]);
    CHECK(ree_file_write(path_of("empty"), "", 0, NULL) == REE_OK);
    CHECK(ree_key_public(path_of("empty"), hex, &err) == REE_INVALID);
    CHECK(ree_key_public(folder, hex, &err) == REE_IO);
    ree_receipt_finish(&receipt);
    count_files(true);
}

static int create_key_over_limit(void) {
    struct rlimit limit = {60, 60};
    char hex[65];
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return ree_key_create(path_of("key"), hex, NULL) == REE_IO ? 0 : 1;
}

// The file size limit allows the public half but not the private one.
static int create_half_a_key(void) {
    struct rlimit limit = {115, 115};
    char hex[65];
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return ree_key_create(path_of("key"), hex, NULL) == REE_IO ? 0 : 1;
}

int main(void) {
    REQUIRE(mkdtemp(folder) != NULL);
    check_write();
    check_full();
    check_kills();
    check_keys();
    CHECK(in_child(create_key_over_limit) == 0 && count_files(false) == 0);
    CHECK(in_child(create_half_a_key) == 0 && count_files(false) == 0);
    CHECK(count_files(true) == 0);
    CHECK(rmdir(folder) == 0);
    return test_finish();
}

#include "base/file.h"
#include "base/memory.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ree_status status_of_errno(void) {
    if (errno == ENOENT || errno == ENOTDIR) return REE_NOT_FOUND;
    return errno == ENOMEM ? REE_NO_MEMORY : REE_IO;
}

enum ree_status ree_file_read(const char *path, void **out_bytes, size_t *out_nbytes,
                              struct ree_error *err) {
    return ree_file_read_small(path, SIZE_MAX, out_bytes, out_nbytes, err);
}

enum ree_status ree_file_read_small(const char *path, size_t max_nbytes, void **out_bytes,
                                    size_t *out_nbytes, struct ree_error *err) {
    *out_bytes = NULL;
    *out_nbytes = 0;
    // O_NONBLOCK: a named pipe must be rejected below; open must not wait for its writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum ree_status status = fd < 0 ? status_of_errno() : REE_OK;
    if (fd < 0) return ree_fail(err, status, "%s: %s", path, strerror(errno));

    unsigned char *bytes = NULL;
    struct stat info;
    if (fstat(fd, &info) != 0) {
        status = ree_fail(err, REE_IO, "%s: %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(info.st_mode)) {
        status = ree_fail(err, REE_IO, "%s: not a regular file", path);
        goto done;
    }
    size_t size = (size_t)info.st_size, have = 0;
    if (size > max_nbytes) {
        status = ree_fail(err, REE_INVALID, "%s: it has %zu bytes, expected at most %zu", path,
                          size, max_nbytes);
        goto done;
    }
    bytes = ree_alloc(size ? size : 1);
    if (!bytes) {
        status = ree_fail(err, REE_NO_MEMORY, "%s: out of memory for its %zu bytes", path, size);
        goto done;
    }
    while (have < size) {
        ssize_t n = read(fd, bytes + have, size - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            status = ree_fail(err, REE_IO, "%s: %s", path,
                              n < 0 ? strerror(errno) : "was truncated while it was read");
            goto done;
        }
        have += (size_t)n;
    }
    *out_bytes = bytes;
    *out_nbytes = size;
    bytes = NULL;
done:
    ree_free(bytes);
    close(fd);
    return status;
}

#define PEM_SEARCHED 65536

// Uses no malloc: exhausted memory must not disable this check. Returns false and sets errno if the
// file cannot be read.
static bool find_private_key(const char *path, bool *out_found) {
    static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY-----";
    // O_NONBLOCK as above.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[PEM_SEARCHED];
    size_t n = 0;
    int error = 0;
    bool found = false;
    while (fd >= 0 && n < sizeof text) {
        ssize_t got = read(fd, text + n, sizeof text - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error = errno;
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (fd >= 0) close(fd);
    for (size_t at = 0; at < n && !found;) { // per line
        const char *line_end = memchr(text + at, '\n', n - at);
        size_t length = line_end ? (size_t)(line_end - text) - at : n - at;
        found = length >= sizeof begin && memcmp(text + at, begin, sizeof begin - 1) == 0 &&
                memmem(text + at, length, end, sizeof end - 1);
        at += length + 1;
    }
    explicit_bzero(text, n);
    *out_found = found;
    errno = error;
    return error == 0;
}

bool ree_file_is_private_key(const char *path) {
    bool found;
    return find_private_key(path, &found) && found;
}

static enum ree_status keep_private_key(const char *path, struct ree_error *err) {
    bool found;
    if (!find_private_key(path, &found))
        return ree_fail(err, REE_IO, "%s: cannot read the existing file that would be replaced: %s",
                        path, strerror(errno));
    if (!found) return REE_OK;
    return ree_fail(err, REE_IO,
                    "%s: contains a private key and is not overwritten; choose another file name",
                    path);
}

// A file being written. It has no name, or a temporary name that no other file uses.
struct draft {
    int fd;
    char *name;    // temporary name; NULL: none
    char link[32]; // if it has no name: path under /proc that linkat can use
};

// The temporary names in use, for ree_file_abandon_named. A thread holds the lock while it creates
// or renames a file and changes this table, so that ree_file_abandon_named misses no name. The
// table is small because most drafts have no name.
#define MAX_NAMED 16
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *names[MAX_NAMED];

static void replace_name(const char *old, const char *new) {
    for (size_t i = 0; i < MAX_NAMED; i++) {
        if (names[i] != old) continue;
        names[i] = new;
        return;
    }
}

void ree_file_abandon_named(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    // A thread that waits for a disk may hold the lock for longer. Then the temporary files remain.
    if (pthread_mutex_timedlock(&names_lock, &until) != 0) return;
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (names[i]) unlink(names[i]);
}

static char *with_suffix(const char *path, const char *suffix) {
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = ree_alloc(size);
    if (name) snprintf(name, size, "%s%s", path, suffix);
    return name;
}

// An unnamed file disappears with the process. Not every file system supports unnamed files.
static bool open_unnamed(const char *path, struct draft *draft) {
    char *folder = with_suffix(path, "");
    if (!folder) return false;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    draft->fd = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ree_free(folder);
    if (draft->fd < 0) return false;
    snprintf(draft->link, sizeof draft->link, "/proc/self/fd/%d", draft->fd);
    if (access(draft->link, F_OK) == 0) return true;
    close(draft->fd);
    return false;
}

static bool open_named(const char *path, struct draft *draft) {
    draft->name = with_suffix(path, ".XXXXXX");
    pthread_mutex_lock(&names_lock);
    draft->fd = draft->name ? mkostemp(draft->name, O_CLOEXEC) : -1;
    if (draft->fd >= 0) replace_name(NULL, draft->name);
    int error = errno;
    pthread_mutex_unlock(&names_lock);
    errno = error;
    if (draft->fd >= 0) return true;
    ree_free(draft->name);
    draft->name = NULL;
    return false;
}

static bool write_all(int fd, const unsigned char *bytes, size_t nbytes) {
    while (nbytes > 0) {
        ssize_t n = write(fd, bytes, nbytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        nbytes -= (size_t)n;
    }
    return true;
}

static bool link_draft(const struct draft *draft, const char *name) {
    return linkat(AT_FDCWD, draft->link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

// linkat does not replace a file, so an unnamed draft gets a temporary name that is then renamed.
static bool name_draft(struct draft *draft, const char *path) {
    for (unsigned i = 0; i < 1000; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".%d-%u", (int)getpid(), i);
        draft->name = with_suffix(path, suffix);
        if (!draft->name) return false;
        pthread_mutex_lock(&names_lock);
        bool ok = link_draft(draft, draft->name);
        if (ok) replace_name(NULL, draft->name);
        int error = errno;
        pthread_mutex_unlock(&names_lock);
        errno = error;
        if (ok) return true;
        ree_free(draft->name);
        draft->name = NULL;
        if (errno != EEXIST) return false;
    }
    return false;
}

static bool move(const struct draft *draft, const char *path, bool replaces) {
    if (replaces) return rename(draft->name, path) == 0;
    if (renameat2(AT_FDCWD, draft->name, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    // The file system does not support RENAME_NOREPLACE. Use two steps; an interruption between
    // them leaves both names.
    return link(draft->name, path) == 0 && unlink(draft->name) == 0;
}

static bool give_name(struct draft *draft, const char *path, bool replaces) {
    if (!draft->name) {
        if (link_draft(draft, path)) return true;
        if (!replaces || errno != EEXIST || !name_draft(draft, path)) return false;
    }
    pthread_mutex_lock(&names_lock);
    bool ok = move(draft, path, replaces);
    if (ok) replace_name(draft->name, NULL);
    int error = errno;
    pthread_mutex_unlock(&names_lock);
    errno = error;
    return ok;
}

// Closes the draft; preserves errno.
static void close_draft(struct draft *draft, bool unlinks) {
    int error = errno;
    close(draft->fd); // fsync has already reported write errors
    if (draft->name) {
        pthread_mutex_lock(&names_lock);
        if (unlinks) unlink(draft->name);
        replace_name(draft->name, NULL);
        pthread_mutex_unlock(&names_lock);
    }
    ree_free(draft->name);
    errno = error;
}

// Applies the user's umask. Calling umask() would change the mask of the whole process for a
// moment, and so the modes of files that other threads create.
static mode_t masked(mode_t mode) {
    char line[128];
    unsigned mask = 077; // if there is no /proc
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Umask: %o", &mask) == 1) break;
    if (status) fclose(status);
    return mode & ~(mode_t)mask;
}

// A name is on disk only after its folder is synced. File systems that cannot sync a folder store
// names in another way, so a failure is ignored.
static void sync_folder_of(const char *path) {
    char *folder = with_suffix(path, "");
    char *slash = folder ? strrchr(folder, '/') : NULL;
    int error = errno;
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    ree_free(folder);
    errno = error;
}

// Sets the mode, syncs the contents, then gives the draft its name.
static bool publish(struct draft *draft, const char *path, mode_t mode, bool replaces) {
    bool ok = fchmod(draft->fd, masked(mode)) == 0 && fsync(draft->fd) == 0 &&
              give_name(draft, path, replaces);
    if (ok) sync_folder_of(path);
    return ok;
}

// Writes, publishes and closes the draft.
static bool finish_draft(struct draft *draft, const char *path, const void *bytes, size_t nbytes,
                         mode_t mode, bool replaces) {
    bool ok = write_all(draft->fd, bytes, nbytes) && publish(draft, path, mode, replaces);
    close_draft(draft, !ok);
    return ok;
}

// Some file systems create unnamed files but cannot link them.
static bool cannot_link(void) {
    return errno == EXDEV || errno == EPERM || errno == ENOENT || errno == EOPNOTSUPP;
}

static enum ree_status write_file(const char *path, const void *bytes, size_t nbytes, mode_t mode,
                                  bool replaces, struct ree_error *err) {
    struct stat info;
    if (stat(path, &info) == 0 && replaces && !S_ISREG(info.st_mode))
        return ree_fail(err, REE_IO, "%s: cannot write it: not a regular file", path);
    if (replaces) REE_TRY(keep_private_key(path, err));
    struct draft draft = {0};
    bool is_unnamed = open_unnamed(path, &draft);
    if (is_unnamed && finish_draft(&draft, path, bytes, nbytes, mode, replaces)) return REE_OK;
    if (!is_unnamed || cannot_link()) {
        draft = (struct draft){0};
        if (!open_named(path, &draft)) {
            enum ree_status status = status_of_errno();
            return ree_fail(err, status, "%s: cannot create it: %s", path, strerror(errno));
        }
        if (finish_draft(&draft, path, bytes, nbytes, mode, replaces)) return REE_OK;
    }
    return ree_fail(err, REE_IO, "%s: cannot write it: %s", path,
                    errno == EEXIST ? "it already exists" : strerror(errno));
}

enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                               struct ree_error *err) {
    return write_file(path, bytes, nbytes, 0666, true, err);
}

enum ree_status ree_file_write_secret(const char *path, const void *bytes, size_t nbytes,
                                      struct ree_error *err) {
    return write_file(path, bytes, nbytes, 0600, true, err);
}

enum ree_status ree_file_create(const char *path, const void *bytes, size_t nbytes, unsigned mode,
                                struct ree_error *err) {
    return write_file(path, bytes, nbytes, (mode_t)mode, false, err);
}

// Drafts written in steps

struct ree_file_draft {
    struct draft draft;
    char *path;
    mode_t mode;
    unsigned char buffer[1 << 16];
    size_t n; // bytes in buffer
};

static enum ree_status cannot_create(const char *path, struct ree_error *err) {
    enum ree_status status = status_of_errno();
    return ree_fail(err, status, "%s: cannot create it: %s", path, strerror(errno));
}

static enum ree_status cannot_write(const char *path, struct ree_error *err) {
    return ree_fail(err, REE_IO, "%s: cannot write it: %s", path, strerror(errno));
}

enum ree_status ree_file_begin(const char *path, unsigned mode, struct ree_file_draft **out,
                               struct ree_error *err) {
    *out = NULL;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return ree_fail(err, REE_IO, "%s: cannot write it: not a regular file", path);
    REE_TRY(keep_private_key(path, err));
    struct ree_file_draft *d = ree_alloc_zeroed(1, sizeof *d);
    if (d) d->path = with_suffix(path, "");
    if (!d || !d->path) {
        ree_free(d);
        return ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    }
    if (!open_unnamed(path, &d->draft) && !open_named(path, &d->draft)) {
        enum ree_status status = cannot_create(path, err);
        ree_free(d->path);
        ree_free(d);
        return status;
    }
    d->mode = (mode_t)mode;
    *out = d;
    return REE_OK;
}

static bool flush(struct ree_file_draft *d) {
    bool ok = write_all(d->draft.fd, d->buffer, d->n);
    d->n = 0;
    return ok;
}

enum ree_status ree_file_append(struct ree_file_draft *d, const void *bytes, size_t nbytes,
                                struct ree_error *err) {
    bool ok = true;
    if (nbytes > sizeof d->buffer - d->n) ok = flush(d);
    if (ok && nbytes > sizeof d->buffer) {
        ok = write_all(d->draft.fd, bytes, nbytes);
    } else if (ok && nbytes) {
        memcpy(d->buffer + d->n, bytes, nbytes);
        d->n += nbytes;
    }
    return ok ? REE_OK : cannot_write(d->path, err);
}

enum ree_status ree_file_sync(struct ree_file_draft *d, struct ree_error *err) {
    return flush(d) && fsync(d->draft.fd) == 0 ? REE_OK : cannot_write(d->path, err);
}

// Replaces the unnamed draft with a copy that has a name.
static bool copy_to_named(struct ree_file_draft *d) {
    struct draft named = {0};
    ssize_t n;
    if (!open_named(d->path, &named)) return false;
    bool ok = lseek(d->draft.fd, 0, SEEK_SET) == 0;
    while (ok && (n = read(d->draft.fd, d->buffer, sizeof d->buffer)) != 0)
        ok = n > 0 && write_all(named.fd, d->buffer, (size_t)n);
    close_draft(ok ? &d->draft : &named, true);
    if (ok) d->draft = named;
    return ok;
}

enum ree_status ree_file_commit(struct ree_file_draft *d, struct ree_error *err) {
    bool is_unnamed = !d->draft.name, ok = flush(d);
    if (ok) {
        ok = publish(&d->draft, d->path, d->mode, true);
        if (!ok && is_unnamed && !d->draft.name && cannot_link())
            ok = copy_to_named(d) && publish(&d->draft, d->path, d->mode, true);
    }
    enum ree_status status = ok ? REE_OK : cannot_write(d->path, err);
    close_draft(&d->draft, !ok);
    ree_free(d->path);
    ree_free(d);
    return status;
}

void ree_file_abandon(struct ree_file_draft *d) {
    if (!d) return;
    close_draft(&d->draft, true);
    ree_free(d->path);
    ree_free(d);
}

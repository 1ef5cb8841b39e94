#include "base/file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
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
    *out_bytes = NULL;
    *out_nbytes = 0;
    // Not blocking: a named pipe must be refused below, not waited for.
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
    bytes = malloc(size ? size : 1);
    if (!bytes) {
        status = ree_fail(err, REE_NO_MEMORY, "%s: no memory for %zu bytes", path, size);
        goto done;
    }
    while (have < size) {
        ssize_t n = read(fd, bytes + have, size - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            status = ree_fail(err, REE_IO, "%s: %s", path,
                              n < 0 ? strerror(errno) : "became shorter while it was read");
            goto done;
        }
        have += (size_t)n;
    }
    *out_bytes = bytes;
    *out_nbytes = size;
    bytes = NULL;
done:
    free(bytes);
    close(fd);
    return status;
}

// A file that is being written: without a name, or with one that is nobody's.
struct draft {
    int fd;
    char *name;    // NULL: none
    char link[32]; // without a name: where it can be found nevertheless
};

static char *with_suffix(const char *path, const char *suffix) {
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%s%s", path, suffix);
    return name;
}

// A file without a name is gone when the process is; not every file system has them.
static bool open_unnamed(const char *path, struct draft *draft) {
    char *folder = with_suffix(path, "");
    if (!folder) return false;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    draft->fd = open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    free(folder);
    if (draft->fd < 0) return false;
    snprintf(draft->link, sizeof draft->link, "/proc/self/fd/%d", draft->fd);
    if (access(draft->link, F_OK) == 0) return true;
    close(draft->fd);
    return false;
}

static bool open_named(const char *path, struct draft *draft) {
    draft->name = with_suffix(path, ".XXXXXX");
    draft->fd = draft->name ? mkostemp(draft->name, O_CLOEXEC) : -1;
    if (draft->fd >= 0) return true;
    free(draft->name);
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

// A link does not replace, so a draft without a name gets one for the moment of a rename.
static bool name_draft(struct draft *draft, const char *path) {
    for (unsigned i = 0; i < 1000; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, ".%d-%u", (int)getpid(), i);
        draft->name = with_suffix(path, suffix);
        if (!draft->name) return false;
        if (link_draft(draft, draft->name)) return true;
        free(draft->name);
        draft->name = NULL;
        if (errno != EEXIST) return false;
    }
    return false;
}

static bool give_name(struct draft *draft, const char *path, bool replaces) {
    if (!draft->name) {
        if (link_draft(draft, path)) return true;
        if (!replaces || errno != EEXIST || !name_draft(draft, path)) return false;
    }
    if (replaces) return rename(draft->name, path) == 0;
    if (renameat2(AT_FDCWD, draft->name, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    // A file system that cannot: two steps, which leave both names if they are interrupted.
    return link(draft->name, path) == 0 && unlink(draft->name) == 0;
}

// Contents and mode, onto the disk, then the name. Closes the draft.
static bool finish_draft(struct draft *draft, const char *path, const void *bytes, size_t nbytes,
                         mode_t mode, bool replaces) {
    bool ok = write_all(draft->fd, bytes, nbytes) && fchmod(draft->fd, mode) == 0 &&
              fsync(draft->fd) == 0 && give_name(draft, path, replaces);
    int error = errno;
    close(draft->fd); // fsync has told what this could
    if (!ok && draft->name) unlink(draft->name);
    free(draft->name);
    errno = error;
    return ok;
}

static enum ree_status write_file(const char *path, const void *bytes, size_t nbytes, mode_t mode,
                                  bool replaces, struct ree_error *err) {
    mode_t mask = umask(0);
    umask(mask);
    mode &= ~mask;
    struct stat info;
    if (stat(path, &info) == 0 && replaces && !S_ISREG(info.st_mode))
        return ree_fail(err, REE_IO, "%s: cannot write it: not a regular file", path);
    struct draft draft = {0};
    bool is_unnamed = open_unnamed(path, &draft);
    if (is_unnamed && finish_draft(&draft, path, bytes, nbytes, mode, replaces)) return REE_OK;
    // Some file systems make files without a name and then cannot link them.
    if (!is_unnamed || errno == EXDEV || errno == EPERM || errno == ENOENT || errno == EOPNOTSUPP) {
        draft = (struct draft){0};
        if (!open_named(path, &draft)) {
            enum ree_status status = status_of_errno();
            return ree_fail(err, status, "%s: cannot create it: %s", path, strerror(errno));
        }
        if (finish_draft(&draft, path, bytes, nbytes, mode, replaces)) return REE_OK;
    }
    return ree_fail(err, REE_IO, "%s: cannot write it: %s", path,
                    errno == EEXIST ? "it exists already" : strerror(errno));
}

enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                               struct ree_error *err) {
    return write_file(path, bytes, nbytes, 0666, true, err);
}

enum ree_status ree_file_create(const char *path, const void *bytes, size_t nbytes, unsigned mode,
                                struct ree_error *err) {
    return write_file(path, bytes, nbytes, (mode_t)mode, false, err);
}

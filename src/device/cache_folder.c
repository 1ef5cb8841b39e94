#include "device/cache_folder.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *ree_cache_path(const char *cache_dir, const char *name) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (cache_dir)
        n = cache_dir[0] ? ree_asprintf(&path, "%s/%s", cache_dir, name) : -1;
    else if (xdg && xdg[0] == '/')
        n = ree_asprintf(&path, "%s/ree/%s", xdg, name);
    else if (home && home[0] == '/')
        n = ree_asprintf(&path, "%s/.cache/ree/%s", home, name);
    return n < 0 ? NULL : path;
}

static bool make_folders(char *path) {
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/') continue;
        *slash = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok) return false;
    }
    return true;
}

// Checks owner and mode of the open file or folder fd. If they are wrong, closes it, writes the
// reason to `why` and returns -1; otherwise returns fd. fd -1: open has failed; writes the reason
// unless the file is missing, and returns -1.
static int check(int fd, const char *path, char *why, size_t size) {
    struct stat info;
    bool is_open = fd >= 0, ok = is_open && fstat(fd, &info) == 0;
    if (!is_open && (errno == ELOOP || errno == ENOTDIR)) {
        snprintf(why, size, "%s: it is a symbolic link, or not a folder", path);
    } else if (!is_open && errno != ENOENT) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
    } else if (ok && info.st_uid != geteuid()) {
        snprintf(why, size, "%s: it belongs to user %u, not to user %u", path,
                 (unsigned)info.st_uid, (unsigned)geteuid());
        ok = false;
    } else if (ok && (info.st_mode & 022)) {
        snprintf(why, size, "%s: other users can write to it; run chmod go-w", path);
        ok = false;
    }
    if (is_open && !ok) close(fd);
    return ok ? fd : -1;
}

static int open_folder(const char *path, char *why, size_t size) {
    char *folder = ree_strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    int fd = -1;
    if (slash && slash > folder) {
        *slash = '\0';
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        fd = check(fd, folder, why, size);
    }
    ree_free(folder);
    return fd;
}

// Opens the file relative to its folder, so that nobody can replace the folder after its check.
static int open_file(const char *path, char *why, size_t size) {
    int folder = open_folder(path, why, size);
    if (folder < 0) return -1;
    int fd = openat(folder, strrchr(path, '/') + 1,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int error = errno;
    close(folder);
    errno = error;
    return check(fd, path, why, size);
}

int ree_cache_open_folder(const char *path, bool makes) {
    char *own = makes ? ree_strdup(path) : NULL;
    bool ok = !makes || (own && make_folders(own));
    ree_free(own);
    return ok ? open_folder(path, NULL, 0) : -1;
}

bool ree_cache_read(const char *path, size_t max_nbytes, void **out_bytes, size_t *out_nbytes) {
    int fd = open_file(path, NULL, 0);
    struct stat info;
    unsigned char *bytes = NULL;
    size_t n = 0;
    bool ok = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= 0 &&
              (uintmax_t)info.st_size <= max_nbytes;
    if (ok) ok = (bytes = ree_alloc((size_t)info.st_size + 1)) != NULL;
    while (ok && n < (size_t)info.st_size) {
        ssize_t got = read(fd, bytes + n, (size_t)info.st_size - n);
        if (got > 0)
            n += (size_t)got;
        else
            ok = got < 0 && errno == EINTR;
    }
    if (fd >= 0) close(fd);
    if (!ok) {
        ree_free(bytes);
        return false;
    }
    *out_bytes = bytes;
    *out_nbytes = n;
    return true;
}

void ree_cache_write(const char *path, const void *bytes, size_t nbytes) {
    struct ree_error err;
    int folder = ree_cache_open_folder(path, true);
    if (folder < 0) return;
    (void)ree_file_write_secret(path, bytes, nbytes, &err);
    close(folder);
}

bool ree_cache_is_usable(const char *path, char *out_why, size_t size) {
    out_why[0] = '\0';
    int fd = path ? open_file(path, out_why, size) : -1;
    if (fd >= 0) close(fd);
    return !out_why[0];
}

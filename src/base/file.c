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

enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                               struct ree_error *err) {
    size_t size = strlen(path) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary) return ree_fail(err, REE_NO_MEMORY, "%s: no memory", path);
    snprintf(temporary, size, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    enum ree_status status = fd < 0 ? status_of_errno() : REE_OK;
    if (fd < 0) {
        ree_fail_message(err, status, "%s: cannot create it: %s", path, strerror(errno));
        free(temporary);
        return status;
    }

    const unsigned char *from = bytes;
    bool ok = true;
    while (ok && nbytes > 0) {
        ssize_t n = write(fd, from, nbytes);
        if (n < 0 && errno == EINTR) continue;
        ok = n > 0;
        if (ok) {
            from += n;
            nbytes -= (size_t)n;
        }
    }
    // mkostemp makes files of mode 0600; a result is as readable as any file the user makes.
    mode_t mask = umask(0);
    umask(mask);
    ok = ok && fchmod(fd, 0666 & ~mask) == 0;
    int error = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(temporary, path) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        unlink(temporary);
        status = ree_fail(err, REE_IO, "%s: cannot write it: %s", path, strerror(error));
    }
    free(temporary);
    return status;
}

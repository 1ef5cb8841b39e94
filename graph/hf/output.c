#include "graph/hf/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/mapping.h"

static enum ree_status failed(const struct ree_output *out, struct ree_error *err) {
    return ree_fail(err, REE_IO, "%s: cannot write it: %s", out->path, strerror(errno));
}

enum ree_status ree_output_open(struct ree_output *out, const char *path, struct ree_error *err) {
    *out = (struct ree_output){.fd = -1};
    size_t size = strlen(path) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary) return ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    snprintf(temporary, size, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    if (fd < 0) {
        ree_fail_message(err, REE_IO, "%s: cannot create it: %s", path, strerror(errno));
        free(temporary);
        return REE_IO;
    }
    *out = (struct ree_output){.path = path, .temporary = temporary, .fd = fd};
    return REE_OK;
}

// A file, so that it grows without being copied, and is mapped as weights in files are.
enum ree_status ree_output_open_memory(struct ree_output *out, const char *name,
                                       struct ree_error *err) {
    *out = (struct ree_output){.fd = -1};
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return ree_fail(err, REE_IO, "%s: cannot create them in memory: %s", name, strerror(errno));
    *out = (struct ree_output){.path = name, .fd = fd};
    return REE_OK;
}

enum ree_status ree_output_map(struct ree_output *out, struct ree_mapping **out_mapping,
                               struct ree_error *err) {
    enum ree_status status = ree_mapping_of_fd(out->fd, out_mapping, err);
    if (status != REE_OK) ree_fail_prefix(err, "%s", out->path);
    ree_output_discard(out);
    return status;
}

enum ree_status ree_output_write(struct ree_output *out, const void *bytes, uint64_t n,
                                 struct ree_error *err) {
    const unsigned char *from = bytes;
    while (n > 0) {
        ssize_t done = write(out->fd, from, n < (1 << 30) ? (size_t)n : (size_t)1 << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return failed(out, err);
        from += done;
        n -= (uint64_t)done;
        out->size += (uint64_t)done;
    }
    return REE_OK;
}

enum ree_status ree_output_align(struct ree_output *out, uint64_t alignment,
                                 struct ree_error *err) {
    static const unsigned char zeros[4096];
    uint64_t n = (alignment - out->size % alignment) % alignment;
    while (n > 0) {
        uint64_t part = n < sizeof zeros ? n : sizeof zeros;
        REE_TRY(ree_output_write(out, zeros, part, err));
        n -= part;
    }
    return REE_OK;
}

enum ree_status ree_output_commit(struct ree_output *out, struct ree_error *err) {
    enum ree_status status = REE_OK;
    // mkstemp makes files of mode 0600; a result is as readable as any file the user makes.
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(out->fd, 0666 & ~mask) != 0) status = failed(out, err);
    if (close(out->fd) != 0 && status == REE_OK) status = failed(out, err);
    out->fd = -1;
    if (status == REE_OK && rename(out->temporary, out->path) != 0) status = failed(out, err);
    if (status != REE_OK) unlink(out->temporary);
    free(out->temporary);
    *out = (struct ree_output){.fd = -1};
    return status;
}

void ree_output_discard(struct ree_output *out) {
    if (!out->path) return;
    close(out->fd);
    if (out->temporary) unlink(out->temporary);
    free(out->temporary);
    *out = (struct ree_output){.fd = -1};
}

#include "graph/hf/output.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "graph/ir/mapping.h"

enum ree_status ree_output_open(struct ree_output *out, const char *path, struct ree_error *err) {
    *out = (struct ree_output){.fd = -1};
    REE_TRY(ree_file_begin(path, 0666, &out->draft, err));
    out->path = path;
    return REE_OK;
}

// Uses a file (memfd), so that it can grow without being copied and can be mapped like weights in
// files.
enum ree_status ree_output_open_memory(struct ree_output *out, const char *name,
                                       struct ree_error *err) {
    *out = (struct ree_output){.fd = -1};
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return ree_fail(err, REE_IO, "%s: cannot create a file in memory: %s", name,
                        strerror(errno));
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

static enum ree_status write_memory(const struct ree_output *out, const unsigned char *bytes,
                                    uint64_t n, struct ree_error *err) {
    while (n > 0) {
        ssize_t done = write(out->fd, bytes, n < (1 << 30) ? (size_t)n : (size_t)1 << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return ree_fail(err, REE_IO, "%s: cannot write: %s", out->path, strerror(errno));
        bytes += done;
        n -= (uint64_t)done;
    }
    return REE_OK;
}

enum ree_status ree_output_write(struct ree_output *out, const void *bytes, uint64_t n,
                                 struct ree_error *err) {
    REE_TRY(out->draft ? ree_file_append(out->draft, bytes, n, err)
                       : write_memory(out, bytes, n, err));
    out->size += n;
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

enum ree_status ree_output_sync(struct ree_output *out, struct ree_error *err) {
    return ree_file_sync(out->draft, err);
}

enum ree_status ree_output_commit(struct ree_output *out, struct ree_error *err) {
    enum ree_status status = ree_file_commit(out->draft, err);
    *out = (struct ree_output){.fd = -1};
    return status;
}

void ree_output_discard(struct ree_output *out) {
    if (!out->path) return;
    ree_file_abandon(out->draft);
    if (out->fd >= 0) close(out->fd);
    *out = (struct ree_output){.fd = -1};
}

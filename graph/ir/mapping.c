#include "graph/ir/mapping.h"

#include "base/memory.h"
#include "graph/ir/mapping_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGNMENT 64
// Size of the space before a heap block's data that holds the struct: whole cache lines.
#define HEADER 128
_Static_assert(sizeof(struct ree_mapping) <= HEADER,
               "the header is at least as large as the struct");

// Keeps what ree_mapping_check needs to find the file: a duplicate descriptor, or the file's path
// if a quarter of the process's descriptors are in use (a model with very many files).
static void keep_file(struct ree_mapping *mapping, int fd) {
    struct rlimit limit;
    int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX
                   ? (int)(limit.rlim_cur / 4)
                   : INT_MAX;
    mapping->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (mapping->fd >= 0 && mapping->fd < most) return;
    if (mapping->fd >= 0) close(mapping->fd);
    mapping->fd = -1;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    char *path = realpath(link, NULL);
    // Without /proc, or for a file without a name, only the guard detects changes.
    mapping->path = ree_strdup(path ? path : "");
    free(path); // allocated by libc
}

enum ree_status ree_mapping_of_fd(int fd, struct ree_mapping **out, struct ree_error *err) {
    *out = NULL;
    struct stat info;
    if (fstat(fd, &info) != 0) return ree_fail(err, REE_IO, "%s", strerror(errno));
    if (S_ISDIR(info.st_mode)) return ree_fail(err, REE_INVALID, "it is a folder, not a file");
    if (!S_ISREG(info.st_mode)) return ree_fail(err, REE_INVALID, "it is not a regular file");
    if ((uint64_t)info.st_size > SIZE_MAX)
        return ree_fail(err, REE_UNSUPPORTED, "it is larger than the address space");
    struct ree_mapping *mapping = ree_alloc_zeroed(1, sizeof *mapping);
    if (!mapping) return ree_no_memory(err);
    mapping->is_file = true;
    mapping->size = (size_t)info.st_size;
    mapping->modified[0] = info.st_mtim.tv_sec;
    mapping->modified[1] = info.st_mtim.tv_nsec;
    mapping->device = info.st_dev;
    mapping->inode = info.st_ino;
    if (mapping->size > 0) {
        void *data = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            int cause = errno;
            ree_free(mapping);
            return ree_fail(err, cause == ENOMEM ? REE_NO_MEMORY : REE_IO, "cannot be mapped: %s",
                            strerror(cause));
        }
        mapping->data = data;
        mapping->guard = ree_guard_create(data, mapping->size);
    }
    keep_file(mapping, fd);
    if ((mapping->fd < 0 && !mapping->path) || (mapping->size > 0 && !mapping->guard)) {
        ree_mapping_destroy(mapping);
        return ree_no_memory(err);
    }
    *out = mapping;
    return REE_OK;
}

enum ree_status ree_mapping_of_path(const char *path, struct ree_mapping **out,
                                    struct ree_error *err) {
    *out = NULL;
    // Non-blocking, so that a pipe without a writer is refused below instead of blocking.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        enum ree_status status = errno == ENOENT || errno == ENOTDIR ? REE_NOT_FOUND : REE_IO;
        return ree_fail(err, status, "%s", strerror(errno));
    }
    enum ree_status status = ree_mapping_of_fd(fd, out, err);
    close(fd);
    return status;
}

struct ree_mapping *ree_mapping_of_size(size_t size) {
    if (size > SIZE_MAX - HEADER - ALIGNMENT) return NULL;
    size_t padded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    unsigned char *block = ree_alloc_aligned(ALIGNMENT, HEADER + padded);
    if (!block) return NULL;
    struct ree_mapping *mapping = (struct ree_mapping *)block;
    memset(mapping, 0, HEADER);
    memset(block + HEADER + size, 0, padded - size);
    mapping->data = block + HEADER;
    mapping->size = size;
    return mapping;
}

enum ree_status ree_mapping_check(const struct ree_mapping *mapping, struct ree_error *err) {
    struct stat info;
    const char *name = mapping->location ? mapping->location : "";
    const char *quote = mapping->location ? "'" : "", *colon = mapping->location ? ": " : "";
    if (!mapping->is_file) return REE_OK;
    if (mapping->fd < 0) {
        // If the path now names another file, or none, it tells nothing about the mapped file,
        // which then counts as unchanged.
        if (stat(mapping->path, &info) != 0 || info.st_dev != mapping->device ||
            info.st_ino != mapping->inode) {
            info.st_size = (off_t)mapping->size;
            info.st_mtim = (struct timespec){mapping->modified[0], mapping->modified[1]};
        }
    } else if (fstat(mapping->fd, &info) != 0) {
        return ree_fail(err, REE_IO, "%s%s%s%s%s", quote, name, quote, colon, strerror(errno));
    }
    if ((uint64_t)info.st_size != mapping->size ||
        (mapping->guard && ree_guard_is_damaged(mapping->guard)))
        return ree_fail(err, REE_IO,
                        "%s%s%s%sthe file was truncated or replaced while in use: it has %lld "
                        "bytes, but had %zu when it was opened",
                        quote, name, quote, colon, (long long)info.st_size, mapping->size);
    if (info.st_mtim.tv_sec != mapping->modified[0] || info.st_mtim.tv_nsec != mapping->modified[1])
        return ree_fail(err, REE_IO,
                        "%s%s%s%sthe file was changed while in use; load the model again", quote,
                        name, quote, colon);
    return REE_OK;
}

enum ree_status ree_mappings_check(const struct ree_mapping *list, struct ree_error *err) {
    for (const struct ree_mapping *m = list; m; m = m->next)
        REE_TRY(ree_mapping_check(m, err));
    return REE_OK;
}

void ree_mapping_link(struct ree_mapping **list, struct ree_mapping *mapping) {
    mapping->prev = NULL;
    mapping->next = *list;
    if (*list) (*list)->prev = mapping;
    *list = mapping;
}

void ree_mapping_unlink(struct ree_mapping **list, struct ree_mapping *mapping) {
    if (mapping->prev)
        mapping->prev->next = mapping->next;
    else
        *list = mapping->next;
    if (mapping->next) mapping->next->prev = mapping->prev;
    mapping->prev = mapping->next = NULL;
}

void ree_mapping_destroy(struct ree_mapping *mapping) {
    if (!mapping) return;
    ree_guard_destroy(mapping->guard);
    if (mapping->is_file && mapping->data) munmap(mapping->data, mapping->size);
    if (mapping->is_file && mapping->fd >= 0) close(mapping->fd);
    if (!mapping->is_file) {
        ree_free_aligned(mapping);
        return;
    }
    ree_free(mapping->path);
    ree_free(mapping);
}

void ree_mappings_destroy(struct ree_mapping **list) {
    while (*list) {
        struct ree_mapping *mapping = *list;
        *list = mapping->next;
        ree_mapping_destroy(mapping);
    }
}

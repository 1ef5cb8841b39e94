// Reads tensors whose bytes are in a separate file next to the model.
// https://github.com/onnx/onnx/blob/main/docs/ExternalData.md
#include "graph/onnx/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

// External data fields of one tensor.
struct place {
    const char *location, *checksum; // NULL: absent
    uint64_t offset, length;
    bool has_length;
};

static bool parse_number(const char *s, uint64_t *out) {
    uint64_t value = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (!ree_mul_size(value, 10, &value) || !ree_add_size(value, (uint64_t)(*s - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

static enum ree_status read_place(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                  struct place *place) {
    *place = (struct place){0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = ree_onnx_text(proto->external_data[i]->key);
        const char *value = ree_onnx_text(proto->external_data[i]->value);
        uint64_t *number = NULL;
        if (strcmp(key, "location") == 0)
            place->location = value;
        else if (strcmp(key, "checksum") == 0)
            place->checksum = value;
        else if (strcmp(key, "offset") == 0)
            number = &place->offset;
        else if (strcmp(key, "length") == 0)
            number = &place->length, place->has_length = true;
        if (number && !parse_number(value, number))
            return ree_fail(reader->err, REE_INVALID, "external data: %s '%s' is not a number", key,
                            value);
    }
    if (!place->location)
        return ree_fail(reader->err, REE_INVALID, "external data: the location is missing");
    return REE_OK;
}

static enum ree_status check_location(const char *location, struct ree_error *err) {
    if (!*location) return ree_fail(err, REE_INVALID, "the location is empty");
    if (*location == '/')
        return ree_fail(err, REE_INVALID,
                        "is an absolute path; it must be relative to the model's folder");
    for (const char *part = location; part; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || !part[2]))
            return ree_fail(err, REE_INVALID, "has '..' in its path");
    }
    return REE_OK;
}

static enum ree_status open_failed(int cause, struct ree_error *err) {
    switch (cause) {
    case EXDEV:
        return ree_fail(err, REE_INVALID,
                        "a symbolic link in its path leads out of the model's folder");
    case ELOOP: return ree_fail(err, REE_INVALID, "its path contains too many symbolic links");
    case ENOENT:
    case ENOTDIR: return ree_fail(err, REE_NOT_FOUND, "no such file in the model's folder");
    default: return ree_fail(err, REE_IO, "%s", strerror(cause));
    }
}

// Opens one path component at a time and follows no link. The fstatat check only improves the
// message: if a link is created after it, O_NOFOLLOW still prevents following it.
static enum ree_status open_without_links(int folder_fd, const char *location, int *out_fd,
                                          struct ree_error *err) {
    int at = folder_fd;
    enum ree_status status = REE_OK;
    while (status == REE_OK) {
        while (*location == '/')
            location++;
        size_t n = strcspn(location, "/");
        bool last = location[n + strspn(location + n, "/")] == 0;
        char part[256]; // NAME_MAX and the NUL
        if (n >= sizeof part) {
            status = open_failed(ENAMETOOLONG, err);
            break;
        }
        memcpy(part, location, n);
        part[n] = 0;
        location += n;
        struct stat info;
        if (fstatat(at, part, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
            status =
                ree_fail(err, REE_INVALID,
                         "'%s' is a symbolic link, which this system cannot follow safely", part);
            break;
        }
        int flags = last ? OPEN_FLAGS | O_NOFOLLOW : O_PATH | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;
        int fd = openat(at, part, flags);
        if (fd < 0) {
            status = open_failed(errno, err);
            break;
        }
        if (at != folder_fd) close(at);
        at = fd;
        if (last) {
            *out_fd = fd;
            return REE_OK;
        }
    }
    if (at != folder_fd) close(at);
    return status;
}

enum ree_status ree_onnx_open_beneath(int folder_fd, const char *location, bool use_openat2,
                                      int *out_fd, struct ree_error *err) {
    *out_fd = -1;
    REE_TRY(check_location(location, err));
    *out_fd = ree_onnx_open_blob(folder_fd, location);
    if (*out_fd >= 0) return REE_OK;
#ifdef SYS_openat2
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    // EAGAIN: a folder in the path was moved during the lookup.
    for (int attempt = 0; use_openat2 && attempt < 16; attempt++) {
        int fd = (int)syscall(SYS_openat2, folder_fd, location, &how, sizeof how);
        if (fd >= 0) {
            *out_fd = fd;
            return REE_OK;
        }
        // An old kernel, or a sandbox that does not know the system call.
        if (errno == ENOSYS || errno == EPERM) break;
        if (errno != EAGAIN) return open_failed(errno, err);
    }
#else
    (void)use_openat2;
#endif
    return open_without_links(folder_fd, location, out_fd, err);
}

enum ree_status ree_onnx_check_links(int fd, int64_t owner, struct ree_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0) return ree_fail(err, REE_IO, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_nlink < 2 || owner == (int64_t)info.st_uid) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "it has %llu hard links and belongs to user %u, but the model belongs to user "
                    "%lld: it may be a file from outside of the folder; replace it with a copy",
                    (unsigned long long)info.st_nlink, (unsigned)info.st_uid, (long long)owner);
}

// Sets *out to the mapping of a location, which the reader owns. Each file is mapped only once.
static enum ree_status map_location(struct ree_onnx_reader *reader, const char *location,
                                    struct ree_mapping **out) {
    for (struct ree_mapping *m = reader->files; m; m = m->next) {
        if (strcmp(m->location, location) == 0) {
            *out = m;
            return REE_OK;
        }
    }
    if (!reader->folder)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "a model in memory has no folder; load it from its file");
    if (reader->folder_fd < 0) {
        reader->folder_fd = open(reader->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (reader->folder_fd < 0)
            return ree_fail(reader->err, REE_IO, "folder '%s': %s", reader->folder,
                            strerror(errno));
    }
    int fd;
    REE_TRY(ree_onnx_open_beneath(reader->folder_fd, location, true, &fd, reader->err));
    struct ree_mapping *mapping;
    enum ree_status status = ree_onnx_check_links(fd, reader->owner, reader->err);
    if (status == REE_OK) status = ree_mapping_of_fd(fd, &mapping, reader->err);
    close(fd);
    REE_TRY(status);
    for (struct ree_mapping *m = reader->files; m; m = m->next) {
        if (m->device == mapping->device && m->inode == mapping->inode) {
            ree_mapping_destroy(mapping);
            *out = m;
            return REE_OK;
        }
    }
    mapping->location = ree_arena_strdup(reader->arena, location);
    if (!mapping->location) {
        ree_mapping_destroy(mapping);
        return ree_onnx_no_memory(reader);
    }
    ree_mapping_link(&reader->files, mapping);
    *out = mapping;
    return REE_OK;
}

// The checksum is the SHA-1 of the whole file, in hexadecimal. It is computed once per file.
static enum ree_status check_checksum(struct ree_onnx_reader *reader, struct ree_mapping *mapping,
                                      const char *expected) {
    if (!mapping->checked) {
        const void *data = mapping->size ? (const void *)mapping->data : "";
        if (!EVP_Digest(data, mapping->size, mapping->digest, NULL, EVP_sha1(), NULL))
            return ree_fail(reader->err, REE_INTERNAL, "SHA-1 is not available");
        mapping->checked = true;
    }
    char actual[2 * sizeof mapping->digest + 1] = "";
    for (size_t i = 0; i < sizeof mapping->digest; i++) {
        actual[2 * i] = "0123456789abcdef"[mapping->digest[i] >> 4];
        actual[2 * i + 1] = "0123456789abcdef"[mapping->digest[i] & 15];
    }
    if (strcasecmp(actual, expected) != 0)
        return ree_fail(reader->err, REE_INVALID, "its SHA-1 is %s, but the model requires %.64s",
                        actual, expected);
    return REE_OK;
}

static enum ree_status find_bytes(struct ree_onnx_reader *reader, const struct place *place,
                                  size_t nbytes, size_t alignment, const void **out) {
    if (place->has_length && place->length != nbytes)
        return ree_fail(reader->err, REE_INVALID,
                        "length is %llu, but the tensor requires %zu bytes",
                        (unsigned long long)place->length, nbytes);
    struct ree_mapping *mapping = NULL;
    REE_TRY(map_location(reader, place->location, &mapping));
    uint64_t end;
    if (!ree_add_size(place->offset, nbytes, &end) || end > mapping->size)
        return ree_fail(reader->err, REE_INVALID,
                        "offset %llu + length %zu is past the end of the file (%zu bytes)",
                        (unsigned long long)place->offset, nbytes, mapping->size);
    if (place->checksum) REE_TRY(check_checksum(reader, mapping, place->checksum));
    // The mapping starts at a page boundary. After the file's last byte, the rest of the page reads
    // as zeros. So an aligned tensor is readable up to the next multiple of 4 bytes.
    if (nbytes && place->offset % alignment == 0) {
        *out = mapping->data + place->offset;
        return REE_OK;
    }
    void *copy = ree_arena_alloc(reader->arena, nbytes ? (nbytes + 3) & ~(size_t)3 : 4);
    if (!copy) return ree_onnx_no_memory(reader);
    if (nbytes) memcpy(copy, mapping->data + place->offset, nbytes);
    *out = copy;
    return REE_OK;
}

enum ree_status ree_onnx_read_external(struct ree_onnx_reader *reader,
                                       const Onnx__TensorProto *proto, size_t nbytes,
                                       size_t alignment, const void **out) {
    struct place place;
    REE_TRY(read_place(reader, proto, &place));
    if (find_bytes(reader, &place, nbytes, alignment, out) == REE_OK) return REE_OK;
    return ree_fail_prefix(reader->err, "external data '%s'", place.location);
}

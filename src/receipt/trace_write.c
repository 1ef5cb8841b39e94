// A trace on its way into a file: step by step, under another name until it is whole.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "receipt/trace_header.h"

struct ree_trace_writer {
    const struct ree_trace_header *header;
    char *path, *temporary;
    FILE *file;
    uint64_t n_steps, capacity;
    ree_digest *steps; // the leaf of each
    ree_digest *nodes; // of the step being written
};

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

static enum ree_status failed(const struct ree_trace_writer *w, struct ree_error *err) {
    return ree_fail(err, REE_IO, "%s: cannot write it: %s", w->path, strerror(errno));
}

static void release(struct ree_trace_writer *w) {
    if (w->file) fclose(w->file);
    if (w->temporary) unlink(w->temporary);
    free(w->temporary);
    free(w->path);
    free(w->steps);
    free(w->nodes);
    free(w);
}

static bool put(struct ree_trace_writer *w, const void *bytes, size_t nbytes) {
    return fwrite(bytes, 1, nbytes, w->file) == nbytes;
}

static enum ree_status open_file(struct ree_trace_writer *w, struct ree_error *err) {
    size_t size = strlen(w->path) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary) return no_memory(err);
    snprintf(temporary, size, "%s.XXXXXX", w->path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        enum ree_status status = errno == ENOENT || errno == ENOTDIR ? REE_NOT_FOUND : REE_IO;
        ree_fail_message(err, status, "%s: cannot create it: %s", w->path, strerror(errno));
        free(temporary);
        return status;
    }
    w->temporary = temporary;
    w->file = fdopen(fd, "wb");
    if (w->file) return REE_OK;
    close(fd);
    return no_memory(err);
}

static enum ree_status begin(struct ree_trace_writer *w, const char *path, struct ree_error *err) {
    w->path = strdup(path);
    w->nodes = malloc(((size_t)w->header->n_nodes + 1) * sizeof *w->nodes);
    if (!w->path || !w->nodes) return no_memory(err);
    REE_TRY(open_file(w, err));
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_trace_header_encode(w->header, &text, err);
    uint64_t size = text.size;
    if (status == REE_OK &&
        !(put(w, REE_TRACE_MAGIC, strlen(REE_TRACE_MAGIC)) && put(w, &size, sizeof size) &&
          put(w, text.data, text.size) && fflush(w->file) == 0))
        status = failed(w, err);
    ree_strbuf_finish(&text);
    return status;
}

enum ree_status ree_trace_writer_create(const char *path, const struct ree_trace_header *header,
                                        struct ree_trace_writer **out, struct ree_error *err) {
    *out = NULL;
    struct ree_trace_writer *w = calloc(1, sizeof *w);
    if (!w) return no_memory(err);
    w->header = header;
    enum ree_status status = begin(w, path, err);
    if (status == REE_OK)
        *out = w;
    else
        release(w);
    return status;
}

enum ree_status ree_trace_writer_step(struct ree_trace_writer *w, const ree_digest *step,
                                      struct ree_error *err) {
    if (w->n_steps == w->capacity) {
        uint64_t capacity = w->capacity ? w->capacity * 2 : 64;
        ree_digest *grown = realloc(w->steps, (size_t)capacity * sizeof *grown);
        if (!grown) return no_memory(err);
        w->steps = grown;
        w->capacity = capacity;
    }
    if (!put(w, step, (size_t)w->header->n_step_digests * sizeof *step)) return failed(w, err);
    ree_trace_step_digest(w->header, w->n_steps, step, w->nodes, w->steps[w->n_steps]);
    w->n_steps++;
    return REE_OK;
}

enum ree_status ree_trace_writer_finish(struct ree_trace_writer *w, ree_digest root,
                                        struct ree_error *err) {
    ree_digest own;
    ree_trace_root(w->header, (const ree_digest *)w->steps, w->n_steps, own);
    // mkostemp makes files of mode 0600; a result is as readable as any file the user makes.
    mode_t mask = umask(0);
    umask(mask);
    bool ok = put(w, REE_TRACE_END, strlen(REE_TRACE_END)) &&
              put(w, &w->n_steps, sizeof w->n_steps) && put(w, own, sizeof own) &&
              fflush(w->file) == 0 && fchmod(fileno(w->file), 0666 & ~mask) == 0;
    int error = errno;
    if (fclose(w->file) != 0 && ok) {
        ok = false;
        error = errno;
    }
    w->file = NULL;
    if (ok && rename(w->temporary, w->path) != 0) {
        ok = false;
        error = errno;
    }
    enum ree_status status = REE_OK;
    errno = error;
    if (!ok) status = failed(w, err);
    if (ok) { // there is nothing under that name any more
        free(w->temporary);
        w->temporary = NULL;
        if (root) memcpy(root, own, sizeof own);
    }
    release(w);
    return status;
}

void ree_trace_writer_abandon(struct ree_trace_writer *w) {
    if (w) release(w);
}

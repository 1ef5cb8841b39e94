// Writes a trace to a file, step by step.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "trace/trace_header.h"

struct ree_trace_writer {
    const struct ree_trace_header *header;
    struct ree_file_draft *file;
    uint64_t n_steps, capacity;
    ree_digest *steps; // one leaf per step
    ree_digest *nodes; // node digests of the current step
};

static void release(struct ree_trace_writer *w) {
    ree_file_abandon(w->file);
    ree_free(w->steps);
    ree_free(w->nodes);
    ree_free(w);
}

static enum ree_status begin(struct ree_trace_writer *w, const char *path, unsigned mode,
                             struct ree_error *err) {
    w->nodes = ree_alloc(((size_t)w->header->n_nodes + 1) * sizeof *w->nodes);
    if (!w->nodes) return ree_no_memory(err);
    REE_TRY(ree_file_begin(path, mode, &w->file, err));
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_trace_header_encode(w->header, &text, err);
    uint64_t size = text.size;
    char magic[sizeof REE_TRACE_MAGIC + 2];
    snprintf(magic, sizeof magic, REE_TRACE_MAGIC "%u\n", w->header->version % 10);
    if (status == REE_OK) status = ree_file_append(w->file, magic, sizeof magic - 1, err);
    if (status == REE_OK) status = ree_file_append(w->file, &size, sizeof size, err);
    if (status == REE_OK) status = ree_file_append(w->file, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

enum ree_status ree_trace_writer_create(const char *path, unsigned mode,
                                        const struct ree_trace_header *header,
                                        struct ree_trace_writer **out, struct ree_error *err) {
    *out = NULL;
    struct ree_trace_writer *w = ree_alloc_zeroed(1, sizeof *w);
    if (!w) return ree_no_memory(err);
    w->header = header;
    enum ree_status status = begin(w, path, mode, err);
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
        ree_digest *grown = ree_realloc(w->steps, (size_t)capacity * sizeof *grown);
        if (!grown) return ree_no_memory(err);
        w->steps = grown;
        w->capacity = capacity;
    }
    REE_TRY(ree_file_append(w->file, step, w->header->n_step_digests * sizeof *step, err));
    ree_trace_step_digest(w->header, w->n_steps, step, w->nodes, w->steps[w->n_steps]);
    w->n_steps++;
    return REE_OK;
}

enum ree_status ree_trace_writer_finish(struct ree_trace_writer *w, ree_digest root,
                                        struct ree_error *err) {
    ree_digest own;
    ree_trace_root(w->header, (const ree_digest *)w->steps, w->n_steps, own);
    enum ree_status status = ree_file_append(w->file, REE_TRACE_END, strlen(REE_TRACE_END), err);
    if (status == REE_OK) status = ree_file_append(w->file, &w->n_steps, sizeof w->n_steps, err);
    if (status == REE_OK) status = ree_file_append(w->file, own, sizeof own, err);
    if (status == REE_OK) {
        status = ree_file_commit(w->file, err);
        w->file = NULL;
    }
    if (status == REE_OK && root) memcpy(root, own, sizeof own);
    release(w);
    return status;
}

void ree_trace_writer_abandon(struct ree_trace_writer *w) {
    if (w) release(w);
}

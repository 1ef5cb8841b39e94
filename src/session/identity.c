#include "session/identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "graph/ir/mapping.h"
#include "session/model.h"

// Number of chunks that are hashed between two reports of progress.
#define BATCH 128

static enum ree_status check_type(const struct ree_constant *c, struct ree_error *err) {
    if (c->data) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "'%s' has a type that ree does not support, so it cannot be hashed", c->name);
}

// Hashes the first n bytes of the encoded graph.
static enum ree_status hash_graph(const struct ree_identity *identity, size_t n, ree_digest out,
                                  struct ree_error *err) {
    struct ree_hasher *hasher = ree_hasher_create("ree-graph/1");
    enum ree_status status = REE_OK;
    size_t from = 0;
    for (size_t i = 0; status == REE_OK && i < identity->n_holes; i++) {
        const struct ree_constant *c = &identity->attributes[i];
        struct ree_tensor tensor = {.dtype = c->dtype,
                                    .rank = c->rank,
                                    .data = (void *)(uintptr_t)c->data, // only read
                                    .nbytes = c->nbytes};
        ree_digest digest;
        status = check_type(c, err);
        if (status != REE_OK) break;
        memcpy(tensor.dims, c->dims, sizeof tensor.dims);
        ree_tensor_digest(&tensor, digest);
        ree_hasher_update(hasher, identity->bytes + from, identity->holes[i] - from);
        ree_hasher_update(hasher, digest, sizeof digest);
        from = identity->holes[i] + sizeof digest;
    }
    ree_hasher_update(hasher, identity->bytes + from, n - from);
    ree_hasher_digest(hasher, out);
    return status;
}

enum ree_status ree_identity_graph(const struct ree_identity *identity, ree_digest out,
                                   struct ree_error *err) {
    return hash_graph(identity, identity->n_bytes, out, err);
}

enum ree_status ree_identity_graph_version_1(const struct ree_identity *identity, ree_digest out,
                                             struct ree_error *err) {
    return hash_graph(identity, identity->n_bytes_version_1, out, err);
}

// A weight, whose bytes are hashed in chunks. `first` is the index of its first chunk among the
// chunks of all weights.
struct weight {
    const struct ree_constant *constant;
    const unsigned char *bytes;
    unsigned char *own; // the bytes of strings, owned; NULL for other types
    size_t nbytes, n_chunks, first;
};

static enum ree_status resolve_strings(struct weight *w, struct ree_error *err) {
    const char *const *strings = w->constant->data;
    struct ree_strbuf bytes;
    ree_strbuf_init(&bytes);
    for (size_t i = 0; i < w->constant->nbytes / sizeof *strings; i++) {
        const char *s = strings[i] ? strings[i] : "";
        uint64_t n = strlen(s);
        ree_strbuf_append(&bytes, (const char *)&n, sizeof n);
        ree_strbuf_append(&bytes, s, n);
    }
    w->nbytes = bytes.size;
    w->bytes = w->own = (unsigned char *)ree_strbuf_take(&bytes);
    return w->own ? REE_OK : ree_no_memory(err);
}

static enum ree_status cut(const struct ree_constant *constants, size_t n, struct weight *weights,
                           size_t *out_n_chunks, struct ree_error *err) {
    *out_n_chunks = 0;
    for (size_t i = 0; i < n; i++) {
        struct weight *w = &weights[i];
        w->constant = &constants[i];
        REE_TRY(check_type(w->constant, err));
        w->bytes = w->constant->data;
        w->nbytes = w->constant->nbytes;
        if (w->constant->dtype == REE_STRING) REE_TRY(resolve_strings(w, err));
        w->n_chunks = (w->nbytes + REE_WEIGHT_CHUNK - 1) / REE_WEIGHT_CHUNK;
        w->first = *out_n_chunks;
        *out_n_chunks += w->n_chunks;
    }
    return REE_OK;
}

static void hash_chunk(const struct weight *w, size_t k, ree_digest out) {
    size_t from = k * REE_WEIGHT_CHUNK, left = w->nbytes - from;
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    ree_hasher_update(hasher, w->bytes + from, left < REE_WEIGHT_CHUNK ? left : REE_WEIGHT_CHUNK);
    ree_hasher_digest(hasher, out);
}

static void hash_leaf(const struct weight *w, const ree_digest *chunks, ree_digest out) {
    const struct ree_constant *c = w->constant;
    const uint32_t name_size = (uint32_t)strlen(c->name);
    const uint32_t type[2] = {(uint32_t)c->dtype, c->rank};
    const uint64_t n = w->n_chunks;
    struct ree_hasher *hasher = ree_hasher_create("ree-weight/1");
    ree_hasher_update(hasher, &name_size, sizeof name_size);
    ree_hasher_update(hasher, c->name, name_size);
    ree_hasher_update(hasher, type, sizeof type);
    ree_hasher_update(hasher, c->dims, c->rank * sizeof *c->dims);
    ree_hasher_update(hasher, &n, sizeof n);
    ree_hasher_update(hasher, chunks + w->first, w->n_chunks * sizeof *chunks);
    ree_hasher_digest(hasher, out);
}

enum ree_status ree_identity_leaves(const struct ree_constant *constants, size_t n,
                                    const struct ree_progress *progress, ree_digest *leaves,
                                    struct ree_error *err) {
    size_t n_chunks = 0;
    struct weight *weights = ree_alloc_zeroed(n + 1, sizeof *weights);
    ree_digest *chunks = NULL;
    uint32_t *owners = NULL; // per chunk: index of its weight
    enum ree_status status = weights ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = cut(constants, n, weights, &n_chunks, err);
    if (status == REE_OK) {
        chunks = ree_alloc_zeroed(n_chunks + 1, sizeof *chunks);
        owners = ree_alloc_zeroed(n_chunks + 1, sizeof *owners);
        if (!chunks || !owners) status = ree_no_memory(err);
    }
    for (size_t i = 0; status == REE_OK && i < n; i++)
        for (size_t k = 0; k < weights[i].n_chunks; k++)
            owners[weights[i].first + k] = (uint32_t)i;
    for (size_t from = 0; status == REE_OK && from < n_chunks; from += BATCH) {
        size_t to = n_chunks - from < BATCH ? n_chunks : from + BATCH;
        status = ree_progress_report(progress, "hashing weights", from * REE_WEIGHT_CHUNK,
                                     n_chunks * REE_WEIGHT_CHUNK, err);
        if (status != REE_OK) break;
#pragma omp parallel for if (to - from > 1) schedule(dynamic)
        for (size_t c = from; c < to; c++) {
            REE_FLOAT_ENV_WORKER();
            hash_chunk(&weights[owners[c]], c - weights[owners[c]].first, chunks[c]);
        }
    }
    for (size_t i = 0; status == REE_OK && i < n; i++)
        hash_leaf(&weights[i], (const ree_digest *)chunks, leaves[i]);
    for (size_t i = 0; weights && i < n; i++)
        ree_free(weights[i].own);
    ree_free(weights);
    ree_free(chunks);
    ree_free(owners);
    return status;
}

enum ree_status ree_identity_weights(const struct ree_identity *identity,
                                     const struct ree_progress *progress, ree_digest out,
                                     struct ree_error *err) {
    size_t n = identity->n_weights;
    ree_digest *leaves = ree_alloc_zeroed(n + 1, sizeof *leaves);
    if (!leaves) return ree_no_memory(err);
    enum ree_status status = ree_identity_leaves(identity->weights, n, progress, leaves, err);
    if (status == REE_OK) ree_merkle_root((const ree_digest *)leaves, n, out);
    ree_free(leaves);
    return status;
}

static enum ree_status in_model(const struct ree_model *model, enum ree_status status,
                                const ree_digest digest, char hex[65], struct ree_error *err) {
    if (ree_mappings_check(model->files->mappings, err) != REE_OK) status = REE_IO;
    if (status == REE_OK)
        ree_hex(digest, hex);
    else if (model->graph->file[0])
        ree_fail_prefix(err, "%s", model->graph->file);
    return status;
}

enum ree_status ree_model_graph_sha256(const struct ree_model *model, char hex[65],
                                       struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    ree_digest digest;
    hex[0] = 0;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    return in_model(model, ree_identity_graph(&model->identity, digest, err), digest, hex, err);
}

enum ree_status ree_model_weights_sha256(const struct ree_model *model,
                                         const struct ree_progress *progress, char hex[65],
                                         struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    ree_digest digest;
    hex[0] = 0;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    return in_model(model, ree_identity_weights(&model->identity, progress, digest, err), digest,
                    hex, err);
}

enum ree_status ree_model_hashes_make(const struct ree_model *model,
                                      const struct ree_progress *progress,
                                      struct ree_model_hashes *out, struct ree_error *err) {
    ree_digest version_1;
    REE_TRY(ree_model_graph_sha256(model, out->graph, err));
    REE_TRY(ree_identity_graph_version_1(&model->identity, version_1, err));
    ree_hex(version_1, out->graph_version_1);
    return ree_model_weights_sha256(model, progress, out->weights, err);
}

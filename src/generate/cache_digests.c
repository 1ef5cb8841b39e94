// Digests of the sequences' kv caches: NUMERICS.md, "Checkpoints".
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/group.h"

// Number of positions that are read at a time.
#define POSITIONS_READ 256

static enum ree_status read_positions(struct ree_group *group, size_t b, int64_t first, int64_t n,
                                      struct ree_tensor *positions, struct ree_error *err) {
    struct ree_generator *g = group->call->g;
    struct ree_sequence *s = group->sequences[b];
    REE_TRY(ree_generator_read_kv_caches(g, group->slot, (int64_t)b, first, n, positions, err));
    for (size_t i = 0; i < g->roles.n_kv_caches; i++) {
        if (!positions[i].name) continue; // kept in another process
        if (first == 0)
            ree_cache_digest_begin(&s->caches[i], &positions[i], g->roles.kv_caches[i].axis);
        ree_cache_digest_add(&s->caches[i], &positions[i]);
        ree_tensor_finish(&positions[i]);
    }
    return REE_OK;
}

// Hashes the positions added since the last call. The proof of causality includes that a position
// does not change once it is written. Without it, hashes all positions again.
static enum ree_status hash_sequence(struct ree_group *group, size_t b, struct ree_error *err) {
    struct ree_generator *g = group->call->g;
    struct ree_sequence *s = group->sequences[b];
    size_t n_kv_caches = g->roles.n_kv_caches;
    int64_t n = (int64_t)s->out->n - 1;
    if (!s->caches) s->caches = ree_alloc_zeroed(n_kv_caches, sizeof *s->caches);
    if (!s->digests) s->digests = ree_alloc_zeroed(n_kv_caches, sizeof *s->digests);
    struct ree_tensor *positions = ree_alloc_zeroed(n_kv_caches, sizeof *positions);
    if (!g->causality.is_proved) s->n_hashed = 0;
    enum ree_status status = s->caches && s->digests && positions ? REE_OK : ree_no_memory(err);
    while (status == REE_OK && s->n_hashed < n) {
        int64_t left = n - s->n_hashed, some = left < POSITIONS_READ ? left : POSITIONS_READ;
        status = read_positions(group, b, s->n_hashed, some, positions, err);
        s->n_hashed += some;
    }
    for (size_t i = 0; status == REE_OK && i < n_kv_caches; i++)
        memcpy(s->digests[i], s->caches[i].digest, sizeof *s->digests);
    ree_free(positions);
    return status;
}

enum ree_status ree_group_hash_kv_caches(struct ree_group *group, struct ree_error *err) {
    for (size_t b = 0; group->call->g->roles.n_kv_caches && b < group->batch; b++) {
        struct ree_sequence *s = group->sequences[b];
        bool has_run = group->from >= s->n_prefill;
        if (!s->is_done && has_run) REE_TRY(hash_sequence(group, b, err));
    }
    return REE_OK;
}

static enum ree_status compare(const struct ree_group *group, const struct ree_sequence *s,
                               struct ree_error *err) {
    const struct ree_generator *g = group->call->g;
    static const ree_digest unknown;
    for (size_t i = 0; i < g->roles.n_kv_caches; i++) {
        char is[65], was[65];
        if (memcmp(s->digests[i], unknown, sizeof unknown) == 0 ||
            memcmp(s->from->caches[i], unknown, sizeof unknown) == 0)
            continue;
        if (memcmp(s->digests[i], s->from->caches[i], sizeof *s->digests) == 0) continue;
        ree_hex(s->digests[i], is);
        ree_hex(s->from->caches[i], was);
        return ree_fail(err, REE_INVALID,
                        "the cache '%s' of sequence %zu, computed again from its %zu tokens, has "
                        "SHA-256 %s, but the checkpoint has %s",
                        ree_model_input(g->model, g->roles.kv_caches[i].input)->name, s->number,
                        s->out->n - 1, is, was);
    }
    return REE_OK;
}

enum ree_status ree_group_check_kv_caches(struct ree_group *group, struct ree_error *err) {
    group->wants_check = false;
    REE_TRY(ree_group_hash_kv_caches(group, err));
    for (size_t b = 0; group->call->g->roles.n_kv_caches && b < group->batch; b++) {
        const struct ree_sequence *s = group->sequences[b];
        bool goes_on = s->from && s->from->n > s->from->n_prompt;
        if (goes_on && !s->expects_last && !s->is_done) REE_TRY(compare(group, s, err));
    }
    return REE_OK;
}

// Batching: decides which sequences run together in a group.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/group.h"

// Returns whether two sequences may share a batch: any two if lengths may mix, otherwise only those
// with equal lengths of the prompt and of what is resumed, which are divided into the same runs.
static bool fit(const struct ree_generator *g, const struct ree_sequence *a,
                const struct ree_sequence *b) {
    return g->info.mixes_lengths ||
           (a->n_prefill == b->n_prefill && a->out->n_prompt == b->out->n_prompt);
}

// Returns the number of groups for n sequences that may share a batch.
static size_t count_groups(const struct ree_generator *g, size_t n) {
    size_t most = g->roles.fixed_batch ? 1 : g->options.max_batch,
           n_cache_slots = g->options.n_cache_slots;
    size_t groups = (n + most - 1) / most;
    groups = (groups + n_cache_slots - 1) / n_cache_slots * n_cache_slots;
    return groups < n ? groups : n;
}

// Returns the number of sequences in group k, if n sequences are divided into `groups` groups.
static size_t size_of(const struct ree_generator *g, size_t n, size_t groups, size_t k) {
    size_t most = g->roles.fixed_batch ? 1 : g->options.max_batch;
    if (g->options.n_cache_slots == 1) return k + 1 < groups ? most : n - k * most;
    return n / groups + (k < n % groups);
}

enum ree_status ree_batching(const struct ree_generator *g, const struct ree_sequence *sequences,
                             size_t n, struct ree_batching *out, struct ree_error *err) {
    out->n_groups = 0;
    out->first = ree_alloc_zeroed(n + 1, sizeof *out->first);
    out->order = ree_alloc_zeroed(n + 1, sizeof *out->order);
    bool *taken = ree_alloc_zeroed(n + 1, sizeof *taken);
    if (!out->first || !out->order || !taken) {
        ree_free(taken);
        return ree_no_memory(err);
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (taken[i] || sequences[i].is_done) continue;
        size_t begin = at;
        for (size_t j = i; j < n; j++)
            if (!taken[j] && !sequences[j].is_done && fit(g, &sequences[i], &sequences[j])) {
                taken[j] = true;
                out->order[at++] = j;
            }
        size_t count = at - begin, groups = count_groups(g, count), next = begin;
        for (size_t k = 0; k < groups; k++) {
            out->first[out->n_groups++] = next;
            next += size_of(g, count, groups, k);
        }
    }
    out->first[out->n_groups] = at;
    ree_free(taken);
    return REE_OK;
}

void ree_batching_finish(struct ree_batching *batching) {
    ree_free(batching->first);
    ree_free(batching->order);
    memset(batching, 0, sizeof *batching);
}

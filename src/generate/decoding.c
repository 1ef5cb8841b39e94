// The public functions of ree/decode.h: keep the sequences, find them by id, and check calls.
#include "generate/decoding.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"

// An id has the index in d->sequences plus 1 in its low 32 bits, and in its high 32 bits the number
// of earlier sequences with this index, so that no id is used again.
static ree_sequence_id id_of(const struct ree_decoding *d, const struct ree_decoding_sequence *s) {
    return (uint64_t)s->use << 32 | (uint64_t)(s - d->sequences + 1);
}

struct ree_decoding_sequence *ree_decoding_find(const struct ree_decoding *d, ree_sequence_id id,
                                                struct ree_error *err) {
    const size_t index = (size_t)(id & UINT32_MAX) - 1;
    if (index < d->sequences_capacity && d->sequences[index].is_used &&
        d->sequences[index].use == (uint32_t)(id >> 32))
        return &d->sequences[index];
    ree_fail(err, REE_NOT_FOUND, "there is no sequence %llu: it was never added, or it was removed",
             (unsigned long long)id);
    return NULL;
}

// Creation

static enum ree_status check_generator(struct ree_generator *g, struct ree_error *err) {
    struct ree_session *s = ree_pipeline_session(g->pipeline);
    if (!g->roles.n_kv_caches)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%s has no kv caches, so a step would run every sequence from its "
                        "beginning: use ree_generate",
                        g->source.model_path);
    if (g->options.max_device_memory)
        return ree_fail(err, REE_UNSUPPORTED,
                        "steps are not supported with max_device_memory: the generator may load "
                        "its weights for each run");
    if (!s || g->remote || g->rank.n_ranks > 1)
        return ree_fail(err, REE_UNSUPPORTED,
                        "steps are not supported in several stages or processes: create the "
                        "generator with one device and n_partitions 1");
    return REE_OK;
}

enum ree_status ree_decoding_create(struct ree_generator *g,
                                    const struct ree_decoding_options *options,
                                    struct ree_decoding **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_options own;
    *out = NULL;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_decoding_options", err));
    REE_TRY(check_generator(g, err));
    struct ree_decoding *d = ree_alloc_zeroed(1, sizeof *d);
    if (!d) return ree_no_memory(err);
    d->g = g;
    d->options = own;
    d->vocab_size = (size_t)g->info.vocab_size;
    enum ree_status status =
        ree_page_pool_create(ree_pipeline_session(g->pipeline), REE_PAGE_BITS, &d->pool, err);
    if (status != REE_OK) {
        ree_free(d);
        return status;
    }
    *out = d;
    return REE_OK;
}

void ree_decoding_destroy(struct ree_decoding *d) {
    REE_FLOAT_ENV_API();
    if (!d) return;
    ree_page_pool_destroy(d->pool);
    for (size_t i = 0; i < d->sequences_capacity; i++) {
        ree_free(d->sequences[i].ids);
        ree_free(d->sequences[i].pages);
    }
    ree_free(d->sequences);
    ree_free(d->owners);
    ree_free(d->is_dirty);
    ree_free(d->free_pages);
    ree_free(d->logits);
    ree_free(d);
}

// Sequences

static enum ree_status new_sequence(struct ree_decoding *d, struct ree_decoding_sequence **out,
                                    struct ree_error *err) {
    for (size_t i = 0; d->n_sequences < d->sequences_capacity; i++)
        if (!d->sequences[i].is_used) {
            *out = &d->sequences[i];
            (*out)->is_used = true;
            d->n_sequences++;
            return REE_OK;
        }
    if (d->sequences_capacity >= UINT32_MAX / 2) return ree_no_memory(err);
    size_t n = d->sequences_capacity ? 2 * d->sequences_capacity : 8;
    struct ree_decoding_sequence *grown = ree_realloc(d->sequences, n * sizeof *grown);
    if (!grown) return ree_no_memory(err);
    memset(grown + d->sequences_capacity, 0, (n - d->sequences_capacity) * sizeof *grown);
    d->sequences = grown;
    d->sequences_capacity = n;
    return new_sequence(d, out, err);
}

static void remove_sequence(struct ree_decoding *d, struct ree_decoding_sequence *s) {
    ree_pages_release(d, s, 0);
    ree_free(s->ids);
    ree_free(s->pages);
    *s = (struct ree_decoding_sequence){.use = s->use + 1};
    d->n_sequences--;
}

static enum ree_status reserve_ids(struct ree_decoding_sequence *s, size_t n,
                                   struct ree_error *err) {
    if (n <= s->capacity) return REE_OK;
    size_t capacity = n + n / 2;
    int32_t *ids = ree_realloc(s->ids, capacity * sizeof *ids);
    if (!ids) return ree_no_memory(err);
    s->ids = ids;
    s->capacity = capacity;
    return REE_OK;
}

enum ree_status ree_decoding_add(struct ree_decoding *d, ree_sequence_id *out,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_sequence *s;
    *out = 0;
    REE_TRY(new_sequence(d, &s, err));
    *out = id_of(d, s);
    return REE_OK;
}

enum ree_status ree_decoding_fork(struct ree_decoding *d, ree_sequence_id sequence,
                                  ree_sequence_id *out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out = 0;
    const struct ree_decoding_sequence *from = ree_decoding_find(d, sequence, err);
    if (!from) return REE_NOT_FOUND;
    const size_t index = (size_t)(from - d->sequences);
    struct ree_decoding_sequence *fork;
    REE_TRY(new_sequence(d, &fork, err));
    from = &d->sequences[index]; // the array may have moved
    enum ree_status status = reserve_ids(fork, from->n, err);
    if (status == REE_OK) status = ree_pages_share(d, from, fork, err);
    if (status != REE_OK) {
        remove_sequence(d, fork);
        return status;
    }
    if (from->n) memcpy(fork->ids, from->ids, from->n * sizeof *fork->ids);
    fork->n = from->n;
    fork->logits_changed = from->logits_changed;
    fork->is_replaced = from->is_replaced;
    fork->is_spoiled = from->is_spoiled;
    *out = id_of(d, fork);
    return REE_OK;
}

enum ree_status ree_decoding_truncate(struct ree_decoding *d, ree_sequence_id sequence, size_t n,
                                      struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_sequence *s = ree_decoding_find(d, sequence, err);
    if (!s) return REE_NOT_FOUND;
    if (n > s->n)
        return ree_fail(err, REE_INVALID,
                        "sequence %llu has %zu tokens, so it cannot keep the first %zu",
                        (unsigned long long)sequence, s->n, n);
    if (n > 0 && n < s->n && s->is_replaced)
        return ree_fail(
            err, REE_UNSUPPORTED,
            "sequence %llu cannot keep the first %zu of %zu tokens: this model replaces "
            "its kv caches instead of appending to them, so earlier positions may "
            "depend on later tokens. Truncate it to 0 tokens and decode again",
            (unsigned long long)sequence, n, s->n);
    if (n == 0) s->is_replaced = s->is_spoiled = false;
    s->n = n;
    ree_pages_release(d, s, ree_pages_for(n));
    return REE_OK;
}

enum ree_status ree_decoding_remove(struct ree_decoding *d, ree_sequence_id sequence,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_sequence *s = ree_decoding_find(d, sequence, err);
    if (!s) return REE_NOT_FOUND;
    remove_sequence(d, s);
    return REE_OK;
}

// Running

static enum ree_status check_item(const struct ree_decoding *d, const struct ree_decode *item,
                                  const struct ree_decoding_sequence *s, struct ree_error *err) {
    const unsigned long long number = item->sequence;
    const size_t context = (size_t)d->g->info.context_length;
    if (item->n == 0) return ree_fail(err, REE_INVALID, "sequence %llu: no new tokens", number);
    if (s->is_spoiled)
        return ree_fail(
            err, REE_UNSUPPORTED,
            "sequence %llu was in a call that failed, and this model had replaced its "
            "kv caches by then: truncate it to 0 tokens and decode all its tokens again",
            number);
    if (context && (s->n > context || item->n > context - s->n))
        return ree_fail(err, REE_INVALID,
                        "sequence %llu has %zu tokens, and %zu more exceed the model's context of "
                        "%zu: truncate the sequence or decode fewer",
                        number, s->n, item->n, context);
    for (size_t k = 0; k < item->n; k++)
        if (item->ids[k] < 0 || (d->vocab_size && (size_t)item->ids[k] >= d->vocab_size))
            return ree_fail(err, REE_INVALID,
                            "sequence %llu: new token %zu is %d, but the model's vocabulary has "
                            "%zu tokens",
                            number, k, item->ids[k], d->vocab_size);
    if (!item->at && item->n_logits > 1)
        return ree_fail(err, REE_INVALID,
                        "sequence %llu: logits of %zu tokens are requested without `at`", number,
                        item->n_logits);
    for (size_t k = 0; item->at && k < item->n_logits; k++)
        if (item->at[k] >= item->n)
            return ree_fail(err, REE_INVALID,
                            "sequence %llu: logits are requested of new token %zu, but there are "
                            "%zu",
                            number, item->at[k], item->n);
    return REE_OK;
}

static enum ree_status find_sequences(const struct ree_decoding *d, const struct ree_decode *items,
                                      size_t n, struct ree_decoding_sequence **out,
                                      struct ree_error *err) {
    enum ree_status status = REE_OK;
    bool *taken = ree_alloc_zeroed(d->sequences_capacity + 1, sizeof *taken);
    if (!taken) return ree_no_memory(err);
    for (size_t i = 0; i < n && status == REE_OK; i++) {
        out[i] = ree_decoding_find(d, items[i].sequence, err);
        if (!out[i])
            status = REE_NOT_FOUND;
        else if (taken[out[i] - d->sequences])
            status = ree_fail(err, REE_INVALID, "sequence %llu is in two items of one call",
                              (unsigned long long)items[i].sequence);
        else
            status = check_item(d, &items[i], out[i], err);
        if (status == REE_OK) taken[out[i] - d->sequences] = true;
    }
    ree_free(taken);
    return status;
}

static enum ree_status run(struct ree_decoding *d, const struct ree_decode *items, size_t n,
                           struct ree_decoding_sequence **sequences, size_t *numbers,
                           struct ree_error *err) {
    size_t *first = numbers, *end = numbers + n, *logits_at = numbers + 2 * n, n_rows = 0;
    REE_TRY(find_sequences(d, items, n, sequences, err));
    for (size_t i = 0; i < n; i++) {
        first[i] = sequences[i]->n;
        end[i] = sequences[i]->n + items[i].n;
        logits_at[i] = n_rows;
        n_rows += items[i].n_logits;
        REE_TRY(reserve_ids(sequences[i], end[i], err));
    }
    logits_at[n] = n_rows;
    enum ree_status status = ree_pages_reserve(d, sequences, n, first, end, err);
    if (status == REE_OK) status = ree_pages_begin_run(d, sequences, n, end, err);
    if (status == REE_OK) status = ree_decoding_run_items(d, items, sequences, n, logits_at, err);
    for (size_t i = 0; i < n && status != REE_OK; i++)
        ree_pages_release(d, sequences[i], ree_pages_for(sequences[i]->n));
    if (status != REE_OK) return status;
    for (size_t i = 0; i < n; i++) {
        memcpy(sequences[i]->ids + first[i], items[i].ids, items[i].n * sizeof *items[i].ids);
        sequences[i]->n = end[i];
        sequences[i]->is_spoiled = false;
        d->n_tokens += items[i].n;
    }
    return REE_OK;
}

enum ree_status ree_decoding_run(struct ree_decoding *d, struct ree_decode *items, size_t n,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    for (size_t i = 0; i < n; i++)
        items[i].logits = NULL;
    if (n == 0) return REE_OK;
    struct ree_decoding_sequence **sequences =
        ree_alloc_zeroed(n, sizeof(struct ree_decoding_sequence *));
    size_t *numbers = ree_alloc_zeroed(3 * n + 1, sizeof *numbers);
    enum ree_status status = sequences && numbers ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = run(d, items, n, sequences, numbers, err);
    for (size_t i = 0; i < n && status == REE_OK; i++)
        if (items[i].n_logits) items[i].logits = d->logits + numbers[2 * n + i] * d->vocab_size;
    ree_free(sequences);
    ree_free(numbers);
    return status;
}

// Choosing

enum ree_status ree_decoding_choose(struct ree_decoding *d, ree_sequence_id sequence,
                                    const float *logits, const struct ree_sampling *sampling,
                                    int32_t *out_id, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_sequence *s = ree_decoding_find(d, sequence, err);
    if (!s) return REE_NOT_FOUND;
    if (!d->vocab_size || !logits)
        return ree_fail(err, REE_INVALID, "sequence %llu: no logits to choose from",
                        (unsigned long long)sequence);
    if (!d->options.on_logits)
        return ree_sampling_choose(sampling, logits, d->vocab_size, s->ids, s->n, s->n, out_id,
                                   err);
    float *copy = ree_alloc(d->vocab_size * sizeof *copy);
    if (!copy) return ree_no_memory(err);
    memcpy(copy, logits, d->vocab_size * sizeof *copy);
    s->logits_changed = true;
    {
        REE_FLOAT_ENV_CALLBACK();
        d->options.on_logits(d->options.user, sequence, s->n, copy, d->vocab_size);
    }
    enum ree_status status =
        ree_sampling_choose(sampling, copy, d->vocab_size, s->ids, s->n, s->n, out_id, err);
    ree_free(copy);
    return status;
}

// Information

enum ree_status ree_decoding_sequence(const struct ree_decoding *d, ree_sequence_id sequence,
                                      struct ree_sequence_info *out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct ree_decoding_sequence *s = ree_decoding_find(d, sequence, err);
    if (!s) return REE_NOT_FOUND;
    struct ree_sequence_info info = {
        .ids = s->ids, .n = s->n, .n_pages = s->n_pages, .logits_changed = s->logits_changed};
    for (size_t i = 0; i < s->n_pages; i++)
        info.n_shared_pages += d->owners[s->pages[i]] > 1;
    return ree_stats_write(out, &info, sizeof info, "ree_sequence_info", err);
}

enum ree_status ree_decoding_stats(const struct ree_decoding *d, struct ree_decoding_stats *out,
                                   struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_decoding_stats stats = {
        .n_sequences = d->n_sequences,
        .vocab_size = d->vocab_size,
        .n_tokens = d->n_tokens,
        .n_runs = d->n_runs,
        .page_positions = REE_PAGE_POSITIONS,
        .page_bytes = ree_page_pool_page_bytes(d->pool),
        .n_copied_pages = d->n_copied_pages,
    };
    ree_page_pool_last_run(d->pool, &stats.n_page_copies, &stats.copies_forks);
    for (size_t i = 1; i < d->n_known_pages; i++) {
        stats.n_pages += d->owners[i] > 0;
        stats.n_shared_pages += d->owners[i] > 1;
    }
    stats.cache_bytes = stats.n_pages * stats.page_bytes;
    stats.pool_bytes = ree_page_pool_n_pages(d->pool) * stats.page_bytes;
    return ree_stats_write(out, &stats, sizeof stats, "ree_decoding_stats", err);
}

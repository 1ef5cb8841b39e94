// Divides the new tokens of several sequences into runs of the model.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/decoding.h"

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

// The new tokens of one call of ree_decoding_run_items. The first done[i] tokens of item i have
// already run.
struct schedule {
    struct ree_decoding *d;
    const struct ree_decode *items;
    struct ree_decoding_sequence *const *sequences;
    const size_t *logits_at; // per item: its first row in d->logits
    size_t n, n_rows;        // items; rows of logits of all items
    size_t *done;
    size_t *members; // indices of the items of the next run
    size_t batch;    // number of members
};

// One run of the model over the members. ids and targets are (batch, length), table is (batch,
// pages), starts is (batch), rows is (batch, n_rows).
struct run {
    struct ree_step step;
    struct ree_page_run pages;
    int32_t *ids, *table, *targets;
    int64_t *starts, *rows;
    int64_t total;
};

static size_t left(const struct schedule *s, size_t i) {
    return s->items[i].n - s->done[i];
}
static size_t next_length(const struct schedule *s, size_t i) {
    const size_t chunk = s->d->g->options.prefill_chunk;
    return left(s, i) < chunk ? left(s, i) : chunk;
}
static size_t position(const struct schedule *s, size_t i) {
    return s->sequences[i]->n + s->done[i];
}

// Chooses the items of the next run: single tokens first, otherwise chunks of the first item's
// length. Items run together if the model allows it. Returns false if everything has run.
static bool choose_members(struct schedule *s) {
    const struct ree_generator *g = s->d->g;
    const size_t most = g->roles.fixed_batch ? 1 : g->options.max_batch;
    size_t first = s->n;
    for (size_t i = 0; i < s->n; i++)
        if (left(s, i) && (first == s->n || (left(s, i) == 1 && left(s, first) > 1))) first = i;
    if (first == s->n) return false;
    s->batch = 0;
    for (size_t i = first; i < s->n && s->batch < most; i++)
        if (left(s, i) && next_length(s, i) == next_length(s, first) &&
            (g->info.mixes_lengths || position(s, i) == position(s, first)))
            s->members[s->batch++] = i;
    return true;
}

// Returns the index, among item i's new tokens, of the k-th token whose logits are requested.
static size_t requested(const struct schedule *s, size_t i, size_t k) {
    return s->items[i].at ? s->items[i].at[k] : s->items[i].n - 1;
}
static bool runs_now(const struct schedule *s, size_t i, size_t token, size_t length) {
    return token >= s->done[i] && token - s->done[i] < length;
}

// Returns the largest number of rows of logits that a member needs; at least 1, because models
// compute at least one.
static size_t count_rows(const struct schedule *s, size_t length) {
    size_t most = 1;
    for (size_t b = 0; b < s->batch; b++) {
        const size_t i = s->members[b];
        size_t rows = 0;
        for (size_t k = 0; k < s->items[i].n_logits; k++)
            rows += runs_now(s, i, requested(s, i, k), length);
        if (rows > most) most = rows;
    }
    return most;
}

static void fill_member(const struct schedule *s, struct run *r, size_t b) {
    const size_t i = s->members[b], length = r->step.length, start = position(s, i);
    const struct ree_decoding_sequence *sequence = s->sequences[i];
    memcpy(r->ids + b * length, s->items[i].ids + s->done[i], length * sizeof *r->ids);
    r->starts[b] = (int64_t)start;
    for (size_t t = 0; t < length; t++) {
        const size_t at = start + t;
        r->targets[b * length + t] = sequence->pages[at >> REE_PAGE_BITS] << REE_PAGE_BITS |
                                     (int32_t)(at % REE_PAGE_POSITIONS);
    }
    const size_t own = sequence->n_pages < r->pages.n_pages ? sequence->n_pages : r->pages.n_pages;
    memcpy(r->table + b * r->pages.n_pages, sequence->pages, own * sizeof *r->table);
    // Rows that are not requested stay 0.
    size_t row = b * r->step.n_rows;
    for (size_t k = 0; k < s->items[i].n_logits; k++) {
        const size_t token = requested(s, i, k);
        if (runs_now(s, i, token, length)) r->rows[row++] = (int64_t)(token - s->done[i]);
    }
}

static enum ree_status make_run(const struct schedule *s, struct run *r, struct ree_error *err) {
    const size_t batch = s->batch, length = next_length(s, s->members[0]);
    const size_t n_rows = count_rows(s, length);
    size_t total = 0;
    for (size_t b = 0; b < batch; b++)
        if (position(s, s->members[b]) + length > total)
            total = position(s, s->members[b]) + length;
    if (s->d->g->info.mixes_lengths) total = round_up(total, REE_PARTITION_POSITIONS);
    r->total = (int64_t)total;
    r->pages.n_pages = ree_pages_for(total);
    r->ids = ree_alloc(batch * length * sizeof *r->ids);
    r->targets = ree_alloc(batch * length * sizeof *r->targets);
    r->table = ree_alloc_zeroed(batch * r->pages.n_pages, sizeof *r->table);
    r->starts = ree_alloc(batch * sizeof *r->starts);
    r->rows = ree_alloc_zeroed(batch * n_rows, sizeof *r->rows);
    if (!r->ids || !r->targets || !r->table || !r->starts || !r->rows) return ree_no_memory(err);
    r->step = (struct ree_step){batch, length, r->ids, r->starts, n_rows, r->rows};
    r->pages.batch = batch;
    r->pages.length = length;
    r->pages.table = r->table;
    r->pages.targets = r->targets;
    r->pages.filled = (int64_t)(total - length);
    for (size_t b = 0; b < batch; b++)
        fill_member(s, r, b);
    return REE_OK;
}

static void finish_run(struct run *r) {
    ree_free(r->ids);
    ree_free(r->targets);
    ree_free(r->table);
    ree_free(r->starts);
    ree_free(r->rows);
}

// Copies the pages that the members share with other sequences, because the run writes all pages.
static enum ree_status unshare(struct schedule *s, struct run *r, struct ree_error *err) {
    for (size_t b = 0; b < s->batch; b++) {
        const size_t i = s->members[b], first = 0;
        const size_t end = s->sequences[i]->n + s->items[i].n;
        REE_TRY(ree_pages_reserve(s->d, &s->sequences[i], 1, &first, &end, err));
        memset(r->rows + b * r->step.n_rows, 0, r->step.n_rows * sizeof *r->rows);
        fill_member(s, r, b);
    }
    return REE_OK;
}

// Marks the members before a run that replaces their kv caches. A cache that is proved to be its
// past followed by new positions keeps the values of earlier positions, even if a run writes them
// again.
static void mark_replaced(const struct schedule *s) {
    if (s->d->g->causality.is_proved) return;
    for (size_t b = 0; b < s->batch; b++) {
        struct ree_decoding_sequence *sequence = s->sequences[s->members[b]];
        sequence->is_replaced = true;
        sequence->is_spoiled = sequence->n > 0;
    }
}

static enum ree_status take_logits(struct schedule *s, const struct run *r,
                                   const struct ree_tensor *logits, struct ree_error *err) {
    struct ree_decoding *d = s->d;
    const size_t vocab = (size_t)logits->dims[2];
    if (!d->logits) {
        d->vocab_size = vocab;
        d->logits = ree_alloc((s->n_rows + 1) * vocab * sizeof *d->logits);
        if (!d->logits) return ree_no_memory(err);
    }
    if (vocab != d->vocab_size)
        return ree_fail(err, REE_INVALID, "the logits have %zu entries now, but had %zu before",
                        vocab, d->vocab_size);
    for (size_t b = 0; b < s->batch; b++) {
        const size_t i = s->members[b];
        const float *from = (const float *)logits->data + b * r->step.n_rows * vocab;
        for (size_t k = 0; k < s->items[i].n_logits; k++) {
            if (!runs_now(s, i, requested(s, i, k), r->step.length)) continue;
            memcpy(d->logits + (s->logits_at[i] + k) * vocab, from, vocab * sizeof *from);
            from += vocab;
        }
    }
    return REE_OK;
}

static enum ree_status run_model(struct schedule *s, struct run *r, struct ree_error *err) {
    const struct ree_generator *g = s->d->g;
    const size_t n_outputs = ree_model_n_outputs(g->model);
    struct ree_tensor *inputs = ree_alloc_zeroed(g->roles.n_inputs + 1, sizeof *inputs);
    struct ree_tensor *outputs = ree_alloc_zeroed(n_outputs + 1, sizeof *outputs);
    struct ree_tensor logits = {0};
    size_t n_inputs = 0;
    bool rewrites = false, replaces = false;
    enum ree_status status = inputs && outputs ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = ree_step_inputs(g, &r->step, r->total, inputs, &n_inputs, err);
    if (status == REE_OK && !g->info.mixes_lengths)
        status =
            ree_page_pool_bind(s->d->pool, &r->pages, inputs, n_inputs, &rewrites, &replaces, err);
    if (status == REE_OK && rewrites) status = unshare(s, r, err);
    if (status == REE_OK && replaces) mark_replaced(s);
    if (status == REE_OK)
        status = ree_page_pool_run(s->d->pool, &r->pages, inputs, n_inputs, outputs, err);
    if (status == REE_OK)
        status = ree_step_logits(g, &r->step, &outputs[g->roles.logits], &logits, err);
    if (status == REE_OK) status = take_logits(s, r, &logits, err);
    ree_tensor_finish(&logits);
    for (size_t i = 0; outputs && i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    for (size_t i = 0; inputs && i < n_inputs; i++)
        ree_tensor_finish(&inputs[i]);
    ree_free(inputs);
    ree_free(outputs);
    s->d->n_runs++;
    return status;
}

static enum ree_status run_all(struct schedule *s, struct ree_error *err) {
    while (choose_members(s)) {
        struct run r = {0};
        enum ree_status status = make_run(s, &r, err);
        if (status == REE_OK) status = run_model(s, &r, err);
        for (size_t b = 0; b < s->batch; b++)
            s->done[s->members[b]] += r.step.length;
        finish_run(&r);
        if (status != REE_OK) return status;
    }
    return REE_OK;
}

enum ree_status ree_decoding_run_items(struct ree_decoding *d, const struct ree_decode *items,
                                       struct ree_decoding_sequence *const *sequences, size_t n,
                                       const size_t *logits_at, struct ree_error *err) {
    ree_free(d->logits);
    d->logits = NULL;
    struct schedule s = {.d = d,
                         .items = items,
                         .sequences = sequences,
                         .logits_at = logits_at,
                         .n = n,
                         .n_rows = logits_at[n],
                         .done = ree_alloc_zeroed(n, sizeof *s.done),
                         .members = ree_alloc_zeroed(n, sizeof *s.members)};
    enum ree_status status = s.done && s.members ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = run_all(&s, err);
    ree_free(s.done);
    ree_free(s.members);
    return status;
}

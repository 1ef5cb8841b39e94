// Sums over the samples of all ranks. Their terms are in the order of the samples, cut into chunks
// of 256 as in every sum (NUMERICS.md, section 3). A rank computes the chunks whose last term is
// its own; the rank before sends it the terms of a chunk that begins earlier. So all ranks multiply
// at the same time, and only the addition of the chunks' results goes from rank to rank, one
// addition per element and chunk. The last rank sends the sum around.
#include "train/shared_step.h"

#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"

#define CHUNK 256
// Results of chunks are computed for as many rows of a sum at once as fit into this many bytes; of
// a sum with several groups, for as many groups.
#define MAX_RESULTS ((uint64_t)64 << 20)

// The terms of a sum on this rank.
struct range {
    uint64_t begin, end; // among the terms of all ranks
    uint64_t n_own;      // end - begin
    uint64_t n_before;   // terms of the first chunk that ranks before have
    uint64_t n_after;    // terms of the last chunk, which a rank after completes
    uint64_t n_chunks;   // that this rank computes
    bool has_total;      // ranks before have whole chunks
    bool gives_total;    // this rank and those before have whole chunks
    bool is_last;
};

static struct range range_of(const struct ree_shared_step *s, const struct ree_share_sum *sum) {
    struct range r = {.begin = sum->n_per_sample * (uint64_t)s->begin,
                      .end = sum->n_per_sample * (uint64_t)s->end};
    r.is_last = s->rank + 1 == s->n_ranks;
    r.n_own = r.end - r.begin;
    r.n_before = r.begin % CHUNK;
    r.n_after = r.is_last ? 0 : r.end % CHUNK;
    uint64_t end = r.is_last ? (r.end + CHUNK - 1) / CHUNK : r.end / CHUNK;
    r.n_chunks = end - r.begin / CHUNK;
    r.has_total = r.begin >= CHUNK;
    r.gives_total = !r.is_last && r.end >= CHUNK;
    return r;
}

// A sum is computed in slices: of its rows, or of its groups if it has several.
static bool has_groups(const struct ree_share_sum *sum) {
    return sum->groups > 1;
}

static uint64_t n_units(const struct ree_share_sum *sum) {
    return (uint64_t)(has_groups(sum) ? sum->groups : sum->m);
}

// Numbers of the result in a row or group.
static uint64_t unit_size(const struct ree_share_sum *sum) {
    return (uint64_t)(has_groups(sum) ? sum->m * sum->n : sum->n);
}

// Columns of the terms, on the left and on the right.
static uint64_t width_of(const struct ree_share_sum *sum, size_t side) {
    return (uint64_t)(sum->groups * (side ? sum->n : sum->m));
}

// Rows or groups of a slice; the same on all ranks, because each slice is a message.
static uint64_t slice_units(const struct ree_shared_step *s, const struct ree_share_sum *sum) {
    uint64_t batch = (uint64_t)s->training->step.batch_size;
    uint64_t most = (batch / s->n_ranks + 1) * sum->n_per_sample / CHUNK + 2; // chunks of a rank
    uint64_t units = MAX_RESULTS / (most * unit_size(sum) * sizeof(float));
    return units < 1 ? 1 : units < n_units(sum) ? units : n_units(sum);
}

// Messages

static enum ree_status receive(struct ree_shared_step *s, uint32_t from, enum ree_message_kind kind,
                               size_t sum, const size_t *sizes, size_t n_parts,
                               struct ree_message *out, struct ree_error *err) {
    struct ree_part parts[2] = {{NULL, sizes[0]}, {NULL, n_parts > 1 ? sizes[1] : 0}};
    const struct ree_expected expected = {.kinds = 1u << kind,
                                          .limit = ree_frame_nbytes(parts, n_parts),
                                          .step = s->training->n_steps};
    double start = ree_transport_clock();
    REE_TRY(ree_transport_receive(s->transport, from, &expected, out, err));
    s->waited += ree_transport_clock() - start;
    bool fits = out->step == s->training->n_steps && out->slot == sum && out->n_parts == n_parts;
    for (size_t i = 0; fits && i < n_parts; i++)
        fits = out->parts[i].nbytes == sizes[i];
    if (fits) return REE_OK;
    ree_message_finish(out);
    return ree_fail(err, REE_INVALID, "rank %u sends the %s of another sum", from,
                    ree_message_kind_name(kind));
}

// Receives one part into `data`.
static enum ree_status receive_into(struct ree_shared_step *s, uint32_t from,
                                    enum ree_message_kind kind, size_t sum, void *data,
                                    size_t nbytes, struct ree_error *err) {
    struct ree_message m;
    REE_TRY(receive(s, from, kind, sum, &nbytes, 1, &m, err));
    if (nbytes) memcpy(data, m.parts[0].data, nbytes);
    ree_message_finish(&m);
    return REE_OK;
}

static enum ree_status send(struct ree_shared_step *s, uint32_t to, enum ree_message_kind kind,
                            size_t sum, const void *data, size_t nbytes, struct ree_error *err) {
    const struct ree_part part = {data, nbytes};
    return ree_transport_send(s->transport, to, kind, s->training->n_steps, (uint32_t)sum, &part, 1,
                              err);
}

// Chunks that two ranks share

static bool has_terms(const struct ree_share_sum *sum) {
    return sum->kind == REE_SUM_OF_PRODUCTS || sum->kind == REE_SUM_OF_ROWS;
}

// Copies the terms of the ranks before and then the own ones, as many of both as fit into n_rows of
// `width` numbers.
static void join_rows(float *out, const struct ree_message *before, size_t part, uint64_t n_before,
                      const struct ree_tensor *own, uint64_t n_own, uint64_t n_rows,
                      uint64_t width) {
    if (n_before) memcpy(out, before->parts[part].data, n_before * width * sizeof *out);
    if (n_own > n_rows - n_before) n_own = n_rows - n_before;
    if (n_own) memcpy(out + n_before * width, own->data, n_own * width * sizeof *out);
}

static enum ree_status receive_ends(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                    size_t index, struct ree_error *err) {
    struct range r = range_of(s, sum);
    bool has_right = sum->kind == REE_SUM_OF_PRODUCTS;
    const size_t sizes[2] = {r.n_before * width_of(sum, 0) * sizeof(float),
                             r.n_before * width_of(sum, 1) * sizeof(float)};
    if (!has_terms(sum) || !r.n_before) return REE_OK;
    return receive(s, s->rank - 1, REE_MESSAGE_TERMS, index, sizes, has_right ? 2 : 1,
                   &s->ends[index], err);
}

// Sends the terms of the last chunk, unless it is whole.
static enum ree_status send_ends(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                 size_t index, struct ree_error *err) {
    struct range r = range_of(s, sum);
    const struct ree_tensor *sides[2] = {&s->slots[sum->left], &s->slots[sum->right]};
    const uint64_t widths[2] = {width_of(sum, 0), width_of(sum, 1)};
    size_t n_sides = sum->kind == REE_SUM_OF_PRODUCTS ? 2 : 1;
    struct ree_part parts[2];
    float *joined[2] = {NULL, NULL};
    if (!has_terms(sum) || !r.n_after) return REE_OK;
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n_sides; i++) {
        parts[i].nbytes = r.n_after * widths[i] * sizeof(float);
        if (r.n_after <= r.n_own) {
            parts[i].data = (const float *)sides[i]->data + (r.n_own - r.n_after) * widths[i];
            continue;
        }
        // The chunk began on a rank before: all terms are part of it.
        joined[i] = ree_alloc(parts[i].nbytes + 1);
        if (!joined[i])
            status = ree_no_memory(err);
        else
            join_rows(joined[i], &s->ends[index], i, r.n_before, sides[i], r.n_own, r.n_after,
                      widths[i]);
        parts[i].data = joined[i];
    }
    if (status == REE_OK)
        status = ree_transport_send(s->transport, s->rank + 1, REE_MESSAGE_TERMS,
                                    s->training->n_steps, (uint32_t)index, parts, n_sides, err);
    ree_free(joined[0]);
    ree_free(joined[1]);
    return status;
}

// Each rank sends before it waits, unless it needs the terms of the rank before.
static enum ree_status exchange_ends(struct ree_shared_step *s, const struct ree_share_part *part,
                                     struct ree_error *err) {
    size_t n_received = 0;
    for (size_t i = 0; i < part->n_sums; i++) {
        struct range r = range_of(s, &part->sums[i]);
        while (r.n_after > r.n_own && n_received <= i) {
            REE_TRY(receive_ends(s, &part->sums[n_received], n_received, err));
            n_received++;
        }
        REE_TRY(send_ends(s, &part->sums[i], i, err));
    }
    for (; n_received < part->n_sums; n_received++)
        REE_TRY(receive_ends(s, &part->sums[n_received], n_received, err));
    return REE_OK;
}

// Results of chunks

// The rows of the chunks that this rank computes; rows behind the last term are zeros, which change
// no sum. *out_copy is NULL if these are the slot's rows.
static enum ree_status chunk_rows(struct ree_shared_step *s, const struct range *r, size_t index,
                                  size_t side, size_t slot, uint64_t width, const float **out,
                                  float **out_copy, struct ree_error *err) {
    const struct ree_tensor *own = &s->slots[slot];
    uint64_t n_rows = r->n_chunks * CHUNK;
    *out_copy = NULL;
    *out = own->data;
    // Also without a chunk: then all terms go to the next rank.
    if (!n_rows || (!r->n_before && n_rows <= r->n_own)) return REE_OK;
    *out_copy = ree_alloc_zeroed(n_rows * width + 1, sizeof(float));
    if (!*out_copy) return ree_no_memory(err);
    join_rows(*out_copy, &s->ends[index], side, r->n_before, own, r->n_own, n_rows, width);
    *out = *out_copy;
    return REE_OK;
}

// Makes matrices [chunks, groups, CHUNK, columns] of those columns of the rows that belong to a
// slice; each group has `n_columns` of the rows' `width` numbers, from column `first` on. NULL if
// memory is exhausted.
static float *select_columns(const float *rows, uint64_t n_chunks, uint64_t width, uint64_t first,
                             uint64_t groups, uint64_t n_columns) {
    float *out = ree_alloc(n_chunks * CHUNK * groups * n_columns * sizeof *out + 1), *to = out;
    for (uint64_t c = 0; out && c < n_chunks; c++)
        for (uint64_t g = 0; g < groups; g++)
            for (uint64_t i = 0; i < CHUNK; i++, to += n_columns)
                memcpy(to, rows + (c * CHUNK + i) * width + first + g * n_columns,
                       n_columns * sizeof *to);
    return out;
}

static struct ree_tensor chunk_tensor(const char *name, const float *rows, uint64_t n_matrices,
                                      uint64_t width) {
    return (struct ree_tensor){.name = (char *)(uintptr_t)name,
                               .dtype = REE_F32,
                               .rank = 3,
                               .dims = {(int64_t)n_matrices, CHUNK, (int64_t)width},
                               .data = (void *)(uintptr_t)rows,
                               .nbytes = n_matrices * CHUNK * width * sizeof(float)};
}

// Adds the chunks' results, in order, to a total of n numbers.
static void add_chunks(float *total, bool has_total, const float *results, uint64_t n_chunks,
                       uint64_t n) {
    if (!has_total && n_chunks) memcpy(total, results, n * sizeof *total);
    for (uint64_t c = has_total ? 0 : 1; c < n_chunks; c++)
        for (uint64_t i = 0; i < n; i++)
            total[i] = total[i] + results[c * n + i];
}

// As the definition of a sum ends: + 0, and the canonical NaN.
static void finish_total(float *total, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        total[i] = total[i] + 0.0f;
    ree_canonicalise_nans(REE_F32, n, total);
}

struct slice {
    const float *left, *right; // rows of the chunks
    uint64_t begin, end;       // of the sum's rows, or groups
};

// Computes the results of the chunks: [chunks, groups, m, n].
static enum ree_status run_chunks(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                  uint64_t n_chunks, const struct slice *slice,
                                  struct ree_tensor *out, struct ree_error *err) {
    const uint64_t size = slice->end - slice->begin, m = (uint64_t)sum->m, n = (uint64_t)sum->n;
    bool has_right = sum->kind == REE_SUM_OF_PRODUCTS;
    uint64_t groups = has_groups(sum) ? size : 1, rows = has_groups(sum) ? m : size;
    struct ree_tensor in[2] = {chunk_tensor("left", slice->left, n_chunks * groups, rows),
                               chunk_tensor("right", slice->right, n_chunks * groups, n)};
    float *columns[2] = {NULL, NULL};
    enum ree_status status = REE_OK;
    if (has_groups(sum) || rows < m) {
        in[0].data = columns[0] =
            select_columns(slice->left, n_chunks, width_of(sum, 0),
                           slice->begin * (has_groups(sum) ? m : 1), groups, rows);
        if (!columns[0]) status = ree_no_memory(err);
    }
    if (has_groups(sum)) {
        in[1].data = columns[1] =
            select_columns(slice->right, n_chunks, width_of(sum, 1), slice->begin * n, groups, n);
        if (!columns[1]) status = ree_no_memory(err);
    }
    if (status == REE_OK)
        status = ree_session_run((has_right ? &s->products : &s->rows)->session, in,
                                 has_right ? 2 : 1, out, err);
    ree_free(columns[0]);
    ree_free(columns[1]);
    return status;
}

static enum ree_status run_slice(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                 size_t index, const struct range *r, const struct slice *slice,
                                 float *total, struct ree_error *err) {
    const uint64_t n = (slice->end - slice->begin) * unit_size(sum);
    struct ree_tensor out = {0};
    enum ree_status status = REE_OK;
    if (r->n_chunks) {
        status = run_chunks(s, sum, r->n_chunks, slice, &out, err);
        ree_transport_working(s->transport);
        uint64_t n_terms = r->is_last ? r->n_before + r->n_own : r->n_chunks * CHUNK;
        s->n_products += sum->kind == REE_SUM_OF_PRODUCTS ? n_terms * n : 0;
    }
    if (status == REE_OK && r->has_total)
        status =
            receive_into(s, s->rank - 1, REE_MESSAGE_TOTAL, index, total, n * sizeof *total, err);
    if (status == REE_OK) {
        add_chunks(total, r->has_total, out.data, r->n_chunks, n);
        if (r->is_last) finish_total(total, n);
        if (r->gives_total)
            status = send(s, s->rank + 1, REE_MESSAGE_TOTAL, index, total, n * sizeof *total, err);
    }
    ree_tensor_finish(&out);
    return status;
}

static enum ree_status sum_terms(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                 size_t index, struct ree_error *err) {
    struct range r = range_of(s, sum);
    bool has_right = sum->kind == REE_SUM_OF_PRODUCTS;
    const int64_t dims[3] = {sum->groups, sum->m, sum->n};
    struct ree_tensor *result = &s->slots[sum->result];
    struct slice slice = {0};
    float *copies[2] = {NULL, NULL};
    ree_tensor_finish(result); // of a step that failed
    REE_TRY(ree_tensor_init(result, NULL, REE_F32, has_right ? 3 : 1, has_right ? dims : &dims[1],
                            err));
    if (!sum->groups || !sum->m || !sum->n) return REE_OK;
    enum ree_status status =
        chunk_rows(s, &r, index, 0, sum->left, width_of(sum, 0), &slice.left, &copies[0], err);
    if (status == REE_OK && has_right)
        status = chunk_rows(s, &r, index, 1, sum->right, width_of(sum, 1), &slice.right, &copies[1],
                            err);
    const uint64_t each = slice_units(s, sum), n_all = n_units(sum);
    for (uint64_t at = 0; status == REE_OK && at < n_all; at += each) {
        slice.begin = at;
        slice.end = at + each < n_all ? at + each : n_all;
        status =
            run_slice(s, sum, index, &r, &slice, (float *)result->data + at * unit_size(sum), err);
    }
    ree_free(copies[0]);
    ree_free(copies[1]);
    return status;
}

// Other sums

static void add_integers(struct ree_tensor *total, const struct ree_tensor *own) {
    size_t n = own->nbytes / ree_dtype_size(own->dtype);
    for (size_t i = 0; i < n; i++)
        if (own->dtype == REE_I64)
            ((uint64_t *)total->data)[i] += ((const uint64_t *)own->data)[i];
        else
            ((uint32_t *)total->data)[i] += ((const uint32_t *)own->data)[i];
}

static enum ree_status sum_integers(struct ree_shared_step *s, const struct ree_share_sum *sum,
                                    size_t index, struct ree_error *err) {
    const struct ree_tensor *own = &s->slots[sum->left];
    struct ree_tensor *result = &s->slots[sum->result];
    ree_tensor_finish(result); // of a step that failed
    REE_TRY(ree_tensor_init(result, NULL, own->dtype, own->rank, own->dims, err));
    if (s->rank)
        REE_TRY(receive_into(s, s->rank - 1, REE_MESSAGE_TOTAL, index, result->data, result->nbytes,
                             err));
    add_integers(result, own);
    if (s->rank + 1 == s->n_ranks) return REE_OK;
    return send(s, s->rank + 1, REE_MESSAGE_TOTAL, index, result->data, result->nbytes, err);
}

static enum ree_status sum_by_indices(struct ree_shared_step *s, size_t part, size_t index,
                                      struct ree_error *err) {
    const struct ree_share_sum *sum = &s->share.parts[part].sums[index];
    struct ree_tensor *initial = &s->slots[sum->initial];
    if (s->rank)
        REE_TRY(receive_into(s, s->rank - 1, REE_MESSAGE_TOTAL, index, initial->data,
                             initial->nbytes, err));
    REE_TRY(ree_shared_graph_run(s, &s->by_index[part][index], sum->steps, err));
    const struct ree_tensor *result = &s->slots[sum->result];
    if (s->rank + 1 == s->n_ranks) return REE_OK;
    return send(s, s->rank + 1, REE_MESSAGE_TOTAL, index, result->data, result->nbytes, err);
}

// Sends the sums from the last rank to rank 0 and on.
static enum ree_status spread_results(struct ree_shared_step *s, const struct ree_share_part *part,
                                      struct ree_error *err) {
    const uint32_t last = s->n_ranks - 1, before = s->rank ? s->rank - 1 : last;
    for (size_t i = 0; s->n_ranks > 1 && i < part->n_sums; i++) {
        struct ree_tensor *result = &s->slots[part->sums[i].result];
        if (s->rank != last)
            REE_TRY(
                receive_into(s, before, REE_MESSAGE_RESULT, i, result->data, result->nbytes, err));
        uint32_t next = s->rank == last ? 0 : s->rank + 1;
        if (next == last) continue;
        REE_TRY(send(s, next, REE_MESSAGE_RESULT, i, result->data, result->nbytes, err));
    }
    return REE_OK;
}

// Fails unless the part gave as many terms as the plan has.
static enum ree_status check_terms(const struct ree_shared_step *s,
                                   const struct ree_share_part *part, struct ree_error *err) {
    for (size_t i = 0; i < part->n_sums; i++) {
        const struct ree_share_sum *sum = &part->sums[i];
        const uint64_t n_own = range_of(s, sum).n_own * sizeof(float);
        if (!has_terms(sum)) continue;
        if (s->slots[sum->left].nbytes != n_own * width_of(sum, 0) ||
            (sum->kind == REE_SUM_OF_PRODUCTS &&
             s->slots[sum->right].nbytes != n_own * width_of(sum, 1)))
            return ree_fail(err, REE_INTERNAL, "the sum '%.128s' has not the planned terms",
                            sum->name);
    }
    return REE_OK;
}

enum ree_status ree_shared_sums_run(struct ree_shared_step *s, size_t part, struct ree_error *err) {
    const struct ree_share_part *p = &s->share.parts[part];
    REE_TRY(check_terms(s, p, err));
    enum ree_status status = exchange_ends(s, p, err);
    for (size_t i = 0; status == REE_OK && i < p->n_sums; i++) {
        const struct ree_share_sum *sum = &p->sums[i];
        if (sum->kind == REE_SUM_OF_INTEGERS)
            status = sum_integers(s, sum, i, err);
        else if (sum->kind == REE_SUM_BY_INDICES)
            status = sum_by_indices(s, part, i, err);
        else
            status = sum_terms(s, sum, i, err);
        if (status != REE_OK) ree_fail_prefix(err, "the sum '%.128s'", sum->name);
    }
    if (status == REE_OK) status = spread_results(s, p, err);
    for (size_t i = 0; i < p->n_sums; i++)
        ree_message_finish(&s->ends[i]);
    return status;
}

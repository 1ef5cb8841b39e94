#include "ranks/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

#define HEAD_NUMBERS 3
// Added to limits of messages, in bytes, for values whose sizes are unknown before a run.
#define SLACK ((size_t)64 << 20)

struct tensor_head {
    uint32_t dtype, rank;
    int64_t dims[REE_MAX_RANK];
};

void ree_encoded_finish(struct ree_encoded *encoded) {
    ree_free(encoded->head);
    ree_free(encoded->heads);
    ree_free(encoded->parts);
    memset(encoded, 0, sizeof *encoded);
}

static size_t step_nbytes(uint64_t batch, uint64_t length, uint64_t rows) {
    return HEAD_NUMBERS * sizeof(uint64_t) + batch * sizeof(int64_t) +
           batch * rows * sizeof(int64_t) + batch * length * sizeof(int32_t);
}

static enum ree_status encode_tensor(const struct ree_tensor *t, struct tensor_head *head,
                                     struct ree_part *part, struct ree_error *err) {
    if (t->kind != REE_TENSOR || t->dtype == REE_STRING)
        return ree_fail(
            err, REE_UNSUPPORTED,
            "'%s' passes from rank to rank but is not a tensor of numbers; choose other cuts",
            t->name ? t->name : "");
    head->dtype = (uint32_t)t->dtype;
    head->rank = t->rank;
    memcpy(head->dims, t->dims, t->rank * sizeof *t->dims);
    *part = (struct ree_part){t->data, t->nbytes};
    return REE_OK;
}

enum ree_status ree_encode_step(const struct ree_step *step, const struct ree_boundary *boundary,
                                struct ree_encoded *out, struct ree_error *err) {
    size_t n = boundary->n, nbytes = step_nbytes(step->batch, step->length, step->n_rows);
    memset(out, 0, sizeof *out);
    out->head = ree_alloc(nbytes);
    struct tensor_head *heads = ree_alloc_zeroed(n + 1, sizeof *heads);
    out->heads = heads;
    out->parts = ree_alloc_zeroed(n + 2, sizeof *out->parts);
    if (!out->head || !heads || !out->parts) {
        ree_encoded_finish(out);
        return ree_no_memory(err);
    }
    uint64_t numbers[HEAD_NUMBERS] = {step->batch, step->length, step->n_rows};
    char *at = out->head;
    memcpy(at, numbers, sizeof numbers);
    at += sizeof numbers;
    memcpy(at, step->starts, step->batch * sizeof *step->starts);
    at += step->batch * sizeof *step->starts;
    memcpy(at, step->rows, step->batch * step->n_rows * sizeof *step->rows);
    at += step->batch * step->n_rows * sizeof *step->rows;
    memcpy(at, step->ids, step->batch * step->length * sizeof *step->ids);
    out->parts[0] = (struct ree_part){out->head, nbytes};
    out->parts[1] = (struct ree_part){heads, n * sizeof *heads};
    out->n_parts = n + 2;
    enum ree_status status = REE_OK;
    for (size_t i = 0; status == REE_OK && i < n; i++)
        status = encode_tensor(&boundary->tensors[i], &heads[i], &out->parts[i + 2], err);
    if (status != REE_OK) ree_encoded_finish(out);
    return status;
}

enum ree_status ree_encode_positions(const struct ree_tensor *tensors, size_t n,
                                     struct ree_encoded *out, struct ree_error *err) {
    memset(out, 0, sizeof *out);
    uint32_t *numbers = out->head = ree_alloc_zeroed(n + 1, sizeof *numbers);
    struct tensor_head *heads = out->heads = ree_alloc_zeroed(n + 1, sizeof *heads);
    out->parts = ree_alloc_zeroed(n + 2, sizeof *out->parts);
    enum ree_status status = numbers && heads && out->parts ? REE_OK : ree_no_memory(err);
    size_t k = 0;
    for (size_t i = 0; status == REE_OK && i < n; i++) {
        if (!tensors[i].name) continue;
        numbers[k] = (uint32_t)i;
        status = encode_tensor(&tensors[i], &heads[k], &out->parts[k + 2], err);
        k++;
    }
    if (status != REE_OK) {
        ree_encoded_finish(out);
        return status;
    }
    out->parts[0] = (struct ree_part){numbers, k * sizeof *numbers};
    out->parts[1] = (struct ree_part){heads, k * sizeof *heads};
    out->n_parts = k + 2;
    return REE_OK;
}

enum ree_status ree_encode_logits(const struct ree_tensor *logits, struct ree_encoded *out,
                                  struct ree_error *err) {
    memset(out, 0, sizeof *out);
    uint64_t *numbers = out->head = ree_alloc(HEAD_NUMBERS * sizeof *numbers);
    out->parts = ree_alloc_zeroed(2, sizeof *out->parts);
    if (!numbers || !out->parts) {
        ree_encoded_finish(out);
        return ree_no_memory(err);
    }
    for (int i = 0; i < HEAD_NUMBERS; i++)
        numbers[i] = (uint64_t)logits->dims[i];
    out->parts[0] = (struct ree_part){numbers, HEAD_NUMBERS * sizeof *numbers};
    out->parts[1] = (struct ree_part){logits->data, logits->nbytes};
    out->n_parts = 2;
    return REE_OK;
}

static size_t capped(uint64_t a, uint64_t b) {
    uint64_t product;
    return ree_mul_size(a, b, &product) && product < SIZE_MAX / 8 ? (size_t)product : SIZE_MAX / 8;
}

size_t ree_step_limit(const struct ree_bounds *bounds, const struct ree_cut *cut) {
    // cut->nbytes is per token, and a step may have `length` tokens of each sequence.
    size_t rows = capped(bounds->batch, bounds->length);
    return SLACK + capped(rows, 2 * cut->nbytes + 64) + cut->n_values * 96;
}

size_t ree_logits_limit(const struct ree_step *step, int64_t vocab_size) {
    size_t rows = capped(step->batch, step->n_rows);
    return 4096 + (vocab_size > 0 ? capped(rows, 4 * (uint64_t)vocab_size)
                                  : SLACK + capped(rows, 1 << 22));
}

static enum ree_status malformed(struct ree_error *err, const char *what) {
    return ree_fail(err, REE_INVALID, "malformed: %s", what);
}

enum ree_status ree_decode_step(const struct ree_message *m, const struct ree_bounds *bounds,
                                struct ree_step *out, void **out_block, struct ree_error *err) {
    uint64_t n[HEAD_NUMBERS];
    *out_block = NULL;
    memset(out, 0, sizeof *out);
    if (m->n_parts < 2 || m->parts[0].nbytes < sizeof n)
        return malformed(err, "the description of a step is missing");
    memcpy(n, m->parts[0].data, sizeof n);
    if (n[0] != bounds->batch || n[1] < 1 || n[1] > bounds->length || n[2] > n[1])
        return malformed(
            err, "the size of a step differs from the size at the beginning of its cache slot");
    if (m->parts[0].nbytes != step_nbytes(n[0], n[1], n[2]))
        return malformed(err, "the length of a step's description does not match its sizes");
    size_t nbytes = m->parts[0].nbytes - sizeof n;
    char *block = ree_alloc(nbytes + 1);
    if (!block) return ree_no_memory(err);
    memcpy(block, (const char *)m->parts[0].data + sizeof n, nbytes);
    const int64_t *starts = (const int64_t *)(void *)block, *rows = starts + n[0];
    bool fits = true;
    for (uint64_t i = 0; i < n[0]; i++)
        fits = fits && starts[i] >= 0 && starts[i] <= bounds->most - (int64_t)n[1];
    for (uint64_t i = 0; i < n[0] * n[2]; i++)
        fits = fits && rows[i] >= 0 && rows[i] < (int64_t)n[1];
    if (!fits) {
        ree_free(block);
        return malformed(err, "a step exceeds the positions of its cache slot");
    }
    *out = (struct ree_step){(size_t)n[0],
                             (size_t)n[1],
                             (const int32_t *)(void *)(block + (n[0] + n[0] * n[2]) * sizeof *rows),
                             starts,
                             (size_t)n[2],
                             rows};
    *out_block = block;
    return REE_OK;
}

static enum ree_status decode_tensor(const struct tensor_head *head, const struct ree_part *part,
                                     const struct ree_value *value, struct ree_tensor *out,
                                     struct ree_error *err) {
    int64_t count;
    uint64_t nbytes;
    size_t size = ree_dtype_size((enum ree_dtype)head->dtype);
    if (head->rank > REE_MAX_RANK || head->dtype == REE_STRING || !size ||
        !ree_count_elements(head->rank, head->dims, &count) ||
        !ree_mul_size((uint64_t)count, size, &nbytes) || nbytes != part->nbytes)
        return ree_fail(err, REE_INVALID, "malformed: the size of '%s' does not match its shape",
                        value->name);
    if (value->dtype != REE_DTYPE_NONE && (uint32_t)value->dtype != head->dtype)
        return ree_fail(err, REE_INVALID, "malformed: '%s' is %s, expected %s", value->name,
                        ree_dtype_name((enum ree_dtype)head->dtype), ree_dtype_name(value->dtype));
    bool fits = !value->has_shape || head->rank == value->rank;
    for (uint32_t i = 0; fits && value->has_shape && i < value->rank; i++)
        fits = value->dims[i] < 0 || value->dims[i] == head->dims[i];
    if (!fits)
        return ree_fail(err, REE_INVALID,
                        "malformed: the shape of '%s' is not the one that the model requires",
                        value->name);
    REE_TRY(ree_tensor_init(out, value->name, (enum ree_dtype)head->dtype, head->rank, head->dims,
                            err));
    if (part->nbytes) memcpy(out->data, part->data, part->nbytes);
    return REE_OK;
}

static bool fits_step(const struct ree_value *value, const struct ree_tensor *t,
                      const struct ree_step *step, int64_t most) {
    uint32_t n_unknown = 0;
    for (uint32_t i = 0; value->has_shape && i < value->rank; i++)
        n_unknown += value->dims[i] < 0;
    if (n_unknown != 2 || value->dims[0] >= 0 || value->dims[1] >= 0) return true;
    int64_t batch = (int64_t)step->batch, length = (int64_t)step->length, a = t->dims[0],
            b = t->dims[1];
    return (a == length && b == batch) ||
           (a == batch && ((b >= length && b <= most) || b == (int64_t)step->n_rows));
}

enum ree_status ree_decode_boundary(const struct ree_message *m, const struct ree_cut *cut,
                                    const struct ree_step *step, int64_t most,
                                    struct ree_boundary *out, struct ree_error *err) {
    size_t n = cut->n_values;
    memset(out, 0, sizeof *out);
    if (m->n_parts != n + 2 || m->parts[1].nbytes != n * sizeof(struct tensor_head))
        return ree_fail(err, REE_INVALID, "malformed: %u parts, expected the parts of %zu values",
                        m->n_parts, n);
    out->tensors = ree_alloc_zeroed(n + 1, sizeof *out->tensors);
    if (!out->tensors) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    for (size_t i = 0; status == REE_OK && i < n; i++) {
        struct tensor_head head;
        memcpy(&head, (const char *)m->parts[1].data + i * sizeof head, sizeof head);
        status = decode_tensor(&head, &m->parts[i + 2], cut->values[i], &out->tensors[i], err);
        if (status != REE_OK) break;
        out->n++;
        if (!fits_step(cut->values[i], &out->tensors[i], step, most))
            status = ree_fail(
                err, REE_INVALID,
                "malformed: '%s' does not have the number of sequences and tokens of the step",
                cut->values[i]->name);
    }
    if (status != REE_OK) ree_boundary_finish(out);
    return status;
}

enum ree_status ree_decode_positions(const struct ree_message *m,
                                     const struct ree_value *const *values, size_t n,
                                     struct ree_tensor *tensors, struct ree_error *err) {
    size_t k = m->n_parts >= 2 ? m->n_parts - 2 : 0;
    if (m->n_parts < 2 || m->parts[0].nbytes != k * sizeof(uint32_t) ||
        m->parts[1].nbytes != k * sizeof(struct tensor_head))
        return malformed(err, "the description of cache positions is missing");
    for (size_t i = 0; i < k; i++) {
        uint32_t number;
        struct tensor_head head;
        memcpy(&number, (const char *)m->parts[0].data + i * sizeof number, sizeof number);
        memcpy(&head, (const char *)m->parts[1].data + i * sizeof head, sizeof head);
        if (number >= n || tensors[number].name)
            return malformed(err, "cache positions that were not requested");
        REE_TRY(decode_tensor(&head, &m->parts[i + 2], values[number], &tensors[number], err));
    }
    return REE_OK;
}

enum ree_status ree_decode_logits(const struct ree_message *m, const struct ree_step *step,
                                  int64_t vocab_size, struct ree_tensor *out,
                                  struct ree_error *err) {
    uint64_t n[HEAD_NUMBERS];
    memset(out, 0, sizeof *out);
    if (m->n_parts != 2 || m->parts[0].nbytes != sizeof n)
        return malformed(err, "the description of logits is missing");
    memcpy(n, m->parts[0].data, sizeof n);
    if (n[0] != step->batch || n[1] != step->n_rows || n[2] < 1 || n[2] > INT32_MAX ||
        (vocab_size > 0 && n[2] != (uint64_t)vocab_size))
        return malformed(err, "the shape of the logits is not the requested one");
    int64_t dims[3] = {(int64_t)n[0], (int64_t)n[1], (int64_t)n[2]};
    uint64_t nbytes;
    if (!ree_mul_size(n[0] * n[1], n[2] * sizeof(float), &nbytes) || nbytes != m->parts[1].nbytes)
        return malformed(err, "the size of the logits does not match their shape");
    REE_TRY(ree_tensor_init(out, "logits", REE_F32, 3, dims, err));
    if (nbytes) memcpy(out->data, m->parts[1].data, nbytes);
    return REE_OK;
}

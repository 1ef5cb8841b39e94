// Puts the checkpoint's tensors into the graph: by reference to their files, copied, or quantised.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/hf/causal.h"
#include "base/memory.h"
#include "base/progress.h"
#include "graph/hf/quantize.h"

// Alignment of a tensor in a data file: it begins at a page boundary.
#define DATA_ALIGNMENT 4096

static void shape_text(uint32_t rank, const int64_t *dims, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)dims[i]);
    if (at < size) snprintf(out + at, size - at, "]");
}

static bool has_expected_shape(const struct ree_stored_tensor *t, uint32_t rank,
                               const int64_t *dims) {
    bool same = t->rank == rank;
    for (uint32_t i = 0; same && i < rank; i++)
        same = t->dims[i] == dims[i];
    return same && (t->dtype == REE_F32 || t->dtype == REE_F16 || t->dtype == REE_BF16);
}

static const struct ree_stored_tensor *find(struct ree_causal *d, const char *name, uint32_t rank,
                                            const int64_t *dims) {
    if (!ree_writer_ok(d->w)) return NULL;
    const char *full = ree_writer_name(d->w, "%s%s", d->prefix, name);
    const struct ree_stored_tensor *t = ree_checkpoint_find(d->checkpoint, full);
    if (t) d->checkpoint->tensors[t - d->checkpoint->tensors].is_read = true;
    if (t && has_expected_shape(t, rank, dims)) return t;
    char want[160], have[160];
    shape_text(rank, dims, want, sizeof want);
    if (!t) {
        ree_writer_fail(d->w, REE_NOT_FOUND, "tensor '%s' is missing, expected with shape %s", full,
                        want);
        return NULL;
    }
    shape_text(t->rank, t->dims, have, sizeof have);
    ree_writer_fail(d->w, REE_INVALID,
                    "tensor '%s' is %s%s, expected %s of float32, float16 or bfloat16", t->name,
                    ree_dtype_name(t->dtype), have, want);
    return NULL;
}

static void progress(struct ree_causal *d, const char *what, uint64_t n) {
    d->done += n;
    if (ree_writer_ok(d->w))
        d->w->status =
            ree_progress_report(&d->options->progress, what, d->done, d->total, d->w->err);
}

// Appends to the data file; returns false after a failure.
static bool append(struct ree_causal *d, const void *bytes, uint64_t n) {
    if (!ree_writer_ok(d->w)) return false;
    struct ree_output *data = d->options->data;
    if (ree_output_write(data, bytes, n, d->w->err) == REE_OK) return true;
    d->w->status = d->w->err->status;
    return false;
}

static uint64_t begin_tensor(struct ree_causal *d) {
    struct ree_output *data = d->options->data;
    if (ree_writer_ok(d->w) && ree_output_align(data, DATA_ALIGNMENT, d->w->err) != REE_OK)
        d->w->status = d->w->err->status;
    return data->size;
}

static bool is_written(const struct ree_causal *d, const char *name) {
    for (size_t i = 0; i < d->w->initializers.n; i++)
        if (!strcmp(((Onnx__TensorProto *)d->w->initializers.items[i])->name, name)) return true;
    return false;
}

static const char *copy_tensor(struct ree_causal *d, const struct ree_stored_tensor *t) {
    if (is_written(d, t->name)) return t->name;
    const unsigned char *from = ree_checkpoint_data(d->checkpoint, t);
    uint64_t at = begin_tensor(d);
    for (uint64_t done = 0; done < t->nbytes;) {
        uint64_t n = t->nbytes - done < (16 << 20) ? t->nbytes - done : 16 << 20;
        if (!append(d, from + done, n)) return "";
        done += n;
        progress(d, "copying", n);
    }
    return ree_writer_external(d->w, t->name, t->dtype, t->rank, t->dims, d->options->data_name, at,
                               t->nbytes);
}

static const char *point_to(struct ree_causal *d, const struct ree_stored_tensor *t) {
    if (d->options->copy) return copy_tensor(d, t);
    return ree_writer_external(d->w, t->name, t->dtype, t->rank, t->dims,
                               d->checkpoint->files[t->file], t->offset, t->nbytes);
}

const char *ree_causal_weight(struct ree_causal *d, const char *name, uint32_t rank,
                              const int64_t *dims, enum ree_dtype *out_dtype) {
    *out_dtype = REE_F32;
    const struct ree_stored_tensor *t = find(d, name, rank, dims);
    if (!t) return "";
    *out_dtype = t->dtype;
    return point_to(d, t);
}

const char *ree_causal_weight_as(struct ree_causal *d, enum ree_dtype dtype, const char *label,
                                 const char *name, uint32_t rank, const int64_t *dims) {
    enum ree_dtype stored;
    const char *weight = ree_causal_weight(d, name, rank, dims, &stored);
    if (stored == dtype) return weight;
    weight = ree_op1(d->w, ree_writer_name(d->w, "%s.cast", label), "Cast", weight);
    ree_writer_int(d->w, "to", dtype);
    return weight;
}

const char *ree_causal_narrow(struct ree_causal *d, const char *label, const char *x) {
    if (d->options->activations == REE_F32) return x;
    x = ree_op1(d->w, ree_writer_name(d->w, "%s.narrow", label), "Cast", x);
    ree_writer_int(d->w, "to", d->options->activations);
    return x;
}

const char *ree_causal_widen(struct ree_causal *d, const char *label, const char *x) {
    if (d->options->activations == REE_F32) return x;
    x = ree_op1(d->w, ree_writer_name(d->w, "%s.widen", label), "Cast", x);
    ree_writer_int(d->w, "to", REE_F32);
    return x;
}

// Names of the initializers of a quantised matrix. Each initializer is written once.
struct quantised {
    // uint8: (rows, blocks, bytes of a block); of the embedding table (rows, bytes of a row)
    const char *numbers;
    const char *scales; // float32 (rows, blocks)
};

// Writes the rows and then the scales of a quantised matrix to the data file. *out_rows and
// *out_scales are their offsets in the file.
static void write_quantised(struct ree_causal *d, const struct ree_stored_tensor *t,
                            const struct ree_matrix *m, uint32_t bits, uint64_t *out_rows,
                            uint64_t *out_scales) {
    uint32_t block = d->options->block;
    uint64_t row_size = ree_quantized_row_size(m->columns, bits, block);
    size_t n_blocks = (size_t)((m->columns + block - 1) / block);
    float *capacity = ree_alloc((size_t)m->columns * sizeof *capacity);
    unsigned char *row = ree_alloc(row_size);
    float *scales = ree_alloc_zeroed((size_t)m->rows, n_blocks * sizeof *scales);
    if (!capacity || !row || !scales) ree_writer_fail(d->w, REE_NO_MEMORY, "out of memory");
    *out_rows = begin_tensor(d);
    for (int64_t i = 0; i < m->rows && ree_writer_ok(d->w); i++) {
        if (ree_quantize_row(m, i, bits, block, capacity, row, scales + (size_t)i * n_blocks,
                             d->w->err) != REE_OK)
            d->w->status = ree_fail_prefix(d->w->err, "tensor '%s'", t->name);
        append(d, row, row_size);
        progress(d, "quantising", t->nbytes / (uint64_t)m->rows);
    }
    *out_scales = begin_tensor(d);
    append(d, scales, (uint64_t)m->rows * n_blocks * sizeof *scales);
    ree_free(capacity);
    ree_free(row);
    ree_free(scales);
}

// Quantises m, the matrix in tensor t, unless its initializers already exist, and returns them.
// is_table: m is the embedding table.
static struct quantised quantise(struct ree_causal *d, const struct ree_stored_tensor *t,
                                 const struct ree_matrix *m, uint32_t bits, bool is_table) {
    struct ree_writer *w = d->w;
    uint32_t block = d->options->block;
    struct quantised q = {.numbers = ree_writer_name(w, "%s.int%u", t->name, bits),
                          .scales = ree_writer_name(w, "%s.scales", t->name)};
    if (is_written(d, q.numbers)) return q;
    uint64_t rows, scales;
    write_quantised(d, t, m, bits, &rows, &scales);
    int64_t n_blocks = (m->columns + block - 1) / block;
    int64_t dims[3] = {m->rows, n_blocks, block * bits / 8};
    uint64_t size = (uint64_t)dims[0] * (uint64_t)dims[1] * (uint64_t)dims[2];
    const char *file = d->options->data_name;
    ree_writer_external(w, q.scales, REE_F32, 2, dims, file, scales,
                        (uint64_t)dims[0] * (uint64_t)dims[1] * 4);
    if (is_table) dims[1] *= dims[2];
    ree_writer_external(w, q.numbers, REE_U8, is_table ? 2 : 3, dims, file, rows, size);
    return q;
}

// With int8 activations: number of consecutive elements of an input's row that share a scale.
#define ACTIVATION_BLOCK 32

static const char *multiply_quantised(struct ree_causal *d, const struct ree_linear *l,
                                      const struct ree_stored_tensor *t, uint32_t bits,
                                      const char *x) {
    struct ree_matrix m = {.data = ree_checkpoint_data(d->checkpoint, t),
                           .dtype = t->dtype,
                           .rows = l->out,
                           .columns = l->in,
                           .row_stride = l->columns ? 1 : l->in,
                           .column_stride = l->columns ? l->out : 1};
    struct quantised q = quantise(d, t, &m, bits, l->table);
    const char *b = q.numbers;
    if (l->table) {
        int64_t block = d->options->block;
        int64_t dims[3] = {l->out, (l->in + block - 1) / block, block * bits / 8};
        b = ree_op2(d->w, ree_writer_name(d->w, "%s.blocks", l->label), "Reshape", b,
                    ree_writer_i64s(d->w, 3, dims));
    }
    const char *y = ree_op3(d->w, l->label, "MatMulNBits", x, b, q.scales);
    ree_writer_domain(d->w, d->options->int8 ? "ree" : "com.microsoft");
    ree_writer_int(d->w, "K", l->in);
    ree_writer_int(d->w, "N", l->out);
    ree_writer_int(d->w, "bits", bits);
    ree_writer_int(d->w, "block_size", d->options->block);
    if (d->options->int8) ree_writer_int(d->w, "activation_block_size", ACTIVATION_BLOCK);
    return y;
}

const char *ree_causal_look_up_quantised(struct ree_causal *d, const char *label, const char *name,
                                         int64_t rows, int64_t columns, const char *ids,
                                         enum ree_dtype *out_dtype) {
    struct ree_writer *w = d->w;
    uint32_t bits = d->options->table_bits, block = d->options->block;
    const int64_t dims[2] = {rows, columns};
    *out_dtype = REE_F32;
    const struct ree_stored_tensor *t = find(d, ree_writer_name(w, "%s.weight", name), 2, dims);
    if (!t) return "";
    *out_dtype = t->dtype;
    struct ree_matrix m = {.data = ree_checkpoint_data(d->checkpoint, t),
                           .dtype = t->dtype,
                           .rows = rows,
                           .columns = columns,
                           .row_stride = columns,
                           .column_stride = 1};
    struct quantised q = quantise(d, t, &m, bits, true);
    bool padded = columns % block != 0;
    const char *x = ree_op3(w, padded ? ree_writer_name(w, "%s.padded", label) : label,
                            "GatherBlockQuantized", q.numbers, ids, q.scales);
    ree_writer_domain(w, "com.microsoft");
    ree_writer_int(w, "gather_axis", 0);
    ree_writer_int(w, "quantize_axis", 1);
    ree_writer_int(w, "block_size", block);
    ree_writer_int(w, "bits", bits);
    if (!padded) return x;
    const char *slice[] = {x, ree_writer_i64s(w, 1, (int64_t[]){0}),
                           ree_writer_i64s(w, 1, &columns), ree_writer_i64s(w, 1, (int64_t[]){-1}),
                           NULL};
    return ree_writer_op(w, label, "Slice", slice);
}

const char *ree_causal_linear(struct ree_causal *d, const struct ree_linear *l, const char *x) {
    struct ree_writer *w = d->w;
    int64_t dims[2] = {l->columns ? l->in : l->out, l->columns ? l->out : l->in};
    const char *name = ree_writer_name(w, "%s.weight", l->name);
    const char *y;
    uint32_t bits = l->table ? d->options->table_bits : d->options->bits;
    // A MatMul of narrow values would round before the bias is added.
    bool wide = bits || l->bias || l->wide;
    enum ree_dtype dtype = wide ? REE_F32 : d->options->activations;
    if (wide) x = ree_causal_widen(d, l->label, x);
    if (bits) {
        const struct ree_stored_tensor *t = find(d, name, 2, dims);
        if (!t) return "";
        y = multiply_quantised(d, l, t, bits, x);
    } else {
        const char *b = ree_causal_weight_as(d, dtype, l->label, name, 2, dims);
        if (!l->columns) {
            b = ree_op1(w, ree_writer_name(w, "%s.transpose", l->label), "Transpose", b);
            ree_writer_ints(w, "perm", 2, (const int64_t[]){1, 0});
        }
        y = ree_op2(w, l->label, "MatMul", x, b);
    }
    if (l->bias) {
        const char *label = ree_writer_name(w, "%s.add", l->label);
        const char *bias = ree_causal_weight_as(d, REE_F32, label,
                                                ree_writer_name(w, "%s.bias", l->name), 1, &l->out);
        y = ree_op2(w, label, "Add", y, bias);
    }
    return wide && !l->wide ? ree_causal_narrow(d, l->label, y) : y;
}

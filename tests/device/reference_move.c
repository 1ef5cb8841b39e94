#include "reference.h"
#include "repops/scalar/ops.h"

void reference_copy(const struct ree_copy_params *p, void *const *operands) {
    int64_t size = p->elem_size;
    for (uint64_t i = 0; i < p->n_elements; i++) {
        int64_t from = p->src_offset + reference_offset(p->rank, p->dims, p->src_strides, i);
        int64_t to = p->dst_offset + reference_offset(p->rank, p->dims, p->dst_strides, i);
        memcpy((char *)operands[1] + to * size, (const char *)operands[0] + from * size,
               (size_t)size);
    }
}

// Computes the offset of an index tuple; returns false if it is out of range.
static bool tuple(uint32_t dtype, const void *index, int64_t at, uint32_t n, int64_t step,
                  const uint32_t *sizes, const int32_t *strides, int64_t *out) {
    *out = 0;
    for (uint32_t j = 0; j < n; j++, at += step) {
        int64_t i = dtype == REE_I64 ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
        if (i < -(int64_t)sizes[j] || i >= (int64_t)sizes[j]) return false;
        *out += (i < 0 ? i + sizes[j] : i) * strides[j];
    }
    return true;
}

bool reference_gather(const struct ree_gather_params *p, void *const *operands) {
    int64_t size = p->elem_size;
    for (uint64_t i = 0; i < p->n_elements; i++) {
        int64_t index_at = reference_offset(p->rank, p->dims, p->index_strides, i), chosen;
        if (!tuple(p->index_dtype, operands[1], index_at, p->n_components, p->component_stride,
                   p->component_sizes, p->component_strides, &chosen))
            return false;
        int64_t from =
            p->data_offset + chosen + reference_offset(p->rank, p->dims, p->data_strides, i);
        memcpy((char *)operands[2] + (int64_t)i * size, (const char *)operands[0] + from * size,
               (size_t)size);
    }
    return true;
}

static uint64_t combine(enum ree_dtype dtype, uint32_t kind, uint64_t a, uint64_t b) {
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    bool wide = dtype == REE_I64 || dtype == REE_U64;
    bool is_signed = dtype == REE_I8 || dtype == REE_I32 || dtype == REE_I64;
    bool is_float = dtype == REE_F32;
    if (dtype == REE_F64 && kind != REE_SCATTER_SET) {
        double u = ree_from_double_bits(a), v = ree_from_double_bits(b);
        if (kind == REE_SCATTER_ADD) return ree_double_result(u + v);
        if (kind == REE_SCATTER_MUL) return ree_double_result(u * v);
        return kind == REE_SCATTER_MIN ? ree_op_min_f64(a, b) : ree_op_max_f64(a, b);
    }
    switch (kind) {
    case REE_SCATTER_SET: return b;
    case REE_SCATTER_ADD: return is_float ? ree_op_add_f32(x, y) : a + b;
    case REE_SCATTER_MUL: return is_float ? ree_op_mul_f32(x, y) : a * b;
    case REE_SCATTER_MIN:
        if (is_float) return ree_op_min_f32(x, y);
        if (wide) return is_signed ? ree_op_min_i64(a, b) : ree_op_min_u64(a, b);
        return is_signed ? ree_op_min_i32(x, y) : ree_op_min_u32(x, y);
    default:
        if (is_float) return ree_op_max_f32(x, y);
        if (wide) return is_signed ? ree_op_max_i64(a, b) : ree_op_max_u64(a, b);
        return is_signed ? ree_op_max_i32(x, y) : ree_op_max_u32(x, y);
    }
}

bool reference_scatter(const struct ree_scatter_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    for (uint64_t i = 0; i < (uint64_t)p->n_vectors * p->n_steps; i++) {
        int64_t index_at = reference_offset(p->rank, p->dims, p->index_strides, i), chosen;
        if (!tuple(p->index_dtype, operands[1], index_at, p->n_components, p->component_stride,
                   p->component_sizes, p->component_strides, &chosen))
            return false;
        int64_t to = chosen + reference_offset(p->rank, p->dims, p->data_strides, i);
        int64_t from = reference_offset(p->rank, p->dims, p->update_strides, i);
        reference_store(dtype, operands[0], to,
                        combine(dtype, p->kind, reference_load(dtype, operands[0], to),
                                reference_load(dtype, operands[2], from)));
    }
    return true;
}

// Returns whether a precedes b, by value only: NaN is above everything.
static bool precedes(enum ree_dtype dtype, bool largest, uint64_t a, uint64_t b) {
    if (largest) {
        uint64_t swap = a;
        a = b;
        b = swap;
    }
    switch (dtype) { // below: a is less than b
    case REE_F32: {
        float x = ree_float((uint32_t)a), y = ree_float((uint32_t)b);
        if (x != x) return false;
        return y != y || x < y;
    }
    case REE_F64: {
        double x = ree_from_double_bits(a), y = ree_from_double_bits(b);
        if (x != x) return false;
        return y != y || x < y;
    }
    case REE_I8:
    case REE_I32: return (int32_t)a < (int32_t)b;
    case REE_I64: return (int64_t)a < (int64_t)b;
    default: return a < b;
    }
}

// Selects one element after another: among the remaining ones, the first that no other precedes.
void reference_topk(const struct ree_topk_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    for (uint64_t vector = 0; vector < (uint64_t)p->outer * p->inner; vector++) {
        uint64_t outer = vector / p->inner, inner = vector % p->inner;
        bool taken[4096] = {false};
        for (uint32_t r = 0; r < p->k; r++) {
            uint32_t best = UINT32_MAX;
            uint64_t best_value = 0;
            for (uint32_t i = 0; i < p->n; i++) {
                if (taken[i]) continue;
                uint64_t at = (outer * p->n + i) * p->inner + inner;
                uint64_t value = reference_load(dtype, operands[0], (int64_t)at);
                if (best == UINT32_MAX || precedes(dtype, p->largest, value, best_value))
                    best = i, best_value = value;
            }
            taken[best] = true;
            int64_t to = (int64_t)((outer * p->k + r) * p->inner + inner);
            reference_store(dtype, operands[1], to, best_value);
            ((int64_t *)operands[2])[to] = best;
        }
    }
}

// scatter: data[target(u, i)] = combine(data[target(u, i)], updates[u, i]) for the steps u of each
// vector i, ascending, each step rounded once. NUMERICS.md, section 7.
//
//   scatter_vectors
//                  A thread runs through all steps of a vector and applies the updates whose
//                  targets belong to its share. All updates of an element belong to one share and
//                  are therefore applied in order. With few vectors there are many shares, so that
//                  a thread waits for few loads of elements.
//   scatter_clear, scatter_last, scatter_set
//                  For updates that replace the element: only the last update of an element
//                  matters. Scratch memory has a word per element of data for the number of the
//                  last step that updates it; then the update of that step is stored. One thread
//                  per step of a vector.
//
// Memory traffic: updates once, the elements that they change twice, the indices once per share,
// from caches.
#include "index.h"

// Where a step of a vector reads and writes: an element of data (before the index tuple's offset is
// added), of the indices and of the updates.
struct place {
    u32 data, index, update;
};
REE_DEVICE void move(const struct ree_cuda_scatter_params &p, struct place *place, u32 begin,
                     u32 end, u32 at) {
    REE_NO_UNROLL
    for (u32 d = end; d-- > begin;) {
        u32 coordinate, q = ree_divide(at, p.dims[d], &coordinate);
        place->data += coordinate * (u32)p.p.data_strides[d];
        place->index += coordinate * (u32)p.p.index_strides[d];
        place->update += coordinate * (u32)p.p.update_strides[d];
        at = q;
    }
}

// Combines integers. Sums and products are computed in 64 bits; the low bits are kept.
template <class T> REE_DEVICE T combine(u32 kind, T a, T b) {
    switch (kind) {
    case REE_SCATTER_ADD: return (T)((u64)a + (u64)b);
    case REE_SCATTER_MUL: return (T)((u64)a * (u64)b);
    case REE_SCATTER_MIN: return b < a ? b : a;
    case REE_SCATTER_MAX: return b > a ? b : a;
    default: return b;
    }
}
REE_DEVICE float combine(u32 kind, float x, float y) {
    u32 a = ree_bits(x), b = ree_bits(y);
    switch (kind) {
    case REE_SCATTER_ADD: return ree_float(ree_op_add_f32(a, b));
    case REE_SCATTER_MUL: return ree_float(ree_op_mul_f32(a, b));
    case REE_SCATTER_MIN: return ree_float(ree_op_min_f32(a, b));
    default: return ree_float(ree_op_max_f32(a, b));
    }
}
REE_DEVICE double combine(u32 kind, double x, double y) {
    u64 a = ree_double_bits(x), b = ree_double_bits(y);
    switch (kind) {
    case REE_SCATTER_ADD: return ree_from_double_bits(ree_op_add_f64(a, b));
    case REE_SCATTER_MUL: return ree_from_double_bits(ree_op_mul_f64(a, b));
    case REE_SCATTER_MIN: return ree_from_double_bits(ree_op_min_f64(a, b));
    default: return ree_from_double_bits(ree_op_max_f64(a, b));
    }
}

#define AT_ONCE 4u // steps whose indices are read before any update is applied

// SET: an update replaces the element, independent of its type.
template <bool SET, class T>
REE_DEVICE void walk_vector(const struct ree_cuda_header &h,
                            const struct ree_cuda_scatter_params &p) {
    auto data = ree_out<T>(h, 0);
    auto updates = ree_in<T>(h, 2);
    const u32 n_vector_dims = p.p.rank - p.p.n_step_dims, shares = h.extra[0];
    u32 vector, share = ree_divide(ree_thread(), p.vectors, &vector);
    struct place base = {0, 0, 0};
    move(p, &base, 0, n_vector_dims, vector);
    REE_NO_UNROLL
    for (u32 step = 0; step < p.p.n_steps; step += AT_ONCE) {
        struct place at[AT_ONCE];
        int64_t index[AT_ONCE];
        REE_UNROLL
        for (u32 e = 0; e < AT_ONCE; e++) {
            if (step + e >= p.p.n_steps) continue;
            at[e] = base;
            move(p, &at[e], n_vector_dims, p.p.rank, step + e);
            index[e] = ree_index_at(h, p.p, at[e].index);
        }
        REE_UNROLL
        for (u32 e = 0; e < AT_ONCE; e++) {
            if (step + e >= p.p.n_steps) continue;
            if (!ree_add_tuple(h, p.p, at[e].index, index[e], &at[e].data)) return;
            // A hash of the target selects the share: all targets may be multiples of one number.
            u32 target = at[e].data;
            if (shares > 1u && __umulhi(target * 0x9E3779B1u, shares) != share) continue;
            T b = updates[at[e].update];
            if constexpr (!SET) {
                T a = data[target];
                b = combine(p.p.kind, a, b);
            }
            data[target] = b;
        }
    }
}

// extra[0]: number of shares.
REE_KERNEL(scatter_vectors, struct ree_cuda_scatter_params, 128) {
    if (ree_thread() >= p.p.n_vectors * h.extra[0]) return;
    if (p.p.kind == REE_SCATTER_SET) {
        switch (ree_size_of(p.p.dtype)) {
        case 8: walk_vector<true, uint64_t>(h, p); break;
        case 4: walk_vector<true, uint32_t>(h, p); break;
        case 2: walk_vector<true, uint16_t>(h, p); break;
        default: walk_vector<true, uint8_t>(h, p);
        }
        return;
    }
    switch (p.p.dtype) {
    case REE_F32: walk_vector<false, float>(h, p); break;
    case REE_F64: walk_vector<false, double>(h, p); break;
    case REE_I8: walk_vector<false, int8_t>(h, p); break;
    case REE_I32: walk_vector<false, int32_t>(h, p); break;
    case REE_U32: walk_vector<false, uint32_t>(h, p); break;
    case REE_I64: walk_vector<false, int64_t>(h, p); break;
    case REE_U64: walk_vector<false, uint64_t>(h, p); break;
    default: walk_vector<false, uint8_t>(h, p);
    }
}

// Computes the step of the calling thread and where it reads and writes. Returns false if there is
// no such step or if its index is out of range.
REE_DEVICE bool step_of(const struct ree_cuda_header &h, const struct ree_cuda_scatter_params &p,
                        u32 *step, struct place *at) {
    u32 thread = ree_thread(), vector;
    if (thread >= p.p.n_vectors * p.p.n_steps) return false;
    *step = ree_divide(thread, p.vectors, &vector);
    const u32 n_vector_dims = p.p.rank - p.p.n_step_dims;
    *at = {0, 0, 0};
    move(p, at, 0, n_vector_dims, vector);
    move(p, at, n_vector_dims, p.p.rank, *step);
    return ree_add_tuple(h, p.p, at->index, ree_index_at(h, p.p, at->index), &at->data);
}

REE_KERNEL(scatter_clear, struct ree_cuda_scatter_params, 128) {
    u32 step;
    struct place at;
    if (step_of(h, p, &step, &at)) atomicExch(&ree_scratch<u32>(h)[at.data], 0u);
}
REE_KERNEL(scatter_last, struct ree_cuda_scatter_params, 128) {
    u32 step;
    struct place at;
    if (step_of(h, p, &step, &at)) atomicMax(&ree_scratch<u32>(h)[at.data], step);
}
REE_KERNEL(scatter_set, struct ree_cuda_scatter_params, 128) {
    u32 step;
    struct place at;
    if (!step_of(h, p, &step, &at) || ree_scratch<u32>(h)[at.data] != step) return;
    u32 size = ree_size_of(p.p.dtype);
    ree_store_size(h, 0, size, at.data, ree_load_size(h, 2, size, at.update));
}

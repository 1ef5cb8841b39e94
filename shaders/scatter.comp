#version 460
// scatter: data[target(u, i)] = combine(data[target(u, i)], updates[u, i]) for the steps u of each
// vector i, ascending, each step rounded once. NUMERICS.md section 7.
//
// STAGE 0: each thread runs through all steps of a vector in order. If updates replace the element,
// only the last update of an element matters, so the steps can run at the same time:
// - STAGE 1 clears a word of scratch memory for each target;
// - STAGE 2 stores there the number of the last step that updates the target;
// - STAGE 3 stores the update of that step in data.
// In stages 1 to 3 each thread has one step of one vector.
#include "index.glsl"
#include "primitives.glsl"

layout(constant_id = 16) const uint KIND = 0;
layout(constant_id = 17) const uint DTYPE = 1;
layout(constant_id = 18) const bool WIDE = false; // indices are i64
layout(constant_id = 19) const uint RANK = 1;
layout(constant_id = 20) const uint N_STEP_DIMS = 1;
layout(constant_id = 21) const uint N_COMPONENTS = 1;
layout(constant_id = 22) const uint STAGE = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint kind;
    uint dtype;
    uint index_dtype;
    uint rank, n_step_dims;
    uint n_vectors, n_steps;
    uint dims[REE_MAX_RANK];
    int data_strides[REE_MAX_RANK];
    int index_strides[REE_MAX_RANK];
    int update_strides[REE_MAX_RANK];
    uint n_components;
    int component_stride;
    uint component_sizes[REE_MAX_RANK];
    int component_strides[REE_MAX_RANK];
};

#define SET 0u
#define ADD 1u
#define MUL 2u
#define MIN 3u
#define MAX 4u

const uint SIZE = (DTYPE == REE_DT_U8 || DTYPE == REE_DT_I8 || DTYPE == REE_DT_BOOL) ? 1u
                  : (DTYPE == REE_DT_U16 || DTYPE == REE_DT_I16 || DTYPE == REE_DT_F16 ||
                     DTYPE == REE_DT_BF16) ? 2u
                  : (DTYPE == REE_DT_I64 || DTYPE == REE_DT_U64 || DTYPE == REE_DT_F64) ? 8u : 4u;
const bool IS_FLOAT = DTYPE == REE_DT_F32;
const bool IS_SIGNED = DTYPE == REE_DT_I8 || DTYPE == REE_DT_I32 || DTYPE == REE_DT_I64;
const uint N_VECTOR_DIMS = RANK - N_STEP_DIMS;

// Where a step of a vector reads and writes: an element of data (before the index tuple's offset is
// added), of the indices and of the updates.
struct Place {
    uint data, index, update;
};

void move(Params p, inout Place place, uint begin, uint end, uint at) {
    for (uint d = end; d-- > begin;) {
        uint c = at % p.dims[d];
        at /= p.dims[d];
        place.data += c * uint(p.data_strides[d]);
        place.index += c * uint(p.index_strides[d]);
        place.update += c * uint(p.update_strides[d]);
    }
}

// Adds the index tuple's offset to place.data. Returns false if an index is out of range.
bool add_tuple(Params p, inout Place place) {
    ReeWords indices = ree_operand(1);
    bool ok = true;
    [[unroll]] for (uint j = 0u; j < N_COMPONENTS; j++) {
        uint at = place.index + j * uint(p.component_stride), index;
        if (!ree_index(indices, WIDE, at, p.component_sizes[j], index)) ok = false;
        place.data += index * uint(p.component_strides[j]);
    }
    return ok;
}

// Returns element i of data. Elements of 1 and 2 bytes are read atomically, because other threads
// may be changing other bytes of the word.
uvec2 load_data(ReeWords data, uint i) {
    if (SIZE >= 4u) return ree_load(data, DTYPE, i);
    uint word = atomicOr(data.w[SIZE == 1u ? i >> 2u : i >> 1u], 0u);
    int shift = SIZE == 1u ? int(i & 3u) * 8 : int(i & 1u) * 16;
    return uvec2(IS_SIGNED ? uint(bitfieldExtract(int(word), shift, int(SIZE) * 8))
                           : bitfieldExtract(word, shift, int(SIZE) * 8), 0u);
}

uvec2 combine(uvec2 a, uvec2 b) {
#ifdef DOUBLE
    switch (KIND) {
    case ADD: return ree_op_add_f64(a, b);
    case MUL: return ree_op_mul_f64(a, b);
    case MIN: return ree_op_min_f64(a, b);
    default: return ree_op_max_f64(a, b);
    }
#endif
    if (IS_FLOAT) {
        switch (KIND) {
        case ADD: return uvec2(ree_op_add_f32(a.x, b.x), 0u);
        case MUL: return uvec2(ree_op_mul_f32(a.x, b.x), 0u);
        case MIN: return uvec2(ree_op_min_f32(a.x, b.x), 0u);
        default: return uvec2(ree_op_max_f32(a.x, b.x), 0u);
        }
    }
    bool less; // b is less than a
    if (SIZE == 8u) {
        if (KIND == ADD) return u64_add(a, b);
        if (KIND == MUL) return u64_mul(a, b);
        less = IS_SIGNED ? u64_slt(b, a) : u64_lt(b, a);
    } else {
        if (KIND == ADD) return uvec2(a.x + b.x, 0u);
        if (KIND == MUL) return uvec2(a.x * b.x, 0u);
        less = IS_SIGNED ? int(b.x) < int(a.x) : b.x < a.x;
    }
    return less == (KIND == MIN) ? b : a;
}

void main() {
    Params p = Params(ree_params());
    ReeWords data = ree_operand(0), updates = ree_operand(2), last = ree_scratch();
    uint n_vectors = p.n_vectors, n_steps = p.n_steps, thread = ree_thread();
    if (thread >= (STAGE == 0u ? n_vectors : n_vectors * n_steps)) return;
    uint vector = thread % n_vectors;
    Place base = Place(0u, 0u, 0u);
    move(p, base, 0u, N_VECTOR_DIMS, vector);
    if (STAGE != 0u) {
        uint step = thread / n_vectors;
        move(p, base, N_VECTOR_DIMS, RANK, step);
        if (!add_tuple(p, base)) return;
        if (STAGE == 1u) last.w[base.data] = 0u;
        if (STAGE == 2u) atomicMax(last.w[base.data], step);
        if (STAGE == 3u && last.w[base.data] == step)
            ree_store_size(data, SIZE, base.data, ree_load_size(updates, SIZE, base.update));
        return;
    }
    for (uint step = 0u; step < n_steps; step++) {
        Place place = base;
        move(p, place, N_VECTOR_DIMS, RANK, step);
        if (!add_tuple(p, place)) return;
        uvec2 value = ree_load(updates, DTYPE, place.update);
        if (KIND != SET) value = combine(load_data(data, place.data), value);
        ree_store_size(data, SIZE, place.data, value);
    }
}

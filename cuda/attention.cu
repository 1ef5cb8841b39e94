// attention: out = weights(q k) v for each query, NUMERICS.md, "Attention". Scores and weights are
// in scratch memory, [row][kv_len]. attention_tiles.cu has the kernels for prompts.
//
// A row is one query of one head. Rows of all heads that share a key head are numbered together. A
// block computes ROWS rows at once and reads each key or value from memory once for all of them.
// With one query per head (decoding), these are the rows of up to ROWS heads. Memory traffic: all
// keys and values once per ROWS rows, and about seven accesses of 4 bytes per score.
//
//   attention_scores   one thread per key: 128 keys are staged in slices of 32 elements through
//                      shared memory; then each thread reads its own key there
//   attention_weights  one block per row: softmax (rows.h)
//   attention_values   one thread per element of a value. Each block handles a chunk of 256 keys,
//                      staged 16 at a time through shared memory. Copies of about 80 KiB are in
//                      flight per multiprocessor, half as much for 16-bit values
//   attention_sum      adds the chunks' results in ascending order
#include "attention.h"
#include "rows.h"

#define ROWS 8u
#define KEYS 128u
#define SLICE 32u
#define VALUE_KEYS 16u // keys per slice of the values
#define VALUE_STAGES 3u
#define KEY_STRIDE 36u // odd multiple of 16 bytes: 16-byte loads of keys have no bank conflicts

// Returns an element of a key or value as float32.
REE_DEVICE float attention_element(const struct ree_cuda_header &h, u32 operand, u32 dtype, u32 i) {
    if (dtype == REE_F32) return ree_in<float>(h, operand)[i];
    u32 bits = ree_in<uint16_t>(h, operand)[i];
    return ree_float(dtype == REE_F16 ? ree_soft_f16_to_f32(bits) : bits << 16);
}

// Returns whether the sums of any of the rows row0 ... row0 + ROWS - 1 include chunk c.
REE_DEVICE bool attention_any_has(const struct ree_cuda_header &h,
                                  const struct ree_attention_params &p, u32 kv, u32 row0,
                                  u32 n_rows, u32 c) {
    bool any = false;
    REE_NO_UNROLL
    for (u32 i = 0; i < ROWS && row0 + i < n_rows; i++)
        any = any || attention_has_chunk(p, attention_row_of(h, p, kv, row0 + i), c);
    return any;
}

// extra[0]: number of groups of ROWS rows per key head. Grid: [batch * n_kv_heads][groups][tiles of
// KEYS keys].
REE_KERNEL(attention_scores, struct ree_attention_params, 128) {
    REE_SHARED(float, keys, 2 * 128 * 36);
    REE_SHARED(float, queries, 2 * 8 * 32);
    const u32 n_groups = h.extra[0], tiles = (p.kv_len + KEYS - 1u) / KEYS;
    const u32 n_rows = p.n_heads / p.n_kv_heads * p.q_len;
    u32 tile = blockIdx.x % tiles, row0 = blockIdx.x / tiles % n_groups * ROWS;
    u32 kv = blockIdx.x / tiles / n_groups;
    u32 key0 = tile * KEYS, j = key0 + threadIdx.x;
    // No row's sum includes this chunk, so its scores are never read.
    if (!attention_any_has(h, p, kv, row0, n_rows, key0 / REE_CHUNK)) return;
    const u32 batch = kv / p.n_kv_heads;
    u32 k_base = (u32)p.k_offset + batch * (u32)p.k_strides[0] +
                 kv % p.n_kv_heads * (u32)p.k_strides[1];
    auto k = ree_in<float>(h, 1);
    bool vectors = p.k_dtype == REE_F32 && p.k_strides[3] == 1 && p.k_strides[2] % 4 == 0 &&
                   p.head_dim % 4u == 0 && ree_aligned(k, k_base, 16);
    float acc[ROWS], total[ROWS];
    REE_UNROLL
    for (u32 r = 0; r < ROWS; r++)
        acc[r] = total[r] = 0.0f;

    // Copies slice s of the keys and queries to half s % 2 of shared memory; zeros past the end.
    auto stage = [&](u32 s) {
        u32 d0 = s * SLICE, half = s % 2u;
        if (vectors) {
            for (u32 i = threadIdx.x; i < KEYS * (SLICE / 4u); i += 128u) {
                u32 key = i / (SLICE / 4u), d = d0 + i % (SLICE / 4u) * 4u;
                bool valid = key0 + key < p.kv_len && d < p.head_dim;
                u32 from = 0u;
                if (valid)
                    from = k_base + attention_key(h, p, batch, key0 + key) * (u32)p.k_strides[2] + d;
                ree_async_copy<16>(keys, (half * KEYS + key) * KEY_STRIDE + d - d0, k, from, valid);
            }
        } else {
            for (u32 i = threadIdx.x; i < KEYS * SLICE; i += 128u) {
                u32 key = i / SLICE, d = d0 + i % SLICE;
                float x = 0.0f;
                if (key0 + key < p.kv_len && d < p.head_dim)
                    x = attention_element(h, 1, p.k_dtype,
                                          k_base +
                                              attention_key(h, p, batch, key0 + key) *
                                                  (u32)p.k_strides[2] +
                                              d * (u32)p.k_strides[3]);
                keys[(half * KEYS + key) * KEY_STRIDE + d - d0] = x;
            }
        }
        for (u32 i = threadIdx.x; i < ROWS * SLICE; i += 128u) {
            u32 row = row0 + i / SLICE, d = d0 + i % SLICE;
            float x = 0.0f;
            if (row < n_rows && d < p.head_dim) {
                struct attention_row r = attention_row_of(h, p, kv, row);
                x = ree_in<float>(h, 0)[(u32)p.q_offset + r.batch * (u32)p.q_strides[0] +
                                        r.head * (u32)p.q_strides[1] +
                                        r.query * (u32)p.q_strides[2] + d * (u32)p.q_strides[3]];
            }
            queries[half * ROWS * SLICE + i] = x;
        }
        ree_async_commit();
    };

    const u32 n_slices = (p.head_dim + SLICE - 1u) / SLICE;
    if (n_slices > 0) stage(0);
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait<0>();
        __syncthreads(); // slice s has arrived, and all threads have read slice s-1
        if (s + 1u < n_slices) stage(s + 1u);
        u32 key_at = (s % 2u * KEYS + threadIdx.x) * KEY_STRIDE, query_at = s % 2u * ROWS * SLICE;
        REE_UNROLL
        for (u32 d = 0; d < SLICE; d += 4u) {
            float4 x = ree_load<float4>(keys, key_at + d);
            REE_UNROLL
            for (u32 r = 0; r < ROWS; r++) {
                float4 q = ree_load<float4>(queries, query_at + r * SLICE + d);
                acc[r] = __fmaf_rn(q.x, x.x, acc[r]);
                acc[r] = __fmaf_rn(q.y, x.y, acc[r]);
                acc[r] = __fmaf_rn(q.z, x.z, acc[r]);
                acc[r] = __fmaf_rn(q.w, x.w, acc[r]);
            }
        }
        if (s % (REE_CHUNK / SLICE) == REE_CHUNK / SLICE - 1u) {
            REE_UNROLL
            for (u32 r = 0; r < ROWS; r++) {
                total[r] = __fadd_rn(total[r], acc[r]);
                acc[r] = 0.0f;
            }
        }
    }
    if (j >= p.kv_len) return;
    const struct attention_operands at = attention_operands_of(p);
    const int64_t n_keys = attention_n_keys(h, p, at, kv / p.n_kv_heads);
    REE_UNROLL
    for (u32 i = 0; i < ROWS; i++) {
        if (row0 + i >= n_rows) break;
        struct attention_row r = attention_row_of(h, p, kv, row0 + i);
        float t = attention_score(h, p, at, r, j, n_keys, __fadd_rn(total[i], acc[i]));
        ree_scratch<float>(h)[(kv * n_rows + row0 + i) * p.kv_len + j] = t;
    }
}

// One block per row of scores. Replaces the scores by weights in the chunks that the row's sums
// include.
REE_KERNEL(attention_weights, struct ree_attention_params, 256) {
    REE_SHARED(float, tile, REE_LONG_TILE);
    REE_SHARED(float, results, REE_ROWS_THREADS);
    auto w = ree_scratch<float>(h);
    const u32 n_rows = p.n_heads / p.n_kv_heads * p.q_len;
    u32 first, end;
    struct attention_row r = attention_row_of(h, p, blockIdx.x / n_rows, blockIdx.x % n_rows);
    attention_chunks(p, r, &first, &end);
    const u32 start = blockIdx.x * p.kv_len + first * REE_CHUNK;
    const u32 n = (end * REE_CHUNK < p.kv_len ? end * REE_CHUNK : p.kv_len) - first * REE_CHUNK;
    if (first == end) return; // the row's sums include no chunk
    int key = REE_KEY_LOWEST;
    for (u32 i = threadIdx.x; i < n; i += REE_ROWS_THREADS)
        key = max(key, ree_max_key(w[start + i]));
    float max_ = ree_of_max_key(ree_block_max(key)), sink = 0.0f;
    if (p.has_sink) {
        sink = ree_in<float>(
            h, attention_operands_of(p)
                   .sink)[(u32)p.sink_offset + r.batch * (u32)p.sink_strides[0] +
                          r.head * (u32)p.sink_strides[1] + r.query * (u32)p.sink_strides[2]];
        max_ = ree_of_max_key(max(ree_max_key(max_), ree_max_key(sink)));
    }
    bool empty = p.zero_empty && ree_bits(max_) == (REE_INF | REE_SIGN);
    if (empty) max_ = 0.0f;
    float z = ree_long_sum<1>(
        n, tile, results,
        [&](u32 i, float(&v)[1]) {
            v[0] = ree_float(ree_op_exp_f32(ree_bits(__fsub_rn(w[start + i], max_))));
            w[start + i] = v[0];
        },
        [](float acc, float e) { return ree_add(acc, e); });
    if (p.has_sink) z = __fadd_rn(z, ree_float(ree_op_exp_f32(ree_bits(__fsub_rn(sink, max_)))));
    if (empty) z = 1.0f;
    // Each thread reads only exponentials that it stored itself.
    ree_long_each<1>(n, [&](u32 i) {
        float e = w[start + i];
        w[start + i] = ree_canon(__fdiv_rn(e, z));
    });
}

// acc[r] = fma(weight of row r, value v, acc[r]) for one key; `key` is relative to the chunk.
REE_DEVICE void attention_add_key(ree_shared_t<float> weights, u32 key, float v,
                                  float (&acc)[ROWS]) {
    REE_UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        float w = weights[r * REE_CHUNK + key];
        acc[r] = __fmaf_rn(w, v, acc[r]);
    }
}
// Does what attention_add_key does for four keys, key ... key + 3. `key` must be a multiple of 4.
REE_DEVICE void attention_add_keys(ree_shared_t<float> weights, u32 key, const float (&v)[4],
                                   float (&acc)[ROWS]) {
    REE_UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        float4 w = ree_load<float4>(weights, r * REE_CHUNK + key);
        acc[r] = __fmaf_rn(w.x, v[0], acc[r]);
        acc[r] = __fmaf_rn(w.y, v[1], acc[r]);
        acc[r] = __fmaf_rn(w.z, v[2], acc[r]);
        acc[r] = __fmaf_rn(w.w, v[3], acc[r]);
    }
}

// Returns whether the values can be read in units of 16 bytes: contiguous and aligned.
REE_DEVICE bool attention_values_vectors(const struct ree_cuda_header &h,
                                         const struct ree_attention_params &p, u32 v_base) {
    const u32 n = p.v_dtype == REE_F32 ? 4u : 8u; // elements per 16 bytes
    bool aligned = p.v_dtype == REE_F32 ? ree_aligned(ree_in<float>(h, 2), v_base, 16)
                                        : ree_aligned(ree_in<uint16_t>(h, 2), v_base, 16);
    return aligned && p.v_strides[3] == 1 && (u32)p.v_strides[2] % n == 0 && p.v_head_dim % n == 0;
}

// Adds the products of keys first ... first + n - 1 of a chunk for element d0 + threadIdx.x of the
// values. Copies VALUE_KEYS keys at a time asynchronously to shared memory, with PACKED elements
// per word. Keys past the end are zeros and have weights of 0, so they change nothing.
template <u32 PACKED>
REE_DEVICE void attention_staged_values(const struct ree_cuda_header &h,
                                        const struct ree_attention_params &p, u32 batch, u32 v_base,
                                        u32 first, u32 d0, u32 n, ree_shared_t<float> weights,
                                        ree_shared_t<u32> values, float (&acc)[ROWS]) {
    const u32 key_words = 128u / PACKED, units = key_words / 4u; // words and 16-byte units per key
    const u32 n_slices = (n + VALUE_KEYS - 1u) / VALUE_KEYS;
    auto memory = ree_in<u32>(h, 2);
    auto start = [&](u32 s) {
        REE_UNROLL
        for (u32 i = 0; i < VALUE_KEYS * units / 128u; i++) {
            const u32 item = threadIdx.x + i * 128u, key = item / units, unit = item % units;
            const u32 j = s * VALUE_KEYS + key, d = d0 + unit * 4u * PACKED;
            const bool valid = j < n && d < p.v_head_dim;
            u32 from = 0u;
            if (valid)
                from = v_base + attention_key(h, p, batch, first + j) * (u32)p.v_strides[2] + d;
            ree_async_copy<16>(values,
                               (s % VALUE_STAGES * VALUE_KEYS + key) * key_words + unit * 4u,
                               memory, from / PACKED, valid);
        }
        ree_async_commit();
    };
    REE_UNROLL
    for (u32 s = 0; s + 1u < VALUE_STAGES; s++)
        start(s);
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait_stage(VALUE_STAGES);
        __syncthreads(); // slice s has arrived for all threads, and all have read slice s-1
        start(s + VALUE_STAGES - 1u);
        const u32 at = s % VALUE_STAGES * VALUE_KEYS * key_words + threadIdx.x / PACKED;
        REE_UNROLL
        for (u32 key = 0; key < VALUE_KEYS; key += 4u) {
            float v[4];
            REE_UNROLL
            for (u32 i = 0; i < 4u; i++) {
                u32 word = values[at + (key + i) * key_words];
                if (PACKED == 2u) {
                    u32 bits = threadIdx.x % 2u ? word >> 16 : word & 0xFFFFu;
                    word = p.v_dtype == REE_F16 ? ree_soft_f16_to_f32(bits) : bits << 16;
                }
                v[i] = ree_float(word);
            }
            attention_add_keys(weights, s * VALUE_KEYS + key, v, acc);
        }
    }
    ree_async_wait<0>();
}

// Does what attention_staged_values does, but reads the values directly from memory, for any
// strides. v_at: index of the thread's element in the value of key 0.
REE_DEVICE void attention_plain_values(const struct ree_cuda_header &h,
                                       const struct ree_attention_params &p, u32 batch, u32 v_at,
                                       u32 first, u32 n, ree_shared_t<float> weights,
                                       float (&acc)[ROWS]) {
    auto at = [&](u32 j) {
        return v_at + attention_key(h, p, batch, first + j) * (u32)p.v_strides[2];
    };
    u32 j = 0;
    REE_NO_UNROLL
    for (; j + 4u <= n; j += 4u) {
        float v[4];
        REE_UNROLL
        for (u32 i = 0; i < 4u; i++)
            v[i] = attention_element(h, 2, p.v_dtype, at(j + i));
        attention_add_keys(weights, j, v, acc);
    }
    REE_NO_UNROLL
    for (; j < n; j++)
        attention_add_key(weights, j, attention_element(h, 2, p.v_dtype, at(j)), acc);
}

// extra[0]: number of groups of ROWS rows per key head. extra[1]: index in scratch memory of the
// chunks' results, [chunk][row][element]. Grid: [batch * n_kv_heads][groups][chunks][elements /
// 128].
REE_KERNEL(attention_values, struct ree_attention_params, 128) {
    REE_SHARED(float, weights, 8 * 256);
    const u32 n_groups = h.extra[0], n_chunks = (p.kv_len + REE_CHUNK - 1u) / REE_CHUNK;
    const u32 n_rows = p.n_heads / p.n_kv_heads * p.q_len, parts = (p.v_head_dim + 127u) / 128u;
    u32 d = blockIdx.x % parts * 128u + threadIdx.x, rest = blockIdx.x / parts;
    u32 chunk = rest % n_chunks, row0 = rest / n_chunks % n_groups * ROWS;
    u32 kv = rest / n_chunks / n_groups, first = chunk * REE_CHUNK;
    u32 n = p.kv_len - first < REE_CHUNK ? p.kv_len - first : REE_CHUNK;
    // No row's sum includes this chunk, so its result is never read.
    if (!attention_any_has(h, p, kv, row0, n_rows, chunk)) return;
    auto scratch = ree_scratch<float>(h);
    for (u32 i = threadIdx.x; i < ROWS * REE_CHUNK; i += 128u) {
        u32 row = row0 + i / REE_CHUNK, j = i % REE_CHUNK;
        float w = 0.0f;
        if (row < n_rows && j < n) w = scratch[(kv * n_rows + row) * p.kv_len + first + j];
        weights[i] = w;
    }
    __syncthreads();
    const u32 batch = kv / p.n_kv_heads;
    const u32 v_base = (u32)p.v_offset + batch * (u32)p.v_strides[0] +
                       kv % p.n_kv_heads * (u32)p.v_strides[1];
    float acc[ROWS];
    REE_UNROLL
    for (u32 r = 0; r < ROWS; r++)
        acc[r] = 0.0f;
    if (attention_values_vectors(h, p, v_base)) {
        REE_SHARED(u32, values, VALUE_STAGES * VALUE_KEYS * 128u);
        if (p.v_dtype == REE_F32)
            attention_staged_values<1>(h, p, batch, v_base, first, d - threadIdx.x, n, weights,
                                       values, acc);
        else
            attention_staged_values<2>(h, p, batch, v_base, first, d - threadIdx.x, n, weights,
                                       values, acc);
        if (d >= p.v_head_dim) return;
    } else {
        if (d >= p.v_head_dim) return;
        attention_plain_values(h, p, batch, v_base + d * (u32)p.v_strides[3], first, n, weights,
                               acc);
    }
    const u32 all = p.batch * p.n_kv_heads * n_rows;
    REE_UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        if (row0 + r >= n_rows) break;
        // If the row's sum does not include this chunk, scratch memory held scores instead of
        // weights, and acc[r] has no meaning.
        struct attention_row row = attention_row_of(h, p, kv, row0 + r);
        float part = attention_has_chunk(p, row, chunk) ? acc[r] : 0.0f;
        scratch[h.extra[1] + (chunk * all + kv * n_rows + row0 + r) * p.v_head_dim + d] = part;
    }
}

// One thread per element of out. extra[1]: as for attention_values.
REE_KERNEL(attention_sum, struct ree_attention_params, 128) {
    const u32 n_rows = p.n_heads / p.n_kv_heads * p.q_len, i = ree_thread();
    const u32 n = p.batch * p.n_kv_heads * n_rows * p.v_head_dim;
    if (i >= n) return;
    auto scratch = ree_scratch<float>(h);
    const u32 row = i / p.v_head_dim;
    struct attention_row r = attention_row_of(h, p, row / n_rows, row % n_rows);
    u32 first, end;
    attention_chunks(p, r, &first, &end);
    float sum = 0.0f;
    for (u32 c = first; c < end; c++) {
        float part = scratch[h.extra[1] + c * n + i];
        sum = __fadd_rn(sum, part);
    }
    ree_out<float>(h, attention_operands_of(p)
                          .out)[r.batch * (u32)p.out_strides[0] + r.head * (u32)p.out_strides[1] +
                                r.query * (u32)p.out_strides[2] + i % p.v_head_dim] =
        ree_canon(ree_plus_zero(sum));
}

// softmax: m = max x; e = exp(x - m); s = chunk-sum(e); out = e / s, or, if `log` is set,
// out = (x - m) - log(s). NUMERICS.md, sections 3, 4 and 7.
//
// Memory traffic: softmax_rows reads a row once (with `log` twice) and writes it once.
// softmax_long, for rows that do not fit into shared memory, reads a row twice, writes e, reads e
// (with `log` the row) again and writes the result, mostly in caches. Work: one exponential,
// computed in float64, and one division per element.
#include "rows.h"

REE_DEVICE float exp_of(float x) {
    return ree_float(ree_op_exp_f32(ree_bits(x)));
}
REE_DEVICE float divisor_of(const struct ree_softmax_params &p, float sum) {
    return p.log ? ree_float(ree_op_log_f32(ree_bits(sum))) : sum;
}
REE_DEVICE bool is_empty(const struct ree_softmax_params &p, float max) {
    return p.zero_empty && ree_bits(max) == (REE_INF | REE_SIGN);
}
REE_DEVICE float finish(const struct ree_softmax_params &p, float x, float max, float e,
                        float divisor) {
    return ree_canon(p.log ? __fsub_rn(__fsub_rn(x, max), divisor) : __fdiv_rn(e, divisor));
}

template <int WIDTH>
REE_DEVICE void softmax_tile(const struct ree_cuda_header &h,
                             const struct ree_cuda_softmax_params &p, ree_shared_t<float> tile,
                             ree_shared_t<float> results, ree_shared_t<float> maxima,
                             ree_shared_t<float> divisors) {
    auto x = ree_in<float>(h, 0);
    auto y = ree_out<float>(h, 1);
    u32 row0 = blockIdx.x * p.rows.at_once;
    u32 n_rows = p.rows.n_rows - row0 < p.rows.at_once ? p.rows.n_rows - row0 : p.rows.at_once;
    u32 n_items = n_rows * p.rows.items.d, start = row0 * p.rows.n;
    ree_rows_stage<WIDTH>(p.rows, x, start, n_rows, tile);
    __syncthreads();
    ree_rows_max(p.rows, n_rows, tile, maxima);
    __syncthreads();
    for (u32 j = threadIdx.x; j < n_items; j += REE_ROWS_THREADS) {
        struct ree_rows_item item = ree_rows_item_of<WIDTH>(p.rows, j);
        float max = maxima[item.row], v[WIDTH];
        if (is_empty(p.p, max)) max = 0.0f;
        ree_load_run<WIDTH>(tile, item.place, v);
        REE_UNROLL
        for (int e = 0; e < WIDTH; e++)
            v[e] = exp_of(__fsub_rn(v[e], max));
        ree_store_run<WIDTH>(tile, item.place, v);
    }
    __syncthreads();
    ree_rows_sum(
        p.rows, n_rows, tile, results,
        [&](u32) { return [](float acc, float e) { return ree_add(acc, e); }; },
        [&](u32 row, float sum) {
            divisors[row] = divisor_of(p.p, is_empty(p.p, maxima[row]) ? 1.0f : sum);
        });
    __syncthreads();
    for (u32 j = threadIdx.x; j < n_items; j += REE_ROWS_THREADS) {
        struct ree_rows_item item = ree_rows_item_of<WIDTH>(p.rows, j);
        float max = maxima[item.row], divisor = divisors[item.row], v[WIDTH];
        if (is_empty(p.p, max)) max = 0.0f;
        u32 at = start + item.row * p.rows.n + item.i;
        if (p.p.log)
            ree_load_run<WIDTH>(x, at, v);
        else
            ree_load_run<WIDTH>(tile, item.place, v);
        REE_UNROLL
        for (int e = 0; e < WIDTH; e++)
            v[e] = finish(p.p, v[e], max, v[e], divisor);
        ree_store_run<WIDTH>(y, at, v);
    }
}

// Several rows per block, as rows.h describes. Dynamic shared memory: the tile.
REE_KERNEL(softmax_rows, struct ree_cuda_softmax_params, 256) {
    REE_SHARED_DYNAMIC(float, tile);
    REE_SHARED(float, results, REE_ROWS_THREADS);
    REE_SHARED(float, maxima, 64);
    REE_SHARED(float, divisors, 64);
    if (p.rows.width == 4)
        softmax_tile<4>(h, p, tile, results, maxima, divisors);
    else
        softmax_tile<1>(h, p, tile, results, maxima, divisors);
}

template <int WIDTH>
REE_DEVICE void softmax_row(const struct ree_cuda_header &h,
                            const struct ree_cuda_softmax_params &p, ree_shared_t<float> tile,
                            ree_shared_t<float> results) {
    auto x = ree_in<float>(h, 0);
    auto y = ree_out<float>(h, 1);
    u32 n = p.p.k, start = blockIdx.x * n;
    int key = REE_KEY_LOWEST;
    for (u32 i = threadIdx.x * (u32)WIDTH; i < n; i += REE_ROWS_THREADS * (u32)WIDTH) {
        float v[WIDTH];
        ree_load_run<WIDTH>(x, start + i, v);
        REE_UNROLL
        for (int e = 0; e < WIDTH; e++)
            key = max(key, ree_max_key(v[e]));
    }
    float row_max = ree_of_max_key(ree_block_max(key));
    bool empty = is_empty(p.p, row_max);
    if (empty) row_max = 0.0f;
    float sum = ree_long_sum<WIDTH>(
        n, tile, results,
        [&](u32 i, float(&v)[WIDTH]) {
            ree_load_run<WIDTH>(x, start + i, v);
            REE_UNROLL
            for (int e = 0; e < WIDTH; e++)
                v[e] = exp_of(__fsub_rn(v[e], row_max));
            if (!p.p.log) ree_store_run<WIDTH>(y, start + i, v);
        },
        [](float acc, float e) { return ree_add(acc, e); });
    float divisor = divisor_of(p.p, empty ? 1.0f : sum);
    // Each thread reads only exponentials that it stored itself.
    ree_long_each<WIDTH>(n, [&](u32 i) {
        float v[WIDTH];
        if (p.p.log)
            ree_load_run<WIDTH>(x, start + i, v);
        else
            ree_load_run<WIDTH>(y, start + i, v);
        REE_UNROLL
        for (int e = 0; e < WIDTH; e++)
            v[e] = finish(p.p, v[e], row_max, v[e], divisor);
        ree_store_run<WIDTH>(y, start + i, v);
    });
}

REE_LONG_ROWS_KERNEL(softmax_long, struct ree_cuda_softmax_params, softmax_row)

// For rows whose elements are `inner` apart: one thread per row. Neighbouring threads have
// neighbouring columns, so a warp reads neighbouring elements.
REE_KERNEL(softmax_columns, struct ree_cuda_softmax_params, 128) {
    auto x = ree_in<float>(h, 0);
    auto y = ree_out<float>(h, 1);
    u32 n = p.p.k, inner = p.p.inner, row = ree_thread();
    if (row >= p.p.outer * inner) return;
    u32 column, outer = ree_divide(row, p.inner, &column);
    u32 start = outer * n * inner + column;
    int key = REE_KEY_LOWEST;
    for (u32 i = 0, at = start; i < n; i++, at += inner)
        key = max(key, ree_max_key(x[at]));
    float row_max = ree_of_max_key(key), sum = 0.0f;
    bool empty = is_empty(p.p, row_max);
    if (empty) row_max = 0.0f;
    u32 at = start;
    for (u32 first = 0; first < n; first += REE_CHUNK) {
        u32 end = n - first < REE_CHUNK ? n : first + REE_CHUNK;
        float acc = 0.0f;
        for (u32 i = first; i < end; i++, at += inner) {
            float e = exp_of(__fsub_rn(x[at], row_max));
            if (!p.p.log) y[at] = e;
            acc = ree_add(acc, e);
        }
        sum = ree_add(sum, acc);
    }
    float divisor = divisor_of(p.p, empty ? 1.0f : ree_plus_zero(sum));
    at = start;
    for (u32 i = 0; i < n; i++, at += inner) {
        float v = 0.0f;
        if (p.p.log)
            v = x[at];
        else
            v = y[at];
        y[at] = finish(p.p, v, row_max, v, divisor);
    }
}

// norm: m = chunk-sum(x) / n; d = x - m (RMS: x); v = chunk-dot(d, d) / n;
// out = (d / sqrt(v + eps)) * scale + bias, each step rounded. NUMERICS.md, sections 3 and 7.
//
// Memory traffic: a row is read once and written once (norm_rows). Rows that do not fit into shared
// memory are read three times (RMS: twice), mostly from caches (norm_long). Scale and bias are read
// for each row, from caches.
#include "rows.h"

REE_DEVICE float deviation_of(const struct ree_norm_params &p, float squares) {
    float variance = __fdiv_rn(squares, __uint2float_rn(p.cols));
    return __fsqrt_rn(__fadd_rn(variance, p.epsilon));
}

// Computes the results of WIDTH elements v of row `row`, from element i on, and stores them.
template <int WIDTH>
REE_DEVICE void norm_store(const struct ree_cuda_header &h, const struct ree_cuda_norm_params &p,
                           u32 row, u32 i, float mean, float deviation, float (&v)[WIDTH]) {
    u32 operand = 1, at = 0, stride = p.p.scale_col_stride;
    if (p.p.has_scale || p.p.has_bias) {
        u32 rest, turn = ree_divide(row, p.row_div, &rest);
        ree_divide(turn, p.row_mod, &rest);
        at = rest * p.p.scale_row_stride + i * stride;
    }
    REE_UNROLL
    for (int e = 0; e < WIDTH; e++) {
        float d = p.p.rms ? v[e] : __fsub_rn(v[e], mean);
        v[e] = __fdiv_rn(d, deviation);
    }
    for (u32 step = 0; step < 2; step++) {
        if (step == 0 ? !p.p.has_scale : !p.p.has_bias) continue;
        auto factors = ree_in<float>(h, operand++);
        float w[WIDTH];
        if (WIDTH == 4 && stride == 1 && ree_aligned(factors, at, 16)) {
            ree_load_run<WIDTH>(factors, at, w);
        } else {
            REE_UNROLL
            for (int e = 0; e < WIDTH; e++)
                w[e] = factors[at + (u32)e * stride];
        }
        REE_UNROLL
        for (int e = 0; e < WIDTH; e++)
            v[e] = step == 0 ? __fmul_rn(v[e], w[e]) : __fadd_rn(v[e], w[e]);
    }
    REE_UNROLL
    for (int e = 0; e < WIDTH; e++)
        v[e] = ree_canon(v[e]);
    ree_store_run<WIDTH>(ree_out<float>(h, operand), row * p.p.cols + i, v);
}

template <int WIDTH>
REE_DEVICE void norm_tile(const struct ree_cuda_header &h, const struct ree_cuda_norm_params &p,
                          ree_shared_t<float> tile, ree_shared_t<float> results,
                          ree_shared_t<float> means, ree_shared_t<float> deviations) {
    u32 row0 = blockIdx.x * p.rows.at_once;
    u32 n_rows = p.rows.n_rows - row0 < p.rows.at_once ? p.rows.n_rows - row0 : p.rows.at_once;
    float count = __uint2float_rn(p.p.cols);
    ree_rows_stage<WIDTH>(p.rows, ree_in<float>(h, 0), row0 * p.rows.n, n_rows, tile);
    __syncthreads();
    if (p.p.rms) {
        ree_rows_sum(
            p.rows, n_rows, tile, results,
            [&](u32) { return [](float acc, float x) { return ree_fma(x, x, acc); }; },
            [&](u32 row, float sum) {
                means[row] = 0.0f;
                deviations[row] = deviation_of(p.p, sum);
            });
    } else {
        ree_rows_sum(
            p.rows, n_rows, tile, results,
            [&](u32) { return [](float acc, float x) { return ree_add(acc, x); }; },
            [&](u32 row, float sum) { means[row] = __fdiv_rn(sum, count); });
        __syncthreads();
        ree_rows_sum(
            p.rows, n_rows, tile, results,
            [&](u32 row) {
                float mean = means[row];
                return [mean](float acc, float x) {
                    float d = __fsub_rn(x, mean);
                    return ree_fma(d, d, acc);
                };
            },
            [&](u32 row, float sum) { deviations[row] = deviation_of(p.p, sum); });
    }
    __syncthreads();
    for (u32 j = threadIdx.x; j < n_rows * p.rows.items.d; j += REE_ROWS_THREADS) {
        struct ree_rows_item item = ree_rows_item_of<WIDTH>(p.rows, j);
        float v[WIDTH];
        ree_load_run<WIDTH>(tile, item.place, v);
        norm_store<WIDTH>(h, p, row0 + item.row, item.i, means[item.row], deviations[item.row], v);
    }
}

// Several rows per block, as rows.h describes. Dynamic shared memory: the tile.
REE_KERNEL(norm_rows, struct ree_cuda_norm_params, 256) {
    REE_SHARED_DYNAMIC(float, tile);
    REE_SHARED(float, results, REE_ROWS_THREADS);
    REE_SHARED(float, means, 64);
    REE_SHARED(float, deviations, 64);
    if (p.rows.width == 4)
        norm_tile<4>(h, p, tile, results, means, deviations);
    else
        norm_tile<1>(h, p, tile, results, means, deviations);
}

template <int WIDTH>
REE_DEVICE void norm_row(const struct ree_cuda_header &h, const struct ree_cuda_norm_params &p,
                         ree_shared_t<float> tile, ree_shared_t<float> results) {
    auto x = ree_in<float>(h, 0);
    u32 n = p.p.cols, start = blockIdx.x * n;
    auto load = [&](u32 i, float(&v)[WIDTH]) { ree_load_run<WIDTH>(x, start + i, v); };
    float mean = 0.0f, squares = 0.0f;
    if (p.p.rms) {
        squares = ree_long_sum<WIDTH>(n, tile, results, load,
                                      [](float acc, float v) { return ree_fma(v, v, acc); });
    } else {
        float sum = ree_long_sum<WIDTH>(n, tile, results, load,
                                        [](float acc, float v) { return ree_add(acc, v); });
        mean = __fdiv_rn(sum, __uint2float_rn(n));
        squares = ree_long_sum<WIDTH>(n, tile, results, load, [mean](float acc, float v) {
            float d = __fsub_rn(v, mean);
            return ree_fma(d, d, acc);
        });
    }
    float deviation = deviation_of(p.p, squares);
    for (u32 i = threadIdx.x * (u32)WIDTH; i < n; i += REE_ROWS_THREADS * (u32)WIDTH) {
        float v[WIDTH];
        load(i, v);
        norm_store<WIDTH>(h, p, blockIdx.x, i, mean, deviation, v);
    }
}

REE_LONG_ROWS_KERNEL(norm_long, struct ree_cuda_norm_params, norm_row)

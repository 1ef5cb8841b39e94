// pool: over the window of each output position, in row-major order: max x; chunk-sum(x) / count;
// chunk-dot(x, x). NUMERICS.md, sections 2, 3 and 7.
//
// A thread computes one output. Memory traffic: x once (from caches if windows overlap) and out
// once. Positions outside the input are terms of +0, which change no accumulator: they are skipped,
// but counted as terms of a chunk.
#include "chunks.h"

#define NOWHERE 0xFFFFFFFFu

// Window positions [from, to) along one axis whose coordinates are in [low, high). The window
// begins at `start`.
struct reach {
    u32 from, to;
};
// Returns how many steps of `dilation` lead from `start` to `place` or beyond.
REE_DEVICE u32 steps_to(int start, u32 dilation, int place) {
    if (place <= start) return 0;
    u32 distance = (u32)(place - start);
    return dilation == 1u ? distance : (distance + dilation - 1u) / dilation;
}
REE_DEVICE struct reach reach_of(int start, u32 kernel, u32 dilation, int low, int high) {
    struct reach r = {steps_to(start, dilation, low), steps_to(start, dilation, high)};
    if (r.to > kernel) r.to = kernel;
    if (r.from > r.to) r.from = r.to;
    return r;
}

struct window {
    u32 plane, start; // index of the plane, and of its first element
    int at[3];        // coordinates of the window's first position, possibly outside the input
    struct reach in[3];
};

REE_DEVICE struct window window_of(const struct ree_cuda_pool_params &p, u32 o) {
    struct window w;
    u32 out[3];
    o = ree_divide(o, p.out[2], &out[2]);
    o = ree_divide(o, p.out[1], &out[1]);
    w.plane = ree_divide(o, p.out[0], &out[0]);
    w.start = w.plane * p.p.in[0] * p.p.in[1] * p.p.in[2];
    REE_UNROLL
    for (int a = 0; a < 3; a++) {
        w.at[a] = (int)(out[a] * p.p.stride[a]) - p.p.pad_begin[a];
        w.in[a] = reach_of(w.at[a], p.p.kernel[a], p.p.dilation[a], 0, (int)p.p.in[a]);
    }
    return w;
}

// Calls f(element of the plane, index of the term, coordinates) for each position inside the input.
template <class F>
REE_DEVICE void each_position(const struct ree_cuda_pool_params &p, const struct window &w, F f) {
    const u32 *in = p.p.in, *dilation = p.p.dilation;
    for (u32 k0 = w.in[0].from; k0 < w.in[0].to; k0++) {
        u32 i0 = (u32)w.at[0] + k0 * dilation[0];
        for (u32 k1 = w.in[1].from; k1 < w.in[1].to; k1++) {
            u32 i1 = (u32)w.at[1] + k1 * dilation[1], row = (i0 * in[1] + i1) * in[2];
            u32 term = (k0 * p.p.kernel[1] + k1) * p.p.kernel[2] + w.in[2].from;
            u32 i2 = (u32)w.at[2] + w.in[2].from * dilation[2];
            for (u32 k2 = w.in[2].from; k2 < w.in[2].to; k2++, term++, i2 += dilation[2])
                f(row + i2, term, i0, i1, i2);
        }
    }
}

template <bool SQUARES>
REE_DEVICE float window_sum(const struct ree_cuda_header &h, const struct ree_cuda_pool_params &p,
                            const struct window &w) {
    auto x = ree_in<float>(h, 0);
    float total = 0.0f, acc = 0.0f;
    u32 chunk = 0;
    each_position(p, w, [&](u32 i, u32 term, u32, u32, u32) {
        if (term / REE_CHUNK != chunk) {
            total = ree_add(total, acc);
            acc = 0.0f;
            chunk = term / REE_CHUNK;
        }
        float v = x[w.start + i];
        acc = SQUARES ? ree_fma(v, v, acc) : ree_add(acc, v);
    });
    return ree_plus_zero(ree_add(total, acc));
}

// Returns the number of positions by which the average divides.
REE_DEVICE u32 count_of(const struct ree_cuda_pool_params &p, const struct window &w) {
    u32 n = 1;
    REE_UNROLL
    for (int a = 0; a < 3; a++) {
        struct reach r = w.in[a];
        if (p.p.count_include_pad)
            r = reach_of(w.at[a], p.p.kernel[a], p.p.dilation[a], -p.p.pad_begin[a],
                         (int)p.p.in[a] + p.p.pad_end[a]);
        n *= r.to - r.from;
    }
    return n;
}

REE_KERNEL(pool_sum, struct ree_cuda_pool_params, 256) {
    u32 o = ree_thread();
    if (o >= h.extra[0]) return;
    struct window w = window_of(p, o);
    float value =
        p.p.kind == REE_POOL_SUM_SQ ? window_sum<true>(h, p, w) : window_sum<false>(h, p, w);
    if (p.p.kind == REE_POOL_AVG) value = __fdiv_rn(value, __uint2float_rn(count_of(p, w)));
    ree_out<float>(h, 1)[o] = ree_canon(value);
}

// key_of maps a value to an int that has the order of max; of_key is the inverse.
REE_DEVICE int key_of(float x) {
    return ree_max_key(x);
}
REE_DEVICE int key_of(int8_t x) {
    return x;
}
REE_DEVICE int key_of(uint8_t x) {
    return x;
}
REE_DEVICE float of_key(float, int key) {
    return ree_of_max_key(key);
}
REE_DEVICE int8_t of_key(int8_t, int key) {
    return (int8_t)key;
}
REE_DEVICE uint8_t of_key(uint8_t, int key) {
    return (uint8_t)key;
}
// Returns whether a value takes over the position of the maximum so far. Among equal values (zeros
// of both signs are equal here) and among NaNs, the first position stays.
REE_DEVICE bool exceeds(float, int key, int best) {
    return key > best && !(key == 0 && best == -1); // 0 and -1 are the keys of +0 and -0
}
REE_DEVICE bool exceeds(int8_t, int key, int best) {
    return key > best;
}
REE_DEVICE bool exceeds(uint8_t, int key, int best) {
    return key > best;
}

template <class T>
REE_DEVICE void window_max(const struct ree_cuda_header &h, const struct ree_cuda_pool_params &p,
                           u32 o, int lowest) {
    auto x = ree_in<T>(h, 0);
    struct window w = window_of(p, o);
    int best = lowest;
    if (!p.p.has_indices) {
        each_position(p, w, [&](u32 i, u32, u32, u32, u32) {
            T v = x[w.start + i];
            best = max(best, key_of(v));
        });
    } else {
        const bool column_major = p.p.storage_order != 0;
        u32 place = NOWHERE;
        each_position(p, w, [&](u32 i, u32, u32 i0, u32 i1, u32 i2) {
            T v = x[w.start + i];
            int key = key_of(v);
            if (place == NOWHERE || exceeds(v, key, best))
                place = column_major ? (i2 * p.p.in[1] + i1) * p.p.in[0] + i0 : i;
            best = max(best, key);
        });
        ree_out<u64>(h, 2)[o] = (u64)w.start + place;
    }
    ree_out<T>(h, 1)[o] = of_key(T(), best);
}

// extra[0]: number of outputs.
REE_KERNEL(pool_max, struct ree_cuda_pool_params, 256) {
    u32 o = ree_thread();
    if (o >= h.extra[0]) return;
    if (p.p.dtype == REE_F32)
        window_max<float>(h, p, o, REE_KEY_LOWEST);
    else if (p.p.dtype == REE_I8)
        window_max<int8_t>(h, p, o, -128);
    else
        window_max<uint8_t>(h, p, o, 0);
}

// resize: out[o, j, i] = chunk-dot over the taps t of (w[j, t], x[o, index[j, t], i]); if index[j,
// 0] is -1, the extrapolation value. NUMERICS.md, sections 3 and 7.
//
// A thread computes one output. Memory traffic: out once, and per output one element of x for each
// tap, mostly from caches. Outputs with the same j read the same weights and indices, from caches.
#include "chunks.h"

REE_KERNEL(resize_taps, struct ree_cuda_resize_params, 256) {
    u32 o = ree_thread(), taps = p.p.taps;
    if (o >= h.extra[0]) return;
    auto x = ree_in<float>(h, 0);
    auto indices = ree_in<int32_t>(h, 1);
    auto weights = ree_in<float>(h, 2);
    auto y = ree_out<float>(h, 3);
    u32 i, j, outer = ree_divide(o, p.inner, &i);
    outer = ree_divide(outer, p.k_out, &j);
    u32 first = j * taps, start = outer * p.p.k_in * p.p.inner + i;
    const bool extrapolated = taps > 0 && indices[first] == -1;
    float total = 0.0f;
    for (u32 t0 = 0; t0 < taps; t0 += REE_CHUNK) {
        u32 end = taps - t0 < REE_CHUNK ? taps : t0 + REE_CHUNK;
        float acc = 0.0f;
        for (u32 t = t0; t < end; t++) {
            int index = indices[first + t];
            if ((u32)index >= p.p.k_in) {
                if (extrapolated && index == -1) continue;
                ree_fault(h, (u64)(int64_t)index);
                return;
            }
            acc = ree_fma(weights[first + t], x[start + (u32)index * p.p.inner], acc);
        }
        total = ree_add(total, acc);
    }
    y[o] = ree_canon(extrapolated ? p.p.extrapolation : ree_plus_zero(total));
}

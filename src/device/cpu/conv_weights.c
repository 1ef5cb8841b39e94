// Packs a convolution's weights in the layout that conv.h describes.
#include "device/cpu/conv.h"

struct ree_conv_packing ree_conv_packing_of(const struct ree_cpu_context *ctx,
                                            const struct ree_conv_params *p) {
    struct ree_conv_packing packing = {.p = p, .tiles = ree_tiles_for(ctx->isa)};
    if (ree_conv_sum_dtype(p) == REE_I32) {
        // Choose tiles for which the weights are packed unchanged. If the bytes of x are flipped,
        // the correction is then one number per output channel.
        packing.integer =
            ree_integer_tiles_for(ctx, p->w_dtype == REE_I8, p->x_dtype == REE_I8, false);
        packing.tiles = &packing.integer->tiles;
    }
    packing.n_words = ree_conv_n_words(p, packing.tiles->terms);
    // Panels of nearly equal height: 64 rows are 5 * 11 + 9 instead of 5 * 12 + 4.
    packing.panel_rows = ree_conv_ceil_div(p->m, ree_conv_ceil_div(p->m, packing.tiles->rows));
    return packing;
}

size_t ree_conv_packed_size(const struct ree_conv_packing *packing) {
    const struct ree_conv_params *p = packing->p;
    size_t words_per_channel = (size_t)packing->n_words + (packing->integer ? 1 : 0);
    return (size_t)p->groups * p->m * words_per_channel * sizeof(float);
}

static void pack_floats(const struct ree_conv_packing *packing, const float *w, uint32_t g,
                        uint32_t i, uint32_t rows, float *packed) {
    const struct ree_conv_params *p = packing->p;
    const struct ree_tiles *tiles = packing->tiles;
    uint32_t taps = (uint32_t)ree_conv_n_kernel(p), k = packing->n_words;
    for (uint32_t k0 = 0; k0 < k; k0 += REE_CHUNK) {
        uint32_t kc = ree_conv_min(k - k0, REE_CHUNK);
        float *out = packed + (size_t)k0 * p->m + (size_t)i * kc;
        if (!p->transposed) {
            tiles->pack(w + ((size_t)g * p->m + i) * k + k0, k, 1, rows, kc, out, rows);
            continue;
        }
        // Transposed weights have the layout (groups * c, m, kernel): terms are adjacent only along
        // the kernel.
        for (uint32_t l = k0; l < k0 + kc;) {
            uint32_t c = l / taps, tap = l % taps, n = ree_conv_min(taps - tap, k0 + kc - l);
            tiles->pack(w + (((size_t)g * p->c + c) * p->m + i) * taps + tap, taps, 1, rows, n,
                        out + (size_t)(l - k0) * rows, rows);
            l += n;
        }
    }
}

// Gathers the bytes of word l of one output channel's weights w (c, kernel), in the order of terms
// that conv_layout.h describes, with zeros for missing terms.
static void gather_terms(const struct ree_conv_packing *packing, const uint8_t *w, uint32_t l,
                         uint8_t *out) {
    const struct ree_conv_params *p = packing->p;
    uint32_t terms = packing->tiles->terms, fold = ree_conv_fold(p, terms);
    uint32_t taps = (uint32_t)ree_conv_n_kernel(p), n_taps = taps / fold;
    uint32_t word = l / n_taps, tap = l % n_taps * fold;
    for (uint32_t t = 0; t < terms; t++) {
        uint32_t term = word * terms + t;
        out[t] = term < p->c * fold ? w[(size_t)(term / fold) * taps + tap + term % fold] : 0;
    }
}

static void pack_bytes(const struct ree_conv_packing *packing, const uint8_t *w, uint32_t g,
                       uint32_t i, uint32_t rows, ree_any_u32 *packed) {
    const struct ree_conv_params *p = packing->p;
    uint32_t terms = packing->tiles->terms, n_words = packing->n_words;
    size_t n_weights = p->c * ree_conv_n_kernel(p);
    bool is_signed = p->w_dtype == REE_I8;
    w += ((size_t)g * p->m + i) * n_weights;
    for (uint32_t k0 = 0; k0 < n_words; k0 += REE_CHUNK) {
        uint32_t kc = ree_conv_min(n_words - k0, REE_CHUNK);
        ree_any_u32 *out = packed + (size_t)k0 * p->m + (size_t)i * kc;
        for (uint32_t l = k0; l < k0 + kc; l++, out += rows) {
            uint8_t bytes[REE_TILE_MAX_ROWS * REE_TILE_MAX_TERMS];
            for (uint32_t r = 0; r < rows; r++)
                gather_terms(packing, w + r * n_weights, l, bytes + r * terms);
            packing->integer->pack(bytes, terms, 1, rows, terms, is_signed, false, out, rows);
        }
    }
}

void ree_conv_pack_panel(const struct ree_conv_packing *packing, const void *w, uint32_t g,
                         uint32_t i, float *packed) {
    const struct ree_conv_params *p = packing->p;
    uint32_t rows = ree_conv_min(p->m - i, packing->panel_rows);
    float *group = packed + (size_t)g * p->m * packing->n_words;
    if (!packing->integer) {
        pack_floats(packing, w, g, i, rows, group);
        return;
    }
    pack_bytes(packing, w, g, i, rows, (ree_any_u32 *)group);
    size_t n_weights = p->c * ree_conv_n_kernel(p);
    ree_any_u32 *sums =
        (ree_any_u32 *)packed + (size_t)p->groups * p->m * packing->n_words + g * p->m;
    for (uint32_t r = i; r < i + rows; r++) {
        const uint8_t *row = (const uint8_t *)w + ((size_t)g * p->m + r) * n_weights;
        sums[r] = 0;
        for (size_t l = 0; l < n_weights; l++)
            sums[r] += p->w_dtype == REE_I8 ? (uint32_t)(int8_t)row[l] : row[l];
    }
}

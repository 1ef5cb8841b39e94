// Packs and widens the operands of products (operand.h).
#include "device/cpu/operand.h"

#define PART_TERMS 64 // terms widened at a time
#define PART_VECTORS 16

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// Converts terms [l, l + n) of one vector to floats.
static void widen_vector(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                         uint32_t vector, uint32_t l, uint32_t n, float *out) {
    if (f->blocks) {
        tiles->dequantise(f->blocks, vector, l, n, out);
        return;
    }
    int64_t size = (int64_t)ree_dtype_size(f->dtype);
    const char *from = f->data + (vector * f->stride_vector + l * f->stride_k) * size;
    enum ree_tile_type type = ree_tile_type_of(f->dtype);
    if (f->stride_k == 1) {
        tiles->widen[type](n, from, out);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        tiles->widen[type](1, from + i * f->stride_k * size, out + i);
}

// Packs vectors that are adjacent in memory: term l of all of them is a contiguous run.
static void pack_adjacent(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                          uint32_t vector, uint32_t n_vectors, uint32_t l, uint32_t n, float *dst,
                          uint32_t pitch) {
    int64_t size = (int64_t)ree_dtype_size(f->dtype);
    const char *from = f->data + (vector + l * f->stride_k) * size;
    enum ree_tile_type type = ree_tile_type_of(f->dtype);
    for (uint32_t i = 0; i < n; i++, dst += pitch) {
        tiles->widen[type](n_vectors, from + i * f->stride_k * size, dst);
        for (uint32_t j = n_vectors; j < pitch; j++)
            dst[j] = 0.0f;
    }
}

static void pack_widened(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                         uint32_t vector, uint32_t n_vectors, uint32_t l, uint32_t n, float *dst,
                         uint32_t pitch) {
    float part[PART_VECTORS * PART_TERMS];
    for (uint32_t l0 = 0; l0 < n; l0 += PART_TERMS) {
        uint32_t n_terms = min_u32(n - l0, PART_TERMS);
        float *out = dst + (size_t)l0 * pitch;
        for (uint32_t i = 0; i < pitch; i += PART_VECTORS) {
            uint32_t live = i < n_vectors ? min_u32(n_vectors - i, PART_VECTORS) : 0;
            uint32_t width = min_u32(pitch - i, PART_VECTORS);
            for (uint32_t c = 0; c < live; c++)
                widen_vector(tiles, f, vector + i + c, l + l0, n_terms, part + c * PART_TERMS);
            if (width == pitch) {
                tiles->pack(part, PART_TERMS, 1, live, n_terms, out, pitch);
                continue;
            }
            // Part of a panel's width: pack it separately, then copy it into the panel.
            float packed[PART_VECTORS * PART_TERMS];
            tiles->pack(part, PART_TERMS, 1, live, n_terms, packed, width);
            for (uint32_t t = 0; t < n_terms; t++)
                memcpy(out + (size_t)t * pitch + i, packed + t * width, width * sizeof(float));
        }
    }
}

// Vectors of columns beyond n_vectors become zeros; columns of the last one that do not exist have
// scales of zero.
static void pack_panels(const struct ree_tiles *tiles, const struct ree_packed_blocks *b,
                        uint32_t vector, uint32_t n_vectors, uint32_t l, uint32_t n, float *dst,
                        uint32_t pitch) {
    const uint32_t cols = REE_PANEL_VECS * tiles->lanes;
    for (uint32_t i = 0; i < pitch; i += tiles->lanes) {
        if (i >= n_vectors) {
            for (uint32_t t = 0; t < n; t++)
                memset(dst + (size_t)t * pitch + i, 0, tiles->lanes * sizeof *dst);
            continue;
        }
        const struct ree_tile_panel from = ree_packed_panel(b, cols, (vector + i) / cols, l);
        tiles->panel_floats(&from, (vector + i) % cols / tiles->lanes, n, dst + i, pitch);
    }
}

void ree_cpu_operand_pack(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                          uint32_t k, uint32_t vector, uint32_t n_vectors, uint32_t word,
                          uint32_t n_words, float *dst, uint32_t pitch) {
    if (f->integer) {
        uint32_t l = word * tiles->terms, n = min_u32(k - l, n_words * tiles->terms);
        const char *from = f->data + vector * f->stride_vector + l * f->stride_k;
        f->integer->pack((const uint8_t *)from, f->stride_vector, f->stride_k, n_vectors, n,
                         f->dtype == REE_I8, f->flip, (ree_any_u32 *)dst, pitch);
    } else if (f->packed) {
        pack_panels(tiles, f->packed, vector, n_vectors, word, n_words, dst, pitch);
    } else if (f->stride_k == 1 && !f->blocks) {
        int64_t at = (vector * f->stride_vector + word) * (int64_t)ree_dtype_size(f->dtype);
        tiles->pack_vectors[ree_tile_type_of(f->dtype)](f->data + at, f->stride_vector,
                                                        f->ahead ? f->ahead : REE_CHUNK, n_vectors,
                                                        n_words, dst, pitch);
    } else if (f->dtype == REE_F32 && !f->blocks) {
        const float *from =
            (const float *)(const void *)f->data + vector * f->stride_vector + word * f->stride_k;
        tiles->pack(from, f->stride_vector, f->stride_k, n_vectors, n_words, dst, pitch);
    } else if (f->stride_vector == 1 && !f->blocks) {
        pack_adjacent(tiles, f, vector, n_vectors, word, n_words, dst, pitch);
    } else {
        pack_widened(tiles, f, vector, n_vectors, word, n_words, dst, pitch);
    }
}

void ree_cpu_operand_widen(const struct ree_tiles *tiles, const struct ree_cpu_operand *f,
                           uint32_t k, uint32_t n_vectors, float *out) {
    for (uint32_t i = 0; i < n_vectors; i++)
        widen_vector(tiles, f, i, 0, k, out + (size_t)i * k);
}

// SentencePiece's character maps: a little-endian uint32 with the size in bytes of a double array
// (darts-clone), the array, and the replacements, each ended by a NUL. The array maps UTF-8 strings
// to offsets of replacements.
//
// The lookups are those of Hugging Face's tokenizers. In a grapheme cluster of fewer than six
// bytes, the shortest prefix that the array has is looked up, and its replacement replaces the
// whole cluster. If there is no such prefix, or the cluster is longer, each character is looked up
// separately.
#include "text/normalize.h"
#include "text/utf8.h"

#include <utf8proc.h>

static uint32_t unit_at(const struct ree_str *blob, uint32_t i) {
    const unsigned char *b = (const unsigned char *)blob->data + 4 + (size_t)i * 4;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

enum ree_status ree_charsmap_check(struct ree_str blob, uint32_t *out_units,
                                   struct ree_error *err) {
    const unsigned char *b = (const unsigned char *)blob.data;
    *out_units = 0;
    if (blob.size == 0) return REE_OK;
    if (blob.size < 4)
        return ree_fail(err, REE_INVALID, "the character map has an invalid size of %zu bytes",
                        blob.size);
    uint32_t size =
        (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    if (size % 4 != 0 || size > blob.size - 4)
        return ree_fail(err, REE_INVALID,
                        "the character map states that its array has %u bytes, but %zu follow",
                        size, blob.size - 4);
    *out_units = size / 4;
    return REE_OK;
}

static uint32_t unit_offset(uint32_t unit) {
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

// Finds the value of the shortest prefix of `key` in the array. An index outside the array counts
// as not found.
static bool shortest_prefix(const struct ree_stage *stage, const char *key, size_t n,
                            uint32_t *out) {
    const struct ree_str *blob = &stage->strings[0];
    uint32_t n_units = stage->numbers[0], at = 0;
    if (n_units == 0) return false;
    at ^= unit_offset(unit_at(blob, at));
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)key[i];
        if (byte == 0) return false;
        at ^= byte;
        if (at >= n_units) return false;
        uint32_t unit = unit_at(blob, at);
        if ((unit & (1u << 31 | 0xFF)) != byte) return false;
        at ^= unit_offset(unit);
        if (at >= n_units) return false;
        if (unit >> 8 & 1) {
            *out = unit_at(blob, at) & 0x7FFFFFFFu;
            return true;
        }
    }
    return false;
}

static bool replace(const struct ree_stage *stage, const char *key, size_t n,
                    struct ree_strbuf *out) {
    uint32_t value;
    if (!shortest_prefix(stage, key, n, &value)) return false;
    const struct ree_str *blob = &stage->strings[0];
    size_t first = 4 + (size_t)stage->numbers[0] * 4, rest = blob->size - first;
    if (value > rest) return false;
    const char *text = blob->data + first + value;
    size_t size = strnlen(text, rest - value);
    // The file is untrusted, and later stages require valid UTF-8.
    if (ree_utf8_valid_prefix(text, size) != size) return false;
    ree_strbuf_append(out, text, size);
    return true;
}

static size_t cluster_size(const char *text, size_t n) {
    size_t at, step;
    utf8proc_int32_t state = 0, before = (utf8proc_int32_t)ree_utf8_get(text, &at);
    while (at < n) {
        utf8proc_int32_t c = (utf8proc_int32_t)ree_utf8_get(text + at, &step);
        if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
        before = c;
        at += step;
    }
    return at;
}

void ree_charsmap_apply(const struct ree_stage *stage, const char *text, size_t n, size_t limit,
                        struct ree_strbuf *out) {
    for (size_t i = 0, step; i < n && out->size <= limit;) {
        size_t size = cluster_size(text + i, n - i);
        if (size >= 6 || !replace(stage, text + i, size, out)) {
            for (size_t j = i; j < i + size && out->size <= limit; j += step) {
                ree_utf8_get(text + j, &step);
                if (!replace(stage, text + j, step, out)) ree_strbuf_append(out, text + j, step);
            }
        }
        i += size;
    }
}

// StringNormalizer: removes stop words and changes the case of the letters listed in NUMERICS.md,
// "Strings". It does not use the C library's tables, which differ between machines.
#include "graph/lower/ops/rules.h"

#include <stdlib.h>
#include <string.h>

enum case_change { AS_IT_IS, LOWER, UPPER };

// Decodes a two-byte UTF-8 sequence: U+0080 to U+07FF, a range that includes all letters below.
// Returns 0 for other bytes.
static uint32_t decode(const unsigned char *s) {
    bool two = (s[0] & 0xE0) == 0xC0 && (s[1] & 0xC0) == 0x80;
    return two ? (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu) : 0;
}

static uint32_t to_lower(uint32_t c) {
    if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) ||
        (c >= 0x410 && c <= 0x42F))
        return c + 0x20;
    return c >= 0x400 && c <= 0x40F ? c + 0x50 : c;
}

static uint32_t to_upper(uint32_t c) {
    if ((c >= 0xE0 && c <= 0xFE && c != 0xF7) || (c >= 0x3B1 && c <= 0x3C9 && c != 0x3C2) ||
        (c >= 0x430 && c <= 0x44F))
        return c - 0x20;
    return c >= 0x450 && c <= 0x45F ? c - 0x50 : c;
}

// Changes the case in place: upper and lower case of these letters have the same number of bytes.
static void change_case(char *text, enum case_change change) {
    for (unsigned char *s = (unsigned char *)text; *s; s++) {
        if (change == LOWER && *s >= 'A' && *s <= 'Z') *s = (unsigned char)(*s + 32);
        if (change == UPPER && *s >= 'a' && *s <= 'z') *s = (unsigned char)(*s - 32);
        uint32_t c = decode(s);
        if (!c) continue;
        c = change == LOWER ? to_lower(c) : change == UPPER ? to_upper(c) : c;
        *s++ = (unsigned char)(0xC0 | c >> 6);
        *s = (unsigned char)(0x80 | (c & 0x3F));
    }
}

static enum ree_status with_case(struct ree_lower *lower, const char *s, enum case_change change,
                                 char **out) {
    *out = ree_arena_strdup(lower->arena, s);
    if (!*out) return ree_lower_no_memory(lower);
    change_case(*out, change);
    return REE_OK;
}

static enum ree_status read_change(struct ree_lower *lower, enum case_change *out) {
    const char *action = ree_rule_string(lower, "case_change_action", "NONE");
    static const char *const names[] = {"NONE", "LOWER", "UPPER"};
    for (int i = 0; i < 3; i++)
        if (strcmp(action, names[i]) == 0) {
            *out = (enum case_change)i;
            return REE_OK;
        }
    return ree_lower_fail(
        lower, REE_INVALID,
        "attribute 'case_change_action' is '%.40s', expected NONE, LOWER or UPPER", action);
}

// The stop words as they are compared: exactly, or in lower case.
struct stop_words {
    size_t n;
    const char **words; // sorted
    enum case_change fold;
};

static int compare_words(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum ree_status read_stop_words(struct ree_lower *lower, struct stop_words *out) {
    const struct ree_attr *attr = ree_node_attr(lower->node, "stopwords");
    memset(out, 0, sizeof *out);
    out->fold = ree_rule_int(lower, "is_case_sensitive", 0) ? AS_IT_IS : LOWER;
    if (!attr || attr->kind != REE_ATTR_STRINGS || attr->n == 0) return REE_OK;
    out->words = ree_arena_alloc_array(lower->arena, attr->n, sizeof *out->words);
    if (!out->words) return ree_lower_no_memory(lower);
    for (; out->n < attr->n; out->n++) {
        char *word;
        REE_TRY(with_case(lower, attr->strings[out->n], out->fold, &word));
        out->words[out->n] = word;
    }
    qsort(out->words, out->n, sizeof *out->words, compare_words);
    return REE_OK;
}

static enum ree_status is_stop_word(struct ree_lower *lower, const struct stop_words *stop,
                                    const char *s, bool *out) {
    char *mine;
    *out = false;
    if (stop->n == 0) return REE_OK;
    REE_TRY(with_case(lower, s, stop->fold, &mine));
    *out = bsearch(&mine, stop->words, stop->n, sizeof *stop->words, compare_words) != NULL;
    return REE_OK;
}

enum ree_status ree_lower_op_stringnormalizer(struct ree_lower *lower, struct ree_view *const *in,
                                              struct ree_view **out) {
    const char *const *strings;
    size_t n, kept = 0;
    enum case_change change;
    struct stop_words stop_words;
    char text[128];
    REE_TRY(read_change(lower, &change));
    REE_TRY(read_stop_words(lower, &stop_words));
    REE_TRY(ree_lower_host_strings(lower, in[0], "input 0", &strings, &n));
    if (in[0]->rank < 1 || in[0]->rank > 2 || (in[0]->rank == 2 && in[0]->dims[0] != 1))
        return ree_lower_fail(lower, REE_INVALID, "input 0 is %s, expected [n] or [1,n]",
                              ree_view_text(in[0], text, sizeof text));
    const char **left = ree_arena_alloc_array(lower->arena, n + 1, sizeof *left);
    if (!left) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++) {
        bool stop;
        char *changed;
        REE_TRY(is_stop_word(lower, &stop_words, strings[i], &stop));
        if (stop) continue;
        REE_TRY(with_case(lower, strings[i], change, &changed));
        left[kept++] = changed;
    }
    // If no string is left, the result is one empty string.
    if (!kept) left[kept++] = "";
    int64_t dims[2] = {1, (int64_t)kept};
    uint32_t rank = in[0]->rank;
    return ree_lower_strings(lower, rank, dims + (2 - rank), left, &out[0]);
}

// Strings and sequences: values in a bind that are not tensors of numbers.
#include "base/hash.h"
#include "graph/lower/core/lower.h"

#include <string.h>

// Interned strings in a hash table with chains. String 0 is the empty string.
struct ree_strings {
    size_t n, capacity;
    const char **texts;
    uint32_t *nexts;
    uint32_t *heads; // 1 + string; `capacity` entries, a power of two
};

static void link_string(struct ree_strings *strings, uint32_t i) {
    const char *s = strings->texts[i];
    uint32_t *head = &strings->heads[ree_hash_bytes(s, strlen(s)) & (strings->capacity - 1)];
    strings->nexts[i] = *head;
    *head = i + 1;
}

static enum ree_status grow(struct ree_lower *lower, struct ree_strings *strings) {
    size_t capacity = strings->capacity ? 2 * strings->capacity : 64;
    const char **texts = ree_arena_alloc_array(lower->arena, capacity, sizeof *texts);
    uint32_t *nexts = ree_arena_alloc_array(lower->arena, capacity, sizeof *nexts);
    uint32_t *heads = ree_arena_alloc_array(lower->arena, capacity, sizeof *heads);
    if (!texts || !nexts || !heads) return ree_lower_no_memory(lower);
    if (strings->n) memcpy(texts, strings->texts, strings->n * sizeof *texts);
    strings->texts = texts;
    strings->nexts = nexts;
    strings->heads = heads;
    strings->capacity = capacity;
    for (uint32_t i = 0; i < strings->n; i++)
        link_string(strings, i);
    return REE_OK;
}

static enum ree_status add(struct ree_lower *lower, const char *s, size_t n) {
    struct ree_strings *strings = lower->strings;
    if (strings->n == strings->capacity) REE_TRY(grow(lower, strings));
    const char *copy = ree_arena_strndup(lower->arena, s, n);
    if (!copy) return ree_lower_no_memory(lower);
    strings->texts[strings->n] = copy;
    link_string(strings, (uint32_t)strings->n++);
    return REE_OK;
}

enum ree_status ree_lower_intern(struct ree_lower *lower, const char *s, size_t n, int64_t *out) {
    if (!lower->strings) {
        ree_hash_init();
        lower->strings = ree_arena_alloc(lower->arena, sizeof *lower->strings);
        if (!lower->strings) return ree_lower_no_memory(lower);
        REE_TRY(add(lower, "", 0));
    }
    struct ree_strings *strings = lower->strings;
    uint32_t at = strings->heads[ree_hash_bytes(s, n) & (strings->capacity - 1)];
    for (; at; at = strings->nexts[at - 1]) {
        const char *text = strings->texts[at - 1];
        if (strncmp(text, s, n) != 0 || text[n]) continue;
        *out = at - 1;
        return REE_OK;
    }
    *out = (int64_t)strings->n;
    return add(lower, s, n);
}

const char *ree_lower_text(const struct ree_lower *lower, int64_t string) {
    if (string == 0) return "";
    bool known = lower->strings && string > 0 && (uint64_t)string < lower->strings->n;
    return known ? lower->strings->texts[string] : NULL;
}

enum ree_status ree_lower_strings(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                                  const char *const *strings, struct ree_view **out) {
    int64_t n;
    if (!ree_count_elements(rank, dims, &n) || n >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a tensor of 2^31 strings or more");
    int64_t *numbers = ree_arena_alloc_array(lower->arena, (size_t)n + 1, sizeof *numbers);
    if (!numbers) return ree_lower_no_memory(lower);
    for (int64_t i = 0; i < n; i++)
        if (strings[i])
            REE_TRY(ree_lower_intern(lower, strings[i], strlen(strings[i]), &numbers[i]));
    return ree_lower_literal(lower, REE_STRING, rank, dims, numbers, out);
}

enum ree_status ree_lower_host_strings(struct ree_lower *lower, struct ree_view *t,
                                       const char *what, const char *const **out, size_t *out_n) {
    char text[128];
    if (t->kind != REE_TENSOR || t->dtype != REE_STRING)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected strings", what,
                              ree_view_text(t, text, sizeof text));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    size_t n = (size_t)ree_view_count(t);
    const char **texts = ree_arena_alloc_array(lower->arena, n + 1, sizeof *texts);
    if (!texts) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        memcpy(&number, (const char *)bytes + i * sizeof number, sizeof number);
        texts[i] = ree_lower_text(lower, number);
        if (!texts[i])
            return ree_lower_fail(lower, REE_INTERNAL, "%s: this string does not exist", what);
    }
    *out = texts;
    *out_n = n;
    return REE_OK;
}

// Sequences

static enum ree_status make(struct ree_lower *lower, enum ree_kind kind, enum ree_dtype dtype,
                            size_t n, struct ree_view *const *items, struct ree_view **out) {
    struct ree_view *t = ree_arena_alloc(lower->arena, sizeof *t);
    struct ree_view **list = ree_arena_alloc_array(lower->arena, n + 1, sizeof *list);
    if (!t || !list) return ree_lower_no_memory(lower);
    if (n) memcpy(list, items, n * sizeof *list);
    *t = (struct ree_view){.kind = kind, .dtype = dtype, .n_items = n, .items = list};
    *out = t;
    return REE_OK;
}

enum ree_status ree_lower_sequence(struct ree_lower *lower, enum ree_dtype dtype, size_t n,
                                   struct ree_view *const *items, struct ree_view **out) {
    return make(lower, REE_SEQUENCE, dtype, n, items, out);
}

enum ree_status ree_lower_absent(struct ree_lower *lower, enum ree_dtype dtype,
                                 struct ree_view **out) {
    return make(lower, REE_ABSENT, dtype, 0, NULL, out);
}

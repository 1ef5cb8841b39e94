#include "transport/agreement.h"

#include <string.h>

#include "base/status.h"

// Reads a line of a description. Returns false at the end, or if the line is malformed.
static bool next_line(const char **at, const char *end, const char **name, size_t *n_name,
                      const char **value, size_t *n_value) {
    const char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!newline) return false;
    const char *tab = memchr(*at, '\t', (size_t)(newline - *at));
    if (!tab) return false;
    *name = *at;
    *n_name = (size_t)(tab - *at);
    *value = tab + 1;
    *n_value = (size_t)(newline - tab - 1);
    *at = newline + 1;
    return true;
}

enum ree_status ree_agreement_compare(uint32_t rank, const struct ree_strbuf *own,
                                      const struct ree_part *other, struct ree_error *err) {
    const char *a = own->data, *a_end = a + own->size, *b = other->data, *b_end = b + other->nbytes;
    for (;;) {
        const char *a_name = "", *a_value = "", *b_name = "", *b_value = "";
        size_t n_a_name = 0, n_a_value = 0, n_b_name = 0, n_b_value = 0;
        bool has_a = next_line(&a, a_end, &a_name, &n_a_name, &a_value, &n_a_value);
        bool has_b = next_line(&b, b_end, &b_name, &n_b_name, &b_value, &n_b_value);
        if (!has_a && !has_b && a == a_end && b == b_end) return REE_OK;
        if (!has_a || !has_b || n_a_name != n_b_name || memcmp(a_name, b_name, n_a_name) != 0)
            return ree_fail(err, REE_INVALID,
                            "the descriptions of rank %u and rank 0 have different fields: they "
                            "run different programs",
                            rank);
        if (n_a_value != n_b_value || memcmp(a_value, b_value, n_a_value) != 0)
            return ree_fail(err, REE_INVALID, "rank %u has %.*s %.*s, but rank 0 has %.*s", rank,
                            (int)n_a_name, a_name, (int)(n_b_value < 200 ? n_b_value : 200),
                            b_value, (int)(n_a_value < 200 ? n_a_value : 200), a_value);
    }
}

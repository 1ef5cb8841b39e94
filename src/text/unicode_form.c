// Unicode's normalization forms (UAX #15): characters are decomposed, combining marks are sorted,
// and characters are composed again. Decompositions, classes and compositions are from utf8proc.
// The sorting is done here, because utf8proc's own takes quadratic time in the length of a run of
// marks.
#include "text/normalize.h"
#include "base/memory.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

// Maximum length of a decomposition. No character decomposes into more than 18.
#define DECOMPOSED_MAX 64

struct mark {
    utf8proc_int32_t c;
    uint32_t class;
    size_t place;
};

static uint32_t class_of(utf8proc_int32_t c) {
    return (uint32_t)utf8proc_get_property(c)->combining_class;
}

static int by_class(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

// Sorts a run of marks, none of class 0, by class. The sort is stable. Returns false if memory is
// exhausted.
static bool sort_marks(utf8proc_int32_t *run, size_t n) {
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t c = run[i];
            size_t at = i;
            for (; at > 0 && class_of(run[at - 1]) > class_of(c); at--)
                run[at] = run[at - 1];
            run[at] = c;
        }
        return true;
    }
    struct mark *marks = ree_alloc(n * sizeof *marks);
    if (!marks) return false;
    for (size_t i = 0; i < n; i++)
        marks[i] = (struct mark){run[i], class_of(run[i]), i};
    qsort(marks, n, sizeof *marks, by_class);
    for (size_t i = 0; i < n; i++)
        run[i] = marks[i].c;
    ree_free(marks);
    return true;
}

static bool sort_runs(utf8proc_int32_t *text, size_t n) {
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && class_of(text[end]) != 0;)
            end++;
        if (end - i > 1 && !sort_marks(text + i, end - i)) return false;
        if (end == i) end++;
    }
    return true;
}

enum ree_status ree_unicode_form(bool compose, bool compat, const char *text, size_t n,
                                 struct ree_strbuf *out, struct ree_error *err) {
    int bits = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
               (compat ? UTF8PROC_COMPAT : 0);
    utf8proc_option_t options = (utf8proc_option_t)bits;
    utf8proc_int32_t *buffer = NULL;
    size_t size = 0, capacity = 0, step;
    for (size_t i = 0; i < n; i += step) {
        if (capacity - size < DECOMPOSED_MAX) {
            capacity = capacity * 2 + DECOMPOSED_MAX + n / 2;
            void *more = ree_realloc(buffer, capacity * sizeof *buffer);
            if (!more) goto no_memory;
            buffer = more;
        }
        int boundary = 0;
        utf8proc_ssize_t made =
            utf8proc_decompose_char((utf8proc_int32_t)ree_utf8_get(text + i, &step), buffer + size,
                                    DECOMPOSED_MAX, options, &boundary);
        if (made < 0 || made > DECOMPOSED_MAX) {
            ree_free(buffer);
            return ree_fail(err, REE_INVALID, "Unicode normalization: %s",
                            made < 0 ? utf8proc_errmsg(made) : "a decomposition is too long");
        }
        size += (size_t)made;
    }
    if (!sort_runs(buffer, size)) goto no_memory;
    utf8proc_ssize_t kept =
        size ? utf8proc_normalize_utf32(buffer, (utf8proc_ssize_t)size, options) : 0;
    for (utf8proc_ssize_t i = 0; i < kept; i++)
        ree_utf8_append(out, (uint32_t)buffer[i]);
    ree_free(buffer);
    return kept < 0 ? ree_fail(err, REE_INVALID, "Unicode normalization: %s", utf8proc_errmsg(kept))
                    : REE_OK;
no_memory:
    ree_free(buffer);
    return ree_fail(err, REE_NO_MEMORY, "no memory for Unicode normalization");
}

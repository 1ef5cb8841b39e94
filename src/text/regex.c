#include "text/regex.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "text/onig.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

// Limits for all searches of a matcher together, and for the memory of backtracking. A tokenizer
// that exceeds them on real text is pathological.
//
// PCRE2's own limit counts the steps from one position of the text, but a single step can scan all
// of it. So callouts count the work. PCRE2 makes a callout before each item of the pattern. Each
// one counts a constant plus the bytes that were passed since the previous one.
#define WORK_LIMIT UINT64_C(1000000000) // about a second
// Added for each byte of the text, for all regexes together. A usual pattern needs 10 to 90. The
// six patterns of DeepSeek Coder need 195 together, and 415 for a text of empty lines.
#define WORK_PER_BYTE 4000
#define WORK_OF_CALLOUT 8
#define WORK_OF_SEARCH 32 // the constant cost of a search
#define HEAP_LIMIT_KIB (256u * 1024)
#define JIT_STACK_MAX ((size_t)64 * 1024 * 1024)
// PCRE2's own limit, for one search.
#define MATCH_LIMIT 50000000u

struct ree_regex {
    pcre2_code *code;
    bool jit;
};

struct ree_matcher {
    // Created by the first search: many texts have none. `stack` is NULL if there is no memory for
    // it; a search then has the small stack of PCRE2.
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint64_t work, limit;
    PCRE2_SIZE place; // position of the last callout
};

static void *allocate(PCRE2_SIZE size, void *user) {
    (void)user;
    return ree_alloc(size);
}

static void release(void *memory, void *user) {
    (void)user;
    ree_free(memory);
}

static int count_work(pcre2_callout_block *callout, void *user) {
    struct ree_matcher *m = user;
    PCRE2_SIZE place = callout->current_position;
    m->work += WORK_OF_CALLOUT + (place > m->place ? place - m->place : 0);
    m->place = place;
    return m->work > m->limit ? PCRE2_ERROR_CALLOUT : 0;
}

enum ree_status ree_regex_create(struct ree_str pattern, struct ree_regex **out_regex,
                                 struct ree_error *err) {
    *out_regex = NULL;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    struct ree_regex *regex = ree_alloc_zeroed(1, sizeof *regex);
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    enum ree_status status = ree_onig_translate(pattern, &text, err);
    if (status != REE_OK) goto done;
    if (!regex || !context || text.failed) {
        status = ree_fail(err, REE_NO_MEMORY, "no memory for a regular expression");
        goto done;
    }
    pcre2_set_parens_nest_limit(context, 100);
    pcre2_set_max_pattern_length(context, 1 << 22);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
    int code;
    PCRE2_SIZE place;
    uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
    PCRE2_SPTR bytes = (PCRE2_SPTR)(text.data ? text.data : "");
    regex->code =
        pcre2_compile(bytes, text.size, options | PCRE2_AUTO_CALLOUT, &code, &place, context);
    if (!regex->code) {
        char why[200];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        enum ree_status kind = code == PCRE2_ERROR_HEAP_FAILED ? REE_NO_MEMORY : REE_INVALID;
        status = ree_fail(err, kind, "the regular expression '%.200s' does not compile: %s",
                          pattern.data, why);
        goto done;
    }
    // If PCRE2's JIT compiler does not support this machine, its interpreter runs.
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0;
    *out_regex = regex;
    regex = NULL;
done:
    if (context) pcre2_compile_context_free(context);
    if (general) pcre2_general_context_free(general); // `context` has a copy
    ree_strbuf_finish(&text);
    ree_regex_destroy(regex);
    return status;
}

void ree_regex_destroy(struct ree_regex *regex) {
    if (!regex) return;
    if (regex->code) pcre2_code_free(regex->code);
    ree_free(regex);
}

enum ree_status ree_matcher_create(struct ree_matcher **out_matcher, struct ree_error *err) {
    *out_matcher = ree_alloc_zeroed(1, sizeof **out_matcher);
    if (!*out_matcher) return ree_fail(err, REE_NO_MEMORY, "no memory for a regular expression");
    (*out_matcher)->limit = WORK_LIMIT;
    return REE_OK;
}

void ree_matcher_add_text(struct ree_matcher *matcher, size_t nbytes) {
    matcher->limit += WORK_PER_BYTE * (uint64_t)nbytes;
}

// Creates the memory of PCRE2. A failed call keeps what it created; the next search continues.
static enum ree_status prepare(struct ree_matcher *m, struct ree_error *err) {
    if (m->data && m->context) return REE_OK;
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);
    if (general) {
        // Only the bounds of the whole match are read, so there is room for no group.
        if (!m->data) m->data = pcre2_match_data_create(1, general);
        if (!m->context) m->context = pcre2_match_context_create(general);
        if (!m->stack) m->stack = pcre2_jit_stack_create((size_t)64 * 1024, JIT_STACK_MAX, general);
        pcre2_general_context_free(general); // the objects above have copies
    }
    if (!m->data || !m->context)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a regular expression");
    pcre2_set_callout(m->context, count_work, m);
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    if (m->stack) pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return REE_OK;
}

void ree_matcher_destroy(struct ree_matcher *matcher) {
    if (!matcher) return;
    if (matcher->data) pcre2_match_data_free(matcher->data);
    if (matcher->context) pcre2_match_context_free(matcher->context);
    if (matcher->stack) pcre2_jit_stack_free(matcher->stack);
    ree_free(matcher);
}

static int find(struct ree_matcher *m, const struct ree_regex *regex, const char *text, size_t n,
                size_t from) {
    m->work += WORK_OF_SEARCH;
    const uint64_t work = m->work;
    m->place = from;
    // A search may end before its first callout.
    if (work > m->limit) return PCRE2_ERROR_CALLOUT;
    // The text is known to be valid UTF-8. pcre2_jit_match skips the checks of its arguments.
    if (regex->jit) {
        int rc = pcre2_jit_match(regex->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK,
                                 m->data, m->context);
        if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
        m->work = work;
        m->place = from;
    }
    return pcre2_match(regex->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       m->data, m->context);
}

enum ree_status ree_matcher_find(struct ree_matcher *matcher, const struct ree_regex *regex,
                                 const char *text, size_t n, size_t from, bool *out_found,
                                 size_t *out_start, size_t *out_end, struct ree_error *err) {
    REE_TRY(prepare(matcher, err));
    int rc = find(matcher, regex, text, n, from);
    *out_found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH) return REE_OK;
    // Which limit a search reaches depends on the machine: its memory, PCRE2's version, whether
    // that can compile the pattern. So no error of a search is REE_INVALID: it says nothing about
    // the text.
    if (rc == PCRE2_ERROR_CALLOUT)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a regular expression of the tokenizer failed at byte %zu of the text: it "
                        "exceeded the limit of steps",
                        from);
    if (rc < 0) {
        char why[200];
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
        return ree_fail(err, rc == PCRE2_ERROR_NOMEMORY ? REE_NO_MEMORY : REE_UNSUPPORTED,
                        "a regular expression of the tokenizer failed at byte %zu of the text: %s",
                        from, why);
    }
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(matcher->data);
    *out_start = place[0];
    *out_end = place[1];
    // With \K, a lookahead can put the start after the end, and a lookbehind can put it before
    // `from`.
    if (*out_start < from || *out_end < *out_start)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a regular expression of the tokenizer moves the start of its match (\\K)");
    return REE_OK;
}

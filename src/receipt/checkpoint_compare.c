// Compares a checkpoint with the requested run: the members of both JSON bodies, and the prompts.
#include <stdio.h>
#include <string.h>

#include "base/float_env.h"
#include "receipt/checkpoint_internal.h"

#define SHOWN 80 // maximum bytes of a value in a message

struct comparison {
    void (*on_difference)(void *user, const char *line);
    void *user;
    size_t n;
    struct ree_error *err;
};

// Writes the beginning of the value's canonical JSON; "missing" if the value is NULL.
static enum ree_status show(const cJSON *value, char out[SHOWN + 4], struct ree_error *err) {
    struct ree_strbuf text;
    snprintf(out, SHOWN + 4, "missing");
    if (!value) return REE_OK;
    ree_strbuf_init(&text);
    enum ree_status status = ree_canonical_json(value, &text, err);
    if (status == REE_OK)
        snprintf(out, SHOWN + 4, "%.*s%s", SHOWN, text.data, text.size > SHOWN ? "..." : "");
    ree_strbuf_finish(&text);
    return status;
}

static void report(struct comparison *c, const char *line) {
    c->n++;
    if (!c->on_difference) return;
    REE_FLOAT_ENV_CALLBACK();
    c->on_difference(c->user, line);
}

static enum ree_status compare_values(struct comparison *c, const char *name, const cJSON *is,
                                      const cJSON *expected) {
    char a[SHOWN + 4], b[SHOWN + 4], line[2 * SHOWN + 200];
    if (is && expected && cJSON_Compare(is, expected, true)) return REE_OK;
    REE_TRY(show(is, a, c->err));
    REE_TRY(show(expected, b, c->err));
    snprintf(line, sizeof line, "%.120s is %s, expected %s", name, a, b);
    report(c, line);
    return REE_OK;
}

// Compares only the prompts of the sequences: tokens that were generated are not a difference.
static void compare_sequences(struct comparison *c, const struct ree_text_checkpoint *is,
                              const struct ree_text_checkpoint *expected) {
    char line[160];
    if (is->n != expected->n) {
        snprintf(line, sizeof line, "body.sequences has %zu prompts, expected %zu", is->n,
                 expected->n);
        report(c, line);
        return;
    }
    for (size_t i = 0; i < is->n; i++) {
        const struct ree_snapshot *a = &is->sequences[i], *b = &expected->sequences[i];
        size_t k = 0, n = a->n_prompt < b->n_prompt ? a->n_prompt : b->n_prompt;
        while (k < n && a->ids[k] == b->ids[k])
            k++;
        if (k == a->n_prompt && k == b->n_prompt) continue;
        if (k < n)
            snprintf(line, sizeof line, "body.sequences[%zu].prompt[%zu] is %d, expected %d", i, k,
                     a->ids[k], b->ids[k]);
        else
            snprintf(line, sizeof line, "body.sequences[%zu].prompt has %zu tokens, expected %zu",
                     i, a->n_prompt, b->n_prompt);
        report(c, line);
    }
}

static enum ree_status compare_objects(struct comparison *c, const char *name, const cJSON *is,
                                       const cJSON *expected) {
    for (int pass = 0; pass < 2; pass++)
        for (const cJSON *at = (pass ? expected : is)->child; at; at = at->next) {
            const cJSON *a = cJSON_GetObjectItemCaseSensitive(is, at->string);
            const cJSON *b = cJSON_GetObjectItemCaseSensitive(expected, at->string);
            char path[128];
            if ((pass && a) || strcmp(at->string, "sequences") == 0) continue;
            snprintf(path, sizeof path, "%s.%s", name, at->string);
            REE_TRY(cJSON_IsObject(a) && cJSON_IsObject(b) ? compare_objects(c, path, a, b)
                                                           : compare_values(c, path, a, b));
        }
    return REE_OK;
}

enum ree_status ree_text_checkpoint_compare(const struct ree_text_checkpoint *is,
                                            const struct ree_text_checkpoint *expected,
                                            void (*on_difference)(void *user, const char *line),
                                            void *user, size_t *out_n, struct ree_error *err) {
    struct comparison c = {.on_difference = on_difference, .user = user, .err = err};
    cJSON *a = ree_text_checkpoint_body(is), *b = ree_text_checkpoint_body(expected);
    enum ree_status status = a && b ? compare_objects(&c, "body", a, b) : ree_no_memory(err);
    if (status == REE_OK) compare_sequences(&c, is, expected);
    cJSON_Delete(a);
    cJSON_Delete(b);
    *out_n = c.n;
    return status;
}

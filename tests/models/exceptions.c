#include "exceptions.h"

#include "case.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns whether the pattern has the form NAME@DIGEST.
static bool is_case_pattern(const char *pattern) {
    const char *at = strchr(pattern, '@');
    return at && at != pattern && strspn(at + 1, "0123456789abcdef") == CASE_DIGEST_LENGTH &&
           !at[1 + CASE_DIGEST_LENGTH];
}

static bool is_kind(const char *kind) {
    static const char *const kinds[] = {"name",  "case", "op",   "type",
                                        "opset", "load", "data", "pass"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0) return true;
    return false;
}

bool exceptions_read(struct exceptions *list, const char *path) {
    *list = (struct exceptions){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    char line[1024];
    bool ok = true;
    for (unsigned number = 1; ok && fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "#\n")] = 0;
        char *start = line + strspn(line, " \t");
        if (!*start) continue;
        char *colon = strchr(start, ':'), *end = start + strcspn(start, " \t");
        char *reason = end + strspn(end, " \t");
        if (!colon || colon > end || !*reason) {
            fprintf(stderr, "%s:%u: expected 'kind:pattern  reason'\n", path, number);
            ok = false;
            break;
        }
        *colon = 0;
        *end = 0;
        struct exception *rules = realloc(list->rules, (list->n + 1) * sizeof *rules);
        if (rules) list->rules = rules;
        ok = rules && is_kind(start);
        if (!is_kind(start))
            fprintf(stderr, "%s:%u: no rule is of kind '%s'\n", path, number, start);
        if (ok && strcmp(start, "case") == 0 && !is_case_pattern(colon + 1)) {
            fprintf(stderr, "%s:%u: expected case:NAME@DIGEST, the digest of %d digits\n", path,
                    number, CASE_DIGEST_LENGTH);
            ok = false;
        }
        if (ok)
            rules[list->n++] = (struct exception){strdup(start), strdup(colon + 1), strdup(reason)};
    }
    fclose(file);
    if (!ok) exceptions_finish(list);
    return ok;
}

void exceptions_finish(struct exceptions *list) {
    for (size_t i = 0; i < list->n; i++) {
        free(list->rules[i].kind);
        free(list->rules[i].pattern);
        free(list->rules[i].reason);
    }
    free(list->rules);
    *list = (struct exceptions){0};
}

static bool contains_op(const struct ree_model *model, const char *name) {
    const struct ree_op_count *counts = ree_model_op_counts(model);
    for (size_t i = 0; i < ree_model_n_op_counts(model); i++)
        if (strcmp(counts[i].op_type, name) == 0) return true;
    return false;
}

static bool contains_type(const struct ree_model *model, const char *name) {
    for (size_t i = 0; i < ree_model_n_inputs(model); i++)
        if (strcmp(ree_dtype_name(ree_model_input(model, i)->dtype), name) == 0) return true;
    for (size_t i = 0; i < ree_model_n_outputs(model); i++)
        if (strcmp(ree_dtype_name(ree_model_output(model, i)->dtype), name) == 0) return true;
    return false;
}

// Reads files only for cases with the rule's name.
static bool matches_case(const char *pattern, const char *base, const char *name) {
    size_t length = strcspn(pattern, "@");
    if (strlen(name) != length || strncmp(pattern, name, length) != 0) return false;
    char digest[CASE_DIGEST_LENGTH + 1];
    case_digest(base, digest);
    return strcmp(pattern + length + 1, digest) == 0;
}

static bool matches(const struct exception *rule, const char *base, const char *name,
                    const struct ree_model *model, const char *load_error) {
    if (strcmp(rule->kind, "case") == 0) return matches_case(rule->pattern, base, name);
    if (strcmp(rule->kind, "name") == 0 || strcmp(rule->kind, "data") == 0 ||
        strcmp(rule->kind, "pass") == 0)
        return fnmatch(rule->pattern, name, 0) == 0;
    if (strcmp(rule->kind, "load") == 0)
        return !model && fnmatch(rule->pattern, load_error, 0) == 0;
    if (!model) return false;
    if (strcmp(rule->kind, "op") == 0) return contains_op(model, rule->pattern);
    if (strcmp(rule->kind, "type") == 0) return contains_type(model, rule->pattern);
    return ree_model_opset(model, "") == atoll(rule->pattern);
}

const struct exception *exceptions_find(const struct exceptions *list, const char *base,
                                        const char *name, const struct ree_model *model,
                                        const char *load_error) {
    for (size_t i = 0; i < list->n; i++)
        if (matches(&list->rules[i], base, name, model, load_error))
            return strcmp(list->rules[i].kind, "pass") == 0 ? NULL : &list->rules[i];
    return NULL;
}

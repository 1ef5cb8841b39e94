#include "trace/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "session/model.h"

// Parses a decimal number. Returns false if the text is anything else.
static bool parse_number(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (!text[0]) return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *out = value;
    return !*text;
}

// Parses NODE:STEP:BIT if n_expected is 2, NODE:STEP:BIT:OUTPUT if it is 3; from the end, because a
// node's name may contain colons. *out_n receives the length of NODE.
static bool parse(const char *text, size_t n_expected, size_t *out_n, struct ree_fault *out) {
    uint64_t numbers[3];
    size_t n = strlen(text), n_numbers = 0;
    while (n_numbers < n_expected) {
        size_t at = n;
        while (at > 0 && text[at - 1] != ':')
            at--;
        char digits[24] = "";
        if (at < 2 || n - at >= sizeof digits) return false;
        memcpy(digits, text + at, n - at);
        if (!parse_number(digits, &numbers[n_numbers++])) return false;
        n = at - 1;
    }
    // `numbers` has the last field first.
    *out = (struct ree_fault){.run = numbers[n_expected - 1], .bit = numbers[n_expected - 2]};
    if (n_expected == 3) out->output = (size_t)numbers[0];
    *out_n = n;
    return true;
}

// Finds a node by its number, or by its name, which must be unique.
static enum ree_status find_node(const struct ree_graph *graph, const char *text, size_t n,
                                 size_t *out, struct ree_error *err) {
    size_t found = 0;
    char digits[24] = "";
    uint64_t number;
    if (n < sizeof digits) memcpy(digits, text, n);
    if (parse_number(digits, &number)) {
        *out = (size_t)number;
        return REE_OK;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const char *name = graph->nodes[i]->name;
        if (!name || strlen(name) != n || memcmp(name, text, n) != 0) continue;
        *out = i;
        found++;
    }
    if (found == 1) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s node is named '%.*s'", found ? "more than one" : "no",
                    (int)n, text);
}

static enum ree_status malformed(const char *text, struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "a fault is NODE:STEP:BIT or NODE:STEP:BIT:OUTPUT, not '%s'",
                    text);
}

enum ree_status ree_fault_check(const char *text, struct ree_error *err) {
    struct ree_fault fault;
    size_t n;
    return parse(text, 2, &n, &fault) ? REE_OK : malformed(text, err);
}

enum ree_status ree_fault_parse(const char *text, const struct ree_model *model,
                                struct ree_fault *out, struct ree_error *err) {
    struct ree_fault with_output;
    size_t n, n_with;
    if (!parse(text, 2, &n, out)) return malformed(text, err);
    if (!parse(text, 3, &n_with, &with_output))
        return find_node(model->graph, text, n, &out->node, err);
    // "a:5:3:4" is node "a:5" without an output, or node "a" with one. A name that ends with a
    // colon and digits is rare, so the error is that of the second meaning.
    struct ree_error ignored;
    const bool has_colon = find_node(model->graph, text, n, &out->node, &ignored) == REE_OK;
    enum ree_status status = find_node(model->graph, text, n_with, &with_output.node, err);
    if (has_colon && status == REE_OK)
        return ree_fail(err, REE_INVALID,
                        "'%.*s' and '%.*s' are nodes, so '%s' has two meanings; use a number for "
                        "the node",
                        (int)n_with, text, (int)n, text, text);
    if (has_colon) return REE_OK;
    *out = with_output;
    return status;
}

enum ree_status ree_fault_not_reached(const struct ree_fault *fault, uint64_t n_steps,
                                      struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "step %llu does not exist; the run had %llu, counted from 0",
                    (unsigned long long)fault->run, (unsigned long long)n_steps);
}

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

// Parses NODE:STEP:BIT or NODE:STEP:BIT:OUTPUT, from the end, because a node's name may contain
// colons. *out_n receives the length of NODE.
static bool parse(const char *text, size_t *out_n, struct ree_fault *out) {
    uint64_t numbers[3];
    size_t n = strlen(text), n_numbers = 0, ends[4] = {n};
    while (n_numbers < 3) {
        size_t at = n;
        while (at > 0 && text[at - 1] != ':')
            at--;
        char digits[24] = "";
        if (at < 2 || n - at >= sizeof digits) break;
        memcpy(digits, text + at, n - at);
        if (!parse_number(digits, &numbers[n_numbers])) break;
        n = at - 1;
        ends[++n_numbers] = n;
    }
    if (n_numbers < 2) return false;
    // `numbers` has the last field first. Three numbers are OUTPUT, BIT and STEP, two are BIT and
    // STEP. NODE is not among them, even if it is a number, because no colon precedes it.
    *out = (struct ree_fault){.run = numbers[n_numbers - 1], .bit = numbers[n_numbers - 2]};
    if (n_numbers == 3) out->output = (size_t)numbers[0];
    *out_n = ends[n_numbers];
    return *out_n > 0;
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
    return parse(text, &n, &fault) ? REE_OK : malformed(text, err);
}

enum ree_status ree_fault_parse(const char *text, const struct ree_model *model,
                                struct ree_fault *out, struct ree_error *err) {
    size_t n;
    if (!parse(text, &n, out)) return malformed(text, err);
    return find_node(model->graph, text, n, &out->node, err);
}

enum ree_status ree_fault_not_reached(const struct ree_fault *fault, uint64_t n_steps,
                                      struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "step %llu does not exist; the run had %llu, counted from 0",
                    (unsigned long long)fault->run, (unsigned long long)n_steps);
}

#include "lower_data/rule.h"

#include "device/device.h"
#include "graph/lower/core/lower.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS 12
#define TEXT_SIZE 20000

// A tensor parsed from text: "float32[2,1] 1.5 nan".

struct tensor {
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[16];
    size_t count;
    void *data; // padded
};

static void malformed(const char *what, const char *at) {
    fprintf(stderr, "the test itself is malformed: expected %s at '%s'\n", what, at);
    abort();
}

static enum ree_dtype dtype_named(const char *s, size_t n) {
    for (int d = 1; d <= REE_I2; d++) {
        const char *name = ree_dtype_name((enum ree_dtype)d);
        if (strlen(name) == n && !strncmp(name, s, n)) return (enum ree_dtype)d;
    }
    malformed("a type", s);
    return REE_DTYPE_NONE;
}

static void put_number(struct tensor *t, size_t i, const char *s, char **end) {
    size_t size = ree_dtype_size(t->dtype);
    if (t->dtype == REE_F32) {
        ((float *)t->data)[i] = strtof(s, end);
    } else if (t->dtype == REE_F64) {
        ((double *)t->data)[i] = strtod(s, end);
    } else if (t->dtype == REE_U64) {
        ((uint64_t *)t->data)[i] = strtoull(s, end, 0);
    } else { // float16 and bfloat16 as bits
        int64_t v = strtoll(s, end, 0);
        memcpy((char *)t->data + i * size, &v, size);
    }
    if (*end == s) malformed("a number", s);
}

static void parse_tensor(const char *s, size_t n, struct tensor *t) {
    char text[TEXT_SIZE];
    if (n >= sizeof text) abort();
    memcpy(text, s, n);
    text[n] = 0;
    char *at = strchr(text, '[');
    if (!at) malformed("[", text);
    char *type = text + strspn(text, " ");
    *t = (struct tensor){.dtype = dtype_named(type, (size_t)(at - type)), .count = 1};
    for (at++; *at != ']'; at += *at == ',') {
        char *end;
        if (t->rank == 16) malformed("at most 16 sizes", text);
        t->dims[t->rank] = strtoll(at, &end, 10);
        if (end == at) malformed("a size", at);
        t->count *= (size_t)t->dims[t->rank++];
        at = end;
    }
    at++;
    t->data = calloc(t->count * ree_dtype_size(t->dtype) + 64, 1);
    if (!t->data) abort();
    for (size_t i = 0; i < t->count; i++)
        put_number(t, i, at, &at);
    if (at[strspn(at, " ")]) malformed("the end of the tensor", at);
}

static size_t print_tensor(const struct ree_view *shape, const void *data, char *out, size_t size) {
    char text[256];
    size_t n = (size_t)snprintf(out, size, "%s", ree_view_text(shape, text, sizeof text));
    for (int64_t i = 0; i < ree_view_count(shape) && n < size; i++) {
        size_t left = size - n;
        char *to = out + n;
        int64_t v = 0;
        size_t width = ree_dtype_size(shape->dtype);
        const char *from = (const char *)data + (size_t)i * width;
        memcpy(&v, from, width);
        switch (shape->dtype) {
        case REE_F32:
            n += (size_t)snprintf(to, left, " %.9g", (double)((const float *)data)[i]);
            break;
        case REE_F64: n += (size_t)snprintf(to, left, " %.17g", ((const double *)data)[i]); break;
        case REE_I4:
        case REE_I2:
        case REE_I8: n += (size_t)snprintf(to, left, " %d", (int)(int8_t)v); break;
        case REE_I16: n += (size_t)snprintf(to, left, " %d", (int)(int16_t)v); break;
        case REE_I32: n += (size_t)snprintf(to, left, " %d", (int)(int32_t)v); break;
        case REE_U64: n += (size_t)snprintf(to, left, " %llu", (unsigned long long)v); break;
        default: n += (size_t)snprintf(to, left, " %lld", (long long)v); break;
        }
    }
    return n;
}

// The node, parsed from text.

struct case_graph {
    struct ree_graph *graph;
    struct ree_node node;
    struct ree_attr attrs[16];
    struct ree_value *inputs[MAX_TENSORS], *outputs[MAX_TENSORS];
    struct tensor tensors[MAX_TENSORS], attr_tensor;
};

static void *keep(struct case_graph *c, const void *bytes, size_t n) {
    void *copy = ree_arena_alloc(c->graph->arena, n + 64);
    if (!copy) abort();
    if (n) memcpy(copy, bytes, n);
    return copy;
}

static void set_list(struct case_graph *c, struct ree_attr *attr, const char *s) {
    int64_t ints[64];
    float floats[64];
    bool real = strchr(s, '.') != NULL && strchr(s, '.') < strchr(s, ']');
    for (s++; *s != ']'; s += *s == ',') {
        char *end;
        if (attr->n == 64) abort();
        floats[attr->n] = strtof(s, &end);
        if (!real) ints[attr->n] = strtoll(s, &end, 10);
        if (end == s) malformed("a number", s);
        attr->n++;
        s = end;
    }
    attr->kind = real ? REE_ATTR_FLOATS : REE_ATTR_INTS;
    attr->floats = real ? keep(c, floats, attr->n * sizeof *floats) : NULL;
    attr->ints = real ? NULL : keep(c, ints, attr->n * sizeof *ints);
}

static const char *set_attr(struct case_graph *c, const char *s) {
    struct ree_attr *attr = &c->attrs[c->node.n_attrs++];
    const char *equals = strchr(s, '=');
    if (!equals) malformed("name=value", s);
    attr->name = ree_arena_strndup(c->graph->arena, s, (size_t)(equals - s));
    s = equals + 1;
    if (*s == '{') {
        const char *end = strchr(s, '}');
        parse_tensor(s + 1, (size_t)(end - s - 1), &c->attr_tensor);
        struct ree_value *v = ree_arena_alloc(c->graph->arena, sizeof *v);
        v->dtype = c->attr_tensor.dtype;
        v->has_shape = true;
        v->rank = c->attr_tensor.rank;
        memcpy(v->dims, c->attr_tensor.dims, sizeof v->dims);
        v->nbytes = c->attr_tensor.count * ree_dtype_size(v->dtype);
        v->data = c->attr_tensor.data;
        attr->kind = REE_ATTR_TENSOR;
        attr->tensor = v;
        return end + 1;
    }
    size_t n = strcspn(s, " ");
    if (*s == '[') {
        set_list(c, attr, s);
    } else if (isalpha((unsigned char)*s)) {
        attr->kind = REE_ATTR_STRING;
        attr->s = ree_arena_strndup(c->graph->arena, s, n);
        attr->s_size = n;
    } else if (memchr(s, '.', n)) {
        attr->kind = REE_ATTR_FLOAT;
        attr->f = strtof(s, NULL);
    } else {
        attr->kind = REE_ATTR_INT;
        attr->i = strtoll(s, NULL, 10);
    }
    return s + n;
}

static void parse_case(struct case_graph *c, const char *node, const char *inputs) {
    memset(c, 0, sizeof *c);
    c->graph = ree_graph_create();
    if (!c->graph) abort();
    const char *slash = strchr(node, '/');
    char *end;
    c->node.name = "n";
    c->node.domain = "";
    c->node.op_type = ree_arena_strndup(c->graph->arena, node, (size_t)(slash - node));
    c->node.opset = strtoll(slash + 1, &end, 10);
    c->node.attrs = c->attrs;
    c->node.inputs = c->inputs;
    c->node.outputs = c->outputs;
    c->node.n_outputs = 1;
    const char *s = end;
    while (*(s += strspn(s, " "))) {
        if (!strncmp(s, "outputs=", 8)) { // the number of outputs, not an attribute
            c->node.n_outputs = strtoull(s + 8, &end, 10);
            s = end;
        } else {
            s = set_attr(c, s);
        }
    }
    for (s = inputs; *(s += strspn(s, " ")); s += *s == '|') {
        size_t n = strcspn(s, "|"), i = c->node.n_inputs++;
        if (i == MAX_TENSORS) abort();
        if (*s != '-') {
            char name[32];
            parse_tensor(s, n, &c->tensors[i]);
            snprintf(name, sizeof name, "x%zu", i);
            struct ree_value *v = ree_graph_add_value(c->graph, name);
            v->dtype = c->tensors[i].dtype;
            v->has_shape = true;
            v->rank = c->tensors[i].rank;
            memcpy(v->dims, c->tensors[i].dims, sizeof v->dims);
            c->inputs[i] = v;
        }
        s += n;
    }
    for (size_t i = 0; i < c->node.n_outputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "y%zu", i);
        c->outputs[i] = ree_graph_add_value(c->graph, name);
    }
}

static void free_case(struct case_graph *c) {
    for (size_t i = 0; i < MAX_TENSORS; i++)
        free(c->tensors[i].data);
    free(c->attr_tensor.data);
    ree_graph_destroy(c->graph);
}

// Running the node.

struct runner {
    struct ree_lower lower;
    struct ree_arena arena;
    const struct case_graph *c;
    void **memory; // memory of each storage, after run_program
    size_t n_memory;
};

static void free_memory(struct runner *r) {
    for (size_t i = 0; i < r->n_memory; i++)
        free(r->memory[i]);
    free(r->memory);
    r->memory = NULL;
    r->n_memory = 0;
}

// Runs the program as a session would. Each storage has its own memory, first filled with garbage.
static enum ree_status run_program(struct runner *r) {
    free_memory(r);
    r->n_memory = r->lower.n_storages;
    r->memory = calloc(r->n_memory + 1, sizeof *r->memory);
    for (size_t i = 0; i < r->n_memory; i++) {
        const struct ree_storage *s = r->lower.storages[i];
        r->memory[i] = aligned_alloc(64, (s->nbytes + 127) / 64 * 64);
        memset(r->memory[i], 0xa5, (s->nbytes + 127) / 64 * 64);
        const void *from = s->host;
        for (size_t k = 0; k < r->c->node.n_inputs; k++)
            if (s->kind == REE_STORAGE_INPUT && r->c->inputs[k] == s->value)
                from = r->c->tensors[k].data;
        if (from) memcpy(r->memory[i], from, s->nbytes);
    }
    for (size_t i = 0; i < r->lower.n_dispatches; i++) {
        const struct ree_dispatch *d = &r->lower.dispatches[i];
        void *operands[REE_MAX_OPERANDS];
        for (uint32_t k = 0; k < d->n_operands; k++)
            operands[k] = (char *)r->memory[d->operands[k].slot] + d->operands[k].offset;
        REE_TRY(ree_cpu_execute(d, operands, r->lower.err));
    }
    return REE_OK;
}

static enum ree_status read_storage(struct ree_lower *lower, struct ree_storage *storage) {
    struct runner *r = lower->user;
    REE_TRY(run_program(r));
    char *host = ree_arena_alloc(lower->arena, storage->nbytes + 64);
    if (!host) return ree_fail(lower->err, REE_NO_MEMORY, "out of memory");
    memcpy(host, r->memory[storage->id], storage->nbytes);
    storage->host = host;
    return REE_OK;
}

struct way {
    bool constants; // the host knows the inputs
    bool fuse;
    uint64_t fold_limit;
};

static enum ree_status lower_case(struct runner *r, const struct way *way,
                                  struct ree_view **outputs) {
    struct ree_lower *l = &r->lower;
    const struct case_graph *c = r->c;
    struct ree_view *values[2 * MAX_TENSORS] = {NULL};
    for (size_t i = 0; i < c->node.n_inputs; i++) {
        struct ree_value *v = c->inputs[i];
        const struct tensor *t = &c->tensors[i];
        if (!v) continue;
        REE_TRY(way->constants
                    ? ree_lower_literal(l, t->dtype, t->rank, t->dims, t->data, &values[v->id])
                    : ree_lower_value(l, v, REE_STORAGE_INPUT, t->dims, &values[v->id]));
    }
    REE_TRY(ree_lower_node(l, &c->node, values));
    for (size_t i = 0; i < c->node.n_outputs; i++)
        REE_TRY(ree_lower_dense(l, values[c->outputs[i]->id], &outputs[i]));
    return run_program(r);
}

static void run_way(const struct case_graph *c, const struct way *way, char *out, size_t size) {
    struct ree_error err = {0};
    struct runner r = {.c = c};
    struct ree_view *outputs[MAX_TENSORS] = {NULL};
    ree_arena_init(&r.arena);
    r.lower = (struct ree_lower){.arena = &r.arena,
                                 .err = &err,
                                 .graph = c->graph,
                                 .fuse = way->fuse,
                                 .fold = true,
                                 .fold_limit = way->fold_limit,
                                 .host_execute = ree_cpu_execute,
                                 .read_storage = read_storage,
                                 .user = &r};
    if (lower_case(&r, way, outputs) != REE_OK) {
        snprintf(out, size, "error: %s", err.message);
    } else {
        size_t n = 0;
        for (size_t i = 0; i < c->node.n_outputs && n < size; i++) {
            const struct ree_view *t = outputs[i];
            const char *base = t->storage->host ? t->storage->host : r.memory[t->storage->id];
            base += (size_t)t->offset * ree_dtype_size(t->dtype);
            if (i) n += (size_t)snprintf(out + n, size - n, " | ");
            if (n < size) n += print_tensor(t, base, out + n, size - n);
        }
    }
    free_memory(&r);
    ree_arena_finish(&r.arena);
}

static bool is_error(const char *result) {
    return !strncmp(result, "error: ", 7);
}

// Returns the message of an error result without "node 'n' (OPERATOR): ", which kernels do not put
// before their messages.
static const char *message_of(const char *result) {
    const char *message = result + 7, *end = strstr(message, "): ");
    return !strncmp(message, "node 'n' (", 10) && end ? end + 3 : message;
}

const char *rule_result(const char *node, const char *inputs) {
    enum { N = 4 };
    static const struct way ways[N] = {
        {true, true, UINT64_MAX}, {false, true, 0}, {false, false, 0}, {true, true, 24}};
    static char results[N][TEXT_SIZE], two_messages[2 * TEXT_SIZE];
    struct case_graph c;
    for (size_t i = 0; i < N; i++) {
        parse_case(&c, node, inputs);
        run_way(&c, &ways[i], results[i], TEXT_SIZE);
        free_case(&c);
    }
    bool fails = is_error(results[0]);
    for (size_t i = 1; i < N; i++) {
        const char *like = results[fails && !ways[i].constants ? 1 : 0];
        if (is_error(results[i]) == fails && !strcmp(results[i], like)) continue;
        fprintf(stderr, "%s\n", node);
        for (size_t k = 0; k < N; k++)
            fprintf(stderr, "    way %zu: %s\n", k, results[k]);
        return NULL;
    }
    if (!fails || !strcmp(message_of(results[0]), message_of(results[1]))) return results[0];
    snprintf(two_messages, sizeof two_messages, "%s | %s", results[0], message_of(results[1]));
    return two_messages;
}

bool rule_matches(const char *result, const char *wanted) {
    if (!is_error(wanted)) return !strcmp(result, wanted);
    return is_error(result) && strstr(result + 7, wanted + 7) &&
           !strstr(result, " | ") == !strstr(wanted, " | ");
}

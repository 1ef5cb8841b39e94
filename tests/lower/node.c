#include "node.h"

#include "device/device.h"
#include "test.h"
#include "splitmix.h"

#include <stdlib.h>
#include <string.h>

static enum ree_status not_on_host(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    return ree_lower_fail(lower, REE_INTERNAL, "a value of the test is not on the host");
}

void test_node_start(struct test_node *n, const char *op_type, int64_t opset) {
    memset(n, 0, sizeof *n);
    n->fuse = true;
    ree_arena_init(&n->arena);
    n->graph = ree_graph_create();
    REQUIRE(n->graph != NULL);
    n->node = (struct ree_node){.name = "n",
                                .op_type = op_type,
                                .domain = "",
                                .opset = opset,
                                .inputs = n->inputs,
                                .outputs = n->outputs,
                                .attrs = n->attrs};
    n->lower = (struct ree_lower){.arena = &n->arena,
                                  .err = &n->err,
                                  .graph = n->graph,
                                  .node = &n->node,
                                  .fold = true,
                                  .fold_limit = UINT64_MAX,
                                  .host_execute = ree_cpu_execute,
                                  .read_storage = not_on_host};
}

static struct ree_value *add_value(struct test_node *n) {
    REQUIRE(n->n_values < TEST_NODE_MAX);
    struct ree_value *value = &n->values[n->n_values];
    value->name = "v";
    value->id = n->n_values++;
    return value;
}

void test_node_input(struct test_node *n, enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                     const void *data) {
    struct ree_value *value = add_value(n);
    REQUIRE(ree_lower_literal(&n->lower, dtype, rank, dims, data, &n->views[value->id]) == REE_OK);
    n->inputs[n->node.n_inputs++] = value;
}

void test_node_f32(struct test_node *n, uint32_t rank, const int64_t *dims, const float *data) {
    test_node_input(n, REE_F32, rank, dims, data);
}

void test_node_omit(struct test_node *n) {
    n->inputs[n->node.n_inputs++] = NULL;
}

static struct ree_attr *add_attr(struct test_node *n, const char *name, enum ree_attr_kind kind) {
    REQUIRE(n->node.n_attrs < sizeof n->attrs / sizeof n->attrs[0]);
    struct ree_attr *attr = &n->attrs[n->node.n_attrs++];
    attr->name = name;
    attr->kind = kind;
    return attr;
}

// Copies values into the node's arena: callers pass compound literals, whose lifetime may be
// shorter.
static const void *keep(struct test_node *n, const void *values, size_t size) {
    void *copy = ree_arena_alloc(&n->arena, size);
    REQUIRE(copy != NULL);
    return size ? memcpy(copy, values, size) : copy;
}

void test_node_int(struct test_node *n, const char *name, int64_t value) {
    add_attr(n, name, REE_ATTR_INT)->i = value;
}

void test_node_ints(struct test_node *n, const char *name, size_t count, const int64_t *values) {
    struct ree_attr *attr = add_attr(n, name, REE_ATTR_INTS);
    attr->n = count;
    attr->ints = keep(n, values, count * sizeof *values);
}

void test_node_float(struct test_node *n, const char *name, float value) {
    add_attr(n, name, REE_ATTR_FLOAT)->f = value;
}

void test_node_string(struct test_node *n, const char *name, const char *value) {
    struct ree_attr *attr = add_attr(n, name, REE_ATTR_STRING);
    attr->s = value;
    attr->s_size = strlen(value);
}

void test_node_strings(struct test_node *n, const char *name, size_t count,
                       const char *const *values) {
    struct ree_attr *attr = add_attr(n, name, REE_ATTR_STRINGS);
    attr->n = count;
    attr->strings = keep(n, values, count * sizeof *values);
}

static enum ree_dtype type_of(char letter) {
    switch (letter) {
    case 'h': return REE_F16;
    case 'i': return REE_I32;
    case 'l': return REE_I64;
    case 'c': return REE_I8;
    case 'u': return REE_U8;
    case 's': return REE_I16;
    case 'e': return REE_F8E4M3FN;
    default: return REE_F32;
    }
}

static void add_inputs(struct test_node *n, const char *spec) {
    static const int64_t zeros[4096];
    while (*spec) {
        enum ree_dtype dtype = type_of(*spec);
        bool omitted = *spec++ == '-';
        int64_t dims[REE_MAX_RANK];
        uint32_t rank = 0;
        while (*spec && *spec != ' ') {
            char *end;
            dims[rank++] = strtol(spec, &end, 10);
            spec = *end == ',' ? end + 1 : end;
        }
        while (*spec == ' ')
            spec++;
        if (omitted)
            test_node_omit(n);
        else
            test_node_input(n, dtype, rank, dims, zeros);
    }
}

void test_node_text(struct test_node *n, const char *inputs, const char *attrs) {
    add_inputs(n, inputs);
    char *copy = ree_arena_strdup(&n->arena, attrs);
    REQUIRE(copy != NULL);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
        char *value = strchr(name, '=');
        *value = 0;
        test_node_int(n, name, strtoll(value + 1, NULL, 10));
    }
}

enum ree_status test_node_run(struct test_node *n, uint32_t n_outputs) {
    n->lower.fuse = n->fuse;
    n->out = &n->views[n->n_values];
    for (uint32_t i = 0; i < n_outputs; i++)
        n->outputs[n->node.n_outputs++] = add_value(n);
    return ree_lower_node(&n->lower, &n->node, n->views);
}

const void *test_node_output(struct test_node *n, uint32_t i) {
    const void *bytes = NULL;
    CHECK_MSG(n->out[i] && ree_lower_host(&n->lower, n->out[i], &bytes) == REE_OK, "%s",
              n->err.message);
    return bytes;
}

void test_node_finish(struct test_node *n) {
    ree_graph_destroy(n->graph);
    ree_arena_finish(&n->arena);
}

float test_random(uint64_t *state) {
    return (float)(int32_t)(splitmix_step(state) >> 32) * 0x1p-30f;
}

void test_random_fill(uint64_t *state, size_t count, float *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = test_random(state);
}

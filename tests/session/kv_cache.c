// The memory of kv caches: a request that does not fit the device is refused before anything is
// reserved, and the caches stay unchanged.
#include <string.h>

#include "device/device.h"
#include "session/model.h"
#include "session/kv_cache.h"
#include "test.h"

static struct ree_value *add_value(struct ree_graph *g, const char *name, const char *rows) {
    struct ree_value *v = ree_graph_add_value(g, name);
    REQUIRE(v);
    v->dtype = REE_F32;
    v->has_shape = true;
    v->rank = 3;
    v->dims[0] = v->dims[1] = -1;
    v->dims[2] = 4;
    v->symbols[0] = "batch";
    v->symbols[1] = rows;
    return v;
}

// present[batch, p + n, 4] = Concat(past[batch, p, 4], x[batch, n, 4]).
static struct ree_model *make_model(void) {
    struct ree_graph *g = ree_graph_create();
    REQUIRE(g);
    g->file = "";
    g->name = "states";
    g->ir_version = 8;
    g->opsets = ree_arena_alloc(g->arena, sizeof *g->opsets);
    *g->opsets = (struct ree_opset_import){"", 17};
    g->n_opsets = 1;
    struct ree_value *past = add_value(g, "past", "p"), *x = add_value(g, "x", "n");
    struct ree_value *present = add_value(g, "present", NULL);
    past->is_input = x->is_input = present->is_output = true;
    struct ree_node *node = ree_arena_alloc(g->arena, sizeof *node);
    *node = (struct ree_node){.name = "join",
                              .op_type = "Concat",
                              .domain = "",
                              .opset = 17,
                              .n_inputs = 2,
                              .n_outputs = 1};
    node->inputs = ree_arena_alloc_array(g->arena, 2, sizeof *node->inputs);
    node->outputs = ree_arena_alloc_array(g->arena, 1, sizeof *node->outputs);
    node->attrs = ree_arena_alloc_array(g->arena, 1, sizeof *node->attrs);
    node->attrs[node->n_attrs++] = (struct ree_attr){.name = "axis", .kind = REE_ATTR_INT, .i = 1};
    node->inputs[0] = past;
    node->inputs[1] = x;
    node->outputs[0] = present;
    present->producer = node;
    g->nodes = ree_arena_alloc_array(g->arena, 1, sizeof *g->nodes);
    g->nodes[g->n_nodes++] = node;
    g->inputs = ree_arena_alloc_array(g->arena, 2, sizeof *g->inputs);
    g->inputs[g->n_inputs++] = past;
    g->inputs[g->n_inputs++] = x;
    g->outputs = ree_arena_alloc_array(g->arena, 1, sizeof *g->outputs);
    g->outputs[g->n_outputs++] = present;
    ree_graph_count_uses(g);
    struct ree_model *model;
    struct ree_error err;
    REQUIRE(ree_model_from_graph(g, NULL, &model, &err) == REE_OK);
    return model;
}

static void append(struct ree_session *session, int64_t n) {
    struct ree_tensor x, out[1];
    struct ree_error err;
    int64_t dims[3] = {3, n, 4};
    REQUIRE(ree_tensor_init(&x, "x", REE_F32, 3, dims, &err) == REE_OK);
    enum ree_status status = ree_session_run(session, &x, 1, out, &err);
    CHECK(status == REE_OK);
    if (status == REE_OK) ree_tensor_finish(&out[0]);
    ree_tensor_finish(&x);
}

int main(void) {
    struct ree_error err;
    struct ree_device *device;
    struct ree_session *session;
    struct ree_model *model = make_model();
    REQUIRE(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    const struct ree_kv_cache_spec spec = {.input = 0, .output = 0, .axis = 1, .batch_axis = 0};
    REQUIRE(ree_session_declare_kv_caches(session, &spec, 1, REE_NO_INPUT, &err) == REE_OK);
    REQUIRE(ree_session_reset_kv_caches(session, 3, &err) == REE_OK);

    // A position of 3 sequences, 4 floats each: 48 bytes.
    uint64_t all = device->memory_size;
    CHECK(all > 0);
    device->memory_size = 48 * 16;
    CHECK(ree_session_reserve_kv_caches(session, 16, &err) == REE_OK);
    append(session, 5);
    CHECK(ree_session_filled_positions(session) == 5);
    CHECK(ree_session_reserve_kv_caches(session, 17, &err) == REE_NO_MEMORY);
    CHECK(strstr(err.message, "17 tokens for 3 sequences"));
    CHECK(strstr(err.message, device->name));
    CHECK(ree_session_filled_positions(session) == 5 &&
          ree_session_kv_cache_capacity(session) == 16);
    CHECK(ree_session_reserve_kv_caches(session, INT64_MAX, &err) == REE_NO_MEMORY);
    device->memory_size = all;
    CHECK(ree_session_reserve_kv_caches(session, 17, &err) == REE_OK);
    CHECK(ree_session_filled_positions(session) == 5 &&
          ree_session_kv_cache_capacity(session) == 17);

    ree_session_destroy(session);
    ree_device_destroy(device);
    ree_model_destroy(model);
    return test_finish();
}

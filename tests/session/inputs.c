// How a session checks its run inputs: it matches them by name in any order, uses defaults where
// they exist, and otherwise fails with a message that lists the model's inputs.
#include <string.h>

#include "session/model.h"
#include "test.h"

// y = x + w for x[n], w[n]; w has the default {1, 2}.
static struct ree_model *make_model(int64_t ir_version) {
    struct ree_graph *g = ree_graph_create();
    REQUIRE(g);
    g->file = "";
    g->name = "inputs";
    g->ir_version = ir_version;
    g->opsets = ree_arena_alloc(g->arena, sizeof *g->opsets);
    *g->opsets = (struct ree_opset_import){"", 17};
    g->n_opsets = 1;
    struct ree_value *v[3];
    static const char *const names[] = {"x", "w", "y"};
    for (int i = 0; i < 3; i++) {
        v[i] = ree_graph_add_value(g, names[i]);
        v[i]->dtype = REE_F32;
        v[i]->has_shape = true;
        v[i]->rank = 1;
        v[i]->dims[0] = i == 1 ? 2 : -1;
        v[i]->symbols[0] = i == 1 ? NULL : "n";
    }
    float *w = ree_arena_alloc(g->arena, 64);
    w[0] = 1;
    w[1] = 2;
    v[1]->data = w;
    v[1]->nbytes = 8;
    v[0]->is_input = v[1]->is_input = v[2]->is_output = true;
    struct ree_node *node = ree_arena_alloc(g->arena, sizeof *node);
    *node = (struct ree_node){.name = "", .op_type = "Add", .domain = "", .opset = 17};
    node->n_inputs = 2;
    node->inputs = ree_arena_alloc_array(g->arena, 2, sizeof *node->inputs);
    node->n_outputs = 1;
    node->outputs = ree_arena_alloc_array(g->arena, 1, sizeof *node->outputs);
    node->inputs[0] = v[0];
    node->inputs[1] = v[1];
    node->outputs[0] = v[2];
    v[2]->producer = node;
    g->nodes = ree_arena_alloc_array(g->arena, 1, sizeof *g->nodes);
    g->nodes[g->n_nodes++] = node;
    g->inputs = ree_arena_alloc_array(g->arena, 2, sizeof *g->inputs);
    g->inputs[g->n_inputs++] = v[0];
    g->inputs[g->n_inputs++] = v[1];
    g->outputs = ree_arena_alloc_array(g->arena, 1, sizeof *g->outputs);
    g->outputs[g->n_outputs++] = v[2];
    ree_graph_count_uses(g);
    struct ree_model *model;
    struct ree_error err;
    REQUIRE(ree_model_from_graph(g, NULL, &model, &err) == REE_OK);
    return model;
}

static struct ree_tensor floats(const char *name, float a, float b) {
    struct ree_tensor t;
    int64_t dim = 2;
    REQUIRE(ree_tensor_init(&t, name, REE_F32, 1, &dim, NULL) == REE_OK);
    ((float *)t.data)[0] = a;
    ((float *)t.data)[1] = b;
    return t;
}

static void check_sum(struct ree_session *session, const struct ree_tensor *inputs, size_t n,
                      float a, float b) {
    struct ree_tensor out;
    struct ree_error err;
    enum ree_status status = ree_session_run(session, inputs, n, &out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return;
    const float *y = out.data;
    CHECK_MSG(y[0] == a && y[1] == b, "%g %g, expected %g %g", y[0], y[1], a, b);
    ree_tensor_finish(&out);
}

static void check_refused(struct ree_session *session, const struct ree_tensor *inputs, size_t n,
                          const char *message) {
    struct ree_tensor out;
    struct ree_error err;
    CHECK(ree_session_run(session, inputs, n, &out, &err) == REE_INVALID);
    CHECK_MSG(strstr(err.message, message), "'%s' lacks '%s'", err.message, message);
    CHECK_MSG(strstr(err.message, "the model's inputs are 'x' float32[n]"), "%s", err.message);
    CHECK(out.data == NULL);
}

int main(void) {
    struct ree_device *device;
    struct ree_session *session;
    struct ree_error err;
    REQUIRE(ree_device_open("cpu", NULL, &device, &err) == REE_OK);

    struct ree_model *model = make_model(8);
    CHECK(ree_model_n_inputs(model) == 2);
    CHECK(!ree_model_input(model, 0)->optional && ree_model_input(model, 1)->optional);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    struct ree_tensor both[2] = {floats("w", 5, 5), floats("x", 10, 20)};
    check_sum(session, &both[1], 1, 11, 22);
    check_sum(session, both, 2, 15, 25);
    check_sum(session, &both[1], 1, 11, 22);
    check_refused(session, &both[0], 1, "input 'x' is missing");
    struct ree_tensor twice[2] = {both[1], both[1]};
    check_refused(session, twice, 2, "input 'x' is given more than once");
    struct ree_tensor stranger = both[1];
    stranger.name = (char *)"z";
    check_refused(session, &stranger, 1, "the model has no input 'z'");
    struct ree_tensor wrong = both[1];
    wrong.dtype = REE_I32;
    check_refused(session, &wrong, 1, "input 'x' is int32[2], expected float32");
    wrong = both[1];
    wrong.rank = 2;
    wrong.dims[1] = 1;
    check_refused(session, &wrong, 1,
                  "input 'x' is float32[2,1], which does not match its declared shape");
    ree_session_destroy(session);
    ree_model_destroy(model);

    // Before IR version 4 the same file declares w as a weight, not an input.
    model = make_model(3);
    CHECK(ree_model_n_inputs(model) == 1);
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    check_sum(session, &both[1], 1, 11, 22);
    ree_session_destroy(session);
    ree_model_destroy(model);

    ree_tensor_finish(&both[0]);
    ree_tensor_finish(&both[1]);
    ree_device_destroy(device);
    return test_finish();
}

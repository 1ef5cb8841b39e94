// Fault injection (ree/testing.h): flips one bit of one output of a node, in one run.
#include "base/float_env.h"
#include "ree/testing.h"
#include "session/observe.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

enum ree_status ree_session_inject(struct ree_session *s, const struct ree_fault *fault,
                                   struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct ree_graph *graph = s->model->graph;
    if (fault->node >= graph->n_nodes)
        return ree_fail(err, REE_INVALID,
                        "cannot inject a fault into node %zu; the graph has %zu nodes", fault->node,
                        graph->n_nodes);
    const struct ree_node *node = graph->nodes[fault->node];
    char label[256];
    if (fault->output >= node->n_outputs || !node->outputs[fault->output])
        return ree_fail(err, REE_INVALID, "cannot inject a fault: %s has no output %zu",
                        ree_node_label(node, label, sizeof label), fault->output);
    s->fault = *fault;
    s->has_fault = true;
    return REE_OK;
}

static enum ree_status refuse_fault(const struct ree_node *node, const struct ree_value *value,
                                    const char *why, struct ree_error *err) {
    char label[256];
    return ree_fail(err, REE_UNSUPPORTED, "%s: cannot inject a fault into its output '%s': %s",
                    ree_node_label(node, label, sizeof label), value->name, why);
}

// Flips a bit of a TEMP storage that has been computed. Devices write words of 4 bytes.
static enum ree_status flip(struct ree_bind *b, const struct ree_storage *storage, uint64_t bit,
                            struct ree_error *err) {
    const struct ree_device_vtable *v = b->session->device->vtable;
    struct ree_device *device = b->session->device;
    struct ree_device_buffer *buffer = b->segments[b->segment_of[storage->id] - 1].results;
    bit %= storage->nbytes * 8;
    uint64_t at = b->offsets[storage->id] + bit / 8 / 4 * 4;
    unsigned char word[4];
    REE_TRY(v->buffer_read(device, buffer, at, word, sizeof word, err));
    word[bit / 8 % 4] ^= (unsigned char)(1u << bit % 8);
    return v->buffer_write(device, buffer, at, word, sizeof word, err);
}

enum ree_status ree_bind_inject_fault(struct ree_bind *b, struct ree_error *err) {
    const struct ree_fault *fault = &b->session->fault;
    const struct ree_node *node = b->session->model->graph->nodes[fault->node];
    const struct ree_value *value = node->outputs[fault->output];
    struct ree_view *t = b->values[value->id], *own;
    const char *why = NULL;
    if (t->kind != REE_TENSOR)
        why = "it is not a tensor";
    else if (t->dtype == REE_STRING)
        why = "it contains strings";
    else if (ree_view_count(t) == 0)
        why = "it is empty";
    else if (ree_session_kv_cache_of_value(b->session, value) >= 0)
        why = "it is kept from run to run";
    else if (ree_lower_is_host(t))
        why = "it is computed while binding";
    if (why) return refuse_fault(node, value, why, err);
    // Use a copy: other views of the same memory must not change.
    REE_TRY(ree_lower_new(&b->lower, t->dtype, t->rank, t->dims, &own));
    REE_TRY(ree_lower_copy_into(&b->lower, t, own));
    REE_TRY(ree_bind_flush(b, err));
    if (!b->segment_of[own->storage->id])
        return ree_fail(err, REE_INTERNAL, "a fault is injected into '%s' before it is computed",
                        value->name);
    REE_TRY(flip(b, own->storage, fault->bit, err));
    b->values[value->id] = own;
    return REE_OK;
}

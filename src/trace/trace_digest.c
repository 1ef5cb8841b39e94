// The digests of a trace, from values up to the root.
#include <string.h>

#include "trace/trace.h"

int64_t ree_trace_digest_index(const struct ree_trace_header *h, uint32_t value) {
    if (value < h->n_inputs) return value;
    return value < h->n_inputs + h->n_constants ? -1 : (int64_t)value - h->n_constants;
}

static const unsigned char *digest_of(const struct ree_trace_header *h, const ree_digest *step,
                                      int32_t value) {
    static const ree_digest zeros;
    if (value == REE_TRACE_OMITTED) return zeros;
    int64_t place = ree_trace_digest_index(h, (uint32_t)value);
    return place < 0 ? h->constants[(uint32_t)value - h->n_inputs].digest : step[place];
}

void ree_trace_value_digest(const struct ree_trace_header *h, const ree_digest *step, int32_t value,
                            ree_digest out) {
    memcpy(out, digest_of(h, step, value), sizeof(ree_digest));
}

static const char node_tag[] = "ree-node/1";

// The hasher must have hashed node_tag only; it is in the same state afterwards.
static void hash_node(struct ree_hasher *hasher, const struct ree_trace_header *h,
                      const ree_digest *step, uint32_t number, ree_digest out) {
    const struct ree_trace_node *node = &h->nodes[number];
    ree_hasher_update(hasher, h->ops[number], sizeof(ree_digest));
    ree_hasher_update(hasher, &node->n_inputs, sizeof node->n_inputs);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        ree_hasher_update(hasher, digest_of(h, step, node->inputs[i]), sizeof(ree_digest));
    ree_hasher_update(hasher, &node->n_outputs, sizeof node->n_outputs);
    ree_hasher_update(hasher, step + ree_trace_digest_index(h, node->first_output),
                      node->n_outputs * sizeof(ree_digest));
    ree_hasher_next(hasher, node_tag, out);
}

void ree_trace_node_digest(const struct ree_trace_header *h, const ree_digest *step, uint32_t node,
                           ree_digest out) {
    ree_digest unused;
    struct ree_hasher *hasher = ree_hasher_create(node_tag);
    hash_node(hasher, h, step, node, out);
    ree_hasher_digest(hasher, unused);
}

void ree_trace_step_digest(const struct ree_trace_header *h, uint64_t number,
                           const ree_digest *step, ree_digest *nodes, ree_digest out) {
    ree_digest inputs_root, nodes_root, unused;
    struct ree_merkle_builder builder = {0};
    struct ree_hasher *hasher = ree_hasher_create(node_tag);
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        ree_digest digest;
        hash_node(hasher, h, step, i, digest);
        ree_merkle_add(&builder, digest);
        if (nodes) memcpy(nodes[i], digest, sizeof digest);
    }
    ree_hasher_digest(hasher, unused);
    ree_merkle_root(step, h->n_inputs, inputs_root);
    ree_merkle_builder_root(&builder, nodes_root);
    hasher = ree_hasher_create("ree-step/1");
    ree_hasher_update(hasher, &number, sizeof number);
    ree_hasher_update(hasher, inputs_root, sizeof inputs_root);
    ree_hasher_update(hasher, nodes_root, sizeof nodes_root);
    ree_hasher_digest(hasher, out);
}

void ree_trace_root(const struct ree_trace_header *h, const ree_digest *steps, uint64_t n,
                    ree_digest out) {
    ree_digest root;
    ree_merkle_root(steps, n, root);
    ree_trace_root_digest(h->version, h->digest, root, out);
}

void ree_trace_root_digest(uint32_t version, const ree_digest header, const ree_digest steps,
                           ree_digest out) {
    struct ree_hasher *hasher =
        ree_hasher_create(version == REE_TRACE_NAMED ? "ree-trace/1" : "ree-trace/2");
    ree_hasher_update(hasher, header, sizeof(ree_digest));
    ree_hasher_update(hasher, steps, sizeof(ree_digest));
    ree_hasher_digest(hasher, out);
}

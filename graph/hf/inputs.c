// Writes what all layers share: inputs and outputs of the graph, the masks that follow from
// positions, and cosines and sines of rotary embeddings.
#include "graph/hf/causal.h"

void ree_causal_ports(struct ree_causal *d) {
    struct ree_writer *w = d->w;
    const struct ree_causal_config *c = d->config;
    const struct ree_writer_dim batch = {"batch", 0}, sequence = {"sequence", 0};
    struct ree_writer_dim dims[4] = {batch, sequence, {NULL, c->vocab}};
    ree_writer_port(w, false, "input_ids", REE_I64, 2, dims);
    ree_writer_port(w, false, "position_ids", REE_I64, 2, dims);
    ree_writer_port(w, true, "logits", REE_F32, 3, dims);
    dims[1] = (struct ree_writer_dim){NULL, c->n_kv_heads};
    dims[3] = (struct ree_writer_dim){NULL, c->head_dim};
    for (int64_t i = 0; i < c->n_layers; i++) {
        static const char *const kinds[] = {"key", "value"};
        for (int k = 0; k < 2; k++) {
            dims[2] = (struct ree_writer_dim){"past_sequence", 0};
            ree_writer_port(w, false,
                            ree_writer_name(w, "past_key_values.%lld.%s", (long long)i, kinds[k]),
                            d->options->activations, 4, dims);
            dims[2] = (struct ree_writer_dim){"total_sequence", 0};
            ree_writer_port(w, true, ree_writer_name(w, "present.%lld.%s", (long long)i, kinds[k]),
                            d->options->activations, 4, dims);
        }
    }
}

static const char *size_of(struct ree_causal *d, const char *label, const char *value,
                           int64_t axis) {
    struct ree_writer *w = d->w;
    const char *dim = ree_op1(w, ree_writer_name(w, "%s.shape", label), "Shape", value);
    ree_writer_int(w, "start", axis);
    ree_writer_int(w, "end", axis + 1);
    return ree_op2(w, label, "Squeeze", dim, ree_writer_i64s(w, 1, (const int64_t[]){0}));
}

// With opset 17 and grouped heads, queries are (batch, key head, group, sequence, head size). The
// masks must match this shape, so they get one more dimension.
static const char *spread(struct ree_causal *d, const char *label, const char *mask) {
    bool grouped = d->options->steps && d->config->n_heads != d->config->n_kv_heads;
    const int64_t axes[2] = {1, 2};
    return ree_op2(d->w, label, "Unsqueeze", mask, ree_writer_i64s(d->w, grouped ? 2 : 1, axes));
}

// A query at position p sees key j if j <= p; with a window of n, also j > p - n must hold. p comes
// from position_ids, not from the token's index in input_ids. So positions of the cache beyond a
// sequence's end are not visible.
void ree_causal_masks(struct ree_causal *d) {
    struct ree_writer *w = d->w;
    const struct ree_causal_config *c = d->config;
    const char *past = size_of(d, "past_length", "past_key_values.0.key", 2);
    const char *fresh = size_of(d, "sequence_length", "input_ids", 1);
    const char *total = ree_op2(w, "total_length", "Add", past, fresh);
    const char *keys =
        ree_op3(w, "key_positions", "Range", ree_writer_i64(w, 0), total, ree_writer_i64(w, 1));
    const char *positions = ree_op2(w, "query_positions", "Unsqueeze", "position_ids",
                                    ree_writer_i64s(w, 1, (const int64_t[]){2}));
    const char *causal = ree_op2(w, "causal", "LessOrEqual", keys, positions);
    int64_t window = 0;
    bool all = false;
    for (int64_t i = 0; i < c->n_layers; i++) {
        if (c->windows[i]) window = c->windows[i]; // config.json has one window size for all layers
        if (!c->windows[i]) all = true;
    }
    if (all) d->mask = spread(d, "mask", causal);
    if (!window) return;
    const char *before = ree_op2(w, "window_start", "Sub", positions, ree_writer_i64(w, window));
    const char *inside = ree_op2(w, "in_window", "Greater", keys, before);
    d->window = spread(d, "window_mask", ree_op2(w, "causal_window", "And", causal, inside));
}

// Writes `function` (Cos or Sin) of the angles, times the rope's factor, in the type of the
// activations. With opset 17 it inserts a dimension of size 1 for the heads.
static const char *angles_of(struct ree_causal *d, const char *function, uint32_t rope,
                             const char *angles) {
    struct ree_writer *w = d->w;
    const char *label = ree_writer_name(w, "rope.%u.%s", rope, function);
    const char *y = ree_op1(w, label, function, angles);
    float factor = d->config->rope[rope].factor;
    if (factor != 1)
        y = ree_op2(w, ree_writer_name(w, "%s.scaled", label), "Mul", y, ree_writer_f32(w, factor));
    if (!d->options->steps) return ree_causal_narrow(d, label, y);
    return ree_op2(w, ree_writer_name(w, "%s.heads", label), "Unsqueeze", y,
                   ree_writer_i64s(w, 1, (const int64_t[]){1}));
}

void ree_causal_angles(struct ree_causal *d) {
    struct ree_writer *w = d->w;
    const struct ree_causal_config *c = d->config;
    if (!c->n_ropes) return;
    const char *positions = ree_op1(w, "rope.positions", "Cast", "position_ids");
    ree_writer_int(w, "to", REE_F32);
    positions = ree_op2(w, "rope.positions.column", "Unsqueeze", positions,
                        ree_writer_i64s(w, 1, (const int64_t[]){2}));
    for (uint32_t i = 0; i < c->n_ropes; i++) {
        bool used = false;
        for (int64_t layer = 0; layer < c->n_layers; layer++)
            used |= c->ropes[layer] == i;
        if (!used) continue;
        const char *table = ree_writer_f32s(w, ree_writer_name(w, "rope.%u.inv_freq", i),
                                            c->rope[i].n, c->rope[i].inv_freq);
        const char *angles =
            ree_op2(w, ree_writer_name(w, "rope.%u.angles", i), "Mul", positions, table);
        d->cos[i] = angles_of(d, "Cos", i, angles);
        d->sin[i] = angles_of(d, "Sin", i, angles);
    }
}

// Writes norms, activations, soft caps and the MLP.
#include "graph/hf/causal.h"

const char *ree_causal_layer_name(struct ree_causal *d, int64_t layer, const char *name) {
    return ree_writer_name(d->w, "%s.%lld.%s", d->names->layer, (long long)layer, name);
}

// Writes x / sqrt(mean-square(x) + eps) * scale in steps: the sequence of RMSNormalization. The sum
// of squares is that of ReduceSumSquare, which does not round its terms. Mul and ReduceMean would
// round them.
static const char *rms_steps(struct ree_causal *d, const char *label, const char *scale,
                             int64_t size, const char *x) {
    struct ree_writer *w = d->w;
    const char *v = ree_op1(w, ree_writer_name(w, "%s.squares", label), "ReduceSumSquare", x);
    ree_writer_ints(w, "axes", 1, (const int64_t[]){-1});
    ree_writer_int(w, "keepdims", 1);
    v = ree_op2(w, ree_writer_name(w, "%s.mean", label), "Div", v, ree_writer_f32(w, (float)size));
    v = ree_op2(w, ree_writer_name(w, "%s.above_zero", label), "Add", v,
                ree_writer_f32(w, d->config->norm_eps));
    v = ree_op1(w, ree_writer_name(w, "%s.rms", label), "Sqrt", v);
    v = ree_op2(w, ree_writer_name(w, "%s.unit", label), "Div", x, v);
    return ree_op2(w, label, "Mul", v, scale);
}

const char *ree_causal_norm(struct ree_causal *d, const char *label, const char *name, int64_t size,
                            const char *x) {
    struct ree_writer *w = d->w;
    const char *weight = ree_writer_name(w, "%s.weight", name);
    const char *scale_label = ree_writer_name(w, "%s.scale", label);
    bool plus_one = d->config->family->norm == REE_NORM_RMS_PLUS_ONE;
    enum ree_dtype dtype = plus_one ? REE_F32 : d->options->activations;
    const char *scale = ree_causal_weight_as(d, dtype, scale_label, weight, 1, &size);
    if (d->config->family->norm == REE_NORM_LAYER) {
        const char *bias_label = ree_writer_name(w, "%s.shift", label);
        const char *bias = ree_causal_weight_as(d, dtype, bias_label,
                                                ree_writer_name(w, "%s.bias", name), 1, &size);
        const char *y = ree_op3(w, label, "LayerNormalization", x, scale, bias);
        ree_writer_int(w, "axis", -1);
        ree_writer_float(w, "epsilon", d->config->norm_eps);
        return y;
    }
    if (plus_one) {
        scale = ree_op2(w, scale_label, "Add", scale, ree_writer_f32(w, 1));
        x = ree_causal_widen(d, label, x);
    }
    if (d->options->steps) return rms_steps(d, label, scale, size, x);
    const char *y = ree_op2(w, label, "RMSNormalization", x, scale);
    ree_writer_int(w, "axis", -1);
    ree_writer_float(w, "epsilon", d->config->norm_eps);
    return plus_one ? ree_causal_narrow(d, label, y) : y;
}

const char *ree_causal_softcap(struct ree_causal *d, const char *label, float softcap,
                               const char *x) {
    struct ree_writer *w = d->w;
    if (softcap == 0) return x;
    x = ree_op2(w, ree_writer_name(w, "%s.over_cap", label), "Div", x, ree_writer_f32(w, softcap));
    x = ree_op1(w, ree_writer_name(w, "%s.tanh", label), "Tanh", x);
    return ree_op2(w, ree_writer_name(w, "%s.capped", label), "Mul", x, ree_writer_f32(w, softcap));
}

// Writes the steps of Gelu, with the constants of NUMERICS.md, "Activations".
static const char *gelu_steps(struct ree_causal *d, const char *label, bool tanh, const char *x) {
    struct ree_writer *w = d->w;
    if (tanh) {
        const char *u = ree_op2(w, ree_writer_name(w, "%s.square", label), "Mul", x, x);
        u = ree_op2(w, ree_writer_name(w, "%s.cubic", label), "Mul", u,
                    ree_writer_f32(w, 0x1.2444f2p-4f));
        u = ree_op2(w, ree_writer_name(w, "%s.linear", label), "Add", u,
                    ree_writer_f32(w, 0x1.988454p+0f));
        u = ree_op2(w, ree_writer_name(w, "%s.argument", label), "Mul", x, u);
        u = ree_op1(w, ree_writer_name(w, "%s.sigmoid", label), "Sigmoid", u);
        return ree_op2(w, label, "Mul", x, u);
    }
    const char *u = ree_op2(w, ree_writer_name(w, "%s.argument", label), "Mul", x,
                            ree_writer_f32(w, 0x1.6a09e6p-1f));
    u = ree_op1(w, ree_writer_name(w, "%s.erf", label), "Erf", u);
    u = ree_op2(w, ree_writer_name(w, "%s.above_zero", label), "Add", u, ree_writer_f32(w, 1));
    x = ree_op2(w, ree_writer_name(w, "%s.half", label), "Mul", x, ree_writer_f32(w, 0.5f));
    return ree_op2(w, label, "Mul", x, u);
}

static const char *activation(struct ree_causal *d, const char *label, const char *x) {
    struct ree_writer *w = d->w;
    enum ree_hidden_act act = d->config->act;
    if (act == REE_ACT_RELU) return ree_op1(w, label, "Relu", x);
    if (act == REE_ACT_SILU) {
        // Computed in float32 and rounded once, after the product.
        x = ree_causal_widen(d, label, x);
        const char *s = ree_op1(w, ree_writer_name(w, "%s.sigmoid", label), "Sigmoid", x);
        return ree_causal_narrow(d, label, ree_op2(w, label, "Mul", x, s));
    }
    bool tanh = act == REE_ACT_GELU_TANH;
    if (d->options->steps) return gelu_steps(d, label, tanh, x);
    x = ree_op1(w, label, "Gelu", x);
    ree_writer_text(w, "approximate", tanh ? "tanh" : "none");
    return x;
}

const char *ree_causal_mlp(struct ree_causal *d, int64_t layer, const char *x) {
    struct ree_writer *w = d->w;
    const struct ree_causal_config *c = d->config;
    const char *label = ree_writer_name(w, "layers.%lld.mlp", (long long)layer);
    struct ree_linear l = {.in = c->hidden,
                           .out = c->intermediate,
                           .bias = c->mlp_bias,
                           .columns = c->family->is_gpt2};
    const char *gate = NULL, *up;
    if (d->names->gate_up) {
        l.label = ree_writer_name(w, "%s.gate_up_proj", label);
        l.name = ree_causal_layer_name(d, layer, d->names->gate_up);
        l.out = 2 * c->intermediate;
        const char *both = ree_causal_linear(d, &l, x);
        gate = ree_writer_name(w, "%s.gate", label);
        up = ree_writer_name(w, "%s.up", label);
        const int64_t sizes[2] = {c->intermediate, c->intermediate};
        ree_writer_node(w, ree_writer_name(w, "%s.split", label), "Split",
                        (const char *const[]){both, ree_writer_i64s(w, 2, sizes), NULL},
                        (const char *const[]){gate, up, NULL});
        ree_writer_int(w, "axis", -1);
    } else {
        if (d->names->gate) {
            l.label = ree_writer_name(w, "%s.gate_proj", label);
            l.name = ree_causal_layer_name(d, layer, d->names->gate);
            gate = ree_causal_linear(d, &l, x);
        }
        l.label = ree_writer_name(w, "%s.up_proj", label);
        l.name = ree_causal_layer_name(d, layer, d->names->up);
        up = ree_causal_linear(d, &l, x);
    }
    const char *h = activation(d, ree_writer_name(w, "%s.act", label), gate ? gate : up);
    if (gate) h = ree_op2(w, ree_writer_name(w, "%s.gated", label), "Mul", h, up);
    l = (struct ree_linear){.label = ree_writer_name(w, "%s.down_proj", label),
                            .name = ree_causal_layer_name(d, layer, d->names->down),
                            .in = c->intermediate,
                            .out = c->hidden,
                            .bias = c->mlp_bias,
                            .columns = c->family->is_gpt2};
    return ree_causal_linear(d, &l, h);
}

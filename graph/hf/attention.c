// Writes the attention of a layer: projections, norms of queries and keys, rotary embedding, kv
// cache, scores and output.
#include "graph/hf/causal.h"

struct heads {
    struct ree_causal *d;
    const char *label;
    int64_t layer;
};

static const char *label_of(const struct heads *h, const char *part) {
    return ree_writer_name(h->d->w, "%s.%s", h->label, part);
}

static const char *project(const struct heads *h, const char *part, const char *name, int64_t out,
                           const char *x) {
    const struct ree_causal_config *c = h->d->config;
    struct ree_linear l = {.label = label_of(h, part),
                           .name = ree_causal_layer_name(h->d, h->layer, name),
                           .in = c->hidden,
                           .out = out,
                           .bias = c->qkv_bias,
                           .columns = c->family->is_gpt2};
    return ree_causal_linear(h->d, &l, x);
}

static void project_all(const struct heads *h, const char *x, const char **q, const char **k,
                        const char **v) {
    struct ree_causal *d = h->d;
    const struct ree_causal_config *c = d->config;
    int64_t n = c->n_heads * c->head_dim, n_kv = c->n_kv_heads * c->head_dim;
    if (!d->names->qkv) {
        *q = project(h, "q_proj", d->names->q, n, x);
        *k = project(h, "k_proj", d->names->k, n_kv, x);
        *v = project(h, "v_proj", d->names->v, n_kv, x);
        return;
    }
    const char *all = project(h, "qkv_proj", d->names->qkv, n + 2 * n_kv, x);
    const int64_t sizes[3] = {n, n_kv, n_kv};
    *q = label_of(h, "q");
    *k = label_of(h, "k");
    *v = label_of(h, "v");
    ree_writer_node(d->w, label_of(h, "split"), "Split",
                    (const char *const[]){all, ree_writer_i64s(d->w, 3, sizes), NULL},
                    (const char *const[]){*q, *k, *v, NULL});
    ree_writer_int(d->w, "axis", -1);
}

// Reshapes x to `dims`, in which 0 copies a dimension of x and -1 is inferred, as in ONNX.
static const char *reshape(const struct heads *h, const char *label, size_t n_dims,
                           const int64_t *dims, const char *x) {
    return ree_op2(h->d->w, label, "Reshape", x, ree_writer_i64s(h->d->w, n_dims, dims));
}

// Normalises the queries (part "q") or keys (part "k") of n heads, (batch, sequence, n * head
// size). Returns x if the architecture has no such norm.
static const char *normalise(const struct heads *h, const char *part, const char *name, int64_t n,
                             const char *x) {
    struct ree_causal *d = h->d;
    int64_t size = d->config->head_dim;
    const char *label = ree_writer_name(d->w, "%s.%s_norm", h->label, part);
    if (d->config->family->qk_norm == REE_QK_NONE) return x;
    name = ree_causal_layer_name(d, h->layer, name);
    if (d->config->family->qk_norm == REE_QK_WHOLE)
        return ree_causal_norm(d, label, name, n * size, x);
    const int64_t apart[4] = {0, 0, n, size}, together[3] = {0, 0, n * size};
    x = reshape(h, ree_writer_name(d->w, "%s.heads", label), 4, apart, x);
    x = ree_causal_norm(d, label, name, size, x);
    return reshape(h, ree_writer_name(d->w, "%s.whole", label), 3, together, x);
}

// The form with opset 23

static const char *rotate(const struct heads *h, const char *part, int64_t n, const char *x) {
    struct ree_causal *d = h->d;
    uint8_t rope = d->config->ropes[h->layer];
    if (rope == REE_NO_ROPE) return x;
    x = ree_op3(d->w, ree_writer_name(d->w, "%s.%s_rope", h->label, part), "RotaryEmbedding", x,
                d->cos[rope], d->sin[rope]);
    ree_writer_int(d->w, "num_heads", n);
    int64_t turned = 2 * (int64_t)d->config->rope[rope].n;
    if (turned != d->config->head_dim) ree_writer_int(d->w, "rotary_embedding_dim", turned);
    return x;
}

static const char *mask_of(const struct heads *h) {
    return h->d->config->windows[h->layer] ? h->d->window : h->d->mask;
}

static const char *past(const struct heads *h, const char *kind) {
    return ree_writer_name(h->d->w, "past_key_values.%lld.%s", (long long)h->layer, kind);
}

static const char *present(const struct heads *h, const char *kind) {
    return ree_writer_name(h->d->w, "present.%lld.%s", (long long)h->layer, kind);
}

static const char *attend(const struct heads *h, const char *q, const char *k, const char *v) {
    struct ree_causal *d = h->d;
    const struct ree_causal_config *c = d->config;
    q = rotate(h, "q", c->n_heads, q);
    k = rotate(h, "k", c->n_kv_heads, k);
    const char *y = label_of(h, "attention");
    ree_writer_node(
        d->w, y, "Attention",
        (const char *const[]){q, k, v, mask_of(h), past(h, "key"), past(h, "value"), NULL},
        (const char *const[]){y, present(h, "key"), present(h, "value"), NULL});
    ree_writer_int(d->w, "q_num_heads", c->n_heads);
    ree_writer_int(d->w, "kv_num_heads", c->n_kv_heads);
    ree_writer_float(d->w, "scale", c->scales[h->layer]);
    if (c->attention_softcap != 0) ree_writer_float(d->w, "softcap", c->attention_softcap);
    return y;
}

// The form with opset 17

// Splits (batch, sequence, n * head size) into (batch, n, sequence, head size).
static const char *to_heads(const struct heads *h, const char *part, int64_t n, const char *x) {
    struct ree_writer *w = h->d->w;
    const int64_t dims[4] = {0, 0, n, h->d->config->head_dim};
    x = reshape(h, ree_writer_name(w, "%s.%s_apart", h->label, part), 4, dims, x);
    x = ree_op1(w, ree_writer_name(w, "%s.%s_heads", h->label, part), "Transpose", x);
    ree_writer_ints(w, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    return x;
}

// Writes the steps of RotaryEmbedding. x0 and x1 are the halves of the rotated part of a head; the
// rest of the head is copied.
//
//     y0 = cos * x0 - sin * x1    y1 = sin * x0 + cos * x1
static const char *rotate_steps(const struct heads *h, const char *part, const char *x) {
    struct ree_causal *d = h->d;
    struct ree_writer *w = d->w;
    uint8_t rope = d->config->ropes[h->layer];
    if (rope == REE_NO_ROPE) return x;
    const char *label = ree_writer_name(w, "%s.%s_rope", h->label, part);
    int64_t n = d->config->rope[rope].n, rest_size = d->config->head_dim - 2 * n;
    const int64_t sizes[3] = {n, n, rest_size};
    const char *cos = d->cos[rope], *sin = d->sin[rope];
    const char *x0 = ree_writer_name(w, "%s.x0", label), *x1 = ree_writer_name(w, "%s.x1", label);
    const char *rest = rest_size ? ree_writer_name(w, "%s.rest", label) : NULL;
    ree_writer_node(w, ree_writer_name(w, "%s.split", label), "Split",
                    (const char *const[]){x, ree_writer_i64s(w, rest ? 3 : 2, sizes), NULL},
                    (const char *const[]){x0, x1, rest, NULL});
    ree_writer_int(w, "axis", -1);
    const char *a = ree_op2(w, ree_writer_name(w, "%s.cos_x0", label), "Mul", cos, x0);
    const char *b = ree_op2(w, ree_writer_name(w, "%s.sin_x1", label), "Mul", sin, x1);
    const char *y0 = ree_op2(w, ree_writer_name(w, "%s.y0", label), "Sub", a, b);
    a = ree_op2(w, ree_writer_name(w, "%s.sin_x0", label), "Mul", sin, x0);
    b = ree_op2(w, ree_writer_name(w, "%s.cos_x1", label), "Mul", cos, x1);
    const char *y1 = ree_op2(w, ree_writer_name(w, "%s.y1", label), "Add", a, b);
    ree_writer_op(w, label, "Concat", (const char *const[]){y0, y1, rest, NULL});
    ree_writer_int(w, "axis", -1);
    return label;
}

static const char *append_to_cache(const struct heads *h, const char *kind, const char *x) {
    const char *y = ree_op2(h->d->w, present(h, kind), "Concat", past(h, kind), x);
    ree_writer_int(h->d->w, "axis", 2);
    return y;
}

// n_heads / n_kv_heads consecutive query heads share a key head. Queries become (batch, key heads,
// group, sequence, head size); keys and values get a group dimension of size 1.
static const char *group(const struct heads *h, const char *part, const char *x) {
    const struct ree_causal_config *c = h->d->config;
    const char *label = ree_writer_name(h->d->w, "%s.%s_group", h->label, part);
    const int64_t dims[5] = {0, c->n_kv_heads, c->n_heads / c->n_kv_heads, -1, c->head_dim};
    if (c->n_heads == c->n_kv_heads) return x;
    if (part[0] == 'q') return reshape(h, label, 5, dims, x);
    return ree_op2(h->d->w, label, "Unsqueeze", x,
                   ree_writer_i64s(h->d->w, 1, (const int64_t[]){2}));
}

static const char *weigh(const struct heads *h, const char *q, const char *k) {
    struct ree_causal *d = h->d;
    struct ree_writer *w = d->w;
    bool grouped = d->config->n_heads != d->config->n_kv_heads;
    k = ree_op1(w, label_of(h, "keys"), "Transpose", k);
    const int64_t five[] = {0, 1, 2, 4, 3}, four[] = {0, 1, 3, 2};
    ree_writer_ints(w, "perm", grouped ? 5 : 4, grouped ? five : four);
    const char *s = ree_op2(w, label_of(h, "products"), "MatMul", q, k);
    s = ree_op2(w, label_of(h, "scores"), "Mul", s, ree_writer_f32(w, d->config->scales[h->layer]));
    s = ree_causal_softcap(d, label_of(h, "scores"), d->config->attention_softcap, s);
    s = ree_op3(w, label_of(h, "masked"), "Where", mask_of(h), s,
                ree_writer_f32(w, -__builtin_inff()));
    s = ree_op1(w, label_of(h, "weights"), "Softmax", s);
    ree_writer_int(w, "axis", -1);
    return s;
}

static const char *attend_steps(const struct heads *h, const char *q, const char *k,
                                const char *v) {
    struct ree_writer *w = h->d->w;
    const struct ree_causal_config *c = h->d->config;
    q = rotate_steps(h, "q", to_heads(h, "q", c->n_heads, q));
    k = rotate_steps(h, "k", to_heads(h, "k", c->n_kv_heads, k));
    v = to_heads(h, "v", c->n_kv_heads, v);
    k = group(h, "k", append_to_cache(h, "key", k));
    v = group(h, "v", append_to_cache(h, "value", v));
    const char *y = ree_op2(w, label_of(h, "values"), "MatMul", weigh(h, group(h, "q", q), k), v);
    const int64_t heads[4] = {0, c->n_heads, -1, c->head_dim};
    const int64_t whole[3] = {0, 0, c->n_heads * c->head_dim};
    if (c->n_heads != c->n_kv_heads) y = reshape(h, label_of(h, "values_heads"), 4, heads, y);
    y = ree_op1(w, label_of(h, "values_apart"), "Transpose", y);
    ree_writer_ints(w, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    return reshape(h, label_of(h, "attention"), 3, whole, y);
}

const char *ree_causal_attention(struct ree_causal *d, int64_t layer, const char *x) {
    const struct ree_causal_config *c = d->config;
    struct heads h = {d, ree_writer_name(d->w, "layers.%lld.self_attn", (long long)layer), layer};
    const char *q, *k, *v;
    project_all(&h, x, &q, &k, &v);
    q = normalise(&h, "q", d->names->q_norm, c->n_heads, q);
    k = normalise(&h, "k", d->names->k_norm, c->n_kv_heads, k);
    const char *y = d->options->steps ? attend_steps(&h, q, k, v) : attend(&h, q, k, v);
    struct ree_linear l = {.label = label_of(&h, "o_proj"),
                           .name = ree_causal_layer_name(d, layer, d->names->out),
                           .in = c->n_heads * c->head_dim,
                           .out = c->hidden,
                           .bias = c->out_bias,
                           .columns = c->family->is_gpt2};
    return ree_causal_linear(d, &l, y);
}

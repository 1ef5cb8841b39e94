// Writes the whole decoder: embeddings, blocks, head, and the model's metadata.
#include "graph/hf/causal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "repops/scalar/ops.h"

static const struct ree_tensor_names llama_names = {
    .embedding = "embed_tokens",
    .layer = "layers",
    .norm = "norm",
    .head = "lm_head",
    .norms = {"input_layernorm", NULL, "post_attention_layernorm", NULL},
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .out = "self_attn.o_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
};

static const struct ree_tensor_names gpt2_names = {
    .embedding = "wte",
    .positions = "wpe",
    .layer = "h",
    .norm = "ln_f",
    .head = "lm_head",
    .norms = {"ln_1", NULL, "ln_2", NULL},
    .qkv = "attn.c_attn",
    .out = "attn.c_proj",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
};

// Writes the names of the family's tensors to *out: GPT-2's, or llama's with the family's changes.
static void choose_names(const struct ree_family *family, struct ree_tensor_names *out) {
    *out = family->is_gpt2 ? gpt2_names : llama_names;
    if (family->is_gpt2) return;
    if (family->fused) {
        out->qkv = "self_attn.qkv_proj";
        out->gate_up = "mlp.gate_up_proj";
    }
    static const char *const after[4] = {NULL, "post_attention_layernorm", NULL,
                                         "post_feedforward_layernorm"};
    static const char *const around[4] = {"input_layernorm", "post_attention_layernorm",
                                          "pre_feedforward_layernorm",
                                          "post_feedforward_layernorm"};
    if (family->norm_place == REE_NORM_AFTER) memcpy(out->norms, after, sizeof after);
    if (family->norm_place == REE_NORM_AROUND) memcpy(out->norms, around, sizeof around);
}

// Finds the prefix of the names of the decoder's tensors. It differs between checkpoints with only
// a decoder, with a decoder and a head, and with an image encoder.
static const char *find_prefix(struct ree_causal *d) {
    static const char *const known[] = {"model.", "model.language_model.", "language_model.model.",
                                        "transformer.", ""};
    size_t n = sizeof known / sizeof known[0];
    for (size_t i = 0; i < n; i++) {
        const char *name = ree_writer_name(d->w, "%s%s.weight", known[i], d->names->embedding);
        if (ree_checkpoint_find(d->checkpoint, name)) return known[i];
    }
    return d->config->family->is_gpt2 ? "transformer." : "model.";
}

// Returns sqrt(hidden size), rounded to dtype, as a model of that type computes it.
static float embedding_scale(const struct ree_causal *d, enum ree_dtype dtype) {
    float scale = (float)sqrt((double)d->config->hidden);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    if (dtype == REE_F16) bits = ree_op_f16_to_f32(ree_op_f32_to_f16(bits));
    if (dtype == REE_BF16) bits = ree_op_bf16_to_f32(ree_op_f32_to_bf16(bits));
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

// Looks up rows of the table `name`.weight and returns them in the type of the activations.
// *out_dtype: the type of the table in the checkpoint.
static const char *look_up(struct ree_causal *d, const char *label, const char *name, int64_t rows,
                           const char *ids, enum ree_dtype *out_dtype) {
    struct ree_writer *w = d->w;
    const int64_t dims[2] = {rows, d->config->hidden};
    const char *table =
        ree_causal_weight(d, ree_writer_name(w, "%s.weight", name), 2, dims, out_dtype);
    const char *x = ree_op2(w, label, "Gather", table, ids);
    if (*out_dtype == d->options->activations) return x;
    x = ree_op1(w, ree_writer_name(w, "%s.cast", label), "Cast", x);
    ree_writer_int(w, "to", d->options->activations);
    return x;
}

static const char *embed(struct ree_causal *d) {
    struct ree_writer *w = d->w;
    const struct ree_causal_config *c = d->config;
    enum ree_dtype dtype;
    const char *x, *label = "embed_tokens", *table = d->names->embedding;
    if (c->tied && d->options->table_bits) {
        x = ree_causal_look_up_quantised(d, label, table, c->vocab, c->hidden, "input_ids", &dtype);
        x = ree_causal_narrow(d, label, x);
    } else {
        x = look_up(d, label, table, c->vocab, "input_ids", &dtype);
    }
    if (c->scale_embeddings) {
        if (d->options->activations != REE_F32) dtype = d->options->activations;
        const char *scale = ree_writer_f32(w, embedding_scale(d, dtype));
        x = ree_op2(w, "embed_tokens.scaled", "Mul", x,
                    ree_causal_narrow(d, "embed_tokens.scale", scale));
    }
    if (d->names->positions) {
        const char *p =
            look_up(d, "embed_positions", d->names->positions, c->context, "position_ids", &dtype);
        x = ree_op2(w, "embed_positions.add", "Add", x, p);
    }
    return x;
}

// Writes norm number `i` of a block, in the order of ree_tensor_names.norms, and returns its
// result. Returns x if the architecture does not have this norm.
static const char *norm(struct ree_causal *d, int64_t layer, int i, const char *x) {
    static const char *const labels[4] = {"attention_norm", "attention_post_norm", "mlp_norm",
                                          "mlp_post_norm"};
    if (!d->names->norms[i]) return x;
    return ree_causal_norm(d, ree_writer_name(d->w, "layers.%lld.%s", (long long)layer, labels[i]),
                           ree_causal_layer_name(d, layer, d->names->norms[i]), d->config->hidden,
                           x);
}

static const char *block(struct ree_causal *d, int64_t layer, const char *x) {
    struct ree_writer *w = d->w;
    const char *y = ree_causal_attention(d, layer, norm(d, layer, 0, x));
    x = ree_op2(w, ree_writer_name(w, "layers.%lld.attention_residual", (long long)layer), "Add", x,
                norm(d, layer, 1, y));
    y = ree_causal_mlp(d, layer, norm(d, layer, 2, x));
    return ree_op2(w, ree_writer_name(w, "layers.%lld.mlp_residual", (long long)layer), "Add", x,
                   norm(d, layer, 3, y));
}

static void head(struct ree_causal *d, const char *x) {
    const struct ree_causal_config *c = d->config;
    struct ree_linear l = {.label = "lm_head",
                           .name = c->tied ? d->names->embedding : d->names->head,
                           .in = c->hidden,
                           .out = c->vocab,
                           .table = c->tied,
                           .wide = true};
    if (!c->tied) d->prefix = ""; // the name of the head's own matrix has no prefix
    ree_causal_softcap(d, "lm_head", c->final_softcap, ree_causal_linear(d, &l, x));
    ree_writer_rename(d->w, "logits");
}

static void describe_number(struct ree_causal *d, const char *key, int64_t value) {
    ree_writer_metadata(d->w, key, ree_writer_name(d->w, "%lld", (long long)value));
}

static void describe_list(struct ree_causal *d, const char *key, size_t n, const int64_t *values) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; i < n; i++)
        ree_strbuf_printf(&text, "%s%lld", i ? "," : "", (long long)values[i]);
    ree_writer_metadata(d->w, key, text.data ? text.data : "");
    if (text.failed) ree_writer_fail(d->w, REE_NO_MEMORY, "out of memory");
    ree_strbuf_finish(&text);
}

static void describe(struct ree_causal *d) {
    const struct ree_causal_config *c = d->config;
    struct ree_writer *w = d->w;
    ree_writer_metadata(w, "ree.format", "ree-causal-lm/1");
    ree_writer_metadata(w, "ree.model_type", c->family->model_type);
    describe_number(d, "ree.vocab_size", c->vocab);
    describe_number(d, "ree.context_length", c->context);
    describe_number(d, "ree.n_layers", c->n_layers);
    describe_number(d, "ree.n_heads", c->n_heads);
    describe_number(d, "ree.n_kv_heads", c->n_kv_heads);
    describe_number(d, "ree.head_dim", c->head_dim);
    if (c->bos >= 0) describe_number(d, "ree.bos_token_id", c->bos);
    describe_list(d, "ree.eos_token_ids", c->n_eos, c->eos);
    describe_list(d, "ree.sliding_windows", (size_t)c->n_layers, c->windows); // 0: none
    ree_writer_metadata(
        w, "ree.mask",
        "key j is visible at position p if j <= p, and j > p - n if the layer has a window of n");
    if (d->options->bits)
        ree_writer_metadata(
            w, "ree.quantization",
            ree_writer_name(w, "%u bits, blocks of %u", d->options->bits, d->options->block));
}

static void describe_types(struct ree_causal *d) {
    if (d->options->activations != REE_F32)
        ree_writer_metadata(d->w, "ree.activations", ree_dtype_name(d->options->activations));
    if (d->options->int8) ree_writer_metadata(d->w, "ree.activations", "int8 in products");
}

static void write_graph(struct ree_causal *d) {
    ree_writer_opset(d->w, "", d->options->steps ? 17 : 23);
    if (d->options->bits && !d->options->int8) ree_writer_opset(d->w, "com.microsoft", 1);
    if (d->options->int8) ree_writer_opset(d->w, "ree", 1);
    if (d->options->int8 && d->options->table_bits) ree_writer_opset(d->w, "com.microsoft", 1);
    describe(d);
    describe_types(d);
    ree_causal_ports(d);
    ree_causal_masks(d);
    ree_causal_angles(d);
    const char *x = embed(d);
    for (int64_t i = 0; i < d->config->n_layers && ree_writer_ok(d->w); i++)
        x = block(d, i, x);
    x = ree_causal_norm(d, "final_norm", d->names->norm, d->config->hidden, x);
    head(d, x);
}

enum ree_status ree_causal_write(struct ree_checkpoint *checkpoint,
                                 const struct ree_causal_options *options, unsigned char **out,
                                 size_t *out_size, struct ree_error *err) {
    *out = NULL;
    *out_size = 0;
    struct ree_causal_config config;
    REE_TRY(ree_causal_config_read(checkpoint, &config, err));
    struct ree_tensor_names names;
    choose_names(config.family, &names);
    struct ree_writer w;
    ree_writer_init(&w, err);
    struct ree_causal d = {
        .w = &w, .checkpoint = checkpoint, .config = &config, .options = options, .names = &names};
    d.prefix = find_prefix(&d);
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        d.total += checkpoint->tensors[i].nbytes;
    const char *prefix = d.prefix; // head() may change d.prefix
    write_graph(&d);
    if (ree_writer_ok(&w)) w.status = ree_causal_check_unread(&d, prefix, err);
    if (checkpoint->has_code && options->on_note) {
        REE_FLOAT_ENV_CALLBACK();
        options->on_note(
            options->note_user,
            "auto_map names code of the model, which ree does not run: only model_type decides");
    }
    // IR version 8 was released with opset 17, IR version 11 with opset 23.
    enum ree_status status = ree_writer_pack(&w, options->steps ? 8 : 11, out, out_size);
    ree_writer_finish(&w);
    // Check after a failure as well: if a file was truncated meanwhile, this is the better
    // explanation.
    for (size_t i = 0; i < checkpoint->n_files; i++)
        if (ree_mapping_check(checkpoint->mappings[i], err) != REE_OK) status = REE_IO;
    if (status != REE_OK) {
        ree_free(*out);
        *out = NULL;
    }
    return status;
}

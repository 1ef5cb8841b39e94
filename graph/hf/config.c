// Reads config.json into the description of config.h, with the defaults and the peculiarities of
// each architecture.
#include "graph/hf/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Limits on sizes, far above any model. The product of three numbers up to MAX_SIZE fits in 64
// bits.
#define MAX_SIZE (1 << 20)
#define MAX_LAYERS 4096
#define MAX_EOS 64

struct source {
    const cJSON *all;  // config.json
    const cJSON *text; // the section that describes the decoder
    const cJSON *generation;
    struct ree_arena *arena;
    struct ree_error *err;
};

static bool is_gemma3(const struct ree_causal_config *c) {
    return c->family->norm == REE_NORM_RMS_PLUS_ONE;
}

static bool is_family(const struct ree_causal_config *c, const char *model_type) {
    return !strcmp(c->family->model_type, model_type);
}

static enum ree_status find_family(struct source *s, struct ree_causal_config *c) {
    const char *type = "";
    REE_TRY(ree_json_string(s->all, "model_type", &type, s->err));
    for (size_t i = 0; (c->family = ree_family_at(i)); i++)
        if (!strcmp(c->family->model_type, type)) return REE_OK;
    char known[256] = "";
    for (size_t i = 0; ree_family_at(i); i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", ree_family_at(i)->model_type);
    }
    if (!*type) return ree_fail(s->err, REE_INVALID, "'model_type' is missing");
    return ree_fail(s->err, REE_UNSUPPORTED,
                    "the architecture '%.64s' cannot be exported; supported are: %s", type, known);
}

// Returns the name of a key in this architecture's config.json: GPT-2 has other names for some
// keys.
static const char *key_of(const struct ree_causal_config *c, const char *key) {
    static const char *const pairs[][2] = {
        {"hidden_size", "n_embd"},
        {"num_hidden_layers", "n_layer"},
        {"num_attention_heads", "n_head"},
        {"intermediate_size", "n_inner"},
        {"max_position_embeddings", "n_positions"},
        {"rms_norm_eps", "layer_norm_epsilon"},
        {"hidden_act", "activation_function"},
    };
    for (size_t i = 0; c->family->is_gpt2 && i < sizeof pairs / sizeof pairs[0]; i++)
        if (!strcmp(pairs[i][0], key)) return pairs[i][1];
    return key;
}

// Returns whether the key is present with the value null; for some keys this differs from an absent
// key.
static bool is_null(const struct source *s, const char *key) {
    return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(s->text, key));
}

static enum ree_status read_size(struct source *s, const struct ree_causal_config *c,
                                 const char *key, int64_t max, bool required, int64_t *inout) {
    key = key_of(c, key);
    if (required && *inout == 0) return ree_json_need_int(s->text, key, 1, max, inout, s->err);
    return ree_json_int(s->text, key, 1, max, inout, s->err);
}

static enum ree_status read_sizes(struct source *s, struct ree_causal_config *c) {
    // Gemma 3's text_config omits keys that have their default values.
    if (is_gemma3(c)) {
        c->vocab = 262208;
        c->n_heads = 8;
        c->head_dim = 256;
    }
    if (is_family(c, "qwen3")) c->head_dim = 128;
    REE_TRY(read_size(s, c, "vocab_size", INT32_MAX, true, &c->vocab));
    REE_TRY(read_size(s, c, "hidden_size", MAX_SIZE, true, &c->hidden));
    REE_TRY(read_size(s, c, "num_hidden_layers", MAX_LAYERS, true, &c->n_layers));
    REE_TRY(read_size(s, c, "num_attention_heads", MAX_SIZE, true, &c->n_heads));
    c->context = c->family->context;
    c->n_kv_heads = c->n_heads;
    if (c->family->kv_heads && !is_null(s, "num_key_value_heads"))
        c->n_kv_heads = c->family->kv_heads;
    if (!c->family->is_gpt2)
        REE_TRY(read_size(s, c, "num_key_value_heads", MAX_SIZE, false, &c->n_kv_heads));
    if (c->family->is_gpt2) c->intermediate = 4 * c->hidden;
    REE_TRY(read_size(s, c, "intermediate_size", 4 * MAX_SIZE, true, &c->intermediate));
    REE_TRY(read_size(s, c, "max_position_embeddings", INT32_MAX, false, &c->context));
    if (c->n_heads % c->n_kv_heads)
        return ree_fail(s->err, REE_INVALID,
                        "%lld heads is not a multiple of %lld key and value heads",
                        (long long)c->n_heads, (long long)c->n_kv_heads);
    bool has_head_dim = !c->family->is_gpt2 && (ree_json_find(s->text, "head_dim") || c->head_dim);
    if (has_head_dim) return ree_json_int(s->text, "head_dim", 1, MAX_SIZE, &c->head_dim, s->err);
    if (c->hidden % c->n_heads)
        return ree_fail(s->err, REE_INVALID, "a hidden size of %lld is not divisible by %lld heads",
                        (long long)c->hidden, (long long)c->n_heads);
    c->head_dim = c->hidden / c->n_heads;
    return REE_OK;
}

static enum ree_status read_activation(struct source *s, struct ree_causal_config *c) {
    static const struct {
        const char *name;
        enum ree_hidden_act act;
    } known[] = {
        {"silu", REE_ACT_SILU},           {"swish", REE_ACT_SILU},
        {"gelu", REE_ACT_GELU},           {"gelu_new", REE_ACT_GELU_TANH},
        {"relu", REE_ACT_RELU},           {"gelu_pytorch_tanh", REE_ACT_GELU_TANH},
        {"gelu_fast", REE_ACT_GELU_TANH},
    };
    const char *name = c->family->is_gpt2 ? "gelu_new"
                       : is_gemma3(c)     ? "gelu_pytorch_tanh"
                                          : "silu";
    const char *key = is_gemma3(c) ? "hidden_activation" : key_of(c, "hidden_act");
    REE_TRY(ree_json_string(s->text, key, &name, s->err));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(name, known[i].name)) {
            c->act = known[i].act;
            return REE_OK;
        }
    return ree_fail(s->err, REE_UNSUPPORTED, "the activation '%.32s' is not supported", name);
}

static enum ree_status read_biases(struct source *s, struct ree_causal_config *c) {
    bool attention = false, mlp = false;
    REE_TRY(ree_json_bool(s->text, "attention_bias", &attention, s->err));
    REE_TRY(ree_json_bool(s->text, "mlp_bias", &mlp, s->err));
    // Only llama and smollm3 read mlp_bias. mistral, qwen2 and phi3 do not read attention_bias.
    bool asks = is_family(c, "llama") || is_family(c, "qwen3") || is_family(c, "olmo2") ||
                is_family(c, "smollm3") || is_gemma3(c);
    c->qkv_bias = c->family->is_gpt2 || c->family->bias_on_qkv || (asks && attention);
    c->out_bias = c->family->is_gpt2 || (asks && attention);
    c->mlp_bias = c->family->is_gpt2 || (mlp && (is_family(c, "llama") || is_family(c, "smollm3")));
    return REE_OK;
}

static enum ree_status read_scales(struct source *s, struct ree_causal_config *c) {
    double size = is_gemma3(c) ? 256 : (double)c->head_dim, softcap = 0, final = 0;
    bool scaled = true, by_layer = false;
    if (is_gemma3(c)) {
        REE_TRY(ree_json_number(s->text, "query_pre_attn_scalar", 1e-6, 1e6, &size, s->err));
        REE_TRY(ree_json_number(s->text, "attn_logit_softcapping", 1e-3, 1e6, &softcap, s->err));
        REE_TRY(ree_json_number(s->text, "final_logit_softcapping", 1e-3, 1e6, &final, s->err));
    }
    if (c->family->is_gpt2) {
        REE_TRY(ree_json_bool(s->text, "scale_attn_weights", &scaled, s->err));
        REE_TRY(ree_json_bool(s->text, "scale_attn_by_inverse_layer_idx", &by_layer, s->err));
    }
    c->attention_softcap = (float)softcap;
    c->final_softcap = (float) final;
    c->scales = ree_arena_alloc_array(s->arena, (size_t)c->n_layers, sizeof *c->scales);
    if (!c->scales) return ree_no_memory(s->err);
    for (int64_t i = 0; i < c->n_layers; i++)
        c->scales[i] = (float)((scaled ? 1 / sqrt(size) : 1) / (by_layer ? (double)(i + 1) : 1));
    return REE_OK;
}

// Reads SmolLM3's no_rope_layers. In spite of its name, 1 means a layer with rotary embedding, and
// 0 one without. If it is absent, every fourth layer, or every no_rope_layer_interval-th, has none.
static enum ree_status read_rope_layers(struct source *s, struct ree_causal_config *c) {
    if (!is_family(c, "smollm3")) return REE_OK;
    int64_t interval = 4;
    REE_TRY(ree_json_int(s->text, "no_rope_layer_interval", 1, MAX_LAYERS, &interval, s->err));
    const cJSON *list = ree_json_find(s->text, "no_rope_layers"), *item = NULL;
    if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != c->n_layers))
        return ree_fail(s->err, REE_INVALID, "'no_rope_layers' is not a list of %lld numbers",
                        (long long)c->n_layers);
    if (list) item = list->child;
    for (int64_t i = 0; i < c->n_layers; i++) {
        int64_t has = (i + 1) % interval != 0;
        if (item && !ree_json_is_whole(item, 0, 1, &has))
            return ree_fail(s->err, REE_INVALID,
                            "'no_rope_layers' contains a number other than 0 and 1");
        if (!has) c->ropes[i] = REE_NO_ROPE;
        if (item) item = item->next;
    }
    return REE_OK;
}

// Decides whether layer i has a window if config.json has no layer_types. In smollm3 the layers
// without rotary embedding have one.
static enum ree_status slides_by_default(struct source *s, const struct ree_causal_config *c,
                                         int64_t i, int64_t window, bool *out) {
    int64_t pattern = 6, from = 28;
    bool use = false;
    if (is_gemma3(c)) {
        REE_TRY(ree_json_int(s->text, "sliding_window_pattern", 1, MAX_LAYERS, &pattern, s->err));
        *out = (i + 1) % pattern != 0;
        return REE_OK;
    }
    REE_TRY(ree_json_bool(s->text, "use_sliding_window", &use, s->err));
    if (is_family(c, "smollm3")) {
        *out = use && window && c->ropes[i] == REE_NO_ROPE;
        return REE_OK;
    }
    REE_TRY(ree_json_int(s->text, "max_window_layers", 0, INT32_MAX, &from, s->err));
    *out = use && window && i >= from;
    return REE_OK;
}

static enum ree_status read_windows(struct source *s, struct ree_causal_config *c) {
    int64_t window = is_null(s, "sliding_window") ? 0 : c->family->window;
    enum ree_sliding sliding = c->family->sliding;
    if (sliding == REE_SLIDING_NONE) return REE_OK;
    REE_TRY(ree_json_int(s->text, "sliding_window", 1, INT32_MAX, &window, s->err));
    const cJSON *types =
        sliding == REE_SLIDING_LISTED ? ree_json_find(s->text, "layer_types") : NULL;
    if (types && (!cJSON_IsArray(types) || cJSON_GetArraySize(types) != c->n_layers))
        return ree_fail(s->err, REE_INVALID, "'layer_types' is not a list of %lld names",
                        (long long)c->n_layers);
    const cJSON *item = types ? types->child : NULL;
    for (int64_t i = 0; i < c->n_layers; i++) {
        bool slides = sliding == REE_SLIDING_ALL && window;
        if (item) {
            const char *type = cJSON_IsString(item) ? item->valuestring : "?";
            slides = !strcmp(type, "sliding_attention");
            if (!slides && strcmp(type, "full_attention") != 0)
                return ree_fail(s->err, REE_UNSUPPORTED,
                                "layer %lld has the type '%.32s'; supported are full_attention and "
                                "sliding_attention",
                                (long long)i, type);
            item = item->next;
        } else if (sliding == REE_SLIDING_LISTED) {
            REE_TRY(slides_by_default(s, c, i, window, &slides));
        }
        if (slides && !window) return ree_fail(s->err, REE_INVALID, "'sliding_window' is missing");
        if (slides) c->windows[i] = window;
    }
    return REE_OK;
}

// Finds the parameters of the ropes; *out is NULL if there are none. rope_scaling, the older key,
// has priority over rope_parameters unless it is empty. For Gemma 3 both together are refused,
// because rope_scaling would apply to only one part of rope_parameters.
static enum ree_status find_rope(struct source *s, const struct ree_causal_config *c,
                                 const cJSON **out) {
    const cJSON *scaling = ree_json_find(s->text, "rope_scaling");
    *out = ree_json_find(s->text, "rope_parameters");
    if (scaling && !cJSON_IsObject(scaling))
        return ree_fail(s->err, REE_INVALID, "'rope_scaling' is not an object");
    if (*out && !cJSON_IsObject(*out))
        return ree_fail(s->err, REE_INVALID, "'rope_parameters' is not an object");
    if (!scaling || !scaling->child) return REE_OK;
    if (*out && is_gemma3(c))
        return ree_fail(s->err, REE_UNSUPPORTED,
                        "'rope_scaling' and 'rope_parameters' are both present; remove one");
    *out = scaling;
    return REE_OK;
}

// In layers with a window, Gemma 3 uses another base frequency, and no scaling unless
// rope_parameters has it under sliding_attention.
static enum ree_status read_ropes(struct source *s, struct ree_causal_config *c) {
    const cJSON *parameters;
    REE_TRY(find_rope(s, c, &parameters));
    const cJSON *full = ree_json_find(parameters, "full_attention");
    const cJSON *local = ree_json_find(parameters, "sliding_attention");
    struct ree_rope_source source = {.config = s->text,
                                     .parameters = full ? full : parameters,
                                     .theta = c->family->theta,
                                     .original = c->family->original_context,
                                     .partial = is_family(c, "phi3"),
                                     .head_dim = c->head_dim,
                                     .context = c->context};
    REE_TRY(ree_json_number(s->text, "rope_theta", 1.0001, 1e15, &source.theta, s->err));
    REE_TRY(ree_rope_read(&source, s->arena, &c->rope[0], s->err));
    c->n_ropes = 1;
    if (c->rope[0].context && c->rope[0].context < c->context) c->context = c->rope[0].context;
    if (!is_gemma3(c)) return REE_OK;
    source.parameters = local;
    source.theta = 1e4;
    REE_TRY(ree_json_number(s->text, "rope_local_base_freq", 1.0001, 1e15, &source.theta, s->err));
    REE_TRY(ree_rope_read(&source, s->arena, &c->rope[1], s->err));
    c->n_ropes = 2;
    for (int64_t i = 0; i < c->n_layers; i++)
        c->ropes[i] = c->windows[i] ? 1 : 0;
    return REE_OK;
}

static enum ree_status read_layers(struct source *s, struct ree_causal_config *c) {
    c->windows = ree_arena_alloc_array(s->arena, (size_t)c->n_layers, sizeof *c->windows);
    c->ropes = ree_arena_alloc_array(s->arena, (size_t)c->n_layers, sizeof *c->ropes);
    if (!c->windows || !c->ropes) return ree_no_memory(s->err);
    if (c->family->is_gpt2) memset(c->ropes, REE_NO_ROPE, (size_t)c->n_layers);
    REE_TRY(read_rope_layers(s, c));
    REE_TRY(read_windows(s, c));
    return c->family->is_gpt2 ? REE_OK : read_ropes(s, c);
}

static const cJSON *find_token(const struct source *s, const char *key) {
    const cJSON *item = ree_json_find(s->generation, key);
    if (!item) item = ree_json_find(s->all, key);
    return item ? item : ree_json_find(s->text, key);
}

// generation_config.json has priority over config.json, because it lists all tokens that end a
// text.
static enum ree_status read_tokens(struct source *s, struct ree_causal_config *c) {
    const cJSON *bos = find_token(s, "bos_token_id"), *eos = find_token(s, "eos_token_id");
    c->bos = -1;
    if (bos && !ree_json_is_whole(bos, 0, INT32_MAX, &c->bos))
        return ree_fail(s->err, REE_INVALID, "'bos_token_id' is not a token");
    bool is_list = cJSON_IsArray(eos);
    c->eos = ree_arena_alloc_array(s->arena, MAX_EOS, sizeof *c->eos);
    if (!c->eos) return ree_no_memory(s->err);
    for (const cJSON *item = is_list ? eos->child : eos; item; item = is_list ? item->next : NULL) {
        if (c->n_eos == MAX_EOS || !ree_json_is_whole(item, 0, INT32_MAX, &c->eos[c->n_eos]))
            return ree_fail(s->err, REE_INVALID, "'eos_token_id' is not a token or a short list");
        c->n_eos++;
    }
    return REE_OK;
}

// Fails for settings that change the arithmetic in ways that the graph does not implement.
static enum ree_status refuse_unknown(struct source *s) {
    static const char *const keys[] = {"add_cross_attention", "use_bidirectional_attention",
                                       "is_encoder_decoder"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool set = false;
        const cJSON *item = ree_json_find(s->text, keys[i]);
        if (cJSON_IsBool(item))
            set = cJSON_IsTrue(item);
        else
            set = item != NULL;
        if (set) return ree_fail(s->err, REE_UNSUPPORTED, "'%s' is not supported", keys[i]);
    }
    if (ree_json_find(s->all, "quantization_config"))
        return ree_fail(s->err, REE_UNSUPPORTED,
                        "the weights are already quantised; export the original checkpoint, with "
                        "--quantize for a smaller file");
    return REE_OK;
}

static enum ree_status read_config(struct source *s, struct ree_causal_config *c) {
    double eps;
    REE_TRY(find_family(s, c));
    s->text = s->all;
    if (c->family->text_config) {
        s->text = ree_json_find(s->all, c->family->text_config);
        if (!cJSON_IsObject(s->text))
            return ree_fail(s->err, REE_INVALID, "'%s' is not an object", c->family->text_config);
    }
    REE_TRY(refuse_unknown(s));
    REE_TRY(read_sizes(s, c));
    eps = c->family->norm_eps;
    REE_TRY(ree_json_number(s->text, key_of(c, "rms_norm_eps"), 0, 1, &eps, s->err));
    c->norm_eps = (float)eps;
    c->scale_embeddings = is_gemma3(c);
    c->tied = c->family->tied;
    REE_TRY(ree_json_bool(s->text, "tie_word_embeddings", &c->tied, s->err));
    REE_TRY(ree_json_bool(s->all, "tie_word_embeddings", &c->tied, s->err));
    REE_TRY(read_activation(s, c));
    REE_TRY(read_biases(s, c));
    REE_TRY(read_scales(s, c));
    REE_TRY(read_layers(s, c));
    return read_tokens(s, c);
}

enum ree_status ree_causal_config_read(struct ree_checkpoint *checkpoint,
                                       struct ree_causal_config *out, struct ree_error *err) {
    struct source source = {.all = checkpoint->config,
                            .generation = checkpoint->generation,
                            .arena = &checkpoint->arena,
                            .err = err};
    memset(out, 0, sizeof *out);
    return read_config(&source, out) == REE_OK ? REE_OK : ree_fail_prefix(err, "config.json");
}

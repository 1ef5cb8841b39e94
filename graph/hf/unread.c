// Handles the checkpoint's tensors that the decoder does not read. A tensor that would change the
// result is an error: the answers would be those of another model. All others are listed in a note.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/strbuf.h"
#include "graph/hf/causal.h"

#define MAX_NAMED 3

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

// Returns whether the tensor is known to be unnecessary: a table that ree computes itself (angles
// in old llama checkpoints, masks in gpt2's), or a copy of the embeddings if the head is tied to
// them.
static bool is_known(const struct ree_causal *d, const char *name) {
    char head[64];
    snprintf(head, sizeof head, "%s.weight", d->names->head);
    if (d->config->tied && ends_with(name, head)) return true;
    if (ends_with(name, "rotary_emb.inv_freq")) return true;
    return d->config->family->is_gpt2 &&
           (ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias"));
}

static enum ree_status check_layer(const struct ree_causal *d, const char *name, const char *number,
                                   struct ree_error *err) {
    char *end;
    long long layer = strtoll(number, &end, 10);
    if (end == number || *end != '.' || layer < d->config->n_layers)
        return ree_fail(err, REE_UNSUPPORTED,
                        "tensor '%.128s' belongs to a layer, but ree does not use it for the model "
                        "type '%s', so the result would be wrong",
                        name, d->config->family->model_type);
    return ree_fail(
        err, REE_INVALID,
        "tensor '%.128s' belongs to layer %lld, but config.json allows only layers below %lld",
        name, layer, (long long)d->config->n_layers);
}

static enum ree_status check(const struct ree_causal *d, const char *prefix, const char *name,
                             struct ree_error *err) {
    size_t n_prefix = strlen(prefix), n_layer = strlen(d->names->layer);
    if (strstr(name, "lora_") || strstr(name, "adapter"))
        return ree_fail(err, REE_UNSUPPORTED,
                        "tensor '%.128s' belongs to an adapter, which ree does not apply; merge it "
                        "into the weights first",
                        name);
    bool is_decoders = strncmp(name, prefix, n_prefix) == 0;
    const char *rest = name + (is_decoders ? n_prefix : 0);
    if (is_decoders && strncmp(rest, d->names->layer, n_layer) == 0 && rest[n_layer] == '.')
        return check_layer(d, name, rest + n_layer + 1, err);
    bool is_heads = strncmp(name, d->names->head, strlen(d->names->head)) == 0;
    if ((is_decoders || is_heads) && ends_with(name, ".bias"))
        return ree_fail(err, REE_UNSUPPORTED,
                        "tensor '%.128s' is a bias that ree does not add for the model type '%s', "
                        "so the result would be wrong",
                        name, d->config->family->model_type);
    return REE_OK;
}

enum ree_status ree_causal_check_unread(const struct ree_causal *d, const char *prefix,
                                        struct ree_error *err) {
    const struct ree_checkpoint *c = d->checkpoint;
    struct ree_strbuf names;
    size_t n = 0;
    ree_strbuf_init(&names);
    enum ree_status status = REE_OK;
    for (size_t i = 0; status == REE_OK && i < c->n_tensors; i++) {
        const char *name = c->tensors[i].name;
        if (c->tensors[i].is_read || is_known(d, name)) continue;
        status = check(d, prefix, name, err);
        if (n++ < MAX_NAMED) ree_strbuf_printf(&names, "%s'%.128s'", n > 1 ? ", " : "", name);
    }
    if (status == REE_OK && n && d->options->on_note && !names.failed) {
        char text[768];
        snprintf(text, sizeof text, "%zu of %zu tensors are not used: %s%s", n, c->n_tensors,
                 names.data, n > MAX_NAMED ? ", ..." : "");
        REE_FLOAT_ENV_CALLBACK();
        d->options->on_note(d->options->note_user, text);
    }
    ree_strbuf_finish(&names);
    return status;
}

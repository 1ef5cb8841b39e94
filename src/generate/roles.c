#include "generate/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "session/model.h"

static bool is_integer(enum ree_dtype dtype) {
    return dtype == REE_I64 || dtype == REE_I32;
}

static bool is_float(enum ree_dtype dtype) {
    return dtype == REE_F32 || dtype == REE_F16 || dtype == REE_BF16;
}

static bool is_named(const char *name, const char *given, const char *const *usual) {
    if (given) return strcmp(name, given) == 0;
    for (; *usual; usual++)
        if (strcmp(name, *usual) == 0) return true;
    return false;
}

// Inputs

static bool find_role(const struct ree_model *model, const struct ree_port *port,
                      const struct ree_port_names *names, enum ree_role *out) {
    static const char *const tokens[] = {"input_ids", "tokens", "input", "inputs", "x", NULL};
    static const char *const mask[] = {"attention_mask", NULL};
    static const char *const positions[] = {"position_ids", "cache_position", "input_pos", NULL};
    const struct {
        enum ree_role role;
        const char *given;
        const char *const *usual;
        bool fits;
    } known[] = {
        {REE_ROLE_TOKENS, names->input_ids, tokens, is_integer(port->dtype)},
        {REE_ROLE_ATTENTION_MASK, names->attention_mask, mask,
         is_integer(port->dtype) || port->dtype == REE_F32 || port->dtype == REE_BOOL},
        {REE_ROLE_POSITIONS, names->position_ids, positions, is_integer(port->dtype)},
        {REE_ROLE_TOKEN_TYPES, NULL, (const char *const[]){"token_type_ids", NULL},
         is_integer(port->dtype)},
        {REE_ROLE_USE_CACHE, NULL, (const char *const[]){"use_cache_branch", NULL},
         port->dtype == REE_BOOL},
        {REE_ROLE_PAST_LENGTH, NULL, (const char *const[]){"past_sequence_length", NULL},
         is_integer(port->dtype)},
        {REE_ROLE_TOTAL_LENGTH, NULL, (const char *const[]){"total_sequence_length", NULL},
         is_integer(port->dtype)},
        // An input of this name that the model's file has would tell the model what is requested.
        {REE_ROLE_ROWS, NULL, (const char *const[]){REE_ROWS_INPUT, NULL}, model->selects_rows},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].fits && is_named(port->name, known[i].given, known[i].usual)) {
            *out = known[i].role;
            return true;
        }
    if (!is_float(port->dtype) || !port->has_shape || port->rank < 4) return false;
    *out = REE_ROLE_KV_CACHE;
    return true;
}

// Caches

// Matches a pattern like "past_key_values.%d.key" and returns the number in *out. Returns false if
// the name has another form.
static bool layer_of(const char *pattern, const char *name, unsigned *out) {
    const char *at = pattern ? strstr(pattern, "%d") : NULL;
    if (!at || strncmp(name, pattern, (size_t)(at - pattern)) != 0) return false;
    char *end;
    const char *digits = name + (at - pattern);
    if (*digits < '0' || *digits > '9') return false;
    unsigned long layer = strtoul(digits, &end, 10);
    *out = (unsigned)layer;
    return layer < 1u << 20 && strcmp(end, at + 2) == 0;
}

static ptrdiff_t output_named(const struct ree_model *model, const char *name) {
    for (size_t i = 0; i < ree_model_n_outputs(model); i++)
        if (strcmp(ree_model_output(model, i)->name, name) == 0) return (ptrdiff_t)i;
    return -1;
}

static ptrdiff_t by_pattern(const struct ree_model *model, const struct ree_port_names *names,
                            const char *input) {
    for (size_t k = 0; k < 2; k++) {
        unsigned layer;
        const char *at = names->present[k] ? strstr(names->present[k], "%d") : NULL;
        if (!at || !layer_of(names->past[k], input, &layer)) continue;
        char name[512];
        snprintf(name, sizeof name, "%.*s%u%s", (int)(at - names->present[k]), names->present[k],
                 layer, at + 2);
        return output_named(model, name);
    }
    return -1;
}

// Finds the output whose name differs from the input's only in a word that exporters use for past
// and present caches.
static ptrdiff_t by_word(const struct ree_model *model, const char *input) {
    static const char *const words[][2] = {
        {"past_key_values", "present"},
        {"past_key_values", "present_key_values"},
        {"past_key_values", "new_past_key_values"},
        {"past", "present"},
        {"cache", "new_cache"},
        {"cache_in", "cache_out"},
        {"_in", "_out"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(input, words[i][0]);
        if (!at) continue;
        char name[512];
        snprintf(name, sizeof name, "%.*s%s%s", (int)(at - input), input, words[i][1],
                 at + strlen(words[i][0]));
        ptrdiff_t output = output_named(model, name);
        if (output >= 0) return output;
    }
    return -1;
}

// If names do not help, matches by order: the n-th cache input belongs to the n-th output, other
// than the logits, that has its type and rank.
static ptrdiff_t by_order(const struct ree_model *model, const struct ree_roles *roles,
                          size_t input) {
    size_t nth = 0;
    for (size_t i = 0; i < input; i++)
        nth += roles->of_input[i] == REE_ROLE_KV_CACHE;
    const struct ree_port *in = ree_model_input(model, input);
    for (size_t i = 0; i < ree_model_n_outputs(model); i++) {
        const struct ree_port *out = ree_model_output(model, i);
        if (i == roles->logits || out->dtype != in->dtype || !out->has_shape ||
            out->rank != in->rank)
            continue;
        if (nth-- == 0) return (ptrdiff_t)i;
    }
    return -1;
}

static bool has_word(const char *symbol, const char *word) {
    return symbol && strstr(symbol, word) != NULL;
}

// Finds the cache's dimension of sequences, and its dimension of tokens, whose size must be
// unknown.
static enum ree_status find_axes(const struct ree_port *in, struct ree_kv_cache_spec *spec,
                                 struct ree_error *err) {
    // (batch, heads, tokens, size) and (2, batch, heads, tokens, size) are the usual layouts.
    uint32_t batch = in->rank == 5 ? 1 : 0, axis = in->rank == 5 ? 3 : 2;
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->dims[i] < 0 && has_word(in->symbols[i], "batch")) batch = i;
    if (in->dims[axis] >= 0 || axis == batch)
        for (uint32_t i = 0; i < in->rank; i++)
            if (i != batch && in->dims[i] < 0) axis = i;
    for (uint32_t i = 0; i < in->rank; i++)
        if (i != batch && in->dims[i] < 0 &&
            (has_word(in->symbols[i], "past") || has_word(in->symbols[i], "seq")))
            axis = i;
    if (in->dims[axis] >= 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the cache '%s' has no open dimension for tokens; models with caches of "
                        "fixed size are not supported",
                        in->name);
    spec->axis = axis;
    spec->batch_axis = batch;
    return REE_OK;
}

static enum ree_status find_kv_cache(const struct ree_model *model,
                                     const struct ree_port_names *names, struct ree_roles *roles,
                                     size_t input, struct ree_error *err) {
    const struct ree_port *in = ree_model_input(model, input);
    ptrdiff_t output = by_pattern(model, names, in->name);
    if (output < 0) output = by_word(model, in->name);
    if (output < 0) output = by_order(model, roles, input);
    if (output < 0)
        return ree_fail(err, REE_UNSUPPORTED, "the cache '%s' has no corresponding output",
                        in->name);
    struct ree_kv_cache_spec *spec = &roles->kv_caches[roles->n_kv_caches];
    spec->input = input;
    spec->output = (size_t)output;
    for (size_t i = 0; i < roles->n_kv_caches; i++)
        if (roles->kv_caches[i].output == spec->output)
            return ree_fail(err, REE_UNSUPPORTED, "the output '%s' corresponds to two caches",
                            ree_model_output(model, spec->output)->name);
    REE_TRY(find_axes(in, spec, err));
    if (in->dims[spec->batch_axis] == 1) roles->fixed_batch = true;
    // A run in stages finds the type of an output that the model does not declare. Whether the
    // model is accepted must not depend on that.
    const struct ree_port *out = ree_model_output(model, spec->output);
    if (out->dtype != in->dtype || (out->has_shape && out->rank != in->rank))
        return ree_fail(err, REE_INVALID, "the cache '%s' and its output '%s' have different types",
                        in->name, out->name);
    roles->n_kv_caches++;
    return REE_OK;
}

// All roles

static enum ree_status find_logits(const struct ree_model *model,
                                   const struct ree_port_names *names, struct ree_roles *roles,
                                   struct ree_error *err) {
    ptrdiff_t found = output_named(model, names->logits ? names->logits : "logits");
    for (size_t i = 0; found < 0 && !names->logits && i < ree_model_n_outputs(model); i++) {
        const struct ree_port *port = ree_model_output(model, i);
        if (is_float(port->dtype) && port->has_shape && port->rank == 3) found = (ptrdiff_t)i;
    }
    const struct ree_port *port = found >= 0 ? ree_model_output(model, (size_t)found) : NULL;
    if (!port || !is_float(port->dtype) || port->kind != REE_TENSOR ||
        (port->has_shape && port->rank != 3))
        return ree_fail(err, REE_UNSUPPORTED,
                        "not a language model: expected an output 'logits', float32[batch, "
                        "sequence, vocabulary]");
    roles->logits = (size_t)found;
    return REE_OK;
}

static enum ree_status find_inputs(const struct ree_model *model,
                                   const struct ree_port_names *names, struct ree_roles *roles,
                                   struct ree_error *err) {
    for (size_t i = 0; i < roles->n_inputs; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        enum ree_role *role = &roles->of_input[i];
        if (port->kind != REE_TENSOR || !find_role(model, port, names, role))
            return ree_fail(err, REE_UNSUPPORTED,
                            "not a language model that ree can run: the purpose of the input '%s' "
                            "is unknown; known are token ids, attention mask, positions, caches",
                            port->name);
        bool has_batch = *role == REE_ROLE_TOKENS || *role == REE_ROLE_ATTENTION_MASK ||
                         *role == REE_ROLE_POSITIONS || *role == REE_ROLE_TOKEN_TYPES;
        if (has_batch && port->has_shape && port->rank == 2 && port->dims[0] == 1)
            roles->fixed_batch = true;
        if (*role == REE_ROLE_TOKENS) roles->tokens = i;
        if (*role != REE_ROLE_POSITIONS) continue;
        roles->positions = i;
        if (port->has_shape && port->rank == 1) roles->shared_positions = true;
    }
    if (roles->tokens != REE_NO_INPUT) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "not a language model: expected an input 'input_ids', int64[batch, sequence]");
}

static enum ree_status find_all(const struct ree_model *model, const struct ree_port_names *names,
                                struct ree_roles *out, struct ree_error *err) {
    size_t n = ree_model_n_inputs(model);
    *out = (struct ree_roles){.n_inputs = n, .tokens = REE_NO_INPUT, .positions = REE_NO_INPUT};
    out->of_input = ree_alloc_zeroed(n + 1, sizeof *out->of_input);
    out->kv_caches = ree_alloc_zeroed(n + 1, sizeof *out->kv_caches);
    enum ree_status status = out->of_input && out->kv_caches ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = find_logits(model, names, out, err);
    if (status == REE_OK) status = find_inputs(model, names, out, err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        if (out->of_input[i] == REE_ROLE_KV_CACHE)
            status = find_kv_cache(model, names, out, i, err);
    if (status != REE_OK) ree_roles_finish(out);
    return status;
}

static bool is_given(const struct ree_port_names *names) {
    return names->input_ids || names->attention_mask || names->position_ids || names->logits ||
           names->past[0] || names->past[1] || names->present[0] || names->present[1];
}

static enum ree_status differ(const char *what, const struct ree_port *by_folder,
                              const struct ree_port *by_name, struct ree_error *err) {
    return ree_fail(err, REE_INVALID,
                    "genai_config.json names '%s' as %s, but by the names of the model's inputs "
                    "and outputs it is '%s'",
                    by_folder->name, what, by_name->name);
}

static enum ree_status compare(const struct ree_model *model, const struct ree_roles *folder,
                               const struct ree_roles *ports, struct ree_error *err) {
    if (folder->logits != ports->logits)
        return differ("the logits", ree_model_output(model, folder->logits),
                      ree_model_output(model, ports->logits), err);
    for (size_t i = 0; i < folder->n_inputs; i++)
        if (folder->of_input[i] != ports->of_input[i])
            return ree_fail(err, REE_INVALID,
                            "genai_config.json gives the input '%s' another purpose than its name",
                            ree_model_input(model, i)->name);
    for (size_t i = 0; i < folder->n_kv_caches; i++)
        if (folder->kv_caches[i].output != ports->kv_caches[i].output)
            return differ("the next cache", ree_model_output(model, folder->kv_caches[i].output),
                          ree_model_output(model, ports->kv_caches[i].output), err);
    return REE_OK;
}

enum ree_status ree_roles_find(const struct ree_model *model, const struct ree_port_names *names,
                               struct ree_roles *out, struct ree_error *err) {
    static const struct ree_port_names none;
    struct ree_roles ports;
    struct ree_error unused;
    REE_TRY(find_all(model, names, out, err));
    if (!is_given(names)) return REE_OK;
    enum ree_status status = find_all(model, &none, &ports, &unused);
    if (status == REE_OK) {
        status = compare(model, out, &ports, err);
        ree_roles_finish(&ports);
    } else if (status == REE_NO_MEMORY) {
        status = ree_no_memory(err);
    } else {
        out->by_folder = true;
        status = REE_OK;
    }
    if (status != REE_OK) ree_roles_finish(out);
    return status;
}

enum ree_status ree_roles_check_bound(const struct ree_roles *roles, struct ree_error *err) {
    if (!roles->by_folder) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "only genai_config.json states the purpose of the model's inputs and outputs, "
                    "and no hash of a model covers this file, so no receipt is possible. Use names "
                    "such as input_ids, attention_mask, position_ids, past_key_values.0.key, "
                    "present.0.key and logits in the model");
}

void ree_roles_finish(struct ree_roles *roles) {
    ree_free(roles->of_input);
    ree_free(roles->kv_caches);
    memset(roles, 0, sizeof *roles);
}

#include "generate/causality.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/causality/prove.h"
#include "session/model.h"

// Returns the kind of value that step.c provides for an input with this role.
static enum ree_causality_input_kind kind_of(enum ree_role role) {
    switch (role) {
    case REE_ROLE_TOKENS: return REE_CAUSALITY_TOKENS;
    case REE_ROLE_ATTENTION_MASK: return REE_CAUSALITY_ONES;
    case REE_ROLE_POSITIONS: return REE_CAUSALITY_POSITIONS;
    case REE_ROLE_TOKEN_TYPES: return REE_CAUSALITY_ZEROS;
    case REE_ROLE_PAST_LENGTH: return REE_CAUSALITY_PAST_LENGTH;
    case REE_ROLE_TOTAL_LENGTH: return REE_CAUSALITY_TOTAL_LENGTH;
    case REE_ROLE_ROWS: return REE_CAUSALITY_ROWS;
    case REE_ROLE_KV_CACHE: return REE_CAUSALITY_KV_CACHE;
    case REE_ROLE_USE_CACHE: break;
    }
    return REE_CAUSALITY_OTHER;
}

void ree_model_causality_question(const struct ree_model *model, const struct ree_roles *roles,
                                  bool mixes_lengths, struct ree_causality_input *inputs,
                                  struct ree_causality_question *out) {
    size_t cache = 0;
    for (size_t i = 0; i < roles->n_inputs; i++) {
        const struct ree_port *port = &model->inputs[i];
        inputs[i] = (struct ree_causality_input){.kind = kind_of(roles->of_input[i]),
                                                 .value = model->input_values[i],
                                                 .rank = port->has_shape ? port->rank : 0};
        if (roles->of_input[i] != REE_ROLE_KV_CACHE) continue;
        const struct ree_kv_cache_spec *spec = &roles->kv_caches[cache++];
        inputs[i].next = model->graph->outputs[spec->output];
        inputs[i].axis = spec->axis;
        inputs[i].batch_axis = spec->batch_axis;
    }
    *out = (struct ree_causality_question){.graph = model->graph,
                                           .n_inputs = roles->n_inputs,
                                           .inputs = inputs,
                                           .logits = model->graph->outputs[roles->logits],
                                           .has_slack = mixes_lengths};
}

enum ree_status ree_causality_of_model(const struct ree_model *model, const struct ree_roles *roles,
                                       bool mixes_lengths, struct ree_causality *out,
                                       struct ree_error *err) {
    struct ree_causality_input *inputs = ree_alloc_zeroed(roles->n_inputs + 1, sizeof *inputs);
    struct ree_causality_question question;
    *out = (struct ree_causality){0};
    if (!inputs) return ree_no_memory(err);
    ree_model_causality_question(model, roles, mixes_lengths, inputs, &question);
    enum ree_status status = ree_causality_prove(&question, out->why_not, sizeof out->why_not, err);
    out->is_proved = status == REE_OK && !out->why_not[0];
    ree_free(inputs);
    return status;
}

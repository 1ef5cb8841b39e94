// Opens the model that a trace belongs to, without a device, and transforms it as it was
// transformed for the recorded run: as a language model, for which it finds the roles of the
// inputs, or as another model.
#ifndef REE_TRACE_OPEN_MODEL_H
#define REE_TRACE_OPEN_MODEL_H

#include "generate/roles.h"
#include "trace/trace.h"
#include "session/identity.h"
#include "session/model.h"

struct ree_opened {
    struct ree_model *model;
    bool is_text;                   // the model is a language model
    struct ree_model_source source; // files of the model; only if is_text
    struct ree_roles roles;         // only if is_text
    struct ree_model_hashes hashes;
    struct ree_arena arena;
    struct ree_trace_header header; // header of the model's traces, allocated in `arena`
};

struct ree_open_options {
    enum ree_operation_set operation_set;
    // Prompt tokens per step, for a language model; 0: any other model, which runs in one step.
    uint32_t prefill_chunk;
    uint32_t version; // of the traces; 0: REE_TRACE_LATEST
    struct ree_progress progress;
};

// Loads and hashes the model, and makes the header that its traces have. Release with
// ree_opened_finish, also on failure.
enum ree_status ree_open_model(const char *path, const struct ree_open_options *options,
                               struct ree_opened *out, struct ree_error *err);
void ree_opened_finish(struct ree_opened *opened);

#endif

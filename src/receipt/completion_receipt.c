// Makes receipts of completions and of runs of tensors, for the public interface.
#include <string.h>
#include <sys/random.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/options.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "generate/completion.h"
#include "receipt/make_receipt.h"
#include "receipt/receipt_internal.h"
#include "receipt/receipt_object.h"
#include "session/session_internal.h"

// The caller's options, in the form that make_receipt.h takes.
struct making {
    struct ree_receipt_options options;
    struct ree_receipt_trace trace;
    struct ree_traced traced;
    unsigned char salt[REE_SALT_SIZE];
};

static enum ree_status begin(struct making *m, const struct ree_receipt_options *options,
                             struct ree_error *err) {
    struct ree_receipt_options *o = &m->options;
    REE_TRY(ree_options_read(o, sizeof *o, options, "ree_receipt_options", err));
    if (o->salt && !o->is_private)
        return ree_fail(err, REE_INVALID, "a salt requires a private receipt");
    if (o->salt)
        memcpy(m->salt, o->salt, sizeof m->salt);
    else if (o->is_private && getrandom(m->salt, sizeof m->salt, 0) != (ssize_t)sizeof m->salt)
        return ree_fail(err, REE_IO, "the system returned no random bytes for a salt");
    if (!o->trace) return REE_OK;
    REE_TRY(ree_options_read(&m->trace, sizeof m->trace, o->trace, "ree_receipt_trace", err));
    m->traced = (struct ree_traced){.n_steps = m->trace.n_steps,
                                    .prefill_chunk = m->trace.prefill_chunk,
                                    .file = m->trace.file};
    if (!m->trace.root || !ree_unhex(m->trace.root, m->traced.root))
        return ree_fail(err, REE_INVALID, "the trace's root is not 64 hexadecimal digits");
    if (m->traced.n_steps < 1 || m->traced.n_steps > REE_RECEIPT_MAX_NUMBER)
        return ree_fail(err, REE_INVALID, "a trace has at least one step, and at most 2^53 - 1");
    return REE_OK;
}

enum ree_status ree_receipt_needs_folding(struct ree_error *err) {
    return ree_fail(err, REE_INVALID,
                    "a receipt's trace requires folded constants: no_fold would change its root");
}

// Fills in everything of the receipt that is known before the run. The other fields of *out stay
// zero.
static enum ree_status describe(struct ree_completion *c, struct making *m,
                                struct ree_text_run *out, struct ree_error *err) {
    const struct ree_generator *g = c->generator;
    if (c->n != 1)
        return ree_fail(err, REE_INVALID, "a receipt requires one prompt, not %zu", c->n);
    if (m->options.trace && g->model_options.no_fold) return ree_receipt_needs_folding(err);
    if (m->options.trace &&
        (m->traced.prefill_chunk < 1 || m->traced.prefill_chunk > REE_MAX_PREFILL_CHUNK))
        return ree_fail(err, REE_INVALID,
                        "the trace of a text has a prefill chunk from 1 to %d tokens, not %u",
                        REE_MAX_PREFILL_CHUNK, m->traced.prefill_chunk);
    REE_TRY(ree_receipt_check_limits("a receipt", c->options.max_new_tokens, c->options.stops,
                                     c->options.n_stops, err));
    REE_TRY(ree_roles_check_bound(&g->roles, err));
    *out = (struct ree_text_run){
        .tokenizer = c->tokenizer,
        .operation_set = g->operation_set,
        .context_length = g->info.context_length,
        .options = &c->generate,
        .stops = c->options.stops,
        .n_stops = c->options.n_stops,
        .salt = m->options.is_private ? m->salt : NULL,
        .request_sha256 = c->request_sha256[0] ? c->request_sha256 : NULL,
        .trace = m->options.trace ? &m->traced : NULL,
        .device = g->device_names,
    };
    return REE_OK;
}

// Checks names, types and shapes, and that no required input is missing.
static enum ree_status check_inputs(const struct ree_model *model, const struct ree_tensor *inputs,
                                    size_t n_inputs, struct ree_error *err) {
    struct ree_tensor *ordered = ree_alloc_zeroed(model->n_inputs + 1, sizeof *ordered);
    if (!ordered) return ree_no_memory(err);
    enum ree_status status = ree_inputs_match(model, NULL, 0, NULL, inputs, n_inputs, ordered, err);
    ree_free(ordered);
    return status;
}

// Hashes the model. Fails if a request names another model.
static enum ree_status find_model(struct ree_completion *c, const struct making *m,
                                  const struct ree_model_hashes **out, struct ree_error *err) {
    REE_TRY(ree_generator_hashes(c->generator, &m->options.progress, out, err));
    if (!c->graph_sha256[0] || (strcmp(c->graph_sha256, (*out)->graph) == 0 &&
                                strcmp(c->weights_sha256, (*out)->weights) == 0))
        return REE_OK;
    return ree_fail(err, REE_INVALID, "the request names another model");
}

enum ree_status ree_receipt_prepare(struct ree_completion *c,
                                    const struct ree_receipt_options *options,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct making m = {0};
    struct ree_text_run run;
    const struct ree_model_hashes *hashes;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(begin(&m, options, err));
    REE_TRY(describe(c, &m, &run, err));
    REE_TRY(ree_receipt_try_text(&run, err));
    return find_model(c, &m, &hashes, err);
}

enum ree_status ree_receipt_create_text(struct ree_completion *c,
                                        const struct ree_receipt_options *options,
                                        struct ree_receipt **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct making m = {0};
    struct ree_text_run run;
    *out = NULL;
    if (!err) err = &local;
    if (!c->is_done) return ree_fail(err, REE_INVALID, "the completion has not run");
    REE_TRY(begin(&m, options, err));
    REE_TRY(describe(c, &m, &run, err));
    REE_TRY(find_model(c, &m, &run.model, err));
    run.generation = c->generations;
    run.stats = &c->stats;
    REE_TRY(ree_receipt_create(out, err));
    struct ree_receipt_object *object = (*out)->object;
    enum ree_status status = ree_receipt_make_text(&run, *out, err);
    (*out)->object = object;
    if (status == REE_OK) return REE_OK;
    ree_receipt_destroy(*out);
    *out = NULL;
    return status;
}

enum ree_status ree_receipt_create_tensors(const struct ree_model *model,
                                           struct ree_device *const *devices, size_t n_devices,
                                           const struct ree_tensor *inputs, size_t n_inputs,
                                           const struct ree_tensor *outputs,
                                           const struct ree_receipt_options *options,
                                           struct ree_receipt **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct making m = {0};
    struct ree_model_hashes hashes;
    *out = NULL;
    if (!err) err = &local;
    REE_TRY(begin(&m, options, err));
    if (m.options.is_private)
        return ree_fail(err, REE_INVALID,
                        "a receipt of tensors contains only hashes; it cannot be "
                        "private");
    if (n_devices == 0) return ree_fail(err, REE_INVALID, "a run requires a device");
    for (size_t i = 1; i < n_devices; i++)
        if (ree_device_operation_set(devices[i]) != ree_device_operation_set(devices[0]))
            return ree_fail(err, REE_INVALID,
                            "the devices are opened with different operation sets");
    if (m.options.trace && model->no_fold) return ree_receipt_needs_folding(err);
    if (m.options.trace && m.traced.prefill_chunk)
        return ree_fail(err, REE_INVALID, "the trace of a run of tensors has no prefill chunk");
    REE_TRY(check_inputs(model, inputs, n_inputs, err));
    REE_TRY(ree_model_hashes_make(model, &m.options.progress, &hashes, err));
    struct ree_strbuf names;
    ree_strbuf_init(&names);
    for (size_t i = 0; i < n_devices; i++)
        ree_strbuf_printf(&names, "%s%s", i ? ", " : "", ree_device_name(devices[i]));
    struct ree_tensors_run run = {.of = model,
                                  .model = &hashes,
                                  .operation_set = ree_device_operation_set(devices[0]),
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .n_outputs = ree_model_n_outputs(model),
                                  .outputs = outputs,
                                  .trace = m.options.trace ? &m.traced : NULL,
                                  .device = names.data};
    enum ree_status status = names.failed ? ree_no_memory(err) : ree_receipt_create(out, err);
    if (status == REE_OK) {
        struct ree_receipt_object *object = (*out)->object;
        status = ree_receipt_make_tensors(&run, *out, err);
        (*out)->object = object;
    }
    ree_strbuf_finish(&names);
    if (status == REE_OK) return REE_OK;
    ree_receipt_destroy(*out);
    *out = NULL;
    return status;
}

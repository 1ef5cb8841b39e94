// The public functions of checkpoints: a completion that saves its progress, or continues.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/completion.h"
#include "receipt/checkpoint.h"
#include "receipt/receipt_internal.h"

struct ree_checkpoint {
    struct ree_checkpoint_options options; // for path and resume, use the copies below
    char *path, *resume;
    struct ree_text_checkpoint run;     // describes the completion; its sequences are only prompts
    struct ree_text_checkpoint resumed; // n == 0: none
    struct ree_snapshot *prompts;
    bool is_kept;           // at least one checkpoint was written
    enum ree_status status; // status of the last save
    struct ree_error error;
    char graph_sha256_version_1[65]; // of the model, in checkpoints of ree 0.1.0
};

// Protects an existing checkpoint, perhaps of a run of days, from being overwritten by mistake.
static enum ree_status check_path(const struct ree_checkpoint *c, struct ree_error *err) {
    struct ree_error ignored;
    struct ree_text_checkpoint there;
    struct stat st;
    bool same = c->resume && strcmp(c->resume, c->path) == 0;
    if (same || stat(c->path, &st) != 0) return REE_OK;
    bool ok = ree_text_checkpoint_load(c->path, &there, &ignored) == REE_OK &&
              ree_text_checkpoint_is_done(&there);
    ree_text_checkpoint_finish(&there);
    if (ok) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: already exists, and is not the checkpoint of a finished run: continue "
                    "with --resume, choose another name, or remove it",
                    c->path);
}

static enum ree_status open_files(struct ree_checkpoint *c,
                                  const struct ree_checkpoint_options *options,
                                  struct ree_error *err) {
    struct ree_checkpoint_options *o = &c->options;
    REE_TRY(ree_options_read(o, sizeof *o, options, "ree_checkpoint_options", err));
    if (!o->path) return ree_fail(err, REE_INVALID, "a checkpoint requires a path");
    c->path = ree_strdup(o->path);
    c->resume = o->resume ? ree_strdup(o->resume) : NULL;
    if (!c->path || (o->resume && !c->resume)) return ree_no_memory(err);
    REE_TRY(check_path(c, err));
    return c->resume ? ree_text_checkpoint_load(c->resume, &c->resumed, err) : REE_OK;
}

enum ree_status ree_checkpoint_open(const struct ree_checkpoint_options *options,
                                    struct ree_checkpoint **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    *out = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    struct ree_checkpoint *c = ree_alloc_zeroed(1, sizeof *c);
    if (!c) return ree_no_memory(err);
    ree_receipt_init(&c->run.run);
    ree_receipt_init(&c->resumed.run);
    enum ree_status status = open_files(c, options, err);
    if (status != REE_OK) {
        ree_checkpoint_destroy(c);
        return status;
    }
    *out = c;
    return REE_OK;
}

void ree_checkpoint_destroy(struct ree_checkpoint *c) {
    if (!c) return;
    ree_text_checkpoint_finish(&c->run);
    ree_text_checkpoint_finish(&c->resumed);
    ree_free(c->prompts);
    ree_free(c->path);
    ree_free(c->resume);
    ree_free(c);
}

// Fills c->run with a description of the completion, for comparison and for writing. Its strings
// and arrays belong to the completion.
static enum ree_status describe(struct ree_checkpoint *c, struct ree_completion *completion,
                                struct ree_error *err) {
    struct ree_generator *g = completion->generator;
    struct ree_receipt *run = &c->run.run;
    const struct ree_model_hashes *hashes;
    REE_TRY(ree_generator_hashes(g, &g->model_options.progress, &hashes, err));
    c->prompts = ree_alloc_zeroed(completion->n, sizeof *c->prompts);
    if (!c->prompts) return ree_no_memory(err);
    run->numerics = ree_numerics_version();
    run->operation_set = ree_operation_set_name(g->operation_set);
    memcpy(run->graph_sha256, hashes->graph, sizeof run->graph_sha256);
    memcpy(run->weights_sha256, hashes->weights, sizeof run->weights_sha256);
    memcpy(c->graph_sha256_version_1, hashes->graph_version_1, sizeof c->graph_sha256_version_1);
    if (completion->tokenizer) ree_tokenizer_sha256(completion->tokenizer, run->tokenizer_sha256);
    run->sampling = completion->sampling;
    run->max_new_tokens = completion->generate.max_new_tokens;
    run->context_length = g->info.context_length;
    run->stops = completion->options.stops;
    run->n_stops = completion->options.n_stops;
    run->eos = completion->generate.eos;
    run->n_eos = completion->generate.n_eos;
    c->run.logits_hash = g->options.all_logits;
    c->run.is_secret = c->options.is_secret;
    for (size_t i = 0; i < completion->n; i++)
        c->prompts[i] = (struct ree_snapshot){.ids = completion->prompts[i].ids,
                                              .n_prompt = completion->prompts[i].n,
                                              .n = completion->prompts[i].n};
    c->run.sequences = c->prompts;
    c->run.n = completion->n;
    return REE_OK;
}

// A checkpoint of ree 0.1.0 has older hashes of the graph and of the tokenizer.
static void renew_hashes(struct ree_checkpoint *c, const struct ree_tokenizer *tokenizer) {
    char old[65];
    if (strcmp(c->resumed.run.graph_sha256, c->graph_sha256_version_1) == 0)
        memcpy(c->resumed.run.graph_sha256, c->run.run.graph_sha256, sizeof old);
    if (!tokenizer) return;
    ree_tokenizer_sha256_version_1(tokenizer, old);
    if (strcmp(c->resumed.run.tokenizer_sha256, old) == 0)
        memcpy(c->resumed.run.tokenizer_sha256, c->run.run.tokenizer_sha256, sizeof old);
}

static enum ree_status compare(const struct ree_checkpoint *c, struct ree_error *err) {
    size_t n = 0;
    REE_TRY(ree_text_checkpoint_compare(&c->resumed, &c->run, c->options.on_difference,
                                        c->options.user, &n, err));
    if (!n) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: is the checkpoint of another run; see the differences above", c->resume);
}

// After a first checkpoint, a failure is only a warning: a run of hours does not end because a disk
// is full, and the last written checkpoint remains.
static enum ree_status save(void *user, const struct ree_snapshot *sequences, size_t n,
                            struct ree_error *err) {
    struct ree_checkpoint *c = user;
    struct ree_text_checkpoint checkpoint = c->run;
    bool failed_before = c->status != REE_OK;
    checkpoint.sequences = sequences;
    checkpoint.n = n;
    c->status = ree_text_checkpoint_write(&checkpoint, c->path, &c->error);
    if (c->status != REE_OK && !c->is_kept) return ree_fail(err, c->status, "%s", c->error.message);
    if (c->status != REE_OK && !failed_before && c->options.on_warning) {
        REE_FLOAT_ENV_CALLBACK();
        c->options.on_warning(c->options.user, c->error.message);
    }
    c->is_kept = true;
    return REE_OK;
}

enum ree_status ree_checkpoint_attach(struct ree_checkpoint *c, struct ree_completion *completion,
                                      struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local;
    if (completion->is_started || completion->keep || c->prompts)
        return ree_fail(err, REE_INVALID,
                        "a checkpoint must be attached once, before the completion runs");
    // A resumed run computes again what the first run computed; the results must be the same.
    if (completion->generator->operation_set != REE_REPRODUCIBLE)
        return ree_fail(err, REE_INVALID, "a checkpoint requires the operation set reproducible");
    if (completion->options.n_logprobs)
        return ree_fail(err, REE_INVALID, "a checkpoint stores no log probabilities");
    if (c->resume && completion->request_sha256[0])
        return ree_fail(err, REE_INVALID, "an answer to a request cannot be resumed");
    // Otherwise a file would be written that cannot be read again.
    REE_TRY(ree_receipt_check_limits("a checkpoint", completion->options.max_new_tokens,
                                     completion->options.stops, completion->options.n_stops, err));
    REE_TRY(describe(c, completion, err));
    if (c->resume) renew_hashes(c, completion->tokenizer);
    if (c->resume) REE_TRY(compare(c, err));
    completion->keep = save;
    completion->keep_user = c;
    completion->keep_every = c->options.every;
    if (!c->resume) return REE_OK;
    completion->resume = c->resumed.sequences;
    completion->resume_name = c->resume;
    return REE_OK;
}

enum ree_status ree_checkpoint_close(const struct ree_checkpoint *c, struct ree_error *err) {
    return c->status == REE_OK ? REE_OK : ree_fail(err, c->status, "%s", c->error.message);
}

// The public functions of requests, and of completions that answer requests.
#include <string.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/options.h"
#include "base/status.h"
#include "generate/completion.h"
#include "receipt/receipt_internal.h"
#include "receipt/request.h"
#include "session/identity.h"

static void fill_info(struct ree_request *r) {
    r->info = (struct ree_request_info){.request_sha256 = r->request_sha256,
                                        .nonce = r->nonce,
                                        .graph_sha256 = r->graph_sha256,
                                        .weights_sha256 = r->weights_sha256,
                                        .prompt = {r->tokens, r->n_tokens},
                                        .sampling = &r->sampling,
                                        .max_new_tokens = r->max_new_tokens,
                                        .n_stops = r->n_stops,
                                        .stops = r->stops};
}

static enum ree_status copy_prompt(struct ree_request *r, const struct ree_prompt *prompt,
                                   struct ree_error *err) {
    if (!prompt || prompt->n == 0)
        return ree_fail(err, REE_INVALID, "a request requires a prompt with tokens");
    int32_t *ids = ree_arena_alloc_array(&r->arena, prompt->n, sizeof *ids);
    if (!ids) return ree_no_memory(err);
    memcpy(ids, prompt->ids, prompt->n * sizeof *ids);
    for (size_t i = 0; i < prompt->n; i++)
        if (ids[i] < 0)
            return ree_fail(err, REE_INVALID, "token %zu of the prompt is %d, which is no token", i,
                            ids[i]);
    r->tokens = ids;
    r->n_tokens = prompt->n;
    return REE_OK;
}

static enum ree_status copy_stops(struct ree_request *r, const struct ree_request_options *o,
                                  struct ree_error *err) {
    REE_TRY(ree_receipt_check_limits("a request", o->max_new_tokens, o->stops, o->n_stops, err));
    const char **stops = ree_arena_alloc_array(&r->arena, o->n_stops + 1, sizeof *stops);
    if (!stops) return ree_no_memory(err);
    for (size_t i = 0; i < o->n_stops; i++) {
        if (!o->stops[i][0]) return ree_fail(err, REE_INVALID, "a stop text is empty");
        if (!(stops[i] = ree_arena_strdup(&r->arena, o->stops[i]))) return ree_no_memory(err);
    }
    r->stops = stops;
    r->n_stops = o->n_stops;
    return REE_OK;
}

static enum ree_status fill(struct ree_request *r, const struct ree_request_options *o,
                            struct ree_error *err) {
    unsigned char nonce[32];
    struct ree_model_hashes hashes;
    REE_TRY(copy_prompt(r, o->prompt, err));
    REE_TRY(copy_stops(r, o, err));
    if (o->sampling) r->sampling = *o->sampling;
    REE_TRY(ree_sampling_check(&r->sampling, err));
    r->max_new_tokens = o->max_new_tokens;
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return ree_fail(err, REE_IO, "the system returned no random bytes for a nonce");
    ree_hex(nonce, r->nonce);
    if (o->model) {
        REE_TRY(ree_model_hashes_make(o->model, &o->progress, &hashes, err));
        memcpy(r->graph_sha256, hashes.graph, sizeof hashes.graph);
        memcpy(r->weights_sha256, hashes.weights, sizeof hashes.weights);
    }
    return ree_request_seal(r, err);
}

static enum ree_status allocate(struct ree_request **out, struct ree_error *err) {
    *out = ree_alloc(sizeof **out);
    if (!*out) return ree_no_memory(err);
    ree_request_init(*out);
    return REE_OK;
}

static enum ree_status complete(enum ree_status status, struct ree_request **out) {
    if (status == REE_OK) {
        fill_info(*out);
    } else {
        ree_request_destroy(*out);
        *out = NULL;
    }
    return status;
}

enum ree_status ree_request_create(const struct ree_request_options *options,
                                   struct ree_request **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_request_options o;
    struct ree_error local;
    *out = NULL;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_request_options", err));
    REE_TRY(allocate(out, err));
    return complete(fill(*out, &o, err), out);
}

enum ree_status ree_request_load(const char *path, struct ree_request **out,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    REE_TRY(allocate(out, err));
    return complete(ree_request_read(path, *out, err), out);
}

void ree_request_destroy(struct ree_request *request) {
    if (!request) return;
    ree_request_finish(request);
    ree_free(request);
}

const struct ree_request_info *ree_request_info(const struct ree_request *request) {
    return &request->info;
}

enum ree_status ree_completion_create_requested(struct ree_generator *generator,
                                                const struct ree_tokenizer *tokenizer,
                                                const struct ree_request *request,
                                                const struct ree_completion_options *options,
                                                struct ree_completion **out,
                                                struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_completion_options o;
    struct ree_prompt prompt = {request->tokens, request->n_tokens};
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_completion_options", err));
    if (o.sampling || o.max_new_tokens || o.n_stops || o.ignores_eos)
        return ree_fail(err, REE_INVALID,
                        "the request decides sampling, max_new_tokens, stop texts and eos");
    if (request->max_new_tokens > SIZE_MAX)
        return ree_fail(err, REE_INVALID, "the request's max_new_tokens is too large");
    o.sampling = &request->sampling;
    o.max_new_tokens = (size_t)request->max_new_tokens;
    o.n_stops = request->n_stops;
    o.stops = request->stops;
    REE_TRY(ree_completion_create(generator, tokenizer, &prompt, 1, &o, out, err));
    memcpy((*out)->request_sha256, request->request_sha256, sizeof request->request_sha256);
    memcpy((*out)->graph_sha256, request->graph_sha256, sizeof request->graph_sha256);
    memcpy((*out)->weights_sha256, request->weights_sha256, sizeof request->weights_sha256);
    return REE_OK;
}

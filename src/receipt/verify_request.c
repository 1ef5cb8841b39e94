// Compares a receipt with the request that it answers.
#include <string.h>

#include "receipt/verify_internal.h"

static void differ(struct ree_verification *v, const char *what) {
    ree_verify_add(v, "request", REE_VERIFY_DIFFERS, "%s is not as requested", what);
}

static bool same_sampling(const struct ree_sampling *a, const struct ree_sampling *b) {
    return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
           a->min_p == b->min_p && a->repetition_penalty == b->repetition_penalty;
}

static bool same_stops(const struct ree_receipt *r, const struct ree_request *request) {
    if (r->n_stops != request->n_stops) return false;
    for (size_t i = 0; i < r->n_stops; i++)
        if (strcmp(r->stops[i], request->stops[i]) != 0) return false;
    return true;
}

// Returns whether the receipt is private and its salt is unknown. Then no hash can be compared with
// its blinded hashes.
static bool is_blind(const struct ree_receipt *r) {
    return r->is_private && !r->has_salt;
}

static bool same_prompt(const struct ree_receipt *r, const struct ree_request *request) {
    char hex[65];
    if (is_blind(r)) return r->prompt.n_tokens == request->n_tokens;
    struct ree_hasher *hasher = ree_hasher_create("ree-tokens/1");
    ree_hasher_update(hasher, request->tokens, request->n_tokens * sizeof *request->tokens);
    ree_hasher_finish(hasher, hex);
    ree_receipt_blind(r, hex);
    return r->prompt.n_tokens == request->n_tokens && strcmp(hex, r->prompt.tokens_sha256) == 0;
}

void ree_verify_request(struct ree_verification *v, const struct ree_receipt *r,
                        const struct ree_request *request) {
    if (!request) {
        if (r->request_sha256[0])
            ree_verify_add(v, "request", REE_VERIFY_NOT_CHECKED,
                           "the receipt answers the request %s; checked only with --request",
                           r->request_sha256);
        return;
    }
    if (strcmp(r->request_sha256, request->request_sha256) != 0) {
        ree_verify_add(v, "request", REE_VERIFY_DIFFERS,
                       "the request is %s, but the receipt answers %s", request->request_sha256,
                       r->request_sha256[0] ? r->request_sha256 : "none");
        return;
    }
    // A request asks for reproducible operators and no extension. Receipts of other versions of the
    // numerics cannot be read.
    const char *extension = ree_receipt_unknown_extension(r);
    if (strcmp(r->operation_set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0)
        differ(v, "the operation set");
    else if (extension)
        ree_verify_add(v, "request", REE_VERIFY_DIFFERS,
                       "the request asks for no extension, but the receipt requires '%.128s'",
                       extension);
    else if (!same_prompt(r, request))
        differ(v, "the prompt");
    else if (!same_sampling(&r->sampling, &request->sampling))
        differ(v, "the sampling");
    else if (r->sampling.seed != request->sampling.seed)
        differ(v, "the seed, which follows from the request,");
    else if (r->max_new_tokens != request->max_new_tokens)
        differ(v, "max_new_tokens");
    else if (!same_stops(r, request))
        differ(v, "the list of stop texts");
    else if (request->graph_sha256[0] && (strcmp(request->graph_sha256, r->graph_sha256) != 0 ||
                                          strcmp(request->weights_sha256, r->weights_sha256) != 0))
        differ(v, "the model");
    else if (is_blind(r))
        ree_verify_add(v, "request", REE_VERIFY_NOT_CHECKED,
                       "checking the prompt requires the salt of this private receipt");
    else
        ree_verify_add(v, "request", REE_VERIFY_AGREES, "%s", "");
}

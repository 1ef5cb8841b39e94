// Requests: what a verifier asks a prover to run. A receipt that names a request answers it, so the
// prover cannot choose the prompt, the parameters or, at a temperature above 0, the random draws.
//
//     {
//       "schema": "ree-request/1",
//       "body": {
//         "nonce": hex,                            32 random bytes of the verifier
//         "model": {"graph_sha256", "weights_sha256"},       may be missing: any model
//         "prompt": {"tokens": [ids]},
//         "sampling": {"temperature", "top_k", "top_p", "min_p", "repetition_penalty",
//                      "max_new_tokens", "stop": [texts]}
//       },
//       "request_sha256": hex                      SHA-256("ree-request/1\0" | canonical body)
//     }
//
// The seed of the random draws is derived from the request: the first 8 bytes, little-endian, of
// SHA-256("ree-seed/1\0" | the 32 bytes of request_sha256), or 0 at temperature 0. NUMERICS.md,
// "Requests".
#ifndef REE_RECEIPT_REQUEST_H
#define REE_RECEIPT_REQUEST_H

#include "base/arena.h"
#include "ree/receipt.h"

struct ree_request {
    // Of a decoded request: owns the strings and arrays below.
    struct ree_arena arena;
    char nonce[65];
    char graph_sha256[65], weights_sha256[65]; // "": any model
    size_t n_tokens;
    const int32_t *tokens; // prompt tokens
    struct ree_sampling sampling;
    uint64_t max_new_tokens; // 0: until the context is full
    size_t n_stops;
    const char *const *stops;
    char request_sha256[65];
    struct ree_request_info info; // of requests on the heap (request_object.c)
};

void ree_request_init(struct ree_request *request);
void ree_request_finish(struct ree_request *request);
// Turns off the parameters that have no effect, hashes the request and derives its seed. Must be
// called before writing, and after any change.
enum ree_status ree_request_seal(struct ree_request *request, struct ree_error *err);
// Decodes a request and checks it, including its hash. Release with ree_request_finish, also on
// failure.
enum ree_status ree_request_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_request *out, struct ree_error *err);
enum ree_status ree_request_read(const char *path, struct ree_request *out, struct ree_error *err);

#endif

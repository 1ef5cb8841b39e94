// A request states what a verifier asks a prover to run. A receipt that names a request answers it:
// its prover could not choose the prompt, the parameters or, at a temperature above 0, the random
// draws.
//
//     {
//       "schema": "ree-request/1",
//       "body": {
//         "nonce": hex,                            32 random bytes of the verifier
//         "model": {"graph_sha256", "weights_sha256"},       absent: any model may answer
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
    // Owns the strings and arrays below.
    struct ree_arena arena;
    char nonce[65];
    // hashes of the model that must answer the request; "": any model
    char graph_sha256[65], weights_sha256[65];
    size_t n_tokens;
    const int32_t *tokens; // prompt tokens
    struct ree_sampling sampling;
    uint64_t max_new_tokens; // 0: until the context is full
    size_t n_stops;
    const char *const *stops;
    char request_sha256[65];
    struct ree_request_info info; // the last result of ree_request_info
};

void ree_request_init(struct ree_request *request);
void ree_request_finish(struct ree_request *request);
// Seals a request: at temperature 0, turns off the sampling parameters without effect; computes
// request_sha256; derives the seed. Must be called after any change, before writing. Fails with
// REE_INVALID if a sampling parameter is out of range.
enum ree_status ree_request_seal(struct ree_request *request, struct ree_error *err);
// Decodes a request; checks its structure, types, ranges and hash. `where` names the file in
// messages. Release *out with ree_request_finish, also on failure.
enum ree_status ree_request_decode(const void *bytes, size_t nbytes, const char *where,
                                   struct ree_request *out, struct ree_error *err);
enum ree_status ree_request_read(const char *path, struct ree_request *out, struct ree_error *err);

#endif

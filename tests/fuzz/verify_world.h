// The data that fuzz_verify uses for all its inputs: the sample models, the honest receipts, and
// the prompt and salt of the honest receipts. Also runs a model as a prover does.
#ifndef REE_TESTS_FUZZ_VERIFY_WORLD_H
#define REE_TESTS_FUZZ_VERIFY_WORLD_H

#include "receipt/make_receipt.h"
#include "receipt/verify.h"
#include "pipeline/pipeline.h"
#include "verify_case.h"

#define N_HONEST 11

// A receipt of a true run. A verifier with `options` (CASE_... of verify_case.h) must call it
// verified or, with is_prefix, a verified prefix.
struct honest {
    const char *name;
    uint8_t options;
    bool is_asked; // the run answers the request of struct verify_world
    bool is_prefix;
    char *receipt; // canonical JSON
    size_t n_receipt;
    ree_digest body;
};

struct verify_world {
    struct ree_device *device;
    // Generators of tools/sample/stories; with_logits also computes the hash of the logits.
    struct ree_generator *plain, *with_logits;
    struct ree_tokenizer *tokenizer;
    struct ree_model_hashes text_hashes, tensor_hashes;
    int32_t *prompt, *other_prompt;
    size_t n_prompt, n_other_prompt;
    unsigned char salt[REE_SALT_SIZE];
    char *request; // canonical JSON
    size_t n_request;
    struct ree_model *digits; // tools/sample/digits.onnx
    struct ree_pipeline *pipeline;
    struct ree_tensor image, other_image;
    struct honest honest[N_HONEST];
};

// Returns the shared data, made at the first call. Ends the process on failure.
const struct verify_world *verify_world(void);

// What a prover runs the language model with, and what its receipt states.
struct prover_run {
    const struct ree_prompt *prompt;
    struct ree_sampling sampling;
    size_t max_new_tokens;
    const int32_t *eos;
    size_t n_eos;
    const char *const *stops;
    size_t n_stops;
    bool has_texts, has_logits;
    int64_t context_length; // the context length that the receipt states
    const unsigned char *salt;
    const char *request_sha256;
    size_t interrupt_after; // tokens after which the run is marked as interrupted; 0: never
    size_t most;            // maximum answer tokens; the run is abandoned beyond them. 0: no limit
};
// Runs the model and makes a receipt. The receipt must be released with ree_receipt_finish, also
// after a failure. *out_ended: whether the answer ends at its last token (eos, a stop text, or a
// limit); false if only interrupt_after ended it. Fails with REE_UNAVAILABLE if the answer has more
// than run->most tokens.
enum ree_status prover_make(const struct verify_world *world, const struct prover_run *run,
                            struct ree_receipt *out, bool *out_ended, struct ree_error *err);

#endif

// What fuzz_verify verifies against: the sample models, loaded once, the salt and prompt that
// honest receipts have, and these receipts themselves.
#ifndef REE_TESTS_FUZZ_VERIFY_WORLD_H
#define REE_TESTS_FUZZ_VERIFY_WORLD_H

#include "audit/make_receipt.h"
#include "audit/verify.h"
#include "session/pipeline.h"
#include "verify_case.h"

#define N_HONEST 11

// An honest receipt with the options under which a verifier has to call it verified.
struct honest {
    const char *name;
    uint8_t options;
    bool is_asked; // it answers the honest request
    bool is_prefix;
    char *receipt; // canonical JSON
    size_t n_receipt;
    ree_digest body;
};

struct verify_world {
    struct ree_device *device;
    struct ree_generator *plain, *with_logits; // of tools/sample/stories
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

// Made when first asked for. Ends the process where that fails.
const struct verify_world *verify_world(void);

// A run of the language model, as a prover makes it.
struct prover_run {
    const struct ree_prompt *prompt;
    struct ree_sampling sampling;
    size_t max_new_tokens;
    const int32_t *eos;
    size_t n_eos;
    const char *const *stops;
    size_t n_stops;
    bool has_texts, has_logits;
    int64_t context_length; // that the receipt says
    const unsigned char *salt;
    const char *request_sha256;
    size_t interrupt_after; // tokens; 0: never. The run is then said to have been interrupted
    size_t most;            // tokens; beyond them the run is given up. 0: no limit
};
// Runs the model and makes a receipt, which has to be released with ree_receipt_finish, also on
// failure. *out_ended: whether something else than interrupt_after ended the answer.
enum ree_status prover_make(const struct verify_world *world, const struct prover_run *run,
                            struct ree_receipt *out, bool *out_ended, struct ree_error *err);

#endif

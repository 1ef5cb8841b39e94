// Receipts: what was run, on which model, with which result; requests, verification, checkpoints,
// keys and attestations.
//
// A receipt is a JSON object that anyone with the model can check. In ree's source,
// src/receipt/receipt.h describes its fields, and src/repops/NUMERICS.md, "Receipts", what is
// hashed.
//
//     ree_receipt_create_text     of a completion (generate.h)      ree_receipt_write
//     ree_receipt_create_tensors  of a run of any model             ree_receipt_load
//     ree_receipt_validate        by its own contents               ree_verify   by a new run
#ifndef REE_RECEIPT_H
#define REE_RECEIPT_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_receipt;
struct ree_request;
struct ree_verification;
struct ree_checkpoint;

#define REE_SALT_SIZE 32
#define REE_RECEIPT_MAX_STOPS 1024
#define REE_RECEIPT_MAX_STOP_BYTES 65536 // of all stop texts together

// Making receipts

// A trace that was recorded in the same run.
struct ree_receipt_trace {
    size_t size;            // sizeof(struct ree_receipt_trace)
    const char *root;       // 64 hexadecimal digits
    uint64_t n_steps;       // at least 1
    uint32_t prefill_chunk; // prompt tokens per step; 0 for a run of tensors
    const char *file;       // file name without folders; NULL: not stated
};

struct ree_receipt_options {
    size_t size; // sizeof(struct ree_receipt_options)
    // Text only: salted hashes instead of tokens and texts. Verifying the receipt requires the
    // salt.
    bool is_private;
    // Only with is_private: REE_SALT_SIZE secret random bytes; NULL: ree takes them from the
    // system's random generator.
    const unsigned char *salt;
    const struct ree_receipt_trace *trace; // NULL: none
    struct ree_progress progress;          // of hashing the weights, in bytes
};

// Optional, before the run: checks everything that can make ree_receipt_create_text fail and does
// not depend on the result, so that no work is lost. Fails as that function would. Hashes the
// model, which reads all weights; the generator keeps the hashes. `options` may be NULL.
REE_API enum ree_status ree_receipt_prepare(struct ree_completion *completion,
                                            const struct ree_receipt_options *options,
                                            struct ree_error *err);
// Makes the receipt of a completion of one prompt that has run. The receipt answers the request
// that the completion was created from, if any. `options` may be NULL. Release *out_receipt with
// ree_receipt_destroy. Fails with
// - REE_INVALID if the completion has not run or has several prompts, a receipt cannot hold
//   something (a stop text that is not UTF-8), the request names another model, or a trace was
//   recorded without folded constants (no_fold)
// - REE_UNSUPPORTED if the model's hashes do not determine what its inputs are for
REE_API enum ree_status ree_receipt_create_text(struct ree_completion *completion,
                                                const struct ree_receipt_options *options,
                                                struct ree_receipt **out_receipt,
                                                struct ree_error *err);
// Makes the receipt of one run of a model: ree_session_run with these inputs (in any order) gave
// these outputs (ree_model_n_outputs tensors, in the model's order). The devices are those that ran
// it, all opened with one operation set. Hashes the model, which reads all weights. `options` may
// be NULL. Release *out_receipt with ree_receipt_destroy. Fails with REE_INVALID if the inputs are
// not those of the model, the operation sets differ, options.is_private is set, or a trace has a
// prefill_chunk or was recorded without folded constants (no_fold).
REE_API enum ree_status
ree_receipt_create_tensors(const struct ree_model *model, struct ree_device *const *devices,
                           size_t n_devices, const struct ree_tensor *inputs, size_t n_inputs,
                           const struct ree_tensor *outputs,
                           const struct ree_receipt_options *options,
                           struct ree_receipt **out_receipt, struct ree_error *err);
REE_API void ree_receipt_destroy(struct ree_receipt *receipt);

// Signs the receipt with an Ed25519 key, a PEM file as ree_key_create writes it. Replaces an older
// signature; a failure leaves it. Fails with REE_INVALID if anyone but the key file's owner can
// access it.
REE_API enum ree_status ree_receipt_sign(struct ree_receipt *receipt, const char *key_path,
                                         struct ree_error *err);
// Writes the receipt. The file appears whole or not at all. The salt of a private receipt, if the
// receipt has it, is written to `path`.salt, which only the owner can read: both files or none.
REE_API enum ree_status ree_receipt_write(const struct ree_receipt *receipt, const char *path,
                                          struct ree_error *err);

// Reading receipts

// Reads a receipt and checks its structure: strict JSON, every field present with the right type
// and range, no unknown field. Fails with REE_INVALID if the structure is wrong. Compares no
// hashes: ree_receipt_validate does.
REE_API enum ree_status ree_receipt_load(const char *path, struct ree_receipt **out_receipt,
                                         struct ree_error *err);
// Like ree_receipt_load, for a receipt in memory. `where` names it in messages.
REE_API enum ree_status ree_receipt_parse(const void *bytes, size_t nbytes, const char *where,
                                          struct ree_receipt **out_receipt, struct ree_error *err);
// Sets the salt of a private receipt. Returns false, and changes nothing, if it is the salt of
// another receipt or the receipt is not private.
REE_API bool ree_receipt_set_salt(struct ree_receipt *receipt,
                                  const unsigned char salt[REE_SALT_SIZE]);
// Reads the salt from a file as ree_receipt_write writes it. `path` NULL: the file RECEIPT.salt
// next to the file RECEIPT that the receipt was loaded from; if there is none, the receipt stays
// without a salt and the function succeeds. Fails with REE_INVALID if it is the salt of another
// receipt.
REE_API enum ree_status ree_receipt_load_salt(struct ree_receipt *receipt, const char *path,
                                              struct ree_error *err);

enum ree_receipt_kind { REE_RECEIPT_TEXT, REE_RECEIPT_TENSORS };

// A sequence of tokens and its text. Does not change between versions.
struct ree_receipt_text {
    char tokens_sha256[65], text_sha256[65]; // "": absent
    size_t n_tokens;
    const int32_t *tokens; // NULL: private
    const char *text;      // UTF-8 without a NUL inside; NULL: private, or no tokenizer
};

// Does not change between versions.
struct ree_receipt_tensor {
    const char *name;
    char sha256[65];
};

// The fields of a receipt. A hash that is "" is absent. Made by the library. Later versions may add
// fields at the end.
struct ree_receipt_info {
    uint32_t version; // of the schema: 1 or 2
    enum ree_receipt_kind kind;
    const char *receipt_hash;
    const char *numerics, *operation_set; // "RepOps/1", "reproducible"
    const char *graph_sha256, *weights_sha256;
    // Text
    const char *tokenizer_sha256;
    const struct ree_receipt_text *prompt, *output; // NULL for tensors
    const struct ree_sampling *sampling;            // NULL for tensors
    uint64_t max_new_tokens;                        // 0: until the context is full
    int64_t context_length;                         // 0: unknown
    size_t n_stops, n_eos;
    const char *const *stops;
    const int32_t *eos;
    const char *finish_reason; // as ree_finish_name
    const char *logits_sha256;
    const char *request_sha256; // of the request that it answers
    bool is_private, has_salt;
    // Tensors
    size_t n_inputs, n_outputs;
    const struct ree_receipt_tensor *inputs, *outputs;
    // Trace
    const char *trace_root; // "": no trace
    uint64_t trace_steps;
    uint32_t trace_chunk;   // prompt tokens per step; 0 for tensors
    const char *public_key; // of the signature, hexadecimal; "": not signed
    // Statements that nothing proves; NULL: absent
    const char *device, *ree_version, *created, *trace_file;
};

// Borrowed; valid until the receipt is changed or destroyed.
REE_API const struct ree_receipt_info *ree_receipt_info(const struct ree_receipt *receipt);
// Whether the receipt states this root of a trace, 64 hexadecimal digits. False for a private
// receipt without its salt.
REE_API bool ree_receipt_has_root(const struct ree_receipt *receipt, const char *root);
// The receipt as canonical JSON, without the newline that ends its file. Borrowed; valid until the
// receipt is changed or destroyed. NULL: out of memory.
REE_API const char *ree_receipt_json(const struct ree_receipt *receipt);

// Validation: what a receipt's own contents allow

// The result of one check. Does not change between versions.
struct ree_receipt_finding {
    // "receipt", "prompt tokens", "prompt text", "output tokens", "output text", "counts",
    // "parameters", "signature", "public key", "attestation"
    const char *what;
    bool ok;
    // Always false here: if a check cannot be made, ree_receipt_validate fails.
    bool unknown;
    char detail[256]; // for people to read: "SHA-256 is ..., but the receipt has ..."
};
#define REE_RECEIPT_MAX_FINDINGS 16

struct ree_validate_options {
    size_t size; // sizeof(struct ree_validate_options)
    // Require a signature by this key: 64 hexadecimal digits. NULL: any key, or no signature.
    const char *public_key;
    // Also check the attestation in this file (a DSSE envelope). It must be about this receipt, and
    // be signed, with public_key if that is set. NULL: none. With an attestation the receipt itself
    // need not be signed. The receipt must have been loaded from a file.
    const char *attestation;
};

// Checks hashes, counts, parameters and signatures. Runs nothing, so it does not show that the run
// gave this result. *out_ok: all findings are ok. The findings are borrowed and valid until the
// next call, or until the receipt is destroyed. If something cannot be checked (memory is
// exhausted, a file cannot be read), fails and returns no findings. `options` may be NULL.
REE_API enum ree_status ree_receipt_validate(struct ree_receipt *receipt,
                                             const struct ree_validate_options *options,
                                             const struct ree_receipt_finding **out_findings,
                                             size_t *out_n, bool *out_ok, struct ree_error *err);

// Keys and attestations

// Writes a new private key (Ed25519, PEM, PKCS #8, mode 0600) to `path`, and its public key (PEM)
// to `path`.pub. `public_key` receives the public key in hexadecimal. Fails with REE_IO if one of
// the files exists.
REE_API enum ree_status ree_key_create(const char *path, char public_key[65],
                                       struct ree_error *err);
// Checks that ree_receipt_sign can use the key file.
REE_API enum ree_status ree_key_check(const char *path, struct ree_error *err);
// Reads the public key from a PEM file with a private or a public key.
REE_API enum ree_status ree_key_public(const char *path, char public_key[65],
                                       struct ree_error *err);
// Like ree_key_public, but also accepts the public key itself: 64 hexadecimal digits of any case.
REE_API enum ree_status ree_key_named(const char *path_or_hex, char public_key[65],
                                      struct ree_error *err);

// Writes an attestation of a receipt to `path`: an in-toto statement in a DSSE envelope, signed
// with the private key in `key_path`, for tools that use these formats. The receipt must already be
// in the file `receipt_path`.
REE_API enum ree_status ree_dsse_write(const struct ree_receipt *receipt, const char *receipt_path,
                                       const char *key_path, const char *path,
                                       struct ree_error *err);
// Checks the attestation in `path`: it is well-formed, has a valid signature by `public_key` (64
// hexadecimal digits; "" accepts the key that the envelope names), and its subject and content are
// the receipt in the file `receipt_path`. Fails with REE_INVALID if one of these does not hold.
// `signer` receives the key in hexadecimal. It proves who signed, not that the receipt is true.
REE_API enum ree_status ree_dsse_check(const char *path, const char *receipt_path,
                                       const char *public_key, char signer[65],
                                       struct ree_error *err);

// Requests: what a verifier asks a prover to run. A receipt that answers a request leaves the
// prover no choice of prompt and parameters, nor, at a temperature above 0, of the random draws:
// the seed follows from the request.

struct ree_request_options {
    size_t size; // sizeof(struct ree_request_options)
    const struct ree_prompt *prompt;
    const struct ree_sampling *sampling; // its seed is ignored; NULL: ree_greedy
    uint64_t max_new_tokens;             // 0: until the context is full
    size_t n_stops;
    const char *const *stops;
    // The model that must run it. ree_request_create hashes it, which reads all weights. NULL: any
    // model.
    const struct ree_model *model;
    struct ree_progress progress; // of hashing the weights, in bytes
};

// Makes a request with a random nonce. Copies what the options point to. Fails with REE_INVALID if
// the prompt has no tokens, a parameter is out of range or a stop text is empty.
REE_API enum ree_status ree_request_create(const struct ree_request_options *options,
                                           struct ree_request **out_request, struct ree_error *err);
// Reads a request and checks it, including its hash.
REE_API enum ree_status ree_request_load(const char *path, struct ree_request **out_request,
                                         struct ree_error *err);
REE_API void ree_request_destroy(struct ree_request *request);
// Writes the request. The file, which only the owner can read, appears whole or not at all. Keep it
// secret until the run is due: with it, a prover can run the request earlier.
REE_API enum ree_status ree_request_write(const struct ree_request *request, const char *path,
                                          struct ree_error *err);

// The fields of a request. Made by the library. Later versions may add fields at the end.
struct ree_request_info {
    const char *request_sha256, *nonce;        // in hexadecimal
    const char *graph_sha256, *weights_sha256; // "": any model
    struct ree_prompt prompt;
    const struct ree_sampling *sampling; // with the seed that follows from the request
    uint64_t max_new_tokens;
    size_t n_stops;
    const char *const *stops;
};
// Borrowed from the request.
REE_API const struct ree_request_info *ree_request_info(const struct ree_request *request);

// Creates the completion that answers a request, with its prompt, sampling, max_new_tokens and stop
// texts. Fails with REE_INVALID if `options` sets one of these or ignores_eos. A receipt of the
// completion names the request. Otherwise like ree_completion_create.
REE_API enum ree_status ree_completion_create_requested(
    struct ree_generator *generator, const struct ree_tokenizer *tokenizer,
    const struct ree_request *request, const struct ree_completion_options *options,
    struct ree_completion **out_completion, struct ree_error *err);

// Verification: compares everything that a receipt states with the caller's own copy of the model

struct ree_verify_options {
    size_t size;           // sizeof(struct ree_verify_options)
    const char *tokenizer; // path for ree_tokenizer_load; NULL: the one in the model's folder
    // Require that the receipt answers this request; must outlive the verification. NULL: none.
    const struct ree_request *request;
    const char *public_key; // require a signature by this key: 64 hexadecimal digits; NULL: none
    // Generate the answer again, token by token, even if one pass over prompt and answer is proved
    // to give the same result.
    bool stepwise;
    bool ignores_eos; // accept an answer that was generated with ignores_eos
    // Compute the trace again, step by step, and compare it. Implies stepwise. Creating the
    // verification fails with REE_INVALID if the receipt has no trace.
    bool trace;
    const char *trace_path;       // file for the new trace; implies `trace`; NULL: none
    struct ree_progress progress; // of hashing the weights, in bytes
};

// Inputs of the run that the receipt does not contain.
struct ree_verify_inputs {
    size_t size; // sizeof(struct ree_verify_inputs)
    // Text: the prompt that the verifier knows, for example of a private receipt; not with
    // options.request. NULL: the request's prompt, or else the receipt's own.
    const struct ree_prompt *prompt;
    // Tensors: the model's inputs, with names, in any order.
    const struct ree_tensor *tensors;
    size_t n_tensors;
};

enum ree_verify_verdict {
    REE_VERIFIED, // every bound field was compared with something that the receipt does not decide
    REE_VERIFIED_PREFIX, // the same, but the answer was interrupted
    REE_VERIFIED_PARTLY, // nothing differs, but something was not checked
    REE_VERIFIED_FALSE,  // something differs
    REE_VERIFIED_NOT,    // nothing differs, but it could not be checked: ree_verification_reason
};
// "verified", "verified prefix of an answer", "verified in part", "differs", "cannot be checked"
REE_API const char *ree_verify_verdict_name(enum ree_verify_verdict verdict);

// Verifies a receipt in one call: the three steps below. Returns REE_OK whatever the verdict is. A
// failure says nothing about the receipt: it concerns the model, the device or the arguments.
//
// `path` is the verifier's copy of the model, in any format. All devices must be opened with
// REE_REPRODUCIBLE. The devices and the receipt must outlive the verification. `run` says how to
// run the model, whether the receipt is of a text or of tensors: model and session options, more
// devices, stages, memory, prefill_chunk. The output bits do not depend on it. all_logits,
// exact_lengths and, with a trace, prefill_chunk follow from the receipt. `run`, `options` and
// `inputs` may be NULL. Release *out_verification with ree_verification_destroy.
REE_API enum ree_status
ree_verify(const struct ree_receipt *receipt, const char *path, struct ree_device *device,
           const struct ree_generator_options *run, const struct ree_verify_options *options,
           const struct ree_verify_inputs *inputs, struct ree_verification **out_verification,
           struct ree_error *err);

// The steps, for callers that need the loaded model to choose the inputs. A step does nothing if an
// earlier one has decided the verification (ree_verification_is_decided).
//
// 1. Checks what the receipt's own contents allow, the request and the public key. The receipt must
//    outlive the verification. Paths are copied. `options` may be NULL.
REE_API enum ree_status ree_verification_create(const struct ree_receipt *receipt,
                                                const struct ree_verify_options *options,
                                                struct ree_verification **out_verification,
                                                struct ree_error *err);
// 2. Loads the model and compares its hashes. `run` may be NULL; it is copied. If `run` chooses no
//    type of activations and no quantisation, a checkpoint's folder is loaded with the type whose
//    graph the receipt names. If `run` chooses a quantisation but no quantize_table, a folder whose
//    embedding table is not quantised is tried too. After a failure this step may be called again,
//    with another path or device.
REE_API enum ree_status ree_verification_load(struct ree_verification *verification,
                                              const char *path, struct ree_device *device,
                                              const struct ree_generator_options *run,
                                              struct ree_error *err);
// 3. Runs the model and compares the results. `inputs` may be NULL.
REE_API enum ree_status ree_verification_run(struct ree_verification *verification,
                                             const struct ree_verify_inputs *inputs,
                                             struct ree_error *err);
REE_API void ree_verification_destroy(struct ree_verification *verification);
// Whether the remaining steps would do nothing.
REE_API bool ree_verification_is_decided(const struct ree_verification *verification);
// The model and the tokenizer that step 2 loaded; NULL: none. Borrowed from the verification.
REE_API const struct ree_model *ree_verification_model(const struct ree_verification *verification);
REE_API const struct ree_tokenizer *
ree_verification_tokenizer(const struct ree_verification *verification);

enum ree_verify_outcome { REE_VERIFY_AGREES, REE_VERIFY_DIFFERS, REE_VERIFY_NOT_CHECKED };

// Does not change between versions.
struct ree_verify_check {
    char name[64]; // "weights", "tokens", ...
    enum ree_verify_outcome outcome;
    // What differs, or why it was not checked; usually "" if it agrees.
    const char *detail;
};

// REE_VERIFIED_NOT until all steps are done; REE_VERIFIED_FALSE as soon as something differs.
REE_API enum ree_verify_verdict
ree_verification_verdict(const struct ree_verification *verification);
// Returns the number of checks. *out_checks is borrowed and valid until the next step.
REE_API size_t ree_verification_checks(const struct ree_verification *verification,
                                       const struct ree_verify_check **out_checks);
// Why the receipt cannot be checked with this ree or model; "": it was checked.
REE_API const char *ree_verification_reason(const struct ree_verification *verification);
// Why the receipt's tokens were checked token by token and not in one pass. "" if they were checked
// in one pass, options.stepwise is set, or the receipt has no tokens.
REE_API const char *ree_verification_stepwise(const struct ree_verification *verification);
// Runs of the model, and the time they took. `out_seconds` may be NULL.
REE_API size_t ree_verification_runs(const struct ree_verification *verification,
                                     double *out_seconds);

// Checkpoints: files with completions in progress, from which a later run continues
//
//     ree_checkpoint_open -> ree_checkpoint_attach -> ree_completion_run -> ree_checkpoint_close
//     -> _destroy

struct ree_checkpoint_options {
    size_t size; // sizeof(struct ree_checkpoint_options)
    // File to write, required: when the run begins, whenever an answer has `every` more tokens, at
    // the end, and after an interruption. Each save replaces the whole file.
    const char *path;
    size_t every;       // 0: 32
    const char *resume; // checkpoint to continue from; may be the same file; NULL: none
    bool is_secret;     // only the owner can read the file: it contains the tokens
    // Receives a line for each difference between `resume` and the completion:
    // "body.sampling.temperature is 0.8, expected 0.7". NULL: off.
    void (*on_difference)(void *user, const char *line);
    // A save failed after one had succeeded: the run continues, and the last checkpoint remains.
    // Called once for several failures in a row. NULL: off.
    void (*on_warning)(void *user, const char *message);
    void *user;
};

// Reads `resume`. To protect a checkpoint from being overwritten by mistake, fails with REE_INVALID
// if the file `path` exists, unless it is `resume` or the checkpoint of a finished run.
REE_API enum ree_status ree_checkpoint_open(const struct ree_checkpoint_options *options,
                                            struct ree_checkpoint **out_checkpoint,
                                            struct ree_error *err);
// Must be called once, before the completion runs; the checkpoint must outlive the run. Hashes the
// model and compares the run with `resume`. The resumed run computes the tokens of `resume` again
// and compares them. Fails with REE_INVALID if
// - model, tokenizer, prompts or parameters are not those of `resume`
// - the operation set is not reproducible, or n_logprobs is set
// - an answer to a request would be resumed
REE_API enum ree_status ree_checkpoint_attach(struct ree_checkpoint *checkpoint,
                                              struct ree_completion *completion,
                                              struct ree_error *err);
// Call it after the run: fails if the last save failed. Releases nothing.
REE_API enum ree_status ree_checkpoint_close(const struct ree_checkpoint *checkpoint,
                                             struct ree_error *err);
REE_API void ree_checkpoint_destroy(struct ree_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif

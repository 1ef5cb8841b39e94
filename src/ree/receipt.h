// Receipts: state what was run, on which model, with which result. Also requests, verification,
// checkpoints, keys and attestations.
//
// A receipt is a JSON object that anyone with the model can check. In ree's source,
// src/receipt/receipt.h describes its fields, and src/repops/NUMERICS.md, "Receipts", what is
// hashed.
//
//     ree_receipt_create_text     makes the receipt of a completion (generate.h)
//     ree_receipt_create_tensors  makes the receipt of a run of any model
//     ree_receipt_write, ree_receipt_load
//     ree_receipt_validate        checks a receipt by its own contents
//     ree_verify                  checks a receipt by a new run of the model
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
#define REE_RECEIPT_MAX_STOP_BYTES 65536 // maximum size of all stop texts together

// Making receipts

// The trace that was recorded during the run of a receipt.
struct ree_receipt_trace {
    size_t size;            // sizeof(struct ree_receipt_trace)
    const char *root;       // root of the trace: 64 hexadecimal digits
    uint64_t n_steps;       // number of steps in the trace, at least 1
    uint32_t prefill_chunk; // prompt tokens per step; 0 for a run of tensors
    const char *file;       // name of the trace file without folders; NULL: not stated
};

struct ree_receipt_options {
    size_t size; // sizeof(struct ree_receipt_options)
    // For texts only: the receipt has salted hashes instead of tokens and texts. Verifying it
    // requires the salt.
    bool is_private;
    // Only with is_private: REE_SALT_SIZE secret random bytes; NULL: ree takes them from the
    // system's random generator.
    const unsigned char *salt;
    const struct ree_receipt_trace *trace; // NULL: no trace was recorded
    struct ree_progress progress;          // progress of hashing the weights, in bytes
};

// May be called before the run, so that no work is lost: checks everything that can make
// ree_receipt_create_text fail and does not depend on the result. Fails as ree_receipt_create_text
// would. Hashes the model, which reads all weights; the generator keeps the hashes. `options` may
// be NULL.
REE_API enum ree_status ree_receipt_prepare(struct ree_completion *completion,
                                            const struct ree_receipt_options *options,
                                            struct ree_error *err);
// Makes the receipt of a completion that has run with one prompt. If the completion was created
// from a request, the receipt names this request. `options` may be NULL. Release *out_receipt with
// ree_receipt_destroy. Fails with
// - REE_INVALID if the completion has not run or has several prompts, a receipt cannot store a
// value
//   (for example a stop text that is not UTF-8), the request names another model, or a trace was
//   recorded without folded constants (no_fold)
// - REE_UNSUPPORTED if the model's hashes do not determine the roles of its inputs and outputs
REE_API enum ree_status ree_receipt_create_text(struct ree_completion *completion,
                                                const struct ree_receipt_options *options,
                                                struct ree_receipt **out_receipt,
                                                struct ree_error *err);
// Makes the receipt of one run of a model (ree_session_run or ree_pipeline_run) with these inputs,
// in any order, and these outputs: ree_model_n_outputs tensors, in the model's order. `devices` are
// those that ran the model, all opened with the same operation set. Hashes the model, which reads
// all weights. `options` may be NULL. Release *out_receipt with ree_receipt_destroy. Fails with
// REE_INVALID if the inputs are not those of the model, the operation sets differ,
// options.is_private is set, or the trace has a prefill_chunk or was recorded without folded
// constants (no_fold).
REE_API enum ree_status
ree_receipt_create_tensors(const struct ree_model *model, struct ree_device *const *devices,
                           size_t n_devices, const struct ree_tensor *inputs, size_t n_inputs,
                           const struct ree_tensor *outputs,
                           const struct ree_receipt_options *options,
                           struct ree_receipt **out_receipt, struct ree_error *err);
REE_API void ree_receipt_destroy(struct ree_receipt *receipt);

// Signs the receipt with the Ed25519 private key in the PEM file `key_path`, as ree_key_create
// writes it. Replaces an older signature; after a failure, the older signature stays. Fails with
// REE_INVALID if users other than the owner of the key file can access it.
REE_API enum ree_status ree_receipt_sign(struct ree_receipt *receipt, const char *key_path,
                                         struct ree_error *err);
// Writes the receipt to the file `path`, which appears whole or not at all. If the receipt is
// private and has its salt, also writes the salt to the file `path`.salt, which only its owner can
// read; either both files appear or none.
REE_API enum ree_status ree_receipt_write(const struct ree_receipt *receipt, const char *path,
                                          struct ree_error *err);

// Reading receipts

// Reads a receipt and checks its structure: strict JSON, every field present with the right type
// and range, no unknown field. Fails with REE_INVALID if the structure is wrong. Compares no
// hashes: ree_receipt_validate does.
REE_API enum ree_status ree_receipt_load(const char *path, struct ree_receipt **out_receipt,
                                         struct ree_error *err);
// Like ree_receipt_load, for a receipt in memory. `where` names the receipt in messages.
REE_API enum ree_status ree_receipt_parse(const void *bytes, size_t nbytes, const char *where,
                                          struct ree_receipt **out_receipt, struct ree_error *err);
// Sets the salt of a private receipt. Returns false, and changes nothing, if `salt` belongs to
// another receipt or the receipt is not private.
REE_API bool ree_receipt_set_salt(struct ree_receipt *receipt,
                                  const unsigned char salt[REE_SALT_SIZE]);
// Sets the salt of a private receipt from a file as ree_receipt_write writes it. `path` NULL: reads
// the file RECEIPT.salt next to the file RECEIPT from which the receipt was loaded; if there is
// none, the receipt stays without a salt and the function succeeds. Fails with REE_INVALID if the
// salt belongs to another receipt.
REE_API enum ree_status ree_receipt_load_salt(struct ree_receipt *receipt, const char *path,
                                              struct ree_error *err);

enum ree_receipt_kind { REE_RECEIPT_TEXT, REE_RECEIPT_TENSORS };

// The prompt or the answer of a receipt: tokens and their text. The struct does not change between
// versions.
struct ree_receipt_text {
    char tokens_sha256[65], text_sha256[65]; // "": absent
    size_t n_tokens;
    const int32_t *tokens; // (n_tokens); NULL: the receipt is private
    const char *text;      // UTF-8 without a NUL inside; NULL: private, or made without a tokenizer
};

// The name and the hash of an input or output tensor. The struct does not change between versions.
struct ree_receipt_tensor {
    const char *name;
    char sha256[65];
};

// The fields of a receipt. A hash that is "" is absent. Only the library makes this struct. Later
// versions may add fields at the end.
struct ree_receipt_info {
    uint32_t version; // version of the schema: 1 or 2
    enum ree_receipt_kind kind;
    const char *receipt_hash;
    const char *numerics, *operation_set; // for example "RepOps/1" and "reproducible"
    const char *graph_sha256, *weights_sha256;
    // The fields from here to has_salt are for receipts of texts.
    const char *tokenizer_sha256;
    const struct ree_receipt_text *prompt, *output; // NULL in a receipt of tensors
    const struct ree_sampling *sampling;            // NULL in a receipt of tensors
    uint64_t max_new_tokens;                        // 0: until the context is full
    int64_t context_length;                         // context length of the model; 0: unknown
    size_t n_stops, n_eos;
    const char *const *stops;
    const int32_t *eos;
    const char *finish_reason; // why the answer ended: a result of ree_finish_name
    const char *logits_sha256;
    const char *request_sha256; // hash of the request that the receipt answers
    bool is_private, has_salt;
    // The next fields are for receipts of tensors.
    size_t n_inputs, n_outputs;
    const struct ree_receipt_tensor *inputs, *outputs;
    // The next fields describe the trace.
    const char *trace_root; // "": no trace
    uint64_t trace_steps;
    uint32_t trace_chunk;   // prompt tokens per step; 0 in a receipt of tensors
    const char *public_key; // key of the signature, in hexadecimal; "": not signed
    // Statements without a proof, which the receipt's hash does not cover; NULL: absent
    const char *device, *ree_version, *created, *trace_file;
};

// Returns the fields of a receipt, borrowed and valid until the receipt is changed or destroyed.
REE_API const struct ree_receipt_info *ree_receipt_info(const struct ree_receipt *receipt);
// Returns whether the receipt states the trace root `root`, 64 hexadecimal digits. Returns false
// for a private receipt without its salt.
REE_API bool ree_receipt_has_root(const struct ree_receipt *receipt, const char *root);
// Returns the receipt as canonical JSON, without the newline that ends its file. Borrowed; valid
// until the receipt is changed or destroyed. NULL: out of memory.
REE_API const char *ree_receipt_json(const struct ree_receipt *receipt);

// Validation: checks a receipt by its own contents, without the model

// The result of one check of a receipt. The struct does not change between versions.
struct ree_receipt_finding {
    // What was checked: "receipt", "prompt tokens", "prompt text", "output tokens", "output text",
    // "counts", "parameters", "signature", "public key" or "attestation".
    const char *what;
    bool ok;
    // The check could not be made. Always false in findings of ree_receipt_validate, which fails
    // instead.
    bool unknown;
    char detail[256]; // for people to read: "SHA-256 is ..., but the receipt has ..."
};
#define REE_RECEIPT_MAX_FINDINGS 16

struct ree_validate_options {
    size_t size; // sizeof(struct ree_validate_options)
    // Key with which the receipt must be signed: 64 hexadecimal digits. NULL: any key, or no
    // signature.
    const char *public_key;
    // Path of an attestation of the receipt (a DSSE envelope) to check; NULL: none. It must be
    // signed, with public_key if that is set; the receipt itself then need not be signed. The
    // receipt must have been loaded from a file.
    const char *attestation;
};

// Checks hashes, counts, parameters and signatures of a receipt. Does not run the model, so it does
// not show that the run gave this result. *out_ok is true if all findings are ok. The findings are
// borrowed and valid until the next call, or until the receipt is destroyed. If something cannot be
// checked (memory is exhausted, a file cannot be read), fails and returns no findings. `options`
// may be NULL.
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
// Checks that ree_receipt_sign can use the key file `path`; fails as ree_receipt_sign would.
REE_API enum ree_status ree_key_check(const char *path, struct ree_error *err);
// Reads a PEM file with a private or a public key. `public_key` receives the public key in
// hexadecimal.
REE_API enum ree_status ree_key_public(const char *path, char public_key[65],
                                       struct ree_error *err);
// Like ree_key_public, but `path_or_hex` may also be the public key itself: 64 hexadecimal digits
// in upper or lower case.
REE_API enum ree_status ree_key_named(const char *path_or_hex, char public_key[65],
                                      struct ree_error *err);

// Writes an attestation of a receipt to the file `path`: an in-toto statement in a DSSE envelope,
// for tools that use these formats. It is signed with the private key in the file `key_path`. The
// receipt must already be in the file `receipt_path`.
REE_API enum ree_status ree_dsse_write(const struct ree_receipt *receipt, const char *receipt_path,
                                       const char *key_path, const char *path,
                                       struct ree_error *err);
// Checks the attestation in the file `path`: it is well-formed, has a valid signature by
// `public_key` (64 hexadecimal digits; "" accepts the key that the envelope names), and its subject
// and content are the receipt in the file `receipt_path`. Fails with REE_INVALID if one of these
// does not hold. `signer` receives the key in hexadecimal. An attestation proves who signed the
// receipt, but not that the receipt is true.
REE_API enum ree_status ree_dsse_check(const char *path, const char *receipt_path,
                                       const char *public_key, char signer[65],
                                       struct ree_error *err);

// Requests: state what a verifier asks a prover to run. The prover of a receipt that answers a
// request could not choose the prompt or the parameters, nor, at a temperature above 0, the random
// draws, because the seed follows from the request.

struct ree_request_options {
    size_t size; // sizeof(struct ree_request_options)
    const struct ree_prompt *prompt;
    const struct ree_sampling *sampling; // its seed is ignored; NULL: ree_greedy
    uint64_t max_new_tokens;             // 0: until the context is full
    size_t n_stops;
    const char *const *stops;
    // The model that must run the request. ree_request_create hashes it, which reads all weights.
    // NULL: any model.
    const struct ree_model *model;
    struct ree_progress progress; // progress of hashing the weights, in bytes
};

// Makes a request with a random nonce. Copies what the options point to. Fails with REE_INVALID if
// the prompt has no tokens, a parameter is out of range or a stop text is empty. Release
// *out_request with ree_request_destroy.
REE_API enum ree_status ree_request_create(const struct ree_request_options *options,
                                           struct ree_request **out_request, struct ree_error *err);
// Reads a request; checks its structure, ranges and hash. Fails with REE_INVALID if one is wrong.
// Release *out_request with ree_request_destroy.
REE_API enum ree_status ree_request_load(const char *path, struct ree_request **out_request,
                                         struct ree_error *err);
REE_API void ree_request_destroy(struct ree_request *request);
// Writes the request to the file `path`, which only its owner can read and which appears whole or
// not at all. Keep the file secret until the run is due: a prover who has it can run the request
// earlier.
REE_API enum ree_status ree_request_write(const struct ree_request *request, const char *path,
                                          struct ree_error *err);

// The fields of a request. Only the library makes this struct. Later versions may add fields at the
// end.
struct ree_request_info {
    const char *request_sha256, *nonce;        // 64 hexadecimal digits each
    const char *graph_sha256, *weights_sha256; // hashes of the model to be run; "": any model
    struct ree_prompt prompt;
    const struct ree_sampling *sampling; // its seed is the one that follows from the request
    uint64_t max_new_tokens;
    size_t n_stops;
    const char *const *stops;
};
// Returns the fields of a request, borrowed from the request.
REE_API const struct ree_request_info *ree_request_info(const struct ree_request *request);

// Like ree_completion_create, but creates the completion that answers a request: prompt, sampling,
// max_new_tokens and stop texts are those of the request. Fails with REE_INVALID if `options` sets
// one of these or ignores_eos. A receipt of the completion names the request.
REE_API enum ree_status ree_completion_create_requested(
    struct ree_generator *generator, const struct ree_tokenizer *tokenizer,
    const struct ree_request *request, const struct ree_completion_options *options,
    struct ree_completion **out_completion, struct ree_error *err);

// Verification: compares everything that a receipt states with the caller's own copy of the model
// and with a new run of it

struct ree_verify_options {
    size_t size;           // sizeof(struct ree_verify_options)
    const char *tokenizer; // path for ree_tokenizer_load; NULL: the tokenizer in the model's folder
    // Request that the receipt must answer; must outlive the verification. NULL: none.
    const struct ree_request *request;
    // Key with which the receipt must be signed: 64 hexadecimal digits. NULL: any key, or no
    // signature.
    const char *public_key;
    // Generate the answer again, token by token, even if one pass over prompt and answer is proved
    // to give the same result.
    bool stepwise;
    bool ignores_eos; // accept an answer that was generated with ignores_eos
    // Compute the trace again, step by step, and compare it. Implies stepwise. Creating the
    // verification fails with REE_INVALID if the receipt has no trace.
    bool trace;
    const char *trace_path; // file to which the new trace is written; implies `trace`; NULL: none
    struct ree_progress progress; // progress of hashing the weights, in bytes
};

// Inputs of the run that the verifier passes because the receipt does not contain them.
struct ree_verify_inputs {
    size_t size; // sizeof(struct ree_verify_inputs)
    // For a receipt of a text: the prompt, if the verifier knows it, for example of a private
    // receipt. NULL: the request's prompt, or else the receipt's own. Must be NULL if
    // options.request is set.
    const struct ree_prompt *prompt;
    // For a receipt of tensors, (n_tensors): the inputs of the run, with names, in any order.
    const struct ree_tensor *tensors;
    size_t n_tensors;
};

enum ree_verify_verdict {
    // Every field that the receipt's hash covers was compared with a value that does not come from
    // the receipt, and agrees.
    REE_VERIFIED,
    REE_VERIFIED_PREFIX, // as REE_VERIFIED, but the answer was interrupted before its end
    REE_VERIFIED_PARTLY, // nothing differs, but at least one field was not checked
    REE_VERIFIED_FALSE,  // at least one field differs
    // Nothing differs, but the receipt cannot be checked (ree_verification_reason says why), or not
    // all steps are done.
    REE_VERIFIED_NOT,
};
// "verified", "verified prefix of an answer", "verified in part", "differs", "cannot be checked"
REE_API const char *ree_verify_verdict_name(enum ree_verify_verdict verdict);

// Verifies a receipt in one call, which makes the three steps below. Returns REE_OK whatever the
// verdict is. A failure says nothing about the receipt: it concerns the model, the device or the
// arguments.
//
// `path` is the verifier's copy of the model, in any format. All devices must be opened with
// REE_REPRODUCIBLE. The devices and the receipt must outlive the verification. `run` says how to
// run the model, for receipts of texts and of tensors: model and session options, more devices,
// stages, memory, prefill_chunk. The output bits do not depend on it. all_logits, exact_lengths
// and, with options.trace or a hash of the logits, prefill_chunk are not taken from `run`: they
// follow from the receipt and the options. `run`, `options` and `inputs` may be NULL. Release
// *out_verification with ree_verification_destroy.
REE_API enum ree_status
ree_verify(const struct ree_receipt *receipt, const char *path, struct ree_device *device,
           const struct ree_generator_options *run, const struct ree_verify_options *options,
           const struct ree_verify_inputs *inputs, struct ree_verification **out_verification,
           struct ree_error *err);

// The next three functions are the steps of ree_verify, for callers that need the loaded model to
// choose the inputs. A step does nothing if an earlier one has decided the verification
// (ree_verification_is_decided).
//
// Step 1: checks the receipt by its own contents, against the request and against the public key.
// The receipt must outlive the verification. Paths are copied. `options` may be NULL. Release
// *out_verification with ree_verification_destroy.
REE_API enum ree_status ree_verification_create(const struct ree_receipt *receipt,
                                                const struct ree_verify_options *options,
                                                struct ree_verification **out_verification,
                                                struct ree_error *err);
// Step 2 of ree_verify: loads the model at `path` and compares its hashes with the receipt's. `run`
// may be NULL; it is copied. For the folder of a checkpoint: if `run` sets neither a type of
// activations nor a quantisation, the type is the one with which the graph has the receipt's hash;
// if `run` sets a quantisation, int8 activations are tried too unless it sets a type, and
// REE_QUANTIZE_KEEP unless it sets a quantize_table. The variant that was found is one of the
// statements of the verification. After a failure this step may be called again, with another path
// or device.
REE_API enum ree_status ree_verification_load(struct ree_verification *verification,
                                              const char *path, struct ree_device *device,
                                              const struct ree_generator_options *run,
                                              struct ree_error *err);
// Step 3 of ree_verify: runs the model and compares the results with the receipt's. `inputs` may be
// NULL.
REE_API enum ree_status ree_verification_run(struct ree_verification *verification,
                                             const struct ree_verify_inputs *inputs,
                                             struct ree_error *err);
REE_API void ree_verification_destroy(struct ree_verification *verification);
// Returns whether the verification is decided, so that the remaining steps would do nothing.
REE_API bool ree_verification_is_decided(const struct ree_verification *verification);
// Return the model and the tokenizer that ree_verification_load loaded, borrowed from the
// verification; NULL: none.
REE_API const struct ree_model *ree_verification_model(const struct ree_verification *verification);
REE_API const struct ree_tokenizer *
ree_verification_tokenizer(const struct ree_verification *verification);

enum ree_verify_outcome { REE_VERIFY_AGREES, REE_VERIFY_DIFFERS, REE_VERIFY_NOT_CHECKED };

// One check of a verification. The struct does not change between versions.
struct ree_verify_check {
    char name[64]; // what was checked: "weights", "tokens", ...
    enum ree_verify_outcome outcome;
    // What differs, or why the check was not made; usually "" if nothing differs.
    const char *detail;
};

// Returns the verdict. Before the last step it is REE_VERIFIED_FALSE if something differs already,
// otherwise REE_VERIFIED_NOT.
REE_API enum ree_verify_verdict
ree_verification_verdict(const struct ree_verification *verification);
// Returns the number of checks made so far. *out_checks is borrowed and valid until the next step.
REE_API size_t ree_verification_checks(const struct ree_verification *verification,
                                       const struct ree_verify_check **out_checks);
// Returns why the receipt cannot be checked with this version of ree or this copy of the model; ""
// if nothing prevents it.
REE_API const char *ree_verification_reason(const struct ree_verification *verification);
// Returns why the receipt's tokens were checked token by token and not in one pass; "" if they were
// checked in one pass, options.stepwise is set, or the receipt has no tokens.
REE_API const char *ree_verification_stepwise(const struct ree_verification *verification);
// Returns how often the model ran; *out_seconds receives the time of these runs. `out_seconds` may
// be NULL.
REE_API size_t ree_verification_runs(const struct ree_verification *verification,
                                     double *out_seconds);

// Checkpoints: files with completions in progress, from which a later run continues
//
//     ree_checkpoint_open -> ree_checkpoint_attach -> ree_completion_run -> ree_checkpoint_close
//     -> _destroy

struct ree_checkpoint_options {
    size_t size; // sizeof(struct ree_checkpoint_options)
    // Path of the file to write; required. It is written when the run begins, whenever an answer
    // has `every` more tokens, at the end, and after an interruption. Each time the whole file is
    // replaced.
    const char *path;
    size_t every;       // number of new tokens of an answer between two writes; 0 means 32
    const char *resume; // path of a checkpoint to continue from; may equal `path`; NULL: none
    bool is_secret;     // make the file, which contains the tokens, readable only for its owner
    // Receives a line for each difference between the checkpoint `resume` and the completion, such
    // as "body.sampling.temperature is 0.8, expected 0.7". NULL: off.
    void (*on_difference)(void *user, const char *line);
    // Called if the file cannot be written although an earlier write succeeded; once for several
    // failures in a row. The run continues, and the earlier checkpoint remains. NULL: off.
    void (*on_warning)(void *user, const char *message);
    void *user;
};

// Creates a checkpoint object, and reads options.resume if it is set. To protect checkpoints from
// being overwritten by mistake, fails with REE_INVALID if the file options.path exists, unless it
// is options.resume or the checkpoint of a finished run. Release *out_checkpoint with
// ree_checkpoint_destroy.
REE_API enum ree_status ree_checkpoint_open(const struct ree_checkpoint_options *options,
                                            struct ree_checkpoint **out_checkpoint,
                                            struct ree_error *err);
// Makes a completion write the checkpoint's file while it runs, and continue from options.resume if
// that is set. Must be called once, before the completion runs; the checkpoint must outlive the
// run. Hashes the model. A resumed run computes the tokens in options.resume again and compares
// them. Fails with REE_INVALID if
// - model, tokenizer, prompts or parameters are not those in options.resume
// - the operation set is not reproducible, or n_logprobs is set
// - the completion answers a request and options.resume is set
REE_API enum ree_status ree_checkpoint_attach(struct ree_checkpoint *checkpoint,
                                              struct ree_completion *completion,
                                              struct ree_error *err);
// Call it after the run: fails if the last attempt to write the file failed. Releases nothing.
REE_API enum ree_status ree_checkpoint_close(const struct ree_checkpoint *checkpoint,
                                             struct ree_error *err);
REE_API void ree_checkpoint_destroy(struct ree_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif

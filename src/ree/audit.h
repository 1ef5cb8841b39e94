// Comparing two devices value by value, and disputes between two parties that computed different
// results.
#ifndef REE_AUDIT_H
#define REE_AUDIT_H

#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

// Comparing two devices
//
// Both sides run the same model with the same inputs, step by step (a step is one run of the
// model). The result of every node is compared byte by byte. Side A is the first argument, side B
// the second.

// How far the elements of two tensors are apart. The distance of two floats is in ulps: the number
// of steps from one to the other over the representable numbers. Does not change between versions.
//
// Bucket i > 0 has distances from 2^(i - 1) to 2^i - 1. Bucket 0 has elements with equal values but
// different bits: +0 and -0.
#define REE_ULP_BUCKETS 65
struct ree_ulp {
    uint64_t n, n_differ; // number of elements; number of elements whose bits differ
    // The fields below are about the elements that differ. True if these are float64, float32,
    // float16 or bfloat16; float8 elements count as integers.
    bool is_float;
    uint64_t histogram[REE_ULP_BUCKETS]; // elements per bucket; only of floats
    uint64_t n_sign;  // opposite signs, not counting zeros and NaNs; also in the histogram
    uint64_t n_nan;   // at least one of the two is a NaN; not in the histogram
    uint64_t max_ulp; // NaNs excluded; 0 for integers
    // Largest |a - b|; largest |a - b| / max(|a|, |b|). Infinite if one of the two is an infinity
    // or a NaN.
    double max_abs, max_rel;
    // Index of the worst element, valid if n_differ > 0: one with a NaN if there is any, else the
    // one with the largest distance (for integers, the largest difference); the first one if
    // several are equal.
    uint64_t worst;
    double worst_a, worst_b;
    uint64_t worst_ulp;
};
// The smallest and the largest distance of a bucket.
REE_API void ree_ulp_range(uint32_t bucket, uint64_t *out_first, uint64_t *out_last);

// Differences of one node, over all steps. Does not change between versions.
struct ree_drift {
    uint64_t n_runs;    // steps that ran the node
    uint64_t n_differ;  // steps in which its values differ
    uint64_t n_new;     // steps in which they differ although all values that it read agree
    bool other_shape;   // in a step the type or shape of an output differed: not counted in `ulp`
    struct ree_ulp ulp; // over all outputs; its worst element is not set
};

// The first difference. Does not change between versions.
struct ree_compare_first {
    // found: there is a difference; if not, the other fields are zero. inputs_agree: all values
    // that the node read agree. other_shape: the type or the shape differs; `ulp` is then zero.
    bool found, inputs_agree, other_shape;
    uint64_t step;        // from 0
    size_t node, output;  // numbers of the node and of its output
    const char *name;     // of the value
    enum ree_dtype dtype; // type and shape on side B
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    struct ree_ulp ulp; // of that output in that step
};

// A primitive of a device that the first differing node depends on, and that the device does not
// compute natively. Does not change between versions.
struct ree_suspect {
    unsigned side; // 0: A, 1: B
    const char *name, *verdict;
};

// Made by the library.
struct ree_compare_result {
    uint64_t n_steps;
    size_t n_nodes;
    const struct ree_drift *drift; // (n_nodes)
    struct ree_compare_first first;
    // Sums of n_differ and of n_new over all nodes.
    uint64_t n_differ, n_new;
    // (n_steps, n_nodes): largest relative error and largest distance in ulps of the node's outputs
    // in that step. Infinite if there is a NaN or the types or shapes differ.
    const float *rel, *ulp;
    size_t n_suspects; // for the first difference
    const struct ree_suspect *suspects;
    size_t n_ids; // generated tokens
    const int32_t *ids;
};

struct ree_comparison;

struct ree_compare_options {
    size_t size; // sizeof this struct
    // For tests: flips one bit on side B, like `fault` of struct ree_record_options. NULL: off.
    const char *fault;
    // The other fields are for ree_compare_generators.
    size_t max_new_tokens; // 0: only the prompt
    const int32_t *eos;    // ids that end the text
    size_t n_eos;
};

// Runs two sessions of one model once, with the same inputs, and compares them. The sessions may be
// made from one model or from two models with the same graph. They must not have run before, and
// must outlive the comparison. They may run again afterwards, as slowly as in the comparison.
// `options` may be NULL. Fails with REE_INVALID if the models differ, a session has run, or the
// fault is malformed or its step does not exist. Release *out_comparison with
// ree_comparison_destroy.
REE_API enum ree_status ree_compare_sessions(struct ree_session *a, struct ree_session *b,
                                             const struct ree_tensor *inputs, size_t n_inputs,
                                             const struct ree_compare_options *options,
                                             struct ree_comparison **out_comparison,
                                             struct ree_error *err);
// Like ree_compare_sessions, for two generators: runs both over a prompt, in chunks of
// prefill_chunk tokens, then over the tokens that A finds most likely. The generators must have
// been created with exact_lengths, one stage and the same prefill_chunk.
REE_API enum ree_status ree_compare_generators(struct ree_generator *a, struct ree_generator *b,
                                               const struct ree_prompt *prompt,
                                               const struct ree_compare_options *options,
                                               struct ree_comparison **out_comparison,
                                               struct ree_error *err);
// Borrowed from the comparison.
REE_API const struct ree_compare_result *
ree_comparison_result(const struct ree_comparison *comparison);
// Fills the name, domain, op_type, n_inputs and n_outputs of a node; the other fields are zero. The
// strings are borrowed from side A. The caller sets out_info->size. Fails with REE_NOT_FOUND if
// there is no such node.
REE_API enum ree_status ree_comparison_node(const struct ree_comparison *comparison, size_t node,
                                            struct ree_node_info *out_info, struct ree_error *err);
// Makes an HTML page with a plot of the differences from the first node to the last, and a table of
// nodes; `title` names the model. *out_html is as for ree_trace_diff_html.
REE_API enum ree_status ree_comparison_html(const struct ree_comparison *comparison,
                                            const char *title, char **out_html,
                                            struct ree_error *err);
REE_API void ree_comparison_destroy(struct ree_comparison *comparison);

// Disputes
//
// Two parties published different roots for one run. ree_dispute_hold finds the first difference by
// asking each party for a few digests, and checks every answer against that party's root. It ends
// with a claim, which ree_claim_decide decides, or names a party.

struct ree_receipt; // receipts and requests: receipt.h
struct ree_request;

// What is known of a party. Does not change between versions. All pointers are borrowed for the
// call.
struct ree_disputant {
    const struct ree_trace *trace;     // required by ree_dispute_hold; otherwise unused
    const struct ree_receipt *receipt; // NULL: none
    // The receipt must be signed with this key (64 hexadecimal digits); NULL: with any key, or not.
    const char *public_key;
    // The tokens of a private receipt, prompt and answer; NULL: unknown.
    const int32_t *tokens;
    size_t n_tokens;
};

struct ree_claim;

// A claim is the file that a dispute ends with: the first difference, what each party states about
// it, and proofs that both roots contain these statements. It may come from anyone: every field is
// checked. Fails with REE_INVALID if a field is malformed or a proof does not hold.
REE_API enum ree_status ree_claim_load(const char *path, struct ree_claim **out_claim,
                                       struct ree_error *err);
REE_API enum ree_status ree_claim_save(const struct ree_claim *claim, const char *path,
                                       struct ree_error *err);
REE_API void ree_claim_destroy(struct ree_claim *claim);

enum ree_claim_kind {
    REE_CLAIM_OF_NODE,   // a node of a step, with equal inputs
    REE_CLAIM_OF_INPUT,  // an input of a step: a cache, token ids, a mask
    REE_CLAIM_OF_TOKEN,  // the token chosen after a step
    REE_CLAIM_OF_HEADER, // the traces' headers
    REE_CLAIM_OF_LENGTH, // the number of steps
};
REE_API const char *ree_claim_kind_name(enum ree_claim_kind kind); // "node"

struct ree_claim_info {
    size_t size; // sizeof this struct
    enum ree_claim_kind kind;
    char roots[2][65];   // of A and B, in hexadecimal
    uint64_t n_steps[2]; // of A's and of B's trace
    uint64_t step;       // NODE and INPUT; TOKEN: the step that would read the token
    uint32_t input;      // INPUT: its number
    uint32_t node;       // NODE, like the following fields
    const char *name, *domain, *op_type; // "" if the node has none; borrowed from the claim
    uint32_t n_inputs;
};
// The caller sets out_info->size.
REE_API enum ree_status ree_claim_info(const struct ree_claim *claim,
                                       struct ree_claim_info *out_info, struct ree_error *err);

enum ree_dispute_kind {
    REE_DISPUTE_SAME, // equal roots
    // The headers differ and it is not known which one is the model's, or both parties have the
    // same header and it is not the model's.
    REE_DISPUTE_OTHER_RUN,
    REE_DISPUTE_INPUT, // the first difference is an input of the model
    REE_DISPUTE_NODE,  // the first difference is a node
    // One trace ends where the other continues, or a trace is not as long as its receipt says.
    REE_DISPUTE_LENGTH,
    REE_DISPUTE_LIED,          // a party contradicted what it is committed to
    REE_DISPUTE_SILENT,        // a party did not answer
    REE_DISPUTE_HEADER,        // a header is not the model's
    REE_DISPUTE_TOKEN,         // the receipts differ in a token that no step of both traces reads
    REE_DISPUTE_FALSE_RECEIPT, // a receipt contradicts itself, the model or the request
};
REE_API const char *ree_dispute_kind_name(enum ree_dispute_kind kind); // "same", "other_run", ...

struct ree_dispute_options {
    size_t size;       // sizeof this struct
    const char *model; // file or folder; NULL: not available. Required if there are receipts
    const struct ree_request *request; // that both receipts must answer; NULL: none
    bool wants_transcript;             // return the transcript in the result
    struct ree_progress progress;      // of reading the model
};

// Made by the library.
struct ree_dispute_result {
    enum ree_dispute_kind kind;
    uint64_t n_steps[2]; // as the parties state
    // INPUT, NODE and TOKEN: the disputed step. LENGTH: number of steps that agree.
    uint64_t step;
    uint32_t input;         // INPUT: its number
    const char *input_name; // INPUT
    bool same_headers;      // of both traces
    // For ree_claim_decide. NULL for SAME, OTHER_RUN, LIED, SILENT and FALSE_RECEIPT; for INPUT and
    // LENGTH also if the model is not available. Owned by this struct.
    const struct ree_claim *claim;
    // LIED, SILENT and FALSE_RECEIPT: which party (0: A), and what was wrong. For LIED and SILENT
    // only the caller knows: answers are not signed, so the transcript proves nothing to others.
    unsigned party;
    const char *reason;
    // ree_dispute_hold tried to name the wrong party. It needs the model, and cannot do so for
    // NODE: that requires the values that the node read (ree_claim_decide).
    bool is_judged;
    bool is_decided;       // with is_judged: it succeeded; false: `undecided` says why
    const char *undecided; // "" if is_decided or not is_judged
    bool is_wrong[2];
    const char *why[2];  // the reason for is_wrong
    bool is_withheld[2]; // the tokens of the party's private receipt would be needed
    // SAME, with receipts: the fields in which they differ although the roots are equal.
    size_t n_differences;
    const char *const *differences;
    uint64_t n_messages, n_bytes; // questions and answers; bytes of their JSON
    const char *transcript;       // one line of JSON per message; NULL: not requested
    size_t transcript_nbytes;
};

// Holds a dispute between two parties whose traces the caller has: the traces answer the questions.
// Either both parties have a receipt or neither. `options` may be NULL. Fails with REE_INVALID or
// REE_UNSUPPORTED, and the reason, if the receipts and the model cannot belong together. Release
// *out_result with ree_dispute_result_destroy.
REE_API enum ree_status ree_dispute_hold(const struct ree_disputant parties[2],
                                         const struct ree_dispute_options *options,
                                         struct ree_dispute_result **out_result,
                                         struct ree_error *err);
REE_API void ree_dispute_result_destroy(struct ree_dispute_result *result);

// The referee

enum ree_verdict { REE_VERDICT_A, REE_VERDICT_B, REE_VERDICT_NEITHER };
REE_API const char *ree_verdict_text(enum ree_verdict verdict); // "A is right"

struct ree_decide_options {
    size_t size; // sizeof this struct
    // dump_folder (struct ree_record_options) of either party's run: the values that the node read,
    // or the logits from which a token was chosen. They must have the digests of the claim. NULL:
    // none.
    const char *values;
    const struct ree_request *request; // that both receipts must answer; NULL: none
    struct ree_progress progress;      // of reading the model
};

// Made by the library.
struct ree_decision {
    enum ree_verdict verdict;
    bool is_wrong[2];
    const char *why[2]; // the reason for is_wrong; "" if it is false
    // The side's root is the trace root of a receipt. A root that no receipt states binds nobody.
    bool is_bound[2];
    // The available tokenizer is not the receipt's, so the party's stop texts cannot be found.
    bool is_end_unknown[2];
    // The fields below are for a claim about a node.
    // First input that the side states differently from the agreed one; first output of the side
    // that differs from the referee's; -1: none.
    int64_t misread[2], wrong_output[2];
    uint32_t n_outputs;            // outputs that the referee computed
    const char *const *outputs;    // (n_outputs) SHA-256 of each, 64 hexadecimal digits
    uint32_t n_loaded, n_constant; // inputs read from files; inputs that are constants of the model
};

// Decides a claim. Computes a disputed node on the CPU from the model and the values that the node
// read; derives everything else from the model, the receipts and what each party is committed to.
// Never names a party that did what the model requires. Fails with
// - REE_INVALID if the claim is inconsistent, is about another model or other receipts, or shows no
//   broken rule; or if the values do not have the digests that the parties are committed to
// - REE_NOT_FOUND if a file or a receipt is missing
// - REE_UNSUPPORTED if the claim is about another operation set than "reproducible", about other
//   numerics, or about a sequence
//
// `model` is a file or a folder. `parties` may be NULL: no receipts. `options` may be NULL. Release
// *out_decision with ree_decision_destroy.
REE_API enum ree_status ree_claim_decide(const struct ree_claim *claim, const char *model,
                                         const struct ree_disputant *parties,
                                         const struct ree_decide_options *options,
                                         struct ree_decision **out_decision, struct ree_error *err);
REE_API void ree_decision_destroy(struct ree_decision *decision);

// Receipts

// Does not change between versions.
struct ree_receipt_difference {
    char what[64]; // "weights", "prompt tokens", "seed", "output y", ...
    // What each receipt states, for people to read. Names and texts come from the receipts and may
    // contain control characters.
    char detail[256];
};
// Compares what two receipts state about their runs. Writes the first `max` differences and returns
// the number of all differences, which may be larger than `max`. Does not compare device names and
// other fields that describe how a receipt was made.
REE_API size_t ree_receipt_diff(const struct ree_receipt *a, const struct ree_receipt *b,
                                struct ree_receipt_difference *out_differences, size_t max);

#ifdef __cplusplus
}
#endif
#endif

// The claim that a dispute ends with: where two traces start to differ, what each party states
// about that point, and proofs that lead from these statements to the roots that the parties are
// committed to. Anyone who has the model can decide who is right (dispute/referee.h). Most kinds
// also require the receipts of both parties:
//
//     kind    the first difference                     decided by
//     node    a node of a step, with equal inputs      model, values that the node read
//     input   an input of a step: a cache, token ids,  model, receipts (not for a cache); for token
//             a mask (dispute/rules.h)                   ids the logits of the previous step
//     token   the token chosen after a step, if no     model, receipts, logits of that step
//             step of both traces reads it
//     header  the headers: nodes, constants, options   model, receipts
//     length  the number of steps                      model, receipts
//
// The file is canonical JSON (base/canonical_json.h). It is untrusted: decoding checks every field,
// and every digest in it must lead to a root. ree-claim/1 is still read. It only has claims of the
// kind "node", and one header for both parties.
#ifndef REE_DISPUTE_CLAIM_H
#define REE_DISPUTE_CLAIM_H

#include "base/strbuf.h"
#include "trace/trace.h"

#define REE_CLAIM_SCHEMA "ree-claim/2"
#define REE_CLAIM_SCHEMA_1 "ree-claim/1"

struct ree_claim_proof {
    uint32_t n;
    ree_digest *digests; // siblings from the bottom up
};

// What a party states about a step, and about one node of it.
struct ree_claim_opening {
    struct ree_claim_proof step_proof; // from the step to steps_root
    ree_digest inputs_root, nodes_root;
    ree_digest *inputs, *outputs;      // digests of what the node read and of what it computed
    struct ree_claim_proof node_proof; // from the node to nodes_root
};

// What one party states about its trace.
struct ree_claim_side {
    ree_digest root;   // root of the trace
    ree_digest header; // digest of the trace's header
    uint64_t n_steps;
    // Claims of kind HEADER or LENGTH: top of the tree of steps (base/merkle.h).
    ree_digest steps_top;
    ree_digest steps_root;
    // Claims of kind NODE: the disputed step and node. Kind INPUT: the disputed step; the fields
    // about a node are not used.
    struct ree_claim_opening at;
    // Claims of kind INPUT: digest of the disputed input.
    ree_digest input;
    // Claims of kind INPUT: proof from the disputed input to at.inputs_root.
    struct ree_claim_proof input_proof;
    // If ree_claim.has_before: the previous step, and its node ree_claim.before.node.
    struct ree_claim_opening before;
};

enum ree_claim_source {
    REE_CLAIM_OMITTED,
    REE_CLAIM_CONSTANT, // a constant of the model; its digest is in the header
    REE_CLAIM_INPUT,    // an input of the model, in this step
    REE_CLAIM_NODE,     // an output of an earlier node of this step
};

// One input of the disputed node, as both parties state it.
struct ree_claim_input {
    enum ree_claim_source source;
    uint32_t index;    // index of the source among the constants, inputs or nodes
    ree_digest digest; // digest of the value; if a node computed it: equals outputs[output]
    // If `source` is REE_CLAIM_NODE, the fields up to `outputs` describe the source: the node that
    // computed the value.
    uint32_t output;              // index of the value among the source node's outputs
    uint32_t record_of;           // the input whose record this is: its own, or an earlier one's
    ree_digest op;                // digest `op` of the source node (trace.h)
    uint32_t n_inputs, n_outputs; // number of the source node's inputs and outputs
    // digests of the source node's inputs and outputs; both parties state the same
    ree_digest *inputs, *outputs;
    // For each party: proof from the model input or source node to the party's root of the step's
    // inputs or nodes. Unused for other sources.
    struct ree_claim_proof proofs[2];
};

// An output of a node of the previous step: the value that the disputed input must equal, or the
// logits from which the disputed token is chosen.
struct ree_claim_before {
    uint32_t node, output;
    ree_digest op;
    uint32_t n_inputs, n_outputs;
};

struct ree_claim {
    struct ree_arena arena;
    unsigned version;       // version of the file's schema: 1 or 2
    uint32_t trace_version; // version of both traces; with schema 1 REE_TRACE_NAMED
    enum ree_claim_kind kind;
    // Digest of the header of both traces. A HEADER claim has the digest of the header that both
    // traces should have.
    ree_digest header;
    char graph_sha256[65], weights_sha256[65];
    const char *numerics, *operation_set;
    uint32_t prefill_chunk;
    uint32_t n_step_inputs, n_nodes; // number of model inputs; number of nodes
    // The disputed point.
    // Claims of kind NODE or INPUT: index of the disputed step. Kind TOKEN: index of the step that
    // would read the token.
    uint64_t step;
    // Claims of kind INPUT: index of the disputed input among the model's inputs.
    uint32_t input;
    // `before` is set: for claims of kind TOKEN, and for those of kind INPUT if the value follows
    // from the previous step.
    bool has_before;
    struct ree_claim_before before;
    // The following fields are for claims of kind NODE.
    uint32_t node;
    // Only the fields from name to attributes are set. A decoded claim has a name only if the traces
    // depend on names.
    struct ree_trace_node op;
    uint32_t n_inputs, n_outputs;
    struct ree_claim_input *inputs;
    struct ree_claim_side sides[2];
};

struct ree_claim *ree_claim_create(void); // returns an empty claim; NULL: out of memory

// Returns whether input i, which comes from a node, has the record of an earlier input: the same
// arrays, not equal ones.
bool ree_claim_shares_record(const struct ree_claim *claim, uint32_t i);

// Appends canonical JSON and a newline.
enum ree_status ree_claim_encode(const struct ree_claim *claim, struct ree_strbuf *out,
                                 struct ree_error *err);
// Decodes a claim. Fails if the text is not exactly what encoding the result gives: this rejects
// unknown fields and other layouts. Does not check proofs.
enum ree_status ree_claim_decode(const void *text, size_t nbytes, struct ree_claim **out,
                                 struct ree_error *err);

// Checks that every digest leads to the root of its side, and that the two sides differ where the
// kind requires it. Fails with REE_INVALID and a message that says what is wrong. Does not check
// that the node is the one of the model's graph; the referee does.
enum ree_status ree_claim_check(const struct ree_claim *claim, struct ree_error *err);
// Returns the index of the first input of the disputed node for which the side's record of the node
// has another digest than the one that both parties agreed on; -1: none. If it is not -1, the side
// contradicts itself.
int64_t ree_claim_misread(const struct ree_claim *claim, unsigned side);

// Compute the digests of a node and a step, as trace/trace.h defines them.
void ree_claim_node_digest(const ree_digest op, uint32_t n_inputs, const ree_digest *inputs,
                           uint32_t n_outputs, const ree_digest *outputs, ree_digest out);
void ree_claim_step_digest(uint64_t step, const ree_digest inputs_root, const ree_digest nodes_root,
                           ree_digest out);

#endif

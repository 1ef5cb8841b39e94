// The claim that a dispute ends with: where two traces part, what either party says there, and
// proofs that lead from there to the roots that the parties are committed to. Whoever has the model
// can say who is right (audit/referee.h), for most kinds together with the receipts of both
// parties:
//
//     kind    where the traces part                        decided by
//     node    a node of a step, with the same inputs       model, values that the node read
//     input   an input of a step: a cache, token ids,      model, receipts (not for a cache); for
//             a mask (audit/rules.h)                       token ids the logits of the step before
//     token   the token chosen after a step that no        model, receipts, logits of that step
//             step of both traces reads
//     header  the headers: nodes, constants, options       model, receipts
//     length  the number of steps                          model, receipts
//
// The file is canonical JSON (receipt/canonical.h). It is untrusted: what is read back is checked
// field by field, and every digest in it leads to a root. ree-claim/1, which is still read, has
// claims of the kind "node" only, and one header for both parties.
#ifndef REE_AUDIT_CLAIM_H
#define REE_AUDIT_CLAIM_H

#include "base/strbuf.h"
#include "receipt/trace.h"

#define REE_CLAIM_SCHEMA "ree-claim/2"
#define REE_CLAIM_SCHEMA_1 "ree-claim/1"

struct ree_claim_proof {
    uint32_t n;
    ree_digest *digests; // siblings from the bottom up
};

enum ree_claim_kind {
    REE_CLAIM_OF_NODE,
    REE_CLAIM_OF_INPUT,
    REE_CLAIM_OF_TOKEN,
    REE_CLAIM_OF_HEADER,
    REE_CLAIM_OF_LENGTH,
};
const char *ree_claim_kind_name(enum ree_claim_kind kind); // "node"

// What a party says of a step, and of one node of it.
struct ree_claim_opening {
    struct ree_claim_proof step_proof; // of the step, to steps_root
    ree_digest inputs_root, nodes_root;
    ree_digest *inputs, *outputs;      // of the node
    struct ree_claim_proof node_proof; // to nodes_root
};

// What one party says.
struct ree_claim_side {
    ree_digest root;   // of the trace
    ree_digest header; // digest of its header
    uint64_t n_steps;
    ree_digest steps_top; // of HEADER and LENGTH: the top of the tree of steps (receipt/merkle.h)
    ree_digest steps_root;
    struct ree_claim_opening at;        // of NODE; of INPUT without the node
    ree_digest input;                   // of INPUT
    struct ree_claim_proof input_proof; // to at.inputs_root
    struct ree_claim_opening before;    // of claims with has_before: of the step before
};

enum ree_claim_source {
    REE_CLAIM_OMITTED,
    REE_CLAIM_CONSTANT, // of the model; its digest is in the header
    REE_CLAIM_INPUT,    // of the model, in this step
    REE_CLAIM_NODE,     // output of an earlier node of this step
};

// What an input of the node is, agreed by both parties.
struct ree_claim_input {
    enum ree_claim_source source;
    uint32_t index;                   // among constants, inputs or nodes
    ree_digest digest;                // of the value; of NODE: outputs[output]
    uint32_t output;                  // of NODE, as are the following
    ree_digest op;                    // (trace.h)
    uint32_t n_inputs, n_outputs;     // of that node
    ree_digest *inputs, *outputs;     // what both say of it
    struct ree_claim_proof proofs[2]; // of INPUT and NODE, one for each party
};

// Which output of a node of the step before an input has to be, or is chosen from.
struct ree_claim_before {
    uint32_t node, output;
    ree_digest op;
    uint32_t n_inputs, n_outputs;
};

struct ree_claim {
    struct ree_arena arena;
    unsigned version; // of the schema: 1 or 2
    enum ree_claim_kind kind;
    // Of the header that both traces have; of HEADER, the one that they must have.
    ree_digest header;
    char graph_sha256[65], weights_sha256[65];
    const char *numerics, *operation_set;
    uint32_t prefill_chunk;
    uint32_t n_step_inputs, n_nodes; // inputs of the model; nodes
    // What is disputed.
    uint64_t step;   // of NODE and INPUT; of TOKEN the step that would read the token
    uint32_t input;  // of INPUT
    bool has_before; // always of TOKEN; of INPUT where there is a step before that decides
    struct ree_claim_before before;
    // Of NODE.
    uint32_t node;
    struct ree_trace_node op; // name to attributes alone
    uint32_t n_inputs, n_outputs;
    struct ree_claim_input *inputs;
    struct ree_claim_side sides[2];
};

struct ree_claim *ree_claim_create(void); // empty; NULL: out of memory
void ree_claim_destroy(struct ree_claim *claim);

// Canonical JSON and a line end.
enum ree_status ree_claim_encode(const struct ree_claim *claim, struct ree_strbuf *out,
                                 struct ree_error *err);
// Refuses what encoding would not give: unknown fields, other ways of writing the same. Does not
// check proofs.
enum ree_status ree_claim_decode(const void *text, size_t nbytes, struct ree_claim **out,
                                 struct ree_error *err);
enum ree_status ree_claim_load(const char *path, struct ree_claim **out, struct ree_error *err);

// Whether every digest leads to the root of its side, and the two sides differ where they must.
// REE_INVALID, with what is wrong. That the node is the one of the model's graph is for the referee
// to check.
enum ree_status ree_claim_check(const struct ree_claim *claim, struct ree_error *err);
// The first input of the node that a side's record has another digest for than what both agree on;
// -1: none. Such a side contradicts itself.
int64_t ree_claim_misread(const struct ree_claim *claim, unsigned side);

// The digests that claims are checked by.
void ree_claim_node_digest(const ree_digest op, uint32_t n_inputs, const ree_digest *inputs,
                           uint32_t n_outputs, const ree_digest *outputs, ree_digest out);
void ree_claim_step_digest(uint64_t step, const ree_digest inputs_root, const ree_digest nodes_root,
                           ree_digest out);
void ree_claim_trace_digest(const ree_digest header, const ree_digest steps_root, ree_digest out);
void ree_claim_op_digest(const struct ree_trace_node *op, ree_digest out);

#endif

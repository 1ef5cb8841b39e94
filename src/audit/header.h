// A trace's header from a loaded model: its nodes after the passes, its constants, what each node
// reads. receipt/trace.h says what is hashed.
#ifndef REE_AUDIT_HEADER_H
#define REE_AUDIT_HEADER_H

#include "graph/ir.h"
#include "receipt/trace.h"
#include "session/state.h"

struct ree_audit_options {
    const char *graph_sha256, *weights_sha256; // of the model (ree_model_graph_sha256, ...)
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk; // 0: a model without steps
    size_t n_states;        // as ree_session_keep was given them
    const struct ree_state_spec *states;
    bool is_secret; // a trace file is for its owner only
    // Of hashing the constants: done and total in bytes; NULL: off.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
};

// Everything is in the arena, but strings that are the model's own. Hashes every constant that a
// node reads, on all cores: as much work as the model's weights_sha256.
enum ree_status ree_audit_header(const struct ree_model *model,
                                 const struct ree_audit_options *options, struct ree_arena *arena,
                                 struct ree_trace_header *out, struct ree_error *err);

// What a node of the model's graph reads: the inputs that it lists (NULL where omitted), and behind
// them the values of that graph that its subgraphs read, each once.
enum ree_status ree_audit_inputs(const struct ree_node *node, struct ree_arena *arena,
                                 struct ree_value *const **out, uint32_t *out_n,
                                 struct ree_error *err);
// The digest of its attributes; inputs[n] are those of ree_audit_inputs.
enum ree_status ree_audit_attributes(const struct ree_node *node, struct ree_value *const *inputs,
                                     uint32_t n, ree_digest out, struct ree_error *err);
// The digest of a value of any kind, as if its NaNs were canonical.
void ree_audit_value_digest(const struct ree_tensor *tensor, ree_digest out);
// A constant of a graph, as a tensor that borrows everything.
struct ree_tensor ree_audit_constant(const struct ree_value *value);

#endif

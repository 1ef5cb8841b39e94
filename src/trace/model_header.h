// Makes a trace's header from a loaded model: its nodes after the passes, its constants, and what
// each node reads. trace/trace.h defines what is hashed.
#ifndef REE_TRACE_MODEL_HEADER_H
#define REE_TRACE_MODEL_HEADER_H

#include "graph/ir/ir.h"
#include "trace/trace.h"
#include "session/kv_cache.h"

struct ree_trace_header_options {
    uint32_t version;                          // of the format; 0: REE_TRACE_LATEST
    const char *graph_sha256, *weights_sha256; // identity of the model, in hexadecimal
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk; // prompt tokens per step; 0: the model runs in one step
    size_t n_kv_caches;     // length of kv_caches[], as for ree_session_declare_kv_caches
    const struct ree_kv_cache_spec *kv_caches;
    bool is_secret;               // only the owner may read the trace file (mode 0600)
    struct ree_progress progress; // receives reports of hashing the constants, in bytes
};

// Makes the header *out. Allocates its data in the arena, but borrows names from the model. Hashes
// every constant that a node reads, on all cores; this takes as long as computing the model's
// weights_sha256.
enum ree_status ree_trace_describe(const struct ree_model *model,
                                   const struct ree_trace_header_options *options,
                                   struct ree_arena *arena, struct ree_trace_header *out,
                                   struct ree_error *err);

// Lists the values that a node of the model's graph reads: first its own inputs (NULL if omitted),
// then the values of the model's graph that its subgraphs read, each once. The list is allocated in
// the arena or borrowed from the node.
enum ree_status ree_trace_node_inputs(const struct ree_node *node, struct ree_arena *arena,
                                      struct ree_value *const **out, uint32_t *out_n,
                                      struct ree_error *err);
// Computes the digest of the node's attributes (trace.h) in a version of the format. inputs[n] must
// be the list that ree_trace_node_inputs makes.
enum ree_status ree_trace_attributes_digest(const struct ree_node *node,
                                            struct ree_value *const *inputs, uint32_t n,
                                            uint32_t version, ree_digest out,
                                            struct ree_error *err);
// Computes the digest of a tensor, a sequence or an absent value, with canonical NaNs.
void ree_trace_tensor_digest(const struct ree_tensor *tensor, ree_digest out);
// Returns a constant of a graph as a tensor, which borrows its name and data from `value`.
struct ree_tensor ree_trace_constant_tensor(const struct ree_value *value);

#endif

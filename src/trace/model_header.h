// Makes a trace's header from a loaded model: its nodes after the passes, its constants, and what
// each node reads. trace/trace.h defines what is hashed.
#ifndef REE_TRACE_MODEL_HEADER_H
#define REE_TRACE_MODEL_HEADER_H

#include "graph/ir/ir.h"
#include "trace/trace.h"
#include "session/kv_cache.h"

struct ree_trace_header_options {
    const char *graph_sha256, *weights_sha256; // of the model (ree_model_graph_sha256, ...)
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk; // 0: the model has no steps
    size_t n_kv_caches;     // the same as passed to ree_session_declare_kv_caches
    const struct ree_kv_cache_spec *kv_caches;
    bool is_secret;               // only the owner may read the trace file (mode 0600)
    struct ree_progress progress; // of hashing the constants, in bytes
};

// Allocates everything in the arena, except strings that are borrowed from the model. Hashes every
// constant that a node reads, on all cores: as much work as the model's weights_sha256.
enum ree_status ree_trace_describe(const struct ree_model *model,
                                   const struct ree_trace_header_options *options,
                                   struct ree_arena *arena, struct ree_trace_header *out,
                                   struct ree_error *err);

// Lists what a node of the model's graph reads: first the inputs that the node lists (NULL if
// omitted), then the values of that graph that its subgraphs read, each once.
enum ree_status ree_trace_node_inputs(const struct ree_node *node, struct ree_arena *arena,
                                      struct ree_value *const **out, uint32_t *out_n,
                                      struct ree_error *err);
// Digest of the node's attributes. inputs[n] must be the list from ree_trace_node_inputs.
enum ree_status ree_trace_attributes_digest(const struct ree_node *node,
                                            struct ree_value *const *inputs, uint32_t n,
                                            ree_digest out, struct ree_error *err);
// Digest of a value of any kind, with canonical NaNs.
void ree_trace_tensor_digest(const struct ree_tensor *tensor, ree_digest out);
// A constant of a graph as a tensor that borrows its name and data.
struct ree_tensor ree_trace_constant_tensor(const struct ree_value *value);

#endif

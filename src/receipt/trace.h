// A trace: what every node of a model computed in every step, as digests, under one root. Two runs
// with the same root did the same; of two that differ, the first node that does is found by
// comparing (src/audit/diff.h), or by exchanging a few hashes (src/audit/dispute.h).
//
// A step is one run of the model. Which steps there are depends on how a prompt was cut, so that is
// part of what the root binds. Nodes are those of the graph after the passes of this version of
// ree, in the order in which they run; of what If, Loop and Scan do inside, their outputs alone
// count.
//
//     value   = the tensor, sequence or absent value's digest (sha256.h); NaNs canonical
//     cache   = rows along one axis, chained, so that a step hashes its new rows alone:
//               c[0]     = SHA-256("ree-rows/1\0" | u32 dtype | u32 rank | u32 axis |
//                                  i64 dims[rank], that of the axis 0)
//               c[i + 1] = SHA-256("ree-row/1\0" | c[i] | row i, its elements row-major)
//     op      = SHA-256("ree-op/1\0" | name | domain | operator | i64 opset | attributes)
//     node    = SHA-256("ree-node/1\0" | op | u32 n inputs | digests | u32 n outputs | digests)
//               with 32 zero bytes for an input or output that the node omits. Behind the inputs
//               that it lists stand the values of the model's graph that its subgraphs read, in
//               the order in which they are first read, each once
//     step    = SHA-256("ree-step/1\0" | u64 step | root of the inputs | root of the nodes)
//     trace   = SHA-256("ree-trace/1\0" | SHA-256 of the header | root of the steps)
//
// where strings are u32 length | bytes, integers are little-endian and roots are those of merkle.h.
// Constants, too, are hashed with canonical NaNs.
//
//     attributes = SHA-256("ree-attributes/1\0" | u32 number | each, by name in ascending order of
//                  bytes: name | u8 kind | contents)
//       kind 1, an integer: i64; 2, a float: its 32 bits; 3, a string
//       kind 4, a tensor: its digest, bits as the model has them
//       kind 5, a graph: its digest, below
//       kind 6, integers: u64 number | i64 each; 7, floats; 8, strings, likewise
//       kind 9, a type: u32 dtype | u8 kind of value (0 tensor, 1 sequence) | u8 optional |
//               u8 has shape | u32 rank | i64 dims, -1 where unknown
//     graph      = SHA-256("ree-body/1\0" |
//                  u32 number of inputs | each: name | u32 dtype |
//                  u32 number of nodes | each: op | u32 n inputs | references |
//                                              u32 n outputs | u8 each: 1, or 0 where omitted |
//                  u32 number of outputs | references)
//       reference: u8 0, omitted; u8 1 | u32 levels outwards | u32 k, input k of the graph there;
//                  u8 2 | u32 levels | u32 node | u32 output; u8 3 | tensor digest, a constant; u8
//                  4 | u32 k, of the model's graph: the node's input k as listed above
//
// The file: "ree-trace/1\n" | u64 bytes of the header | header | steps | "end\n" | u64 number of
// steps | trace. The header is canonical JSON (canonical.h); a step is a digest for each input of
// the model and for each output of each node, in order, omitted outputs included.
#ifndef REE_RECEIPT_TRACE_H
#define REE_RECEIPT_TRACE_H

#include "base/arena.h"
#include "receipt/merkle.h"

#define REE_TRACE_OMITTED (-1)

struct ree_trace_input {
    const char *name;
    int32_t cache_axis; // of a cache, the axis of its rows; -1: no cache
};

struct ree_trace_constant {
    const char *name;
    ree_digest digest; // of the tensor
};

// Values are numbered: the inputs, then the constants, then each node's outputs.
struct ree_trace_node {
    const char *name, *domain, *op_type; // of the node; "" where it has none
    int64_t opset;
    ree_digest attributes;
    uint32_t n_inputs;
    int32_t *inputs; // values; REE_TRACE_OMITTED
    uint32_t n_outputs;
    uint32_t first_output; // value number of output 0
    bool *omitted;         // per output
};

struct ree_trace_header {
    char graph_sha256[65], weights_sha256[65]; // of the model (ree.h)
    const char *numerics;                      // "RepOps/1"
    const char *operation_set;
    uint32_t prefill_chunk; // tokens of a prompt in a step; 0: a model without steps
    uint32_t n_inputs;
    struct ree_trace_input *inputs;
    uint32_t n_constants;
    struct ree_trace_constant *constants;
    uint32_t n_nodes;
    struct ree_trace_node *nodes;
    // Derived by ree_trace_header_complete.
    uint32_t n_values;       // all
    uint32_t n_step_digests; // of a step: n_inputs and all outputs
    ree_digest digest;       // of its canonical JSON
    ree_digest *ops;         // per node
};

// Numbers the outputs and computes what is derived, in the arena. Fails where an input of a node is
// no value of an earlier one.
enum ree_status ree_trace_header_complete(struct ree_trace_header *header, struct ree_arena *arena,
                                          struct ree_error *err);
// Place of a value among the digests of a step; -1: it is a constant.
int64_t ree_trace_place(const struct ree_trace_header *header, uint32_t value);

// Digests from those of a step (n_step_digests of them).
void ree_trace_value_digest(const struct ree_trace_header *header, const ree_digest *step,
                            int32_t value, ree_digest out); // zeros for REE_TRACE_OMITTED
void ree_trace_node_digest(const struct ree_trace_header *header, const ree_digest *step,
                           uint32_t node, ree_digest out);
// The leaf of the step; `nodes` (n_nodes, may be NULL) receives the digest of each node.
void ree_trace_step_digest(const struct ree_trace_header *header, uint64_t number,
                           const ree_digest *step, ree_digest *nodes, ree_digest out);
void ree_trace_root(const struct ree_trace_header *header, const ree_digest *steps, uint64_t n,
                    ree_digest out);

// The digest of a cache, row by row (above). `tensor` holds the rows alone that are added; its dims
// but the axis have to be those of the beginning.
struct ree_trace_rows {
    uint32_t axis;
    int64_t n_rows;
    ree_digest digest;
};
void ree_trace_rows_begin(struct ree_trace_rows *rows, const struct ree_tensor *tensor,
                          uint32_t axis);
void ree_trace_rows_add(struct ree_trace_rows *rows, const struct ree_tensor *tensor);

// Writing. The file appears under its name when it is finished, whole; until then nothing does.
// `mode` is without the user's mask: 0666, or 0600 for the trace of a private run, whose digests
// tell the tokens to whoever guesses them.
struct ree_trace_writer;
enum ree_status ree_trace_writer_create(const char *path, unsigned mode,
                                        const struct ree_trace_header *header,
                                        struct ree_trace_writer **out, struct ree_error *err);
enum ree_status ree_trace_writer_step(struct ree_trace_writer *writer, const ree_digest *step,
                                      struct ree_error *err);
// Releases the writer in any case. `root` may be NULL.
enum ree_status ree_trace_writer_finish(struct ree_trace_writer *writer, ree_digest root,
                                        struct ree_error *err);
void ree_trace_writer_abandon(struct ree_trace_writer *writer); // accepts NULL

// Reading. The file is untrusted: everything is checked, the root included.
struct ree_trace {
    struct ree_arena arena;
    const char *path;
    struct ree_trace_header header;
    uint64_t n_steps;
    ree_digest *digests; // (n_steps, header.n_step_digests), within `bytes`
    ree_digest root;
    void *bytes; // of the file; owned
};
enum ree_status ree_trace_load(const char *path, struct ree_trace **out, struct ree_error *err);
enum ree_status ree_trace_decode(const void *bytes, size_t nbytes, const char *path,
                                 struct ree_trace **out, struct ree_error *err);
void ree_trace_destroy(struct ree_trace *trace);
const ree_digest *ree_trace_step(const struct ree_trace *trace, uint64_t step);

#endif

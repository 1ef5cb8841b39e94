// A trace: digests of what every node of a model computed in every step, under one root. Two runs
// with the same root computed the same values. If two roots differ, the first node that differs is
// found by comparing the traces (ree_trace_diff) or by exchanging a few hashes
// (src/dispute/dispute.h).
//
// A step is one run of the model. The steps depend on how a prompt is cut into chunks, so the root
// also binds the chunk size. Nodes are those of the graph after the passes of this version of ree,
// in the order in which they run. Of If, Loop and Scan only the outputs are hashed, not the
// values computed inside their subgraphs.
//
//     value   = digest of the tensor, sequence or absent value (sha256.h); NaNs canonical
//     cache   = chain over the positions along one axis, so that a step hashes only new positions:
//               c[0]     = SHA-256("ree-rows/1\0" | u32 dtype | u32 rank | u32 axis |
//                                  i64 dims[rank], with 0 for the dimension of the axis)
//               c[i + 1] = SHA-256("ree-row/1\0" | c[i] | the elements at position i, row-major)
//     op      = SHA-256("ree-op/2\0" | domain | operator | i64 opset | attributes)
//     node    = SHA-256("ree-node/1\0" | op | u32 n inputs | digests | u32 n outputs | digests)
//               with 32 zero bytes for an input or output that the node omits. The inputs that the
//               node lists are followed by the values of the model's graph that its subgraphs read,
//               each once, in the order in which they are first read
//     step    = SHA-256("ree-step/1\0" | u64 step | root of the inputs | root of the nodes)
//     trace   = SHA-256("ree-trace/2\0" | digest of the header | root of the steps)
//
// The digest of the header is the SHA-256 of its canonical JSON in which the names of nodes and of
// constants are empty: a model's identity does not cover these names, so a root must not depend on
// them. The file has them, for people.
//
// Version 1, which ree 0.1.0 wrote, is still read, and is made to verify a receipt of version 1.
// Its tags end in /1, its op begins with the node's name, and its header is hashed with all names.
//
// Strings are u32 length | bytes, integers are little-endian, and roots are those of merkle.h.
// Constants are also hashed with canonical NaNs.
//
//     attributes = SHA-256("ree-attributes/1\0" | u32 number | each attribute, sorted by the bytes
//                  of its name: name | u8 kind | contents)
//       kind 1, an integer: i64; 2, a float: its 32 bits; 3, a string
//       kind 4, a tensor: its digest, with the bits that the model has
//       kind 5, a graph: its digest, below
//       kind 6, integers: u64 number | i64 each; 7, floats; 8, strings, likewise
//       kind 9, a type: u32 dtype | u8 kind of value (0 tensor, 1 sequence) | u8 optional |
//               u8 has shape | u32 rank | i64 dims, -1 if unknown
//     graph      = SHA-256("ree-body/1\0" |
//                  u32 number of inputs | each: name | u32 dtype |
//                  u32 number of nodes | each: op | u32 n inputs | references |
//                                              u32 n outputs | u8 each: 1, or 0 if omitted |
//                  u32 number of outputs | references)
//       reference: u8 0: omitted
//                  u8 1 | u32 levels outwards | u32 k: input k of the graph at that level
//                  u8 2 | u32 levels outwards | u32 node | u32 output: an output of a node
//                  u8 3 | tensor digest: a constant
//                  u8 4 | u32 k: a value of the model's graph, input k of the node as listed above
//
// The file: "ree-trace/2\n" | u64 size of the header in bytes | header | steps | "end\n" | u64
// number of steps | trace. The header is canonical JSON (base/canonical_json.h). A step is one
// digest for each input of the model and for each output of each node, in order, including omitted
// outputs.
#ifndef REE_TRACE_TRACE_H
#define REE_TRACE_TRACE_H

#include "base/arena.h"
#include "base/merkle.h"
#include "base/cache_digest.h"
#include "base/strbuf.h"
#include "ree.h"

#define REE_TRACE_OMITTED REE_VALUE_OMITTED

struct ree_trace_input {
    const char *name;
    // Dimension of the positions, if the input is a kv cache; otherwise -1.
    int32_t cache_axis;
};

struct ree_trace_constant {
    const char *name;
    ree_digest digest; // digest of the constant's tensor
};

// A node and the numbers of its values. All values of a model are numbered from 0: first the
// inputs, then the constants, then the outputs of each node, in order, including omitted outputs.
struct ree_trace_node {
    const char *name, *domain, *op_type; // "" if the node has none
    int64_t opset;
    ree_digest attributes;
    uint32_t n_inputs;
    // [n_inputs]: numbers of the values that the node reads; REE_TRACE_OMITTED: omitted input.
    int32_t *inputs;
    uint32_t n_outputs;
    uint32_t first_output; // number of the value that is output 0
    bool *omitted;         // [n_outputs]: the node omits this output
};

// Versions of the format
#define REE_TRACE_NAMED 1u // the root depends on the names of nodes and constants
#define REE_TRACE_LATEST 2u

struct ree_trace_header {
    uint32_t version;
    char graph_sha256[65], weights_sha256[65]; // identity of the model, in hexadecimal
    const char *numerics;                      // numerics version, "RepOps/1"
    const char *operation_set;
    uint32_t prefill_chunk; // prompt tokens per step; 0: the model runs in one step
    uint32_t n_inputs;
    struct ree_trace_input *inputs;
    uint32_t n_constants;
    struct ree_trace_constant *constants;
    uint32_t n_nodes;
    struct ree_trace_node *nodes;
    // The fields below are computed by ree_trace_header_complete.
    uint32_t n_values;       // number of inputs, constants and outputs
    uint32_t n_step_digests; // number of digests per step: inputs and outputs
    ree_digest digest;       // digest of the header
    ree_digest *ops;         // [n_nodes]: digest of each node's operator, opset and attributes
};

// Computes first_output of each node and the fields from n_values on; allocates in the arena. Fails
// with REE_INVALID if a node reads a value that is no input, constant or output of an earlier node,
// and with REE_UNSUPPORTED if there are 2^31 values or more or the encoded header is larger than
// REE_TRACE_MAX_HEADER.
enum ree_status ree_trace_header_complete(struct ree_trace_header *header, struct ree_arena *arena,
                                          struct ree_error *err);
// Returns the index of a value's digest among the digests of a step, or -1 if it is a constant.
int64_t ree_trace_digest_index(const struct ree_trace_header *header, uint32_t value);

// Compute the digest of a value (zeros for REE_TRACE_OMITTED) and of a node from `step`, the
// n_step_digests digests of a step.
void ree_trace_value_digest(const struct ree_trace_header *header, const ree_digest *step,
                            int32_t value, ree_digest out);
void ree_trace_node_digest(const struct ree_trace_header *header, const ree_digest *step,
                           uint32_t node, ree_digest out);
// ree_trace_step_digest computes the digest of step `number` from its n_step_digests digests
// `step`. `nodes` (n_nodes entries, or NULL) receives the digest of each node. ree_trace_root
// computes the trace's root from the digests of its n steps.
void ree_trace_step_digest(const struct ree_trace_header *header, uint64_t number,
                           const ree_digest *step, ree_digest *nodes, ree_digest out);
// ree_trace_op_digest computes the digest `op` of a node from its fields up to `attributes`.
void ree_trace_op_digest(const struct ree_trace_node *node, uint32_t version, ree_digest out);
void ree_trace_root(const struct ree_trace_header *header, const ree_digest *steps, uint64_t n,
                    ree_digest out);

// Computes a trace's root from the digest of its header and the root of its steps.
void ree_trace_root_digest(uint32_t version, const ree_digest header, const ree_digest steps,
                           ree_digest out);

// Writes a trace to a file, step by step. The file appears under its name only when it is complete.
// `mode` is the file mode before the umask: 0666, or 0600 for the trace of a private run, because
// its digests allow any reader to confirm a guess at the tokens.
struct ree_trace_writer;
enum ree_status ree_trace_writer_create(const char *path, unsigned mode,
                                        const struct ree_trace_header *header,
                                        struct ree_trace_writer **out, struct ree_error *err);
enum ree_status ree_trace_writer_step(struct ree_trace_writer *writer, const ree_digest *step,
                                      struct ree_error *err);
// Completes the file and releases the writer, also on failure. `root` receives the trace's root; it
// may be NULL.
enum ree_status ree_trace_writer_finish(struct ree_trace_writer *writer, ree_digest root,
                                        struct ree_error *err);
void ree_trace_writer_abandon(struct ree_trace_writer *writer); // discards the file; accepts NULL

// A trace read from a file. The file is untrusted: reading checks all of it, including the root.
struct ree_trace {
    struct ree_arena arena;
    const char *path;
    struct ree_trace_header header;
    uint64_t n_steps;
    ree_digest *digests; // (n_steps, header.n_step_digests), within `bytes`
    ree_digest root;
    void *bytes; // contents of the file; owned
};
enum ree_status ree_trace_decode(const void *bytes, size_t nbytes, const char *path,
                                 struct ree_trace **out, struct ree_error *err);
const ree_digest *ree_trace_step(const struct ree_trace *trace, uint64_t step);
// Appends a description of a node, for example "node 12 'split' (Split)". Its names are from an
// untrusted file, so the text must be escaped before it is printed to a terminal.
void ree_trace_append_node(const struct ree_trace_header *header, uint32_t node,
                           struct ree_strbuf *out);

#endif

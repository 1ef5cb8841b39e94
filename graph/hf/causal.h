// A decoder as an ONNX graph: what the files that write its parts share. Arrays of names are up to
// where a part has no more. Labels name a part by its layer ("layers.3.self_attn"); a node's name
// is its output's, and never ends as a tensor of a checkpoint does (".weight", ".bias").
//
// The graph comes in two forms. Opset 23 has operators for attention, rotary embedding and RMS
// norms; opset 17 has only their steps. Both compute the same sequences of NUMERICS.md.
#ifndef REE_GRAPH_HF_CAUSAL_H
#define REE_GRAPH_HF_CAUSAL_H

#include "graph/hf/config.h"
#include "graph/hf/output.h"
#include "graph/hf/writer.h"

struct ree_causal_options {
    bool steps;     // the form of opset 17
    uint32_t bits;  // of quantised matrices: 4, 8, or 0 for none
    uint32_t block; // numbers that share a scale
    // Where copied and quantised tensors go, and what the model calls it. NULL: nowhere.
    struct ree_output *data;
    const char *data_name;
    bool copy; // all tensors, not only the quantised ones
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    void (*on_note)(void *note_user, const char *text); // NULL: off
    void *note_user;
};

// What an architecture calls its tensors. NULL: it has none.
struct ree_tensor_names {
    const char *embedding, *positions, *layer, *norm, *head;
    const char *norms[4]; // before attention, after it, before the MLP, after it
    const char *q, *k, *v, *qkv, *out, *q_norm, *k_norm;
    const char *gate, *up, *gate_up, *down;
};

struct ree_causal {
    struct ree_writer *w;
    struct ree_checkpoint *checkpoint;
    const struct ree_causal_config *config;
    const struct ree_causal_options *options;
    const struct ree_tensor_names *names;
    const char *prefix;          // of the decoder's tensors: "model."
    const char *cos[2], *sin[2]; // of each rope: (batch, sequence, n), of opset 17 (batch, 1, ...)
    const char *mask, *window;   // (batch, 1, sequence, total) bool; of opset 17 (batch, 1, 1, ...)
    uint64_t done, total;        // bytes of tensors written
};

// unread.c

// Fails where a tensor was not read that would change the result, and notes the others.
enum ree_status ree_causal_check_unread(const struct ree_causal *d, const char *prefix,
                                        struct ree_error *err);

// weights.c

// The tensor `prefix``name` as an initializer; its shape has to be this one.
const char *ree_causal_weight(struct ree_causal *d, const char *name, uint32_t rank,
                              const int64_t *dims, enum ree_dtype *out_dtype);
// The same, as float32: with a Cast where it is of another type.
const char *ree_causal_weight_f32(struct ree_causal *d, const char *label, const char *name,
                                  uint32_t rank, const int64_t *dims);
// x (..., in) by the matrix `name`.weight, stored (out, in), with `columns` (in, out); plus
// `name`.bias. Quantised if the options say so, unless it is to be kept.
struct ree_linear {
    const char *label, *name;
    int64_t in, out;
    bool bias, columns, keep;
};
const char *ree_causal_linear(struct ree_causal *d, const struct ree_linear *linear, const char *x);

// layers.c
const char *ree_causal_norm(struct ree_causal *d, const char *label, const char *name, int64_t size,
                            const char *x);
const char *ree_causal_softcap(struct ree_causal *d, const char *label, float softcap,
                               const char *x);
const char *ree_causal_mlp(struct ree_causal *d, int64_t layer, const char *x);
// The name of a layer's tensor.
const char *ree_causal_layer_name(struct ree_causal *d, int64_t layer, const char *name);

// inputs.c: ports, masks and angles.
void ree_causal_ports(struct ree_causal *d);
void ree_causal_masks(struct ree_causal *d);
void ree_causal_angles(struct ree_causal *d);

// attention.c: with projections, cache and output projection.
const char *ree_causal_attention(struct ree_causal *d, int64_t layer, const char *x);

// causal.c: all of it. The model's bytes are released with free.
enum ree_status ree_causal_write(struct ree_checkpoint *checkpoint,
                                 const struct ree_causal_options *options, unsigned char **out,
                                 size_t *out_size, struct ree_error *err);

#endif

// Writes a decoder as an ONNX graph: what the files that write its parts share. Arrays of names end
// at the first NULL. Labels name a part by its layer ("layers.3.self_attn"). A node has the name of
// its output, which never ends like the name of a checkpoint's tensor (".weight", ".bias").
//
// The graph has two forms. With opset 23 it uses the operators for attention, rotary embedding and
// RMS norms; with opset 17 it uses only their steps. Both compute the same sequences of
// NUMERICS.md.
#ifndef REE_GRAPH_HF_CAUSAL_H
#define REE_GRAPH_HF_CAUSAL_H

#include "graph/hf/config.h"
#include "graph/hf/output.h"
#include "graph/hf/writer.h"

struct ree_causal_options {
    bool steps;     // write the form of opset 17
    uint32_t bits;  // of quantised matrices: 4, 8; 0: not quantised
    uint32_t block; // numbers that share a scale
    // Bits of the quantised embedding table, if the head is tied to it: 4, 8; 0: not quantised.
    uint32_t table_bits;
    // File for copied and quantised tensors, and its name in the model. NULL: none.
    struct ree_output *data;
    const char *data_name;
    bool copy; // copy all tensors, not only the quantised ones
    // Of the values between the layers, and of the caches: REE_F32, REE_F16 or REE_BF16.
    enum ree_dtype activations;
    bool int8; // the products with quantised matrices quantise their inputs to int8
    struct ree_progress progress;
    void (*on_note)(void *note_user, const char *text); // NULL: off
    void *note_user;
};

// Tensor names of an architecture. NULL: it does not have the tensor.
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
    const char *prefix;          // prefix of the decoder's tensor names: "model."
    const char *cos[2], *sin[2]; // per rope: (batch, sequence, n), with opset 17 (batch, 1, ...)
    // bool (batch, 1, sequence, total), with opset 17 (batch, 1, 1, ...)
    const char *mask, *window;
    uint64_t done, total; // bytes of tensors written
};

// unread.c

// Fails if a tensor was not read that would change the result. Notes all other unread tensors.
enum ree_status ree_causal_check_unread(const struct ree_causal *d, const char *prefix,
                                        struct ree_error *err);

// weights.c

// Adds the tensor `prefix``name` as an initializer. Fails if its shape is not dims[rank].
const char *ree_causal_weight(struct ree_causal *d, const char *name, uint32_t rank,
                              const int64_t *dims, enum ree_dtype *out_dtype);
// As ree_causal_weight, but returns a value of this type: adds a Cast if the tensor has another
// one.
const char *ree_causal_weight_as(struct ree_causal *d, enum ree_dtype dtype, const char *label,
                                 const char *name, uint32_t rank, const int64_t *dims);
// x (..., in) times the matrix `name`.weight, plus `name`.bias. The matrix is stored as (out, in),
// or as (in, out) if `columns` is set. It is quantised if the options request it; `table`: it is
// also the embedding table, which has options of its own. The result is rounded once to the type of
// the activations, or stays float32 if `wide` is set.
struct ree_linear {
    const char *label, *name;
    int64_t in, out;
    bool bias, columns, table, wide;
};
const char *ree_causal_linear(struct ree_causal *d, const struct ree_linear *linear, const char *x);

// Looks up rows of the quantised embedding table `name`.weight (rows, columns); the result is
// float32. *out_dtype: the type of the table in the checkpoint.
const char *ree_causal_look_up_quantised(struct ree_causal *d, const char *label, const char *name,
                                         int64_t rows, int64_t columns, const char *ids,
                                         enum ree_dtype *out_dtype);

// Rounds a float32 value to the type of the activations, or widens a value of that type. Returns x
// itself if the type is float32.
const char *ree_causal_narrow(struct ree_causal *d, const char *label, const char *x);
const char *ree_causal_widen(struct ree_causal *d, const char *label, const char *x);

// layers.c
const char *ree_causal_norm(struct ree_causal *d, const char *label, const char *name, int64_t size,
                            const char *x);
const char *ree_causal_softcap(struct ree_causal *d, const char *label, float softcap,
                               const char *x);
const char *ree_causal_mlp(struct ree_causal *d, int64_t layer, const char *x);
// Returns the name of a layer's tensor.
const char *ree_causal_layer_name(struct ree_causal *d, int64_t layer, const char *name);

// inputs.c: ports, masks and angles.
void ree_causal_ports(struct ree_causal *d);
void ree_causal_masks(struct ree_causal *d);
void ree_causal_angles(struct ree_causal *d);

// attention.c: includes the projections, the kv cache and the output projection.
const char *ree_causal_attention(struct ree_causal *d, int64_t layer, const char *x);

// causal.c: writes the whole model. The caller releases the bytes with ree_free.
enum ree_status ree_causal_write(struct ree_checkpoint *checkpoint,
                                 const struct ree_causal_options *options, unsigned char **out,
                                 size_t *out_size, struct ree_error *err);

#endif

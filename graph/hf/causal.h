// Writes the decoder of a Hugging Face checkpoint as an ONNX graph. This header has what the files
// that write its parts share. Functions take and return names of values in the graph. Arrays of
// names end at the first NULL. A label names a part of the model by its layer
// ("layers.3.self_attn"). A node has the name of its output, which never ends like the name of a
// checkpoint's tensor (".weight", ".bias").
//
// The graph has two forms. With opset 23 it uses the operators for attention, rotary embedding and
// RMS norms. With opset 17 it uses the elementary steps of these operators instead. Both compute
// the same sequences of NUMERICS.md.
#ifndef REE_GRAPH_HF_CAUSAL_H
#define REE_GRAPH_HF_CAUSAL_H

#include "graph/hf/config.h"
#include "graph/hf/output.h"
#include "graph/hf/writer.h"

struct ree_causal_options {
    // use elementary operators of opset 17, instead of the fused ones of opset 23
    bool steps;
    uint32_t bits;  // bits per number of quantised matrices: 4 or 8; 0: not quantised
    uint32_t block; // number of quantised numbers that share a scale
    // Bits per number of the quantised embedding table, if the head is tied to it: 4 or 8; 0: not
    // quantised.
    uint32_t table_bits;
    // File that receives copied and quantised tensors, and the name by which the model refers to
    // it. NULL: there are no such tensors.
    struct ree_output *data;
    const char *data_name;
    // Also copy the tensors that are not quantised into `data`. false: the model refers to the
    // checkpoint's files for them.
    bool copy;
    // Type of the values between the layers and of the kv caches: REE_F32, REE_F16 or REE_BF16.
    enum ree_dtype activations;
    bool int8; // the products with quantised matrices quantise their inputs to int8
    struct ree_progress progress;
    void (*on_note)(void *note_user, const char *text); // NULL: off
    void *note_user;
};

// Names of an architecture's tensors, without ".weight" and, in a layer, without the prefix of the
// layer. NULL: the architecture does not have the tensor.
struct ree_tensor_names {
    const char *embedding, *positions, *layer, *norm, *head;
    const char *norms[4]; // norms before attention, after it, before the MLP, after it
    const char *q, *k, *v, *qkv, *out, *q_norm, *k_norm;
    const char *gate, *up, *gate_up, *down;
};

struct ree_causal {
    struct ree_writer *w;
    struct ree_checkpoint *checkpoint;
    const struct ree_causal_config *config;
    const struct ree_causal_options *options;
    const struct ree_tensor_names *names;
    // Prefix of the tensors' names in the checkpoint, such as "model."; "" while a head that has
    // its own matrix is written.
    const char *prefix;
    // Cosines and sines of the angles of each rope: (batch, sequence, rope.n); with opset 17
    // (batch, 1, sequence, rope.n).
    const char *cos[2], *sin[2];
    // Masks for layers without and with a window; bool (batch, 1, sequence, total), true if the key
    // is visible. With opset 17 and key heads that several heads share: (batch, 1, 1, sequence,
    // total). NULL: no layer uses the mask.
    const char *mask, *window;
    uint64_t done, total; // bytes of tensors copied or quantised so far; bytes of all tensors
};

// unread.c

// Checks the tensors of the checkpoint that the graph does not use. Fails if one of them would
// change the result; reports all others to on_note. prefix: prefix of the names of the decoder's
// tensors.
enum ree_status ree_causal_check_unread(const struct ree_causal *d, const char *prefix,
                                        struct ree_error *err);

// weights.c

// Adds the checkpoint's tensor `prefix``name` as an initializer and returns its name. *out_dtype:
// its type. Fails if the tensor is missing, if its shape is not dims[rank], or if it is not a
// float16, bfloat16 or float32 tensor.
const char *ree_causal_weight(struct ree_causal *d, const char *name, uint32_t rank,
                              const int64_t *dims, enum ree_dtype *out_dtype);
// As ree_causal_weight, but returns a value of type dtype: adds a Cast, named after `label`, if the
// tensor has another type.
const char *ree_causal_weight_as(struct ree_causal *d, enum ree_dtype dtype, const char *label,
                                 const char *name, uint32_t rank, const int64_t *dims);
// Parameters of ree_causal_linear, which multiplies x (..., in) by the matrix `name`.weight, adds
// `name`.bias if `bias` is set, and returns the name of the result (..., out).
// - columns: the matrix is stored as (in, out) instead of (out, in).
// - table: the matrix is also the embedding table, for which options->table_bits applies instead of
//   options->bits.
// - wide: the result stays float32. Otherwise it is rounded once to the type of the activations.
struct ree_linear {
    const char *label, *name;
    int64_t in, out;
    bool bias, columns, table, wide;
};
const char *ree_causal_linear(struct ree_causal *d, const struct ree_linear *linear, const char *x);

// Looks up the rows `ids` of the quantised embedding table `name`.weight (rows, columns). Returns
// them as float32. *out_dtype: the type of the table in the checkpoint.
const char *ree_causal_look_up_quantised(struct ree_causal *d, const char *label, const char *name,
                                         int64_t rows, int64_t columns, const char *ids,
                                         enum ree_dtype *out_dtype);

// ree_causal_narrow rounds a float32 value to the type of the activations; ree_causal_widen
// converts a value of that type to float32. Both return x itself if the type is float32.
const char *ree_causal_narrow(struct ree_causal *d, const char *label, const char *x);
const char *ree_causal_widen(struct ree_causal *d, const char *label, const char *x);

// layers.c
const char *ree_causal_norm(struct ree_causal *d, const char *label, const char *name, int64_t size,
                            const char *x);
const char *ree_causal_softcap(struct ree_causal *d, const char *label, float softcap,
                               const char *x);
const char *ree_causal_mlp(struct ree_causal *d, int64_t layer, const char *x);
// Returns the name of a layer's tensor without prefix: "layers.3.NAME".
const char *ree_causal_layer_name(struct ree_causal *d, int64_t layer, const char *name);

// inputs.c: adds the inputs and outputs of the graph, the attention masks, and the cosines and
// sines of the rotary embeddings.
void ree_causal_ports(struct ree_causal *d);
void ree_causal_masks(struct ree_causal *d);
void ree_causal_angles(struct ree_causal *d);

// attention.c: adds the attention of a layer, with its projections of queries, keys, values and
// output, and its kv cache.
const char *ree_causal_attention(struct ree_causal *d, int64_t layer, const char *x);

// causal.c: writes the whole model as an ONNX file to *out. The caller releases *out with ree_free.
enum ree_status ree_causal_write(struct ree_checkpoint *checkpoint,
                                 const struct ree_causal_options *options, unsigned char **out,
                                 size_t *out_size, struct ree_error *err);

#endif

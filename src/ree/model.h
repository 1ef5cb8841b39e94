// Models: loads them, describes their inputs and outputs, hashes them; exports checkpoints to ONNX.
#ifndef REE_MODEL_H
#define REE_MODEL_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_model;

struct ree_model_options {
    size_t size; // sizeof(struct ree_model_options)
    // Keep constant subgraphs in the graph, in place of their values. Shapes are still evaluated on
    // the host.
    bool no_fold;
    // For a checkpoint folder: how to quantise the weights, as in struct ree_export_options.
    // quantize_bits 0: not at all.
    uint32_t quantize_bits, quantize_block;
    // Called after each graph pass with its name and the resulting graph as text; NULL: off.
    void (*on_pass)(void *user, const char *pass, const char *graph_text);
    void *user;                   // passed to on_pass
    struct ree_progress progress; // progress of loading, in bytes
    enum ree_dtype activations;   // for a checkpoint folder: as in struct ree_export_options
    uint32_t quantize_table;      // for a checkpoint folder: as in struct ree_export_options
};

// An input or output of a model. dims has the size of each dimension, or -1 if the size is not
// fixed; such a dimension may have a symbol ("batch").
struct ree_port {
    const char *name;
    enum ree_dtype dtype;
    bool has_shape; // false: the model does not declare the rank
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    const char *symbols[REE_MAX_RANK]; // the symbol of each dimension, borrowed; NULL: no symbol
    bool optional;                     // the input has a default value, so a run may omit it
    enum ree_kind kind; // if it is REE_SEQUENCE, dtype, rank and dims describe the items
    bool nullable;      // the value may be REE_ABSENT; a run may omit such an input
};

struct ree_op_count {
    const char *domain; // "" for the ONNX standard domain
    const char *op_type;
    uint32_t count;
    bool supported;
    const char *reason; // why it is not supported; NULL if supported
};

// Loads a model. `path` is an ONNX file, or a folder with a Hugging Face checkpoint. A checkpoint
// gives the model that ree_export would write with the same quantisation and activations and no
// other option; no file is written. `options` may be NULL. Fails with
// - REE_NOT_FOUND or REE_IO if a file is missing or cannot be read
// - REE_INVALID if a file is malformed, or if quantisation or a narrow type of activations is
//   requested for an ONNX file
// - REE_UNSUPPORTED if the model has an operator or a type that ree lacks
REE_API enum ree_status ree_model_load(const char *path, const struct ree_model_options *options,
                                       struct ree_model **out_model, struct ree_error *err);
// Like ree_model_load, for an ONNX file in memory. Copies `bytes`. Fails if the model has external
// data, because there is no folder to read it from. Ignores the options for checkpoint folders.
REE_API enum ree_status ree_model_load_memory(const void *bytes, size_t nbytes,
                                              const struct ree_model_options *options,
                                              struct ree_model **out_model, struct ree_error *err);
// Like ree_model_load, but also loads models that ree cannot run: ree_model_op_counts and
// ree_model_notes say what ree lacks. No session can be created from the model.
REE_API enum ree_status ree_model_inspect(const char *path, struct ree_model **out_model,
                                          struct ree_error *err);
REE_API void ree_model_destroy(struct ree_model *model);

// All pointers that the functions below return are borrowed from the model. ree_model_input and
// ree_model_output return NULL if i is out of range.
REE_API size_t ree_model_n_inputs(const struct ree_model *model);
REE_API const struct ree_port *ree_model_input(const struct ree_model *model, size_t i);
// Returns the input with this name; NULL if there is none.
REE_API const struct ree_port *ree_model_find_input(const struct ree_model *model,
                                                    const char *name);
REE_API size_t ree_model_n_outputs(const struct ree_model *model);
REE_API const struct ree_port *ree_model_output(const struct ree_model *model, size_t i);
REE_API size_t ree_model_n_op_counts(const struct ree_model *model);
REE_API const struct ree_op_count *
ree_model_op_counts(const struct ree_model *model); // sorted by domain, then by op_type
REE_API int64_t ree_model_ir_version(const struct ree_model *model);
// Returns the version of the opset `domain` that the model imports; 0: it imports none.
REE_API int64_t ree_model_opset(const struct ree_model *model, const char *domain);
REE_API const char *ree_model_metadata(const struct ree_model *model,
                                       const char *key); // NULL: no such key
// Returns the size in bytes of all weights, including those of subgraphs.
REE_API uint64_t ree_model_weight_bytes(const struct ree_model *model);
// A diagnostic about a model that is not tied to an operator and can be found without inputs. A
// model from ree_model_inspect has all such notes. A model from ree_model_load has notes only about
// contents of its folder that a run does not use.
struct ree_model_note {
    // true: the model cannot run; false: the model runs, but its file states something untrue
    bool is_problem;
    const char *text;
};
// Returns the number of notes about the model; *out_notes receives them, borrowed.
REE_API size_t ree_model_notes(const struct ree_model *model,
                               const struct ree_model_note **out_notes);
// Computes the SHA-256 of a model's graph. It is half of the model's identity; the other half is
// the SHA-256 of its weights (NUMERICS.md, "Hashes"). Neither hash depends on the layout of the
// files or on how ree transforms the graph: a checkpoint folder and the file that ree_export writes
// from it have the same hashes. Fails with REE_UNSUPPORTED if a tensor has a type that ree lacks.
REE_API enum ree_status ree_model_graph_sha256(const struct ree_model *model, char hex[65],
                                               struct ree_error *err);
// Computes the SHA-256 of the names, types, shapes and bytes of a model's weights. Reads all
// weights, on all cores. Reports its progress in bytes, with each weight rounded up to whole chunks
// of the hash. `progress` may be NULL. Fails like ree_model_graph_sha256.
REE_API enum ree_status ree_model_weights_sha256(const struct ree_model *model,
                                                 const struct ree_progress *progress, char hex[65],
                                                 struct ree_error *err);

// Export

#define REE_QUANTIZE_KEEP 1 // value of quantize_table: do not quantise the embedding table

struct ree_export_options {
    size_t size; // sizeof(struct ree_export_options)
    // ONNX opset of the file. 23 (or 0): the file uses ONNX's operators for attention, rotary
    // embedding and RMS norms. 17: it has the steps of these operators instead, for software that
    // does not know the operators. The output bits are the same.
    int64_t opset;
    // Copy all weights to `out_path`.data. false: the model refers to the safetensors files.
    bool colocate_tensors;
    // Bits per weight of the layers' matrices and of the output head: 4 or 8; 0: not quantised. If
    // the head is tied to the embedding table, quantize_table decides about both.
    uint32_t quantize_bits;
    // Number of weights that share one scale: a power of two from 16 to 256; 0 means 32.
    uint32_t quantize_block;
    struct ree_progress progress; // progress of copying and quantising, in bytes
    // Called with each diagnostic about the folder, as in struct ree_model_note; NULL: off.
    void (*on_note)(void *user, const char *text);
    void *user; // passed to on_note
    // Type of the values between the layers, and of the kv caches: REE_F32 (or REE_DTYPE_NONE),
    // REE_F16 or REE_BF16. A 16-bit type halves the kv caches and requires opset 23. Sums, norms
    // and softmax are still computed in float32, and logits are float32.
    // REE_I8 requires quantize_bits: the values and kv caches are float32, but the products with
    // quantised weights round each block of 32 inputs to int8, with one scale (NUMERICS.md section
    // 3, block-dot). The model then has operators that only ree knows.
    enum ree_dtype activations;
    // If quantize_bits is set: bits per weight of an embedding table that is also the output head:
    // 4 or 8; 0 means 8; REE_QUANTIZE_KEEP: the table is not quantised, as in versions before
    // 0.2.0.
    uint32_t quantize_table;
};

// Writes the language model in the folder `hf_dir` (config.json and safetensors, as saved by the
// Hugging Face libraries) as an ONNX model to `out_path`, which must end in .onnx; NULL: model.onnx
// in hf_dir. Unless colocate_tensors is set, the model refers to the safetensors files, so it must
// be in the same folder. Quantised and copied tensors go to `out_path`.data. Files appear whole or
// not at all. graph/hf/README.md in ree's source describes what is exported and how. `options` may
// be NULL. Fails with REE_UNSUPPORTED if opset 17 is requested with a 16-bit type of activations.
REE_API enum ree_status ree_export(const char *hf_dir, const char *out_path,
                                   const struct ree_export_options *options, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif

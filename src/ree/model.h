// Models: loading, their inputs and outputs, their identity; export of checkpoints to ONNX.
#ifndef REE_MODEL_H
#define REE_MODEL_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_model;

struct ree_model_options {
    size_t size;  // sizeof(struct ree_model_options)
    bool no_fold; // keep constant subgraphs in the graph (shapes are still evaluated on the host)
    // Quantisation of a checkpoint folder, as in struct ree_export_options; quantize_bits 0: none.
    uint32_t quantize_bits, quantize_block;
    // Called after each pass with its name and the resulting graph as text; NULL: off.
    void (*on_pass)(void *user, const char *pass, const char *graph_text);
    void *user;                   // of on_pass
    struct ree_progress progress; // of loading, in bytes
    enum ree_dtype activations;   // of a checkpoint folder, as in struct ree_export_options
    uint32_t quantize_table;      // likewise
};

// An input or output of a model. A dimension is its size, or -1 if it is not fixed; then it may
// have a symbol ("batch").
struct ree_port {
    const char *name;
    enum ree_dtype dtype;
    bool has_shape; // false: the model does not declare the rank
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    const char *symbols[REE_MAX_RANK]; // borrowed; NULL: no symbol
    bool optional;                     // the input has a default value, so a run may omit it
    enum ree_kind kind;                // for a sequence, dtype and shape are those of its items
    bool nullable;                     // the value may be REE_ABSENT; a run may omit the input
};

struct ree_op_count {
    const char *domain; // "" for the ONNX standard domain
    const char *op_type;
    uint32_t count;
    bool supported;
    const char *reason; // why it is not supported; NULL if supported
};

// `path` is an ONNX file, or a folder with a Hugging Face checkpoint. A checkpoint is exported in
// memory as ree_export would do with the same quantisation and activations, and no other option.
// `options` may be NULL. Fails with
// - REE_NOT_FOUND or REE_IO if a file is missing or cannot be read
// - REE_INVALID if a file is malformed, or if quantisation or a narrow type of activations is
//   requested for an ONNX file
// - REE_UNSUPPORTED if the model has an operator or a type that ree lacks
REE_API enum ree_status ree_model_load(const char *path, const struct ree_model_options *options,
                                       struct ree_model **out_model, struct ree_error *err);
// Like ree_model_load, for an ONNX file in memory. Copies `bytes`. Fails if the model has external
// data, because there is no folder to read it from. Quantisation and activations are ignored.
REE_API enum ree_status ree_model_load_memory(const void *bytes, size_t nbytes,
                                              const struct ree_model_options *options,
                                              struct ree_model **out_model, struct ree_error *err);
// Like ree_model_load, but does not require that ree supports the model, and prepares no run:
// ree_model_op_counts and ree_model_notes say what ree lacks. No session can be made from it.
REE_API enum ree_status ree_model_inspect(const char *path, struct ree_model **out_model,
                                          struct ree_error *err);
REE_API void ree_model_destroy(struct ree_model *model);

// Everything that the following functions return as a pointer is borrowed from the model. An input
// or output is NULL if i is out of range.
REE_API size_t ree_model_n_inputs(const struct ree_model *model);
REE_API const struct ree_port *ree_model_input(const struct ree_model *model, size_t i);
// The input of that name; NULL if there is none.
REE_API const struct ree_port *ree_model_find_input(const struct ree_model *model,
                                                    const char *name);
REE_API size_t ree_model_n_outputs(const struct ree_model *model);
REE_API const struct ree_port *ree_model_output(const struct ree_model *model, size_t i);
REE_API size_t ree_model_n_op_counts(const struct ree_model *model);
REE_API const struct ree_op_count *
ree_model_op_counts(const struct ree_model *model); // sorted by domain, then by op_type
REE_API int64_t ree_model_ir_version(const struct ree_model *model);
// 0: domain not imported
REE_API int64_t ree_model_opset(const struct ree_model *model, const char *domain);
REE_API const char *ree_model_metadata(const struct ree_model *model,
                                       const char *key); // NULL: no such key
// Bytes of all weights, subgraphs included.
REE_API uint64_t ree_model_weight_bytes(const struct ree_model *model);
// Diagnostics that are not tied to an operator and can be found without inputs. For an inspected
// model: all of them. For a model loaded to run: contents of its folder that the run does not use.
struct ree_model_note {
    // true: the model cannot be run; false: it runs, but its file states something untrue
    bool is_problem;
    const char *text;
};
// Returns the number of notes.
REE_API size_t ree_model_notes(const struct ree_model *model,
                               const struct ree_model_note **out_notes);
// The identity of a model as two SHA-256 (NUMERICS.md, "Hashes"): one of its graph, one of the
// names, types, shapes and bytes of its weights. Neither depends on the layout of the files or on
// how ree transforms the graph. A checkpoint folder and the file that ree_export writes from it
// have the same identity. Hashing the weights reads all of them, on all cores. Fails with
// REE_UNSUPPORTED if a tensor has a type that ree lacks.
REE_API enum ree_status ree_model_graph_sha256(const struct ree_model *model, char hex[65],
                                               struct ree_error *err);
// Reports done and total in bytes, rounded. `progress` may be NULL.
REE_API enum ree_status ree_model_weights_sha256(const struct ree_model *model,
                                                 const struct ree_progress *progress, char hex[65],
                                                 struct ree_error *err);

// Export

#define REE_QUANTIZE_KEEP 1 // as quantize_table: do not quantise the table

struct ree_export_options {
    size_t size; // sizeof(struct ree_export_options)
    // ONNX opset. 23 (or 0) uses operators for attention, rotary embedding and RMS norms. 17 writes
    // the steps of these operators instead, for software that does not know them. The output bits
    // are the same.
    int64_t opset;
    bool colocate_tensors; // copy all weights to OUT.data; false: refer to the safetensors files
    // Bits per weight of the layers' matrices and of the output head: 4 or 8; 0: not quantised. If
    // the head is tied to the embedding table, quantize_table decides about both.
    uint32_t quantize_bits;
    uint32_t quantize_block; // weights that share one scale: a power of two from 16 to 256; 0: 32
    struct ree_progress progress; // of copying and quantising, in bytes
    // Receives the texts that ree_model_notes has for a folder; NULL: off.
    void (*on_note)(void *user, const char *text);
    void *user; // of on_note
    // Type of the values between the layers, and of the key-value caches: REE_F32 (or
    // REE_DTYPE_NONE), REE_F16 or REE_BF16. A narrow type halves the caches; sums, norms and
    // softmax are still computed in float32, and logits are float32. Requires opset 23.
    // REE_I8 requires quantize_bits: the values and caches are float32, but the products with
    // quantised weights round each block of 32 inputs to int8 with one scale (NUMERICS.md section 3,
    // block-dot). The model then has operators that only ree knows.
    enum ree_dtype activations;
    // Bits per weight of an embedding table that is also the output head, if quantize_bits is set:
    // 4 or 8; 0: 8; REE_QUANTIZE_KEEP: the table is not quantised, as in versions before 0.2.0.
    uint32_t quantize_table;
};

// Writes the language model in the folder `hf_dir` (config.json and safetensors, as saved by the
// Hugging Face libraries) as an ONNX model to `out_path`, which must end in .onnx; NULL: model.onnx
// in hf_dir. Unless colocate_tensors is set, the model refers to the safetensors files, so it must
// be in the same folder. Quantised and copied tensors go to `out_path`.data. Files appear whole or
// not at all. graph/hf/README.md in ree's source describes what is exported and how. `options` may
// be NULL. Fails with REE_UNSUPPORTED if opset 17 is requested with a narrow type of activations.
REE_API enum ree_status ree_export(const char *hf_dir, const char *out_path,
                                   const struct ree_export_options *options, struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif

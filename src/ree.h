// ree: an open reproducible execution environment. This header is the whole public API of libree.
//
// Typical use:
//
//     struct ree_error err;
//     struct ree_model *model;
//     struct ree_device *device;
//     struct ree_session *session;
//     if (ree_model_load("model.onnx", NULL, &model, &err)) ...        // read, check, fold
//     if (ree_device_open("cpu", NULL, &device, &err)) ...             // "cuda", "vulkan:1", ...
//     if (ree_session_create(model, device, NULL, &session, &err)) ... // model onto the device
//     if (ree_session_run(session, inputs, n_inputs, outputs, &err)) ...
//
// Ownership: the caller owns every object that *_load, *_open or *_create returns and releases it
// with the matching *_destroy, in reverse order of creation. Every destroy function accepts NULL.
// Strings and structs returned as `const` are borrowed: they belong to the object passed in and
// live as long as it does.
//
// Errors: a function that can fail returns REE_OK (0) or another ree_status. On failure it sets its
// out parameters to NULL and, unless `err` is NULL, writes a message that names the file, node and
// tensor concerned.
//
// Threads: an object may be used by one thread at a time. Different objects are independent, with
// one exception: using a session also uses its model and its device.
//
// Floating-point environment: the output bits do not depend on the caller's. The calling thread may
// have set any rounding direction, flushing of subnormals (-ffast-math, FTZ and DAZ of x86, FZ of
// ARM) and exception traps. A function that computes sets ree's environment and restores the
// calling thread's before it returns, status flags included. Callbacks run in the caller's
// environment and may change it. If ree is the first to start OpenMP threads, those threads keep
// the default environment.
#ifndef REE_H
#define REE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) // libree.so exports only what follows
#endif

// Status

enum ree_status {
    REE_OK = 0,
    REE_INVALID,     // the model, tensor or argument is malformed or inconsistent
    REE_UNSUPPORTED, // well formed, but not supported by ree (operator, opset, type, rank)
    REE_NOT_FOUND,   // no such file, device, input
    REE_IO,          // reading or writing failed
    REE_NO_MEMORY,   // host or device memory exhausted
    REE_UNAVAILABLE, // no driver or no device of that kind on this machine
    REE_DEVICE,      // the device failed while running
    REE_INTERNAL,    // an error in ree itself
};

#define REE_ERROR_MAX 1024

struct ree_error {
    enum ree_status status;
    char message[REE_ERROR_MAX]; // one line, no newline at the end
};

const char *ree_status_name(enum ree_status status); // "invalid", "unsupported", ...
const char *ree_version(void);                       // "0.1.0"
const char *ree_numerics_version(void);              // "RepOps/1"

// Tensors

// The values are those of ONNX's TensorProto.DataType.
enum ree_dtype {
    REE_DTYPE_NONE = 0,
    REE_F32 = 1,
    REE_U8 = 2,
    REE_I8 = 3,
    REE_U16 = 4,
    REE_I16 = 5,
    REE_I32 = 6,
    REE_I64 = 7,
    REE_STRING = 8,
    REE_BOOL = 9, // one byte, 0 or 1
    REE_F16 = 10,
    REE_F64 = 11,
    REE_U32 = 12,
    REE_U64 = 13,
    REE_BF16 = 16,
    REE_F8E4M3FN = 17, // the float8 types, one byte each
    REE_F8E4M3FNUZ = 18,
    REE_F8E5M2 = 19,
    REE_F8E5M2FNUZ = 20,
    REE_U4 = 21, // types below 8 bits take one byte per element: see ree_dtype_bits
    REE_I4 = 22,
    REE_F4E2M1 = 23, // bits in the low half of the byte
    REE_F8E8M0 = 24,
    REE_U2 = 25,
    REE_I2 = 26,
};

#define REE_MAX_RANK 8

const char *ree_dtype_name(enum ree_dtype dtype); // "float32", "int64", "bool", ...; "?" if unknown
size_t ree_dtype_size(enum ree_dtype dtype);      // bytes per element; 0 for unknown types
// Bits per element in an ONNX file, which packs the types of 4 and 2 bits. In struct ree_tensor,
// and everywhere else in ree, each element of these types takes one byte: int4 and int2 are
// sign-extended; uint4, uint2 and float4e2m1 are zero-extended. 0 for REE_STRING and unknown types.
uint32_t ree_dtype_bits(enum ree_dtype dtype);

// The kind of a value; nearly always a tensor.
enum ree_kind {
    REE_TENSOR = 0,
    REE_SEQUENCE, // a list of tensors of one element type; their shapes may differ
    REE_ABSENT,   // an optional value that is not present
};

// A tensor in host memory: dense, row-major, little-endian. A scalar has rank 0. Elements of
// REE_STRING are `char *`: NUL-terminated UTF-8, each allocated by its own malloc and owned by the
// tensor; NULL is an empty string.
//
// The same struct holds a sequence or an absent value. A sequence owns its items, which are tensors
// without names. For both kinds, rank is 0, data is NULL and dtype is the element type of the
// items.
struct ree_tensor {
    char *name; // owned; may be NULL
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    void *data;    // (dims[0] * ... * dims[rank-1]) elements; may be NULL if that is 0
    size_t nbytes; // data size in bytes: elements * ree_dtype_size(dtype)
    enum ree_kind kind;
    size_t n_items;           // number of items of a sequence
    struct ree_tensor *items; // each of kind REE_TENSOR
};

// Allocates zeroed data and copies `name`, which may be NULL. Release with ree_tensor_finish.
enum ree_status ree_tensor_init(struct ree_tensor *tensor, const char *name, enum ree_dtype dtype,
                                uint32_t rank, const int64_t *dims, struct ree_error *err);
// Appends `item` to a sequence and takes ownership of it, even on failure. An empty sequence is a
// zeroed struct of kind REE_SEQUENCE.
enum ree_status ree_sequence_append(struct ree_tensor *sequence, struct ree_tensor *item,
                                    struct ree_error *err);
void ree_tensor_finish(struct ree_tensor *tensor); // frees name, data, items; zeroes the struct

// Reads FILE.npy (NumPy format 1 to 3, C or Fortran order) or FILE.pb (an ONNX TensorProto).
enum ree_status ree_tensor_load(struct ree_tensor *tensor, const char *path, struct ree_error *err);
// Like ree_tensor_load, for a value of model input `port`. If the port is a sequence or nullable, a
// .pb file is a SequenceProto or an OptionalProto.
struct ree_port;
enum ree_status ree_tensor_load_for(struct ree_tensor *tensor, const char *path,
                                    const struct ree_port *port, struct ree_error *err);
// Writes NumPy format 1.0. Writes to a temporary file in the same folder first, so that the file
// appears whole or not at all. Types that NumPy lacks are written as their bytes:
// - int4 and int2 as int8
// - uint4, uint2, float4e2m1 and the float8 types (their bits) as uint8
// - bfloat16 as raw data of two bytes
//
// Loading such a file returns a tensor of the type written (bfloat16 for two raw bytes).
enum ree_status ree_tensor_save_npy(const struct ree_tensor *tensor, const char *path,
                                    struct ree_error *err);

// SHA-256 of one tensor, or of n tensors in order, as lower-case hex. NUMERICS.md, "Hashes",
// defines the hashed bytes.
void ree_tensor_sha256(const struct ree_tensor *tensor, char hex[65]);
void ree_tensors_sha256(const struct ree_tensor *tensors, size_t n, char hex[65]);

// Models

struct ree_model;

struct ree_model_options {
    bool no_fold; // keep constant subgraphs in the graph (shapes are still evaluated on the host)
    // Quantisation of a checkpoint folder, as in struct ree_export_options; 0: none.
    uint32_t quantize_bits, quantize_block;
    // Called after each pass with its name and the resulting graph as text; NULL: off.
    void (*on_pass)(void *user, const char *pass, const char *graph_text);
    void *user;
    // Reports the progress of loading; done and total in bytes; NULL: off.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
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
    bool optional;                     // the input has a default value
    enum ree_kind kind;                // for a sequence, dtype and shape are those of its items
    bool nullable;                     // the value may be REE_ABSENT
};

struct ree_op_count {
    const char *domain; // "" for the ONNX standard domain
    const char *op_type;
    uint32_t count;
    bool supported;
    const char *reason; // why it is not supported; NULL if supported
};

// `path` is an ONNX file, or a folder with a Hugging Face checkpoint. A checkpoint is exported in
// memory as ree_export would do with the same quantisation and default options. Fails with
// REE_INVALID if quantisation is requested for an ONNX file.
enum ree_status ree_model_load(const char *path, const struct ree_model_options *options,
                               struct ree_model **out_model, struct ree_error *err);
// Like ree_model_load, for an ONNX file in memory. Copies `bytes`. Rejects external data, because
// there is no folder to look in.
enum ree_status ree_model_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_model_options *options,
                                      struct ree_model **out_model, struct ree_error *err);
// Reads and checks a model without requiring that every operator is supported. For
// ree_model_op_counts.
enum ree_status ree_model_inspect(const char *path, struct ree_model **out_model,
                                  struct ree_error *err);
void ree_model_destroy(struct ree_model *model);

size_t ree_model_n_inputs(const struct ree_model *model);
const struct ree_port *ree_model_input(const struct ree_model *model, size_t i);
size_t ree_model_n_outputs(const struct ree_model *model);
const struct ree_port *ree_model_output(const struct ree_model *model, size_t i);
size_t ree_model_n_op_counts(const struct ree_model *model);
const struct ree_op_count *ree_model_op_counts(const struct ree_model *model); // sorted by name
int64_t ree_model_ir_version(const struct ree_model *model);
// 0: domain not imported
int64_t ree_model_opset(const struct ree_model *model, const char *domain);
const char *ree_model_metadata(const struct ree_model *model, const char *key); // NULL: no such key
uint64_t ree_model_weight_bytes(const struct ree_model *model);
// Diagnostics that are not tied to an operator and can be found without inputs. For an inspected
// model: all of them. For a model loaded to run: contents of its folder that the run does not use.
struct ree_model_note {
    // true: the model cannot be run; false: it runs, but its file states something untrue
    bool is_problem;
    const char *text;
};
size_t ree_model_notes(const struct ree_model *model, const struct ree_model_note **out_notes);
// The identity of a model as two SHA-256 (NUMERICS.md, "Hashes"): one of its graph, one of the
// names, types, shapes and bytes of its weights. Neither depends on the layout of the files or on
// how ree transforms the graph. A checkpoint folder and the file that ree_export writes from it
// have the same identity. Hashing the weights reads all of them, on all cores. Fails with
// REE_UNSUPPORTED if a tensor has a type that ree lacks.
enum ree_status ree_model_graph_sha256(const struct ree_model *model, char hex[65],
                                       struct ree_error *err);
// on_progress receives done and total in bytes, rounded; NULL: off.
enum ree_status ree_model_weights_sha256(const struct ree_model *model,
                                         void (*on_progress)(void *user, const char *what,
                                                             uint64_t done, uint64_t total),
                                         void *user, char hex[65], struct ree_error *err);

// Export

struct ree_export_options {
    // ONNX opset. 23 (or 0) uses operators for attention, rotary embedding and RMS norms. 17 writes
    // the steps of these operators instead, for software that does not know them. The output bits
    // are the same.
    int64_t opset;
    bool colocate_tensors; // copy all weights to OUT.data; false: refer to the safetensors files
    // Bits per weight of the layers' matrices and of an output head that is not tied to the
    // embedding: 4 or 8; 0: not quantised.
    uint32_t quantize_bits;
    uint32_t quantize_block; // weights that share one scale: a power of two from 16 to 256; 0: 32
    // Reports the progress of copying and quantising; done and total in bytes; NULL: off.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    // Receives the texts that ree_model_notes has for a folder; NULL: off.
    void (*on_note)(void *user, const char *text);
};

// Writes the decoder in the folder `hf_dir` (config.json and safetensors, as saved by the Hugging
// Face libraries) as an ONNX model to `out_path`, which must end in .onnx; NULL: model.onnx in
// hf_dir. Unless colocate_tensors is set, the model refers to the safetensors files, so it must be
// in the same folder. Quantised and copied tensors go to `out_path`.data. Files appear whole or not
// at all. graph/hf/README.md describes what is exported and how. `options` may be NULL.
enum ree_status ree_export(const char *hf_dir, const char *out_path,
                           const struct ree_export_options *options, struct ree_error *err);

// Devices

struct ree_device;

// The promise that a run makes about its output bits (README.md, "Operation sets"). A device that
// has nothing faster than RepOps runs RepOps in every set.
enum ree_operation_set {
    REE_REPRODUCIBLE, // the bits of RepOps, on every device
    // Same bits from run to run on the same device and driver. CUDA uses cuBLAS in binary32 if it
    // is installed.
    REE_DETERMINISTIC,
    // No promise. CUDA uses cuBLAS with tensor cores (TF32) if it is installed.
    REE_DEFAULT,
};
const char *ree_operation_set_name(enum ree_operation_set set); // "reproducible", ...

struct ree_device_options {
    enum ree_operation_set operation_set;
    // CPU threads; 0: one per core. If all cores are used, each OpenMP worker is bound to one core,
    // but not the calling thread. OMP_PROC_BIND, if set, disables the binding.
    uint32_t n_threads;
    const char *cpu_isa; // "avx512", "avx2", "neon", "portable"; NULL: best available
    bool validation;     // Vulkan: enable VK_LAYER_KHRONOS_validation; its messages fail the run
    // Folder for compiled pipelines and self-test results, which later starts reuse. NULL:
    // $XDG_CACHE_HOME/ree, or $HOME/.cache/ree; "": do not cache.
    const char *cache_dir;
    // Vulkan and CUDA, for tests: pretend that this primitive ("fma", "div", "add", ...; on Vulkan
    // also integer ones, "integer fma") computes wrong results, which the probe must then detect.
    // NULL: off.
    const char *break_primitive;
    // Vulkan: use this form for the primitives instead of the probe's choice: "native", "float64",
    // "float32" or "integer"; NULL: the probe decides. Rejected if the probe found the form wrong.
    const char *force_form;
};

// spec: "cpu", "cuda" or "vulkan" for the first device of that kind; "cuda:INDEX"; or "cuda:NAME",
// where NAME is a part of the device's name in any case. Likewise "vulkan:INDEX" and "vulkan:NAME".
// `options` may be NULL.
enum ree_status ree_device_open(const char *spec, const struct ree_device_options *options,
                                struct ree_device **out_device, struct ree_error *err);
void ree_device_destroy(struct ree_device *device);
const char *ree_device_name(const struct ree_device *device); // "cpu (avx512, 2 threads)", ...

// A property or a primitive of a device: {"limit", "storage buffer range", "128 MiB"} or
// {"primitive", "fma", "float64 (native is not fused)"}.
struct ree_device_fact {
    // One of
    // - "device", "limit", "feature", "primitive"
    // - "self-test": the value is "passed", or "failed" with the reason; after a failure another
    //   form of that code runs
    // - "not used": the device's own functions, tested only for information
    const char *kind;
    const char *name;
    const char *value;
};
size_t ree_device_facts(const struct ree_device *device, const struct ree_device_fact **out_facts);

// Lists the devices that can be opened. Writes up to `max` specs in the grammar of ree_device_open
// and returns the number of devices found. Unless out_note is NULL, sets *out_note to NULL or to
// the reasons why kinds are missing, one line per kind ("Vulkan: libvulkan.so.1 ...").
struct ree_device_listing {
    char spec[64];
    char name[256];
};
size_t ree_device_list(struct ree_device_listing *out_list, size_t max, const char **out_note);

// Sessions

struct ree_session;

struct ree_session_options {
    bool no_fuse; // one dispatch per step; proves that fusion does not change bits
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total); // NULL: off
    void *user;
    // Called each time the model is bound to shapes; NULL: off. `what` is "lowered" with the
    // dispatches in order, then "memory plan" with the placement of the intermediate tensors. If
    // shapes depend on computed data, there are several segments: "lowered, part 2".
    void (*on_program)(void *user, const char *what, const char *text);
};

// Creates a session of a loaded model on a device. The model and the device must outlive it. The
// first run loads the weights onto the device. `options` may be NULL.
enum ree_status ree_session_create(struct ree_model *model, struct ree_device *device,
                                   const struct ree_session_options *options,
                                   struct ree_session **out_session, struct ree_error *err);
void ree_session_destroy(struct ree_session *session);

// Runs the model once. `inputs` are matched by name, in any order. Fails with REE_INVALID if a name
// is missing or unknown, a type is wrong, or the model does not allow a shape; the message lists
// the model's inputs. `outputs` must have space for ree_model_n_outputs tensors; this call
// initialises them in the model's order. Release each with ree_tensor_finish. NaNs in outputs are
// those of NUMERICS.md, section 1 (float32: 0x7FC00000).
enum ree_status ree_session_run(struct ree_session *session, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_tensor *outputs, struct ree_error *err);

// Binds the model to the inputs' shapes, as the next run with these shapes would. Runs only what
// shapes depend on.
enum ree_status ree_session_bind(struct ree_session *session, const struct ree_tensor *inputs,
                                 size_t n_inputs, struct ree_error *err);

struct ree_session_stats {
    uint64_t weight_bytes; // weight bytes resident on the device
    uint64_t arena_bytes;  // intermediate results of the last run in bytes, after reuse
    uint64_t n_dispatches; // kernel dispatches of the last run
    uint64_t n_segments;   // segments of the last run: 1 unless a shape depended on computed data
    uint64_t n_binds, n_bind_hits; // lookups and hits of the shape cache
    double bind_seconds;           // time to bind for the last run
    double run_seconds;            // last run, upload and download included
    // With max_device_memory: the highest number of bytes held on one device; otherwise 0.
    uint64_t peak_bytes;
};
void ree_session_stats(const struct ree_session *session, struct ree_session_stats *out_stats);

// Text generation

// A causal language model on a device, with its kv caches. Maps token ids to token ids.
struct ree_generator;

struct ree_generator_options {
    struct ree_model_options model;
    struct ree_session_options session;
    uint32_t prefill_chunk; // prompt tokens per run; 0: 512
    uint32_t max_batch;     // sequences per batch; 0: 16
    bool all_logits;        // compute logits for every token of a prompt, not only for its last
    // Batch only sequences of equal length, and keep kv caches exactly as long as their contents.
    // Slower; for traces.
    bool exact_lengths;
    // Groups of sequences in flight at the same time, each with kv caches of its own; 0: 1.
    uint32_t n_cache_slots;
    // Stages of the model, which run one after another: stage i runs on device i modulo the number
    // of devices. `device` is device 0, more_devices follow. The output bits do not depend on it.
    // 0: one stage per device.
    uint32_t n_partitions;
    struct ree_device *const *more_devices;
    size_t n_more_devices;
    // File of `ree-run plan` with the stage boundaries; NULL: ree chooses them.
    const char *partition_plan;
    // Memory budget per device in bytes, for weights, kv caches and intermediate results; 0: no
    // limit. The model is then split into n_partitions stages, or as many as needed, and a stage's
    // weights are on the device only while it runs.
    uint64_t max_device_memory;
    // This process and the number of processes (src/ranks); each runs its share of the stages. 0:
    // single process.
    uint32_t rank, n_ranks;
};

struct ree_generator_info {
    const char *model_path; // the ONNX file, or the checkpoint folder
    const char *folder;     // folder in which a tokenizer is looked up
    const char *model_type; // "llama", ...; "" if unknown
    int64_t context_length; // maximum tokens of prompt and answer together; 0: unknown
    int64_t vocab_size;     // 0: unknown before the first run
    int32_t bos;            // -1: unknown
    size_t n_eos;
    const int32_t *eos; // ids that end a text
    bool has_cache;     // keys and values stay on the device between steps
    bool mixes_lengths; // sequences of different lengths may share a batch
    // Computes only the last token's logits, unless others are requested.
    bool computes_one_row;
};

// `path` is an ONNX file or a folder:
// - an ONNX file whose inputs are token ids and, if the model has a kv cache, past keys and values,
//   with the new keys and values among its outputs
// - a folder with genai_config.json
// - a folder with an ONNX file as above
// - a Hugging Face checkpoint
//
// `options` may be NULL.
enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                     const struct ree_generator_options *options,
                                     struct ree_generator **out_generator, struct ree_error *err);
void ree_generator_destroy(struct ree_generator *generator);
const struct ree_generator_info *ree_generator_info(const struct ree_generator *generator);
// NULL if the model runs in several stages. Borrowed from the generator.
struct ree_session *ree_generator_session(struct ree_generator *generator);
void ree_generator_stats(const struct ree_generator *generator,
                         struct ree_session_stats *out_stats); // sums over all stages

// How to choose a token from logits. NUMERICS.md, "Sampling", defines each parameter to the bit.
struct ree_sampling {
    // 0: the largest logit, the first one if several are equal; otherwise 1e-6 to 1e6
    float temperature;
    uint32_t top_k;           // 0: off
    float top_p;              // 1: off
    float min_p;              // 0: off
    float repetition_penalty; // 1: off
    uint64_t seed;
};
extern const struct ree_sampling ree_greedy;

// Fails with REE_INVALID and the reason if a parameter is out of range ("top_p is 1.5, expected
// more than 0 and at most 1").
enum ree_status ree_sampling_check(const struct ree_sampling *sampling, struct ree_error *err);
// Chooses the token that follows ids[0 ... n-1]. `position` is the index of the new token in the
// sequence, from 0. Fails if a logit is not a number.
enum ree_status ree_sampling_choose(const struct ree_sampling *sampling, const float *logits,
                                    size_t vocab_size, const int32_t *ids, size_t n,
                                    uint64_t position, int32_t *out_id, struct ree_error *err);

enum ree_finish {
    REE_FINISH_LENGTH,      // max_new_tokens reached, or the context is full
    REE_FINISH_EOS,         // a token of `eos` was chosen
    REE_FINISH_STOP,        // on_token returned false
    REE_FINISH_INTERRUPTED, // is_interrupted returned true
};
const char *ree_finish_name(enum ree_finish finish); // "length", "eos", "stop", "interrupted"

struct ree_prompt {
    const int32_t *ids;
    size_t n; // at least 1
};

struct ree_logprob {
    int32_t id;
    float logprob; // log softmax of the model's unmodified logits
};

struct ree_token {
    size_t sequence; // index of the prompt
    size_t position; // index in the sequence, prompt included
    int32_t id;
    float logprob;                 // only with n_logprobs
    const struct ree_logprob *top; // n_logprobs entries, the most likely first
};

// The progress of a sequence: its contents in a checkpoint, from which it can resume.
struct ree_snapshot {
    const int32_t *ids; // prompt and answer so far
    size_t n_prompt, n; // 1 <= n_prompt <= n
    bool is_done;
    enum ree_finish finish;    // if is_done
    const char *logits_sha256; // if is_done, with all_logits; otherwise NULL or ""
    // Only if the sequence is not done and has answer tokens: one digest per kv cache, in the order
    // of the model's inputs (NUMERICS.md, "Checkpoints"). The digests of caches that another
    // process keeps are all zeros. Otherwise empty.
    size_t n_caches;
    const unsigned char (*caches)[32];
};

struct ree_generate_options {
    struct ree_sampling sampling;
    size_t max_new_tokens; // per sequence; 0: until the context is full
    const int32_t *eos;    // ids that end a sequence; the id becomes its last token
    size_t n_eos;
    uint32_t n_logprobs; // at most 100
    // Called with each new token, but not with those of `resume`; returning false ends its sequence
    // at that token. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Called before each run; returning true ends the generation and keeps the tokens made so far.
    // NULL: off.
    bool (*is_interrupted)(void *user);
    // Receives the sequences of all prompts, which are valid only during the call. NULL: off. A
    // failure ends the generation. Called
    // - before the first run
    // - when a sequence has `checkpoint_every` tokens more than at the last call
    // - at the end, and after an interruption
    enum ree_status (*on_checkpoint)(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *err);
    size_t checkpoint_every; // 0: 32
    // One snapshot per prompt, whose ids must begin with that prompt; generation resumes from it.
    // The snapshot's tokens are compared with those that the model chooses. The kv caches are
    // recomputed from the tokens and compared with the snapshot's digests. NULL: start from the
    // prompts.
    const struct ree_snapshot *resume;
    void *user;
};

struct ree_generation {
    int32_t *ids; // prompt and answer; allocated with malloc, owned
    size_t n_prompt, n;
    enum ree_finish finish;
    char tokens_sha256[65]; // NUMERICS.md, "Hashes"
    char logits_sha256[65]; // with all_logits; otherwise ""
};
void ree_generation_finish(struct ree_generation *generation); // frees ids

struct ree_generate_stats {
    // Totals over all sequences. Tokens of `resume` count as prompt tokens.
    size_t prompt_tokens, new_tokens;
    size_t decode_tokens;                  // new tokens that decode steps produced
    double prompt_seconds, decode_seconds; // time in runs over prompts; time in decode steps
    double first_token_seconds;            // time from the call to the first token
    size_t n_runs;
    uint64_t cache_bytes;
};

// Continues each prompt. The tokens of a sequence do not depend on the other sequences in its
// batch, nor on how prompts are divided into runs. `out` has n entries, which this call initialises
// even on failure; release each with ree_generation_finish. `options` must not be NULL; `out_stats`
// may be NULL.
enum ree_status ree_generate(struct ree_generator *generator, const struct ree_prompt *prompts,
                             size_t n, const struct ree_generate_options *options,
                             struct ree_generation *out, struct ree_generate_stats *out_stats,
                             struct ree_error *err);

// Text

// A tokenizer converts text to token ids and back. It is immutable after loading, so several
// threads may encode and decode with it at the same time.
struct ree_tokenizer;

// `path` is one of
// - a tokenizer.json
// - a *.tiktoken file
// - a GPT-2 vocab.json with merges.txt in the same folder
// - a folder that holds one of these
//
// If they exist in the same folder, tokenizer_config.json, special_tokens_map.json,
// generation_config.json and config.json are read too: for the bos and eos ids and the chat
// template, and, unless the file is a tokenizer.json, for added tokens and the kind of tokenizer.
enum ree_status ree_tokenizer_load(const char *path, struct ree_tokenizer **out_tokenizer,
                                   struct ree_error *err);
void ree_tokenizer_destroy(struct ree_tokenizer *tokenizer);

uint32_t ree_tokenizer_vocab_size(const struct ree_tokenizer *tokenizer); // largest id + 1
// The token as the vocabulary writes it ("\u0120the", "<0x0A>"), NUL-terminated; NULL if there is
// no such id. Use a decoder to get the text that a token represents.
const char *ree_tokenizer_token(const struct ree_tokenizer *tokenizer, int32_t id);
// -1: no such token
int32_t ree_tokenizer_id(const struct ree_tokenizer *tokenizer, const char *token);
bool ree_tokenizer_is_special(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_bos(const struct ree_tokenizer *tokenizer); // -1: none declared
// Returns the number of ids that end a text, which may be 0 or several; *out_ids lists them in
// ascending order. The array belongs to the tokenizer.
size_t ree_tokenizer_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids);
// SHA-256 over everything that determines how the tokenizer encodes and decodes, independent of the
// layout of the files it was loaded from. src/text/README.md defines the hashed bytes.
void ree_tokenizer_sha256(const struct ree_tokenizer *tokenizer, char hex[65]);

enum {
    REE_ADD_SPECIAL = 1, // encode: add the tokens of the post-processor (BOS, ...)
    // encode: special tokens written in the text become their ids; without the flag they are
    // ordinary text. Added tokens that are not special are always recognised.
    REE_PARSE_SPECIAL = 2,
    REE_SKIP_SPECIAL = 4, // decode: special tokens produce no text
};

// `text` need not be NUL-terminated and may contain NULs. In invalid UTF-8, each stray byte and
// each maximal part of an incomplete character becomes U+FFFD. Release *out_ids with free; it is
// not NULL even if there are no ids.
enum ree_status ree_tokenizer_encode(const struct ree_tokenizer *tokenizer, const char *text,
                                     size_t nbytes, uint32_t flags, int32_t **out_ids,
                                     size_t *out_n, struct ree_error *err);
// *out_text is valid UTF-8 followed by a NUL; *out_nbytes does not count the NUL. Release with
// free. Fails with REE_INVALID if the tokenizer lacks an id.
enum ree_status ree_tokenizer_decode(const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                     size_t n, uint32_t flags, char **out_text, size_t *out_nbytes,
                                     struct ree_error *err);

// Decodes token by token. The tokenizer must outlive the decoder.
struct ree_decoder;

enum ree_status ree_decoder_create(const struct ree_tokenizer *tokenizer, uint32_t flags,
                                   struct ree_decoder **out_decoder, struct ree_error *err);
void ree_decoder_destroy(struct ree_decoder *decoder);
// Adds a token and returns the text that has become certain: usually the text of the token, nothing
// in the middle of a character, never part of a character. The concatenation of all returned texts,
// including that of ree_decoder_flush, equals the result of ree_tokenizer_decode. The text is
// NUL-terminated, belongs to the decoder and is valid until its next call.
enum ree_status ree_decoder_push(struct ree_decoder *decoder, int32_t id, const char **out_text,
                                 size_t *out_nbytes, struct ree_error *err);
// Returns the text held back, although later tokens could still change it: an incomplete character
// becomes U+FFFD. The next token continues the text; it is not decoded as the first token of a
// text. Call it between a prompt and its answer, so that no byte of the prompt becomes text of the
// answer.
enum ree_status ree_decoder_settle(struct ree_decoder *decoder, const char **out_text,
                                   size_t *out_nbytes, struct ree_error *err);
// Returns the remaining text and resets the decoder to its initial state.
enum ree_status ree_decoder_flush(struct ree_decoder *decoder, const char **out_text,
                                  size_t *out_nbytes, struct ree_error *err);

// Chat: renders a conversation as the text format that a model was trained on. `family` is one of
// ree_chat_families; NULL: that of the tokenizer's chat template. `messages` is a JSON array of
// objects {"role": "system" | "user" | "assistant", "content": "..."}, `nbytes` long. With `reply`
// the text ends at the point at which the assistant's answer begins. The text includes the tokens
// that the family puts at the beginning, so encode it with REE_PARSE_SPECIAL and without
// REE_ADD_SPECIAL. Release *out_text with free.
enum ree_status ree_chat_prompt(const struct ree_tokenizer *tokenizer, const char *family,
                                const char *messages, size_t nbytes, bool reply, char **out_text,
                                size_t *out_nbytes, struct ree_error *err);
// The family of the tokenizer's chat template; NULL if it has none or the template is unknown.
const char *ree_tokenizer_chat_family(const struct ree_tokenizer *tokenizer);
const char *const *ree_chat_families(void); // names, NULL-terminated
// Writes one line of less than 200 bytes: the libraries whose Unicode tables affect tokenization,
// with their versions.
void ree_text_tables(char *out, size_t size);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif

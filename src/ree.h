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
//     if (ree_session_create(model, device, NULL, &session, &err)) ... // weights onto the device
//     if (ree_session_run(session, inputs, n_inputs, outputs, &err)) ...
//
// Ownership: everything made by *_load, *_open or *_create is released by the matching *_destroy,
// in the reverse order; every destroy accepts NULL. Strings and structs returned as `const` belong
// to the object asked and live as long as it does.
//
// Errors: a function that can fail returns REE_OK (0) or another ree_status and, where `err` is not
// NULL, writes a message that names the file, node and tensor concerned. On failure out parameters
// are NULL.
//
// Threads: an object may be used by one thread at a time; different objects are independent, except
// that a session also uses its model and its device.
//
// Floating-point environment: the bits do not depend on the caller's. Rounding direction, flushing
// of subnormals (-ffast-math, FTZ and DAZ of x86, FZ of ARM) and exceptions that trap may be set in
// any thread. A function that computes sets ree's environment and restores the calling thread's
// before it returns, status flags included. Callbacks run in the caller's environment and may
// change it. OpenMP threads that ree is the first to start keep the default environment.
#ifndef REE_H
#define REE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) // what libree.so exports, and nothing else
#endif

// Status

enum ree_status {
    REE_OK = 0,
    REE_INVALID,     // the model, tensor or argument is malformed or inconsistent
    REE_UNSUPPORTED, // well formed, but outside what ree does (operator, opset, type, rank)
    REE_NOT_FOUND,   // no such file, device, input
    REE_IO,          // reading or writing failed
    REE_NO_MEMORY,   // host or device memory exhausted
    REE_UNAVAILABLE, // no driver or no device of that kind on this machine
    REE_DEVICE,      // the device failed while running
    REE_INTERNAL,    // a mistake in ree itself
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
    REE_U4 = 21, // the types below a byte take one byte each: see ree_dtype_bits
    REE_I4 = 22,
    REE_F4E2M1 = 23, // bits in the low half of the byte
    REE_F8E8M0 = 24,
    REE_U2 = 25,
    REE_I2 = 26,
};

#define REE_MAX_RANK 8

const char *ree_dtype_name(enum ree_dtype dtype); // "float32", "int64", "bool", ...; "?" if unknown
size_t ree_dtype_size(enum ree_dtype dtype);      // bytes per element; 0 for unknown types
// Bits that an element has in an ONNX file, where the types of 4 and 2 bits are packed. In a struct
// ree_tensor, and everywhere else in ree, their elements have a byte each: int4 and int2 extended
// by their sign, uint4, uint2 and float4e2m1 by zeros.
uint32_t ree_dtype_bits(enum ree_dtype dtype);

// What a value is: nearly always a tensor.
enum ree_kind {
    REE_TENSOR = 0,
    REE_SEQUENCE, // a list of tensors of one type, of any shapes
    REE_ABSENT,   // an optional value that is not there
};

// A tensor in host memory: dense, row-major, little-endian. `dims` of a scalar: rank 0. Elements of
// REE_STRING are `char *`: each its own allocation of malloc, NUL-terminated UTF-8, owned by the
// tensor; NULL is an empty string.
//
// The same struct holds a sequence, whose tensors are its items (without names) and which owns
// them, and an absent value. Then rank is 0 and data NULL; dtype is that of the items.
struct ree_tensor {
    char *name; // may be NULL
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    void *data;    // (dims[0] * ... * dims[rank-1]) elements; may be NULL when that is 0
    size_t nbytes; // elements * ree_dtype_size(dtype)
    enum ree_kind kind;
    size_t n_items;           // of a sequence
    struct ree_tensor *items; // REE_TENSOR each
};

// Allocates zeroed data and copies `name` (may be NULL). Release with ree_tensor_finish.
enum ree_status ree_tensor_init(struct ree_tensor *tensor, const char *name, enum ree_dtype dtype,
                                uint32_t rank, const int64_t *dims, struct ree_error *err);
// Appends `item` to a sequence (an empty one is a zeroed struct of kind REE_SEQUENCE) and takes it
// over, also on failure.
enum ree_status ree_sequence_append(struct ree_tensor *sequence, struct ree_tensor *item,
                                    struct ree_error *err);
void ree_tensor_finish(struct ree_tensor *tensor); // frees name, data, items; zeroes the struct

// Reads FILE.npy (NumPy format 1 to 3, C or Fortran order) or FILE.pb (an ONNX TensorProto).
enum ree_status ree_tensor_load(struct ree_tensor *tensor, const char *path, struct ree_error *err);
// The same for a value that `port` takes: its .pb is a SequenceProto or an OptionalProto where the
// port is a sequence or nullable.
struct ree_port;
enum ree_status ree_tensor_load_for(struct ree_tensor *tensor, const char *path,
                                    const struct ree_port *port, struct ree_error *err);
// Writes NumPy format 1.0, by way of a temporary file in the same folder: whole or not at all.
// Types that NumPy does not have are written as their bytes: int4 and int2 as int8; uint4, uint2,
// float4e2m1 and the float8 types (their bits) as uint8; bfloat16 as raw data of two bytes. Loading
// such a file gives a tensor of the type written (bfloat16 for two raw bytes).
enum ree_status ree_tensor_save_npy(const struct ree_tensor *tensor, const char *path,
                                    struct ree_error *err);

// SHA-256 over one tensor, and over several in order; what is hashed is in NUMERICS.md, "Hashes".
void ree_tensor_sha256(const struct ree_tensor *tensor, char hex[65]);
void ree_tensors_sha256(const struct ree_tensor *tensors, size_t n, char hex[65]);

// Models

struct ree_model;

struct ree_model_options {
    bool no_fold; // keep constant subgraphs in the graph (shapes are still evaluated on the host)
    // Of a checkpoint's folder, as in struct ree_export_options; 0: none.
    uint32_t quantize_bits, quantize_block;
    // Called with the name of each pass and the graph after it, as text; NULL: off.
    void (*on_pass)(void *user, const char *pass, const char *graph_text);
    void *user;
    // Progress of loading: done and total in bytes; NULL: off.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
};

// What a model wants or gives. A dimension is its size, or -1 with a symbol ("batch") or without
// one.
struct ree_port {
    const char *name;
    enum ree_dtype dtype;
    bool has_shape; // false: the rank is not declared
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    const char *symbols[REE_MAX_RANK]; // NULL where there is none
    bool optional;                     // an input that has a default value
    enum ree_kind kind;                // of a sequence, dtype and shape are its items'
    bool nullable;                     // REE_ABSENT may stand in its place
};

struct ree_op_count {
    const char *domain; // "" for ONNX's own
    const char *op_type;
    uint32_t count;
    bool supported;
    const char *reason; // why not; NULL if supported
};

// `path` is an ONNX file, or a folder with a Hugging Face checkpoint: then the model is what
// ree_export writes of it with the same quantisation and no other option, made in memory. A file
// cannot be quantised: REE_INVALID.
enum ree_status ree_model_load(const char *path, const struct ree_model_options *options,
                               struct ree_model **out_model, struct ree_error *err);
// The same from memory; `bytes` are copied. External data is refused (there is no folder to look
// in).
enum ree_status ree_model_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_model_options *options,
                                      struct ree_model **out_model, struct ree_error *err);
// Reads and checks without requiring that every operator is supported: for ree_model_op_counts.
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
int64_t ree_model_opset(const struct ree_model *model, const char *domain);     // 0: not imported
const char *ree_model_metadata(const struct ree_model *model, const char *key); // NULL: absent
uint64_t ree_model_weight_bytes(const struct ree_model *model);
// What is to be said of a model beside its operators, as far as it shows without inputs: of an
// inspected model all of it; of one that is run, what its folder holds and the run does not use.
struct ree_model_note {
    bool is_problem; // the model cannot be run; false: it runs, but its file says what is not so
    const char *text;
};
size_t ree_model_notes(const struct ree_model *model, const struct ree_model_note **out_notes);
// What a model is, as two SHA-256 (NUMERICS.md, "Hashes"): its graph, and the names, types, shapes
// and bytes of its weights. They do not depend on how its files are laid out, nor on what ree makes
// of the graph; a checkpoint's folder and what ree_export writes of it have the same. That of the
// weights reads all of them, on all cores. REE_UNSUPPORTED where the model has tensors of types
// that ree lacks.
enum ree_status ree_model_graph_sha256(const struct ree_model *model, char hex[65],
                                       struct ree_error *err);
// Progress: done and total in bytes, rounded; NULL: off.
enum ree_status ree_model_weights_sha256(const struct ree_model *model,
                                         void (*on_progress)(void *user, const char *what,
                                                             uint64_t done, uint64_t total),
                                         void *user, char hex[65], struct ree_error *err);

// Export

struct ree_export_options {
    // 23 (0 means it): operators for attention, rotary embedding and RMS norms. 17: their steps,
    // for software that does not know them. The bits are the same.
    int64_t opset;
    bool colocate_tensors;   // copy all weights to OUT.data instead of pointing to the safetensors
    uint32_t quantize_bits;  // of the matrices of layers and of a head of its own: 4, 8; 0: as are
    uint32_t quantize_block; // numbers that share a scale, a power of two from 16 to 256; 0: 32
    // Progress of copying and quantising: done and total in bytes; NULL: off.
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    void (*on_note)(void *user, const char *text); // as ree_model_notes of a folder; NULL: off
};

// Writes the decoder in the folder `hf_dir` (config.json and safetensors, as Hugging Face's
// libraries save them) as an ONNX model to `out_path`, which ends in .onnx; NULL: model.onnx in
// hf_dir. The model points to the weights where they lie, so it has to lie beside them, unless
// colocate_tensors copies them. Quantised and copied tensors go to `out_path`.data. Files appear
// whole or not at all. What is exported, and how, is in graph/hf/README.md. `options` may be NULL.
enum ree_status ree_export(const char *hf_dir, const char *out_path,
                           const struct ree_export_options *options, struct ree_error *err);

// Devices

struct ree_device;

// What a run promises (README.md, "Operation sets"). Where a device has nothing faster than RepOps,
// it runs those, whatever the set.
enum ree_operation_set {
    REE_REPRODUCIBLE,  // the bits of RepOps, on every device
    REE_DETERMINISTIC, // on one device with one driver, the same bits from run to run: CUDA takes
                       // cuBLAS in binary32, where that is installed
    REE_DEFAULT,       // nothing: cuBLAS with tensor cores (TF32)
};
const char *ree_operation_set_name(enum ree_operation_set set); // "reproducible", ...

struct ree_device_options {
    enum ree_operation_set operation_set;
    uint32_t n_threads;  // CPU: 0 is one per core; when it is all of them, the OpenMP workers (not
                         // the caller) are bound to one each, unless OMP_PROC_BIND is set
    const char *cpu_isa; // "avx512", "avx2", "neon", "portable"; NULL: the best of this machine
    bool validation;     // Vulkan: enable VK_LAYER_KHRONOS_validation; a message fails the run
    // Where compiled pipelines and the results of self-tests are kept, so that the next start need
    // not make them again; NULL: $XDG_CACHE_HOME/ree, or $HOME/.cache/ree; "": nowhere.
    const char *cache_dir;
    // Vulkan and CUDA, for tests: pretend that this primitive ("fma", "div", "add", ...) computes
    // wrongly, Vulkan's integers also ("integer fma"), so that the probe must notice. NULL: off.
    const char *break_primitive;
    // Vulkan: force a form for the primitives instead of the probe's choice: "native", "float64",
    // "float32", "integer"; NULL: the probe decides. Refused where the probe found the form wrong.
    const char *force_form;
};

// spec: "cpu", "cuda" or "vulkan" (the first device of that kind), "cuda:INDEX", "cuda:NAME" (a
// part of the device's name, any case), and the same for Vulkan.
enum ree_status ree_device_open(const char *spec, const struct ree_device_options *options,
                                struct ree_device **out_device, struct ree_error *err);
void ree_device_destroy(struct ree_device *device);
const char *ree_device_name(const struct ree_device *device); // "cpu (avx512, 2 threads)", ...

// One line per property or primitive of a device: {"limit", "storage buffer range", "128 MiB"} or
// {"primitive", "fma", "float64 (native is not fused)"}.
struct ree_device_fact {
    // "device", "limit", "feature", "primitive", "self-test" ("passed", or "failed" with what was
    // wrong: another form of that code runs instead), "not used" (the device's own functions, tried
    // for the record)
    const char *kind;
    const char *name;
    const char *value;
};
size_t ree_device_facts(const struct ree_device *device, const struct ree_device_fact **out_facts);

// Lists what could be opened: writes up to `max` specs with `ree_device_open`'s grammar, returns
// how many there are. `*out_note` (may be NULL) is set to why kinds are missing, a line for each
// ("Vulkan: libvulkan.so.1 ..."), or NULL.
struct ree_device_listing {
    char spec[64];
    char name[256];
};
size_t ree_device_list(struct ree_device_listing *out_list, size_t max, const char **out_note);

// Sessions

struct ree_session;

struct ree_session_options {
    bool no_fuse; // one dispatch per step; for proving that fusion does not change bits
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total); // NULL: off
    void *user;
    // Called whenever the model is bound to shapes, with "lowered" and the dispatches in order, and
    // with "memory plan" and where the intermediate tensors lie; NULL: off. Where shapes depend on
    // computed data there are several parts: "lowered, part 2".
    void (*on_program)(void *user, const char *what, const char *text);
};

enum ree_status ree_session_create(struct ree_model *model, struct ree_device *device,
                                   const struct ree_session_options *options,
                                   struct ree_session **out_session, struct ree_error *err);
void ree_session_destroy(struct ree_session *session);

// Runs the model once. `inputs` are matched by name, in any order; a missing or unknown name, a
// wrong type or a shape the model excludes is REE_INVALID with a message that lists what the model
// wants. `outputs` is an array of ree_model_n_outputs tensors that this call initialises, in the
// model's order; release each with ree_tensor_finish. NaNs in outputs are those of NUMERICS.md,
// section 1 (float32: 0x7FC00000).
enum ree_status ree_session_run(struct ree_session *session, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_tensor *outputs, struct ree_error *err);

// Binds the model to the inputs' shapes without running it (but for what shapes depend on), as the
// next run with such inputs would.
enum ree_status ree_session_bind(struct ree_session *session, const struct ree_tensor *inputs,
                                 size_t n_inputs, struct ree_error *err);

struct ree_session_stats {
    uint64_t weight_bytes;         // resident on the device
    uint64_t arena_bytes;          // intermediate results of the last run, after reuse
    uint64_t n_dispatches;         // RepOps of the last run
    uint64_t n_segments;           // 1 unless a shape depended on computed data
    uint64_t n_binds, n_bind_hits; // shape cache
    double bind_seconds;           // of the last run
    double run_seconds;            // of the last run, upload and download included
    uint64_t peak_bytes;           // with max_device_memory: the most that a device held; else 0
};
void ree_session_stats(const struct ree_session *session, struct ree_session_stats *out_stats);

// Text generation

// A causal language model on a device, with its caches: token ids in, token ids out.
struct ree_generator;

struct ree_generator_options {
    struct ree_model_options model;
    struct ree_session_options session;
    uint32_t prefill_chunk; // tokens of a prompt that are run at a time; 0: 512
    uint32_t max_batch;     // sequences that are run together; 0: 16
    bool all_logits;        // compute logits for every token of a prompt, not its last alone
    bool exact_lengths;     // sequences of one length run together, and caches are exactly as long
                            // as what they hold; slower; for traces
    uint32_t n_sets;        // groups of sequences that are under way at the same time, each with
                            // caches of its own; 0: 1
    // The model in parts that run one after the other: part i on device i modulo their number,
    // `device` being the first. The bits do not depend on it. 0: as many parts as devices.
    uint32_t n_partitions;
    struct ree_device *const *more_devices;
    size_t n_more_devices;
    const char *partition_plan; // where they end, a file of `ree-run plan`; NULL: ree decides
    // Bytes of a device's memory that weights, caches and intermediate results may take; 0: no
    // limit. Parts are then as many as needed (or n_partitions), and their weights are on the
    // device only while they run.
    uint64_t max_device_memory;
    // Of several processes (src/ranks), which this one is; it has its share of the parts. 0: alone.
    uint32_t rank, n_ranks;
};

struct ree_generator_info {
    const char *model_path; // the ONNX file, or the folder of a checkpoint
    const char *folder;     // where a tokenizer would lie
    const char *model_type; // "llama", ...; "" where it is not known
    int64_t context_length; // tokens of prompt and answer together; 0: not known
    int64_t vocab_size;     // 0: not known before the first run
    int32_t bos;            // -1: not known
    size_t n_eos;
    const int32_t *eos;    // ids that end a text
    bool has_cache;        // keys and values stay on the device from step to step
    bool mixes_lengths;    // sequences of different lengths are run together
    bool computes_one_row; // logits of the last token alone, where no others are asked for
};

// `path` is an ONNX file whose inputs are token ids and, where it has a cache, past keys and values
// (with their successors among the outputs); or a folder: one with genai_config.json, one with such
// an ONNX file, or a Hugging Face checkpoint.
enum ree_status ree_generator_create(const char *path, struct ree_device *device,
                                     const struct ree_generator_options *options,
                                     struct ree_generator **out_generator, struct ree_error *err);
void ree_generator_destroy(struct ree_generator *generator);
const struct ree_generator_info *ree_generator_info(const struct ree_generator *generator);
// NULL where the model runs in several parts.
struct ree_session *ree_generator_session(struct ree_generator *generator);
void ree_generator_stats(const struct ree_generator *generator,
                         struct ree_session_stats *out_stats); // of all parts

// How a token is chosen from logits; NUMERICS.md, "Sampling", defines each to the bit.
struct ree_sampling {
    float temperature;        // 0: the largest logit, the first of equal ones; else 1e-6 to 1e6
    uint32_t top_k;           // 0: off
    float top_p;              // 1: off
    float min_p;              // 0: off
    float repetition_penalty; // 1: off
    uint64_t seed;
};
extern const struct ree_sampling ree_greedy;

// REE_INVALID with the reason where these make no sense ("top_p is 1.5, expected more than 0 and at
// most 1").
enum ree_status ree_sampling_check(const struct ree_sampling *sampling, struct ree_error *err);
// The token for `position` (of the token to be chosen, counted from 0) after ids[0 ... n-1]. Fails
// where a logit is not a number.
enum ree_status ree_sampling_choose(const struct ree_sampling *sampling, const float *logits,
                                    size_t vocab_size, const int32_t *ids, size_t n,
                                    uint64_t position, int32_t *out_id, struct ree_error *err);

enum ree_finish {
    REE_FINISH_LENGTH,      // max_new_tokens, or the context is full
    REE_FINISH_EOS,         // a token of `eos`
    REE_FINISH_STOP,        // on_token said so
    REE_FINISH_INTERRUPTED, // is_interrupted said so
};
const char *ree_finish_name(enum ree_finish finish); // "length", "eos", "stop", "interrupted"

struct ree_prompt {
    const int32_t *ids;
    size_t n; // at least 1
};

struct ree_logprob {
    int32_t id;
    float logprob; // log softmax of the logits as the model gives them
};

struct ree_token {
    size_t sequence; // which prompt
    size_t position; // in the sequence, prompt included
    int32_t id;
    float logprob;                 // with n_logprobs alone
    const struct ree_logprob *top; // n_logprobs of them, the likeliest first
};

// A sequence as far as it has come: what a checkpoint keeps of it, and what it goes on from.
struct ree_snapshot {
    const int32_t *ids; // prompt and answer so far
    size_t n_prompt, n; // 1 <= n_prompt <= n
    bool is_done;
    enum ree_finish finish;    // of one that is done
    const char *logits_sha256; // of one that is done, with all_logits; else NULL or ""
    // Of one that is not done and has tokens of an answer: a digest for each cache, in the order of
    // the model's inputs (NUMERICS.md, "Checkpoints"), all zeros of those that are kept in another
    // process; else none.
    size_t n_caches;
    const unsigned char (*caches)[32];
};

struct ree_generate_options {
    struct ree_sampling sampling;
    size_t max_new_tokens; // per sequence; 0: until the context is full
    const int32_t *eos;    // ids that end a sequence; they are its last token
    size_t n_eos;
    uint32_t n_logprobs; // at most 100
    // Each token as it is made; false ends its sequence there. Not those of `resume`. NULL: off.
    bool (*on_token)(void *user, const struct ree_token *token);
    // Asked before each run; true ends everything with what was made so far. NULL: off.
    bool (*is_interrupted)(void *user);
    // All sequences, of every prompt: before the first run; when one of them has
    // `checkpoint_every` tokens more than the last time; at the end, and after an interruption.
    // What it gets is valid during the call. A failure ends the generation. NULL: off.
    enum ree_status (*on_checkpoint)(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *err);
    size_t checkpoint_every; // 0: 32
    // A snapshot for each prompt, whose tokens it begins with: where to go on. Its tokens are
    // compared with those that the model chooses, its caches are computed anew from them and
    // compared with its digests. NULL: from the prompts.
    const struct ree_snapshot *resume;
    void *user;
};

struct ree_generation {
    int32_t *ids; // prompt and answer; malloc
    size_t n_prompt, n;
    enum ree_finish finish;
    char tokens_sha256[65]; // NUMERICS.md, "Hashes"
    char logits_sha256[65]; // with all_logits; else ""
};
void ree_generation_finish(struct ree_generation *generation); // frees ids

struct ree_generate_stats {
    size_t prompt_tokens, new_tokens;      // of all sequences; those of `resume` count as prompts
    size_t decode_tokens;                  // those of the new ones that single steps made
    double prompt_seconds, decode_seconds; // runs over prompts; single steps
    double first_token_seconds;            // from the call to the first token
    size_t n_runs;
    uint64_t cache_bytes;
};

// Continues each prompt. The tokens of a sequence do not depend on the others beside it, nor on how
// prompts are cut. `out` has n entries, which this call initialises also on failure.
enum ree_status ree_generate(struct ree_generator *generator, const struct ree_prompt *prompts,
                             size_t n, const struct ree_generate_options *options,
                             struct ree_generation *out, struct ree_generate_stats *out_stats,
                             struct ree_error *err);

// Text

// A tokenizer: text to token ids and back. Encoding and decoding do not change it, so several
// threads may use one at the same time.
struct ree_tokenizer;

// `path` is a tokenizer.json; a *.tiktoken file; a GPT-2 vocab.json with merges.txt beside it; or a
// folder that holds one of these. Beside it are consulted, where they exist, tokenizer_config.json,
// special_tokens_map.json, generation_config.json and config.json: for the ids of beginning and
// end, the chat template, and, with files other than tokenizer.json, added tokens and the kind of
// tokenizer.
enum ree_status ree_tokenizer_load(const char *path, struct ree_tokenizer **out_tokenizer,
                                   struct ree_error *err);
void ree_tokenizer_destroy(struct ree_tokenizer *tokenizer);

uint32_t ree_tokenizer_vocab_size(const struct ree_tokenizer *tokenizer); // 1 + the largest id
// The piece as the vocabulary spells it ("\u0120the", "<0x0A>"), NUL-terminated; NULL where there
// is no such id. The text that a token stands for is what a decoder gives.
const char *ree_tokenizer_token(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_id(const struct ree_tokenizer *tokenizer, const char *token); // -1: none
bool ree_tokenizer_is_special(const struct ree_tokenizer *tokenizer, int32_t id);
int32_t ree_tokenizer_bos(const struct ree_tokenizer *tokenizer); // -1: none is declared
// The ids that end a text, ascending; there may be several, or none. The array belongs to the
// tokenizer.
size_t ree_tokenizer_eos(const struct ree_tokenizer *tokenizer, const int32_t **out_ids);
// SHA-256 over everything that decides the ids of a text and the text of ids, whatever the layout
// of the files it was loaded from; src/text/README.md says what is hashed.
void ree_tokenizer_sha256(const struct ree_tokenizer *tokenizer, char hex[65]);

enum {
    REE_ADD_SPECIAL = 1,   // encode: with the tokens that the post-processor adds (BOS, ...)
    REE_PARSE_SPECIAL = 2, // encode: special tokens spelled out in the text become their ids;
                           // otherwise they are text like any other. Added tokens that are not
                           // special are found in either case.
    REE_SKIP_SPECIAL = 4,  // decode: special tokens give no text
};

// `text` need not be NUL-terminated and may contain NULs. Where it is not valid UTF-8, each maximal
// part of a character that was begun, or stray byte, counts as U+FFFD. *out_ids is released with
// free and is not NULL when there are none.
enum ree_status ree_tokenizer_encode(const struct ree_tokenizer *tokenizer, const char *text,
                                     size_t nbytes, uint32_t flags, int32_t **out_ids,
                                     size_t *out_n, struct ree_error *err);
// *out_text is valid UTF-8 with a NUL behind it, released with free. Ids that the tokenizer does
// not have are REE_INVALID.
enum ree_status ree_tokenizer_decode(const struct ree_tokenizer *tokenizer, const int32_t *ids,
                                     size_t n, uint32_t flags, char **out_text, size_t *out_nbytes,
                                     struct ree_error *err);

// Decodes token by token. The tokenizer has to outlive the decoder.
struct ree_decoder;

enum ree_status ree_decoder_create(const struct ree_tokenizer *tokenizer, uint32_t flags,
                                   struct ree_decoder **out_decoder, struct ree_error *err);
void ree_decoder_destroy(struct ree_decoder *decoder);
// Takes a token and gives the text that is certain by now and was not given before: often that of
// the token, nothing in the middle of a character, never half of one. All pieces together, with the
// one of ree_decoder_flush, are what ree_tokenizer_decode gives. The text (with a NUL behind it)
// belongs to the decoder and lives until its next call.
enum ree_status ree_decoder_push(struct ree_decoder *decoder, int32_t id, const char **out_text,
                                 size_t *out_nbytes, struct ree_error *err);
// Gives what is held back although later tokens would decide about it: an incomplete character
// becomes U+FFFD. The next token continues the text; it is not decoded as a first one. To be called
// between a prompt and its answer, so that no byte of the prompt becomes text of the answer.
enum ree_status ree_decoder_settle(struct ree_decoder *decoder, const char **out_text,
                                   size_t *out_nbytes, struct ree_error *err);
// The rest; then the decoder is as new.
enum ree_status ree_decoder_flush(struct ree_decoder *decoder, const char **out_text,
                                  size_t *out_nbytes, struct ree_error *err);

// Chat: a conversation as the text that a model was trained on. `family` is one of
// ree_chat_families, or NULL for the one of the tokenizer's chat template. `messages` is a JSON
// array of objects {"role": "system" | "user" | "assistant", "content": "..."}. With `reply` the
// text ends where the assistant's answer begins. It contains what the family puts at the beginning,
// so encode it with REE_PARSE_SPECIAL and without REE_ADD_SPECIAL. *out_text is released with free.
enum ree_status ree_chat_prompt(const struct ree_tokenizer *tokenizer, const char *family,
                                const char *messages, size_t nbytes, bool reply, char **out_text,
                                size_t *out_nbytes, struct ree_error *err);
// The family of the tokenizer's chat template; NULL when it has none or one that is not known.
const char *ree_tokenizer_chat_family(const struct ree_tokenizer *tokenizer);
const char *const *ree_chat_families(void); // names, ended by NULL
// The libraries whose Unicode tables decide about the tokens of a text, with their versions, as a
// line of less than 200 bytes.
void ree_text_tables(char *out, size_t size);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif

// Training: repeats a training step that ree.export_training wrote (docs/TRAINING.md), with samples
// from a file, and makes receipts of trainings that others can check.
//
// A training step is a model whose metadata entry "ree.training" says which inputs are the batch
// and which are states: parameters, and what the optimizer keeps. Each state is an input with a
// default value and an output with its next value.
//
//     ree_dataset_load        samples from a .npz or .safetensors file
//     ree_training_create     a training of a step on a device
//     ree_training_load       continues from a checkpoint
//     ree_training_step       one step
//     ree_training_save       writes a checkpoint
//     ree_training_receipt_create, ree_training_receipt_validate, ree_training_verify
//
// The bits depend on the step, the samples, the seed and the number of steps, and not on the
// device. NUMERICS.md, "Order of samples" and "Trainings", defines them.
#ifndef REE_TRAIN_H
#define REE_TRAIN_H

#include "receipt.h"
#include "session.h"
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ree_dataset;
struct ree_training;
struct ree_training_receipt;
struct ree_transport; // ranks.h

// Datasets

// Reads the tensors of a file that ends in .npz (NumPy's archive of .npy files, compressed or not)
// or .safetensors. The first dimension of each tensor counts samples. All tensors are in memory
// afterwards. Release *out_dataset with ree_dataset_destroy. Fails with REE_UNSUPPORTED for files
// of another kind, with REE_INVALID if the file is malformed or has two tensors of one name, and
// with REE_NOT_FOUND or REE_IO if it cannot be read.
REE_API enum ree_status ree_dataset_load(const char *path, struct ree_dataset **out_dataset,
                                         struct ree_error *err);
// Makes a dataset from named tensors in memory, which it copies. Fails with REE_INVALID if a name
// is missing or occurs twice, or if the size of a tensor's data does not match its shape.
REE_API enum ree_status ree_dataset_create(const struct ree_tensor *tensors, size_t n,
                                           struct ree_dataset **out_dataset, struct ree_error *err);
REE_API void ree_dataset_destroy(struct ree_dataset *dataset);
// Returns the number of tensors; *out_tensors is borrowed.
REE_API size_t ree_dataset_tensors(const struct ree_dataset *dataset,
                                   const struct ree_tensor **out_tensors);

// Trainings

struct ree_training_options {
    size_t size;                  // sizeof(struct ree_training_options)
    uint64_t seed;                // of the order of samples and of random operators such as dropout
    bool in_order;                // take the samples in the order of the dataset, in every epoch
    bool no_fuse;                 // as in struct ree_session_options
    struct ree_progress progress; // progress of loading the step onto the device, in bytes
};

// Creates a training, which has made no step. The model, the device and the dataset must outlive
// it. The dataset must have a tensor for each input of the batch, with the type of this input and
// the shape of its samples; its other tensors are not used. `options` may be NULL. Fails with
// REE_INVALID if the model is not a training step, or if the dataset does not match it or has fewer
// samples than a batch.
REE_API enum ree_status ree_training_create(struct ree_model *model, struct ree_device *device,
                                            const struct ree_dataset *dataset,
                                            const struct ree_training_options *options,
                                            struct ree_training **out_training,
                                            struct ree_error *err);
REE_API void ree_training_destroy(struct ree_training *training);

// The struct does not change between versions.
struct ree_training_info {
    uint64_t n_steps;         // steps made so far, those before a checkpoint included
    uint64_t batch_size;      // samples per step
    uint64_t n_samples;       // samples of the dataset
    uint64_t steps_per_epoch; // n_samples / batch_size, rounded down; the remaining samples of an
                              // epoch are not used
};
REE_API struct ree_training_info ree_training_info(const struct ree_training *training);
// *out_states receives the present values of the states under their names, in the order of the
// model's inputs, and *out_n their number. They are copied from the device if they have changed.
// Borrowed and valid until the next step, load or destroy.
REE_API enum ree_status ree_training_states(struct ree_training *training,
                                            const struct ree_tensor **out_states, size_t *out_n,
                                            struct ree_error *err);
// Computes the root over all states (NUMERICS.md, "Trainings"), as 64 hexadecimal digits and a NUL.
REE_API enum ree_status ree_training_sha256(struct ree_training *training, char hex[65],
                                            struct ree_error *err);

// Makes one step. *out_loss receives the loss of this step; it may be NULL. After a failure the
// states are those before the step. Fails with REE_INVALID if the loss is not one number, if a next
// value has another type or shape than its state, or if the training has 2^32 - 1 steps, the
// maximum.
REE_API enum ree_status ree_training_step(struct ree_training *training, double *out_loss,
                                          struct ree_error *err);

// Writes the states, the number of steps, and what the training depends on (step, samples, seed,
// order) to a checkpoint: a safetensors file, which appears whole or not at all. Hashes the states;
// at the first call also the model and the dataset. `path` NULL: writes no file, and only checks
// that the states can be saved. Fails with REE_UNSUPPORTED if a state has a type that such files
// lack.
REE_API enum ree_status ree_training_save(struct ree_training *training, const char *path,
                                          struct ree_error *err);
// Continues from a checkpoint: sets the states and the number of steps. Fails with REE_INVALID, and
// changes nothing, if the checkpoint belongs to another step, other samples, another seed or
// another order, if its states are not those that were saved, or if the training records a receipt
// or a trace or is shared by ranks.
REE_API enum ree_status ree_training_load(struct ree_training *training, const char *path,
                                          struct ree_error *err);

// Starts to record the next steps, as ree_record_session does (trace.h): each step of the training
// is a step of the trace. Call it before the first step after create or load; ree_training_load
// fails afterwards. The recording must end (ree_recording_finish or _destroy) before the training
// is destroyed. If a step fails, the recording may have this step already: destroy it. Two
// trainings whose traces differ can be compared and disputed like other runs (audit.h).
REE_API enum ree_status ree_training_trace(struct ree_training *training,
                                           const struct ree_record_options *options,
                                           struct ree_recording **out_recording,
                                           struct ree_error *err);

// Trainings on several ranks
//
// Several processes, called ranks (ranks.h), make each step together: each has some samples of the
// batch. The states and the bits are those of one process. The order of calls:
//
//     all      ree_transport_open_mpi, ree_training_create, ree_training_load, ree_training_share
//     rank 0   ree_training_step, ...; ree_training_end, ree_training_release
//     others   ree_training_serve, which returns after ree_training_release
//     all      ree_training_destroy, ree_transport_close
//
// After a failure on a rank, call ree_transport_fail: it ends the others too.

// Divides the next steps among the ranks of the transport, which must outlive the training. Each
// rank needs the same step, samples, options and states; rank 0 compares their hashes. Fails with
// REE_INVALID if they differ or a batch has fewer samples than there are ranks, and with
// REE_UNSUPPORTED, and names the operator, if the samples of a batch cannot be followed through the
// step.
REE_API enum ree_status ree_training_share(struct ree_training *training,
                                           struct ree_transport *transport, struct ree_error *err);
// For all ranks except 0: makes rank 0's steps with it, until rank 0 has called ree_training_end
// and ree_training_release.
REE_API enum ree_status ree_training_serve(struct ree_training *training, struct ree_error *err);
// What a rank did. The struct does not change between versions.
struct ree_training_share_info {
    uint64_t n_samples;  // its samples of each batch
    uint64_t n_products; // products in its matrix products and convolutions of a step
    double waited;       // seconds in which it waited for other ranks
};
// For rank 0: tells the other ranks that there are no more steps. `out` receives a struct for each
// rank.
REE_API enum ree_status ree_training_end(struct ree_training *training,
                                         struct ree_training_share_info *out,
                                         struct ree_error *err);
// For rank 0, after ree_training_end, when it has written the results: lets the other ranks return
// from ree_training_serve. Does nothing if the training is not shared.
REE_API enum ree_status ree_training_release(struct ree_training *training, struct ree_error *err);

// Receipts of trainings

#define REE_TRAINING_MAX_POINTS 262144 // maximum number of points of a receipt

// Begins to record a receipt: the steps from now on are part of it. The receipt has points: hashes
// of the states before the first step, after every `interval` steps, and at the end. A verifier who
// has the checkpoint of a point can start there. Hashes the model, the dataset and the states.
// Fails with REE_INVALID if `interval` is 0 or above 2^32 - 1, or if the training already records.
REE_API enum ree_status ree_training_record(struct ree_training *training, uint64_t interval,
                                            struct ree_error *err);
// Makes the receipt of the steps since ree_training_record. The training may go on; a later receipt
// then covers more steps. `trace_root` is the root of a trace that began where the recording of the
// receipt began and ended with its last step (ree_training_trace): 64 hexadecimal digits. A receipt
// with a root binds its party in a dispute. NULL: none. Fails with REE_INVALID if no step was
// recorded or trace_root is malformed. Release *out_receipt with
// ree_training_receipt_destroy.
REE_API enum ree_status ree_training_receipt_create(const struct ree_training *training,
                                                    const char *trace_root,
                                                    struct ree_training_receipt **out_receipt,
                                                    struct ree_error *err);
REE_API void ree_training_receipt_destroy(struct ree_training_receipt *receipt);
// As ree_receipt_sign, ree_receipt_write and ree_receipt_load, for a receipt of a training. Load
// also fails with REE_INVALID if the receipt's hash is not that of its contents.
REE_API enum ree_status ree_training_receipt_sign(struct ree_training_receipt *receipt,
                                                  const char *key_path, struct ree_error *err);
REE_API enum ree_status ree_training_receipt_write(const struct ree_training_receipt *receipt,
                                                   const char *path, struct ree_error *err);
REE_API enum ree_status ree_training_receipt_load(const char *path,
                                                  struct ree_training_receipt **out_receipt,
                                                  struct ree_error *err);
// As ree_training_receipt_load, for a receipt in memory. `where` names it in messages.
REE_API enum ree_status ree_training_receipt_parse(const void *bytes, size_t nbytes,
                                                   const char *where,
                                                   struct ree_training_receipt **out_receipt,
                                                   struct ree_error *err);

// The state of a training after `step` steps, as a receipt has it: 64 hexadecimal digits each. The
// struct does not change between versions.
struct ree_training_point {
    uint64_t step;
    char states_sha256[65]; // root over all states
    char chain_sha256[65];  // hash over all losses and states up to here
};

// The fields of a receipt. Only the library makes this struct. Later versions may add fields at the
// end.
struct ree_training_receipt_info {
    const char *receipt_hash;
    const char *numerics, *operation_set; // "RepOps/1", "reproducible"
    // Hashes of the step's graph, of its weights and initial states, of the roles of its inputs and
    // outputs (NUMERICS.md, "Trainings"), and of the samples
    const char *graph_sha256, *weights_sha256, *roles_sha256, *data_sha256;
    uint64_t n_samples, batch_size, seed;
    bool in_order;
    uint64_t interval; // steps between two points
    // The first point is the state before the first step: first_step steps had been made. The last
    // point is the state after the last step.
    size_t n_points;
    const struct ree_training_point *points; // (n_points), at least 2
    const char *trace_root;                  // root of the trace of all steps; "": none
    const char *public_key;                  // of the signature, in hexadecimal; "": not signed
    // Statements without a proof, which the receipt's hash does not cover; NULL: absent
    const char *device, *ree_version, *created;
};
// Returns the fields of a receipt, borrowed and valid until it is signed or destroyed.
REE_API const struct ree_training_receipt_info *
ree_training_receipt_info(const struct ree_training_receipt *receipt);

// The result of checking a receipt by its own contents. The struct does not change between
// versions.
struct ree_training_validation {
    // The fields as the file has them, also if they are wrong. receipt_hash is the stated one.
    const struct ree_training_receipt_info *receipt;
    const struct ree_receipt_finding *findings;
    size_t n_findings;
    bool ok; // all findings are ok
};

// Checks the hash and the signature of the receipt in a file, and an attestation of it. Repeats no
// step, so it does not show that the training gave these states. Fails with REE_UNSUPPORTED if the
// file is no receipt of a training, with REE_INVALID if it is malformed, and with REE_IO if
// something cannot be checked. `options` may be NULL. Release *out with
// ree_training_validation_destroy.
REE_API enum ree_status ree_training_receipt_validate(const char *path,
                                                      const struct ree_validate_options *options,
                                                      const struct ree_training_validation **out,
                                                      struct ree_error *err);
REE_API void ree_training_validation_destroy(const struct ree_training_validation *validation);
// As ree_dsse_write, for a receipt of a training.
REE_API enum ree_status ree_training_dsse_write(const struct ree_training_receipt *receipt,
                                                const char *receipt_path, const char *key_path,
                                                const char *path, struct ree_error *err);

struct ree_training_verify_options {
    size_t size;            // sizeof(struct ree_training_verify_options)
    const char *public_key; // as in struct ree_verify_options
    // Checkpoint to start from: it must be at one of the receipt's points and have the states of
    // this point. NULL: start at the first step, if no steps came before it.
    const char *checkpoint;
    uint64_t n_steps; // maximum number of steps to repeat; 0: all
    bool no_fuse;
    // Compute the trace again, compare its root with the receipt's, and write it to this file.
    // Fails with REE_INVALID if the receipt has no trace. NULL: the trace is not checked.
    const char *trace;
    // Progress of hashing the model, in bytes, and of the steps ("verifying steps")
    struct ree_progress progress;
};

struct ree_training_verification;
// Repeats the training of a receipt and compares the result. Returns REE_OK whatever the verdict
// is; a failure says nothing about the receipt. The device must be opened with REE_REPRODUCIBLE.
// The verdict is REE_VERIFIED only if the training began with the step's own default values, all
// steps were repeated, and the trace was computed again if the receipt has one. A part of the
// steps, a start from the checkpoint of a later step, or a trace that was not computed gives
// REE_VERIFIED_PARTLY. `options` may be NULL. Release *out_verification with
// ree_training_verification_destroy.
REE_API enum ree_status ree_training_verify(const struct ree_training_receipt *receipt,
                                            struct ree_model *model, struct ree_device *device,
                                            const struct ree_dataset *dataset,
                                            const struct ree_training_verify_options *options,
                                            struct ree_training_verification **out_verification,
                                            struct ree_error *err);
REE_API void ree_training_verification_destroy(struct ree_training_verification *verification);
REE_API enum ree_verify_verdict
ree_training_verification_verdict(const struct ree_training_verification *verification);
// Returns the number of checks; *out_checks is borrowed from the verification.
REE_API size_t
ree_training_verification_checks(const struct ree_training_verification *verification,
                                 const struct ree_verify_check **out_checks);
// Returns the number of steps that were repeated. *out_first, *out_seconds: number of the first of
// them, time that they took; each may be NULL.
REE_API uint64_t ree_training_verification_steps(
    const struct ree_training_verification *verification, uint64_t *out_first, double *out_seconds);

#ifdef __cplusplus
}
#endif
#endif

// Encodes steps, boundary tensors, kv cache positions and logits as messages between ranks, and
// decodes them. A message consists of parts (transport/frame.h). Integers are little-endian, as
// everywhere in ree.
//
//     step       part 0: u64 batch, u64 length, u64 n_rows; then i64 starts[batch],
//                i64 rows[batch * n_rows], i32 ids[batch * length] (struct ree_step)
//                part 1: for each boundary tensor u32 type, u32 rank, i64 dims[8]
//                from part 2 on: the bytes of each boundary tensor
//     positions  part 0: for each kv cache its u32 index
//                from part 1 on: the tensors, as parts 1 and 2 of a step
//     logits     part 0: u64 batch, u64 n_rows, u64 vocab_size
//                part 1: float32[batch * n_rows * vocab_size]
//
// The decoder trusts no sender: it fails with REE_INVALID if a size does not match the expected
// step or another size of the message.
#ifndef REE_RANKS_CODEC_H
#define REE_RANKS_CODEC_H

#include "generate/generator.h"
#include "graph/partition/partition.h"
#include "pipeline/pipeline.h"
#include "transport/transport.h"

// An encoded message. Its parts point to `head`, to `heads` and to the data of the encoded tensors,
// which must outlive it.
struct ree_encoded {
    void *head, *heads; // part 0 of the message; types and shapes of the tensors; owned (ree_alloc)
    size_t n_parts;
    struct ree_part *parts; // owned (ree_alloc)
};
void ree_encoded_finish(struct ree_encoded *encoded);

// Encodes a step and its boundary tensors. Fails with REE_UNSUPPORTED if a boundary tensor is a
// sequence, an absent value or a tensor of strings.
enum ree_status ree_encode_step(const struct ree_step *step, const struct ree_boundary *boundary,
                                struct ree_encoded *out, struct ree_error *err);
enum ree_status ree_encode_logits(const struct ree_tensor *logits, struct ree_encoded *out,
                                  struct ree_error *err);

// Limits for the steps of a cache slot, fixed when rank 0 begins a group of sequences in it.
struct ree_bounds {
    uint64_t batch, length; // exact number of sequences; maximum new tokens per sequence and step
    int64_t most;           // maximum tokens of a sequence: every position is below this
};
// Return upper bounds, in bytes, of the size of a message with its header: of a step whose boundary
// tensors cross `cut`, and of the logits of `step`. vocab_size 0: unknown.
size_t ree_step_limit(const struct ree_bounds *bounds, const struct ree_cut *cut);
size_t ree_logits_limit(const struct ree_step *step, int64_t vocab_size);

// Decodes a step and checks it against `bounds`; does not check that the ids are in the vocabulary.
// The arrays of `out` are in one block of memory, *out_block, which the caller releases with
// ree_free.
enum ree_status ree_decode_step(const struct ree_message *message, const struct ree_bounds *bounds,
                                struct ree_step *out, void **out_block, struct ree_error *err);
// Decodes the boundary tensors of a step and gives them the names of the cut's values. Fails with
// REE_INVALID unless their number, types, ranks and known dimensions are those of the cut's values.
// If exactly the first two dimensions of a value are unknown, as in hidden states, those of the
// tensor must be one of
// - (step->batch, step->length)
// - (step->batch, step->n_rows)
// - (step->batch, a number from step->length to `most`)
// - (step->length, step->batch)
enum ree_status ree_decode_boundary(const struct ree_message *message, const struct ree_cut *cut,
                                    const struct ree_step *step, int64_t most,
                                    struct ree_boundary *out, struct ree_error *err);
enum ree_status ree_decode_logits(const struct ree_message *message, const struct ree_step *step,
                                  int64_t vocab_size, struct ree_tensor *out,
                                  struct ree_error *err);

// Encodes positions read from kv caches: tensors[i] belongs to kv cache i of the model. Skips
// tensors without a name, because another rank keeps these caches.
enum ree_status ree_encode_positions(const struct ree_tensor *tensors, size_t n,
                                     struct ree_encoded *out, struct ree_error *err);
// Decodes positions of kv caches: initialises tensors[i] for each kv cache i in the message.
// values[i] is the graph's value for kv cache i; type and known dimensions must be those of this
// value. `tensors` and `values` have n entries. Fails with REE_INVALID if tensors[i] already has a
// name.
enum ree_status ree_decode_positions(const struct ree_message *message,
                                     const struct ree_value *const *values, size_t n,
                                     struct ree_tensor *tensors, struct ree_error *err);

#endif

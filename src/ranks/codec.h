// Encodes steps, boundary tensors and logits as the parts of messages (transport/frame.h). Integers
// are little-endian, as everywhere in ree.
//
//     step      part 0: u64 batch, u64 length, u64 rows; then i64 starts[batch], i64
//               rows[batch * rows], i32 ids[batch * length]
//     boundary  part 1: for each boundary tensor u32 type, u32 rank, i64 dims[8];
//               from part 2 on: their bytes
//     rows      part 0: for each kv cache its u32 index; from part 1 on: tensors as in a boundary
//     logits    part 0: u64 batch, u64 rows, u64 vocabulary; part 1: float32
//
// The decoder trusts nothing: sizes must match its expectations and each other.
#ifndef REE_RANKS_CODEC_H
#define REE_RANKS_CODEC_H

#include "generate/generator.h"
#include "graph/partition/partition.h"
#include "pipeline/pipeline.h"
#include "transport/transport.h"

// The memory of an encoded message. The parts point into it and into the encoded objects.
struct ree_encoded {
    void *head, *heads; // malloc
    size_t n_parts;
    struct ree_part *parts; // malloc
};
void ree_encoded_finish(struct ree_encoded *encoded);

// Fails if a boundary tensor is not a tensor of numbers.
enum ree_status ree_encode_step(const struct ree_step *step, const struct ree_boundary *boundary,
                                struct ree_encoded *out, struct ree_error *err);
enum ree_status ree_encode_logits(const struct ree_tensor *logits, struct ree_encoded *out,
                                  struct ree_error *err);

// The limits of a cache slot's steps, valid from its beginning on.
struct ree_bounds {
    uint64_t batch, length; // exact number of sequences; maximum new tokens per step
    int64_t most;           // positions stay below this
};
// Upper bounds of the size of a whole frame, in bytes.
size_t ree_step_limit(const struct ree_bounds *bounds, const struct ree_cut *cut);
size_t ree_logits_limit(const struct ree_step *step, int64_t vocab_size);

// The arrays of `out` are in one block, *out_block (ree_alloc). The ids are not checked.
enum ree_status ree_decode_step(const struct ree_message *message, const struct ree_bounds *bounds,
                                struct ree_step *out, void **out_block, struct ree_error *err);
// Decodes the boundary tensors and gives them the names of the cut's values. Their number, types,
// ranks and known dimensions must be those of the cut. If exactly the first two dimensions are
// unknown, as in hidden states, they must be one of
// - (sequences, tokens of the step)
// - (sequences, rows of the step)
// - (sequences, positions up to `most`)
// - (tokens of the step, sequences)
enum ree_status ree_decode_boundary(const struct ree_message *message, const struct ree_cut *cut,
                                    const struct ree_step *step, int64_t most,
                                    struct ree_boundary *out, struct ree_error *err);
enum ree_status ree_decode_logits(const struct ree_message *message, const struct ree_step *step,
                                  int64_t vocab_size, struct ree_tensor *out,
                                  struct ree_error *err);

// Encodes positions of kv caches. Of the `n` tensors, those without a name are skipped.
enum ree_status ree_encode_positions(const struct ree_tensor *tensors, size_t n,
                                     struct ree_encoded *out, struct ree_error *err);
// Decodes into `tensors` and initialises the entries that the message contains. values[i] is the
// model's value for entry i. Fails if an entry is already filled.
enum ree_status ree_decode_positions(const struct ree_message *message,
                                     const struct ree_value *const *values, size_t n,
                                     struct ree_tensor *tensors, struct ree_error *err);

#endif

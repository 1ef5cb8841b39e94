// Steps, parcels and logits as the parts of messages (transport/frame.h). Integers are
// little-endian, as everywhere in ree.
//
//     step    part 0: u64 batch, u64 length, u64 rows; then i64 starts[batch], i64
//             rows[batch * rows], i32 ids[batch * length]
//     parcel  part 1: for each tensor u32 type, u32 rank, i64 dims[8]; part 2 and on: their bytes
//     rows    part 0: u32 number of each state; part 1 and on: tensors as of a parcel
//     logits  part 0: u64 batch, u64 rows, u64 vocabulary; part 1: float32
//
// A reader believes nothing: sizes have to fit what it expects, and what they say of each other.
#ifndef REE_RANKS_CODEC_H
#define REE_RANKS_CODEC_H

#include "generate/generator.h"
#include "graph/partition/partition.h"
#include "session/pipeline.h"
#include "transport/transport.h"

// What the parts of a message are made in. The parts point into it and into what was encoded.
struct ree_encoded {
    void *head, *heads; // malloc
    size_t n_parts;
    struct ree_part *parts; // malloc
};
void ree_encoded_finish(struct ree_encoded *encoded);

// Fails where a value of the parcel is not a tensor of numbers.
enum ree_status ree_encode_step(const struct ree_step *step, const struct ree_parcel *parcel,
                                struct ree_encoded *out, struct ree_error *err);
enum ree_status ree_encode_logits(const struct ree_tensor *logits, struct ree_encoded *out,
                                  struct ree_error *err);

// What a set may be asked for, from its beginning on.
struct ree_bounds {
    uint64_t batch, length; // exactly so many sequences; at most so many tokens in a step
    int64_t most;           // positions stay below this
};
// Upper bounds of the bytes of whole frames.
size_t ree_step_limit(const struct ree_bounds *bounds, const struct ree_cut *cut);
size_t ree_logits_limit(const struct ree_step *step, int64_t vocab_size);

// `out`'s arrays are one block, *out_block (malloc). Its ids may be any.
enum ree_status ree_decode_step(const struct ree_message *message, const struct ree_bounds *bounds,
                                struct ree_step *out, void **out_block, struct ree_error *err);
// The tensors get the names of the cut's values. Their number, types, ranks and known dimensions
// have to be the cut's. Where the two first dimensions alone are not known, as of hidden states,
// they have to be the step's: sequences and tokens (or rows, or positions up to `most`), or the
// other way round.
enum ree_status ree_decode_parcel(const struct ree_message *message, const struct ree_cut *cut,
                                  const struct ree_step *step, int64_t most, struct ree_parcel *out,
                                  struct ree_error *err);
enum ree_status ree_decode_logits(const struct ree_message *message, const struct ree_step *step,
                                  int64_t vocab_size, struct ree_tensor *out,
                                  struct ree_error *err);

// Rows of caches: of `n` tensors those that are there (with a name).
enum ree_status ree_encode_rows(const struct ree_tensor *tensors, size_t n, struct ree_encoded *out,
                                struct ree_error *err);
// Into `tensors`, of which those are made that the message has. `values` say what the model takes
// in their places. Fails where one is there already.
enum ree_status ree_decode_rows(const struct ree_message *message,
                                const struct ree_value *const *values, size_t n,
                                struct ree_tensor *tensors, struct ree_error *err);

#endif

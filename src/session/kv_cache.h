// A kv cache: a value that a session keeps on its device from run to run. It is an output of one
// run and an input of the next, and grows along one axis. Its entries along this axis are called
// positions. Callers of a run neither pass it in nor receive it. If the graph only appends
// positions, a run writes them in place.
#ifndef REE_SESSION_KV_CACHE_H
#define REE_SESSION_KV_CACHE_H

#include "session/types.h"

// Declares n kv caches; call it once, before the first run. `positions_input`, if not REE_NO_INPUT,
// is the index of an integer input [batch, new positions] of the model, which has the target
// position of each new entry. Then sequences in a batch may have different lengths, and the model
// itself must mask the positions beyond the end of a sequence. All dimensions of the caches except
// axis and batch must be known.
enum ree_status ree_session_declare_kv_caches(struct ree_session *session,
                                              const struct ree_kv_cache_spec *specs, size_t n,
                                              size_t positions_input, struct ree_error *err);
// Creates n_cache_slots cache slots, each with kv caches of its own, so that runs of several groups
// of sequences may alternate. A run uses one cache slot. Call it after
// ree_session_declare_kv_caches and before the first run. ree_session_use_cache_slot selects the
// slot, counted from 0, for later runs and for the other functions of this header.
enum ree_status ree_session_create_cache_slots(struct ree_session *session, size_t n_cache_slots,
                                               struct ree_error *err);
void ree_session_use_cache_slot(struct ree_session *session, size_t slot);
// Empties the kv caches and sets the number of sequences to `batch`. If that is the number so far,
// keeps their memory and zeroes the positions that were written. Fails with REE_INVALID if the
// model declares another number.
enum ree_status ree_session_reset_kv_caches(struct ree_session *session, int64_t batch,
                                            struct ree_error *err);
// Ensures capacity for `positions` positions in total. Keeps filled positions and zeroes new
// memory. Fails with REE_NO_MEMORY if the device does not have enough.
enum ree_status ree_session_reserve_kv_caches(struct ree_session *session, int64_t positions,
                                              struct ree_error *err);
// Sets the number of positions that the next run treats as filled. It must be at least the length
// of the longest sequence. Call it only if the kv caches were declared with positions_input.
void ree_session_set_filled_positions(struct ree_session *session, int64_t positions);
// Returns the number of filled positions of the first kv cache; 0 if there is none.
int64_t ree_session_filled_positions(const struct ree_session *session);
// Returns the smallest capacity, in positions, of the kv caches that this session keeps; 0 if it
// keeps none.
int64_t ree_session_kv_cache_capacity(const struct ree_session *session);
// Returns the bytes on the device of the selected cache slot's kv caches, unfilled positions
// included.
uint64_t ree_session_kv_cache_bytes(const struct ree_session *session);
// Reads positions first ... first + n - 1 of one sequence from all kv caches. `out` has one entry
// per cache, which this call initialises: a dense tensor with the cache's dims, but 1 sequence and
// n positions, and canonical NaNs. Release each with ree_tensor_finish. Entries of caches that
// another session keeps are zeroed. Fails with REE_INVALID if a position is not filled.
enum ree_status ree_session_read_kv_caches(struct ree_session *session, int64_t sequence,
                                           int64_t first, int64_t n, struct ree_tensor *out,
                                           struct ree_error *err);

#endif

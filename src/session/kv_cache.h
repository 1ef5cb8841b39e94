// A kv cache: a value that a session keeps on its device from run to run. It is an output of one
// run and an input of the next, and grows along one axis. Its entries along this axis are called
// positions. Callers neither pass it in nor receive it. If the graph appends positions, a run
// writes them in place.
#ifndef REE_SESSION_KV_CACHE_H
#define REE_SESSION_KV_CACHE_H

#include "session/types.h"

// Declares the kv caches; call it once, before the first run. `positions_input`, if not
// REE_NO_INPUT, is an integer input [batch, new positions] of the model with the target position of
// each new entry, so that sequences in a batch may have different lengths. The model itself must
// mask positions beyond a sequence's own. All dimensions of the caches except axis and batch must
// be known.
enum ree_status ree_session_declare_kv_caches(struct ree_session *session,
                                              const struct ree_kv_cache_spec *specs, size_t n,
                                              size_t positions_input, struct ree_error *err);
// Creates several cache slots, each with kv caches of its own, so that runs of several groups of
// sequences may alternate. A run uses one cache slot. Call it after ree_session_declare_kv_caches
// and before the first run. ree_session_use_cache_slot selects the cache slot for runs and for the
// functions below.
enum ree_status ree_session_create_cache_slots(struct ree_session *session, size_t n_cache_slots,
                                               struct ree_error *err);
void ree_session_use_cache_slot(struct ree_session *session, size_t slot);
// Empties the kv caches and sets the number of sequences. If that number is unchanged, keeps their
// memory and zeroes the positions that were written.
enum ree_status ree_session_reset_kv_caches(struct ree_session *session, int64_t batch,
                                            struct ree_error *err);
// Ensures capacity for `positions` positions in total. Keeps filled positions; zeroes new memory.
enum ree_status ree_session_reserve_kv_caches(struct ree_session *session, int64_t positions,
                                              struct ree_error *err);
// Only with positions_input: sets the number of positions that the next run treats as filled. It
// must be at least the length of the longest sequence.
void ree_session_set_filled_positions(struct ree_session *session, int64_t positions);
// Filled positions of the first kv cache; 0 if there is none.
int64_t ree_session_filled_positions(const struct ree_session *session);
// Smallest capacity of the kv caches, in positions; 0 if there is none.
int64_t ree_session_kv_cache_capacity(const struct ree_session *session);
uint64_t ree_session_kv_cache_bytes(const struct ree_session *session); // bytes on the device
// Reads positions first ... first + n - 1, which must be filled, of one sequence from all kv
// caches. `out` has one entry per cache, which this call initialises: dense, with the cache's dims
// except 1 sequence and n positions; NaNs canonical. Entries of caches that another session keeps
// have no name.
enum ree_status ree_session_read_kv_caches(struct ree_session *session, int64_t sequence,
                                           int64_t first, int64_t n, struct ree_tensor *out,
                                           struct ree_error *err);

#endif

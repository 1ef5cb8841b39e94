// Values that a session keeps on its device from run to run, above all caches of keys and values:
// an output of one run that is an input of the next, longer by some rows along one axis. They are
// neither passed in nor handed out; new rows are written in place where the graph appends them.
#ifndef REE_SESSION_STATE_H
#define REE_SESSION_STATE_H

#include "ree.h"

struct ree_state_spec {
    size_t input, output;      // ports of the model
    uint32_t axis, batch_axis; // dimensions: the rows, the sequences
};

#define REE_NO_INPUT SIZE_MAX
// As a state's output: it is kept by another session, and this one knows its shape alone.
#define REE_NO_OUTPUT SIZE_MAX

// Once, before the first run. `rows_input`, if not REE_NO_INPUT, is an integer input [batch, new
// rows] of the model that says which row each new row goes to, so that the sequences of a batch may
// have different lengths; the model must mask rows beyond a sequence's own by itself. Every
// dimension of the states but axis and batch has to be known.
enum ree_status ree_session_keep(struct ree_session *session, const struct ree_state_spec *specs,
                                 size_t n, size_t rows_input, struct ree_error *err);
// Several sets of them, of which each run sees one, so that runs of several groups of sequences may
// alternate: after ree_session_keep, before the first run. The other functions are about the set
// that is used.
enum ree_status ree_session_keep_sets(struct ree_session *session, size_t n_sets,
                                      struct ree_error *err);
void ree_session_use_set(struct ree_session *session, size_t set);
// Empties the states and sets the number of sequences. Their memory stays while that is the same.
enum ree_status ree_session_reset_states(struct ree_session *session, int64_t batch,
                                         struct ree_error *err);
// Makes room for `rows` in all; what is filled is kept, new memory is zeroed.
enum ree_status ree_session_reserve_states(struct ree_session *session, int64_t rows,
                                           struct ree_error *err);
// With rows_input: how many rows count as filled in the next run, the longest sequence's at least.
void ree_session_set_state_rows(struct ree_session *session, int64_t rows);
int64_t ree_session_state_rows(const struct ree_session *session); // of the first; 0 without any
int64_t ree_session_state_capacity(const struct ree_session *session); // rows, likewise
uint64_t ree_session_state_bytes(const struct ree_session *session);   // on the device
// Rows first ... first + n - 1 of one sequence of all states, which have to be filled. `out` has an
// entry for each state, which this call initialises: dense, dims as the state's with 1 sequence and
// n rows, NaNs canonical; without a name where another session keeps it.
enum ree_status ree_session_read_states(struct ree_session *session, int64_t sequence,
                                        int64_t first, int64_t n, struct ree_tensor *out,
                                        struct ree_error *err);

#endif

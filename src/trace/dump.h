// Writes the values of a run to a folder, for recording.c: those of inputs, nodes and outputs whose
// names match a regular expression. trace/recorded.h describes the files and reads them.
#ifndef REE_TRACE_DUMP_H
#define REE_TRACE_DUMP_H

#include "session/observe.h"

struct ree_dump;

// Fails with REE_INVALID if the text is not a POSIX extended regular expression.
enum ree_status ree_dump_check(const char *regex, struct ree_error *err);
// Prepares to write the values of `model` whose names match to `folder`, which is created if it is
// missing. If `is_secret`, only their owner may access the folders of the steps. Borrows `folder`
// and the model. Fails with REE_NOT_FOUND if no node, output or input matches.
enum ree_status ree_dump_create(const char *regex, const char *folder, bool is_secret,
                                const struct ree_model *model, struct ree_dump **out,
                                struct ree_error *err);
// Returns an observer that writes the matching values to files. It borrows `dump`.
struct ree_observer ree_dump_observer(struct ree_dump *dump);
// Sets n_files, n_omitted and n_unfit in *out.
void ree_dump_count(const struct ree_dump *dump, struct ree_recorded *out);
void ree_dump_destroy(struct ree_dump *dump); // accepts NULL

#endif

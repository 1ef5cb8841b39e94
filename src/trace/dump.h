// Writes the values of nodes and inputs whose names match a regular expression to a folder, as
// trace/recorded.h reads them. For trace/recording.c.
#ifndef REE_TRACE_DUMP_H
#define REE_TRACE_DUMP_H

#include "session/observe.h"

struct ree_dump;

// Fails with REE_INVALID if the text is not a regular expression.
enum ree_status ree_dump_check(const char *regex, struct ree_error *err);
// Creates `folder` if it is missing. is_secret: the folders of the steps are accessible to their
// owner only. `folder` is borrowed. Fails with REE_NOT_FOUND if no node, output or input matches.
enum ree_status ree_dump_create(const char *regex, const char *folder, bool is_secret,
                                const struct ree_model *model, struct ree_dump **out,
                                struct ree_error *err);
// The observer refers to `dump`, which must outlive it.
struct ree_observer ree_dump_observer(struct ree_dump *dump);
void ree_dump_count(const struct ree_dump *dump, struct ree_recorded *out); // sets the counts
void ree_dump_destroy(struct ree_dump *dump);                               // accepts NULL

#endif

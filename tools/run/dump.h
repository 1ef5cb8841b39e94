// Writes the outputs of selected nodes, and selected inputs, to .npy files (trace/recorded.h).
#ifndef REE_TOOLS_RUN_DUMP_H
#define REE_TOOLS_RUN_DUMP_H

#include "session/observe.h"

#define DUMP_MAX_FILES 10000

struct cli;
struct tensor_dump;

void dump_check(struct cli *cli, const char *regex); // reports wrong usage if `regex` is invalid
// Creates `folder` if it is missing. is_secret: the folders of the steps are accessible to their
// owner only. `folder` is borrowed. Fails with REE_NOT_FOUND if no node, output or input matches.
enum ree_status dump_create(const char *regex, const char *folder, bool is_secret,
                            const struct ree_model *model, struct tensor_dump **out,
                            struct ree_error *err);
// The observer refers to `dump`, which must outlive it.
struct ree_observer dump_observer(struct tensor_dump *dump);
void dump_report(const struct tensor_dump *dump); // prints how many tensors were left out, and why
void dump_destroy(struct tensor_dump *dump);      // accepts NULL

#endif

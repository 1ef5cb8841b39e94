// Writing what chosen nodes computed, and chosen inputs, as .npy files (audit/recorded.h).
#ifndef REE_TOOLS_RUN_DUMP_H
#define REE_TOOLS_RUN_DUMP_H

#include "session/observe.h"

#define DUMP_MAX_FILES 10000

struct cli;
struct watch_dump;

void dump_check(struct cli *cli, const char *regex); // wrong usage where it is none
// `folder` is made where it is not there. is_secret: the folders of steps are for their owner only.
// Fails where no node, output or input matches.
enum ree_status dump_create(const char *regex, const char *folder, bool is_secret,
                            const struct ree_model *model, struct watch_dump **out,
                            struct ree_error *err);
struct ree_observer dump_observer(struct watch_dump *dump);
void dump_report(const struct watch_dump *dump); // says what was left out
void dump_destroy(struct watch_dump *dump);      // accepts NULL

#endif

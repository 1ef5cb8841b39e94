// Option groups that several subcommands share, as `take` functions for rows of rows.h. `place`
// points to the struct that the group fills.
#ifndef REE_TOOLS_RUN_GROUPS_H
#define REE_TOOLS_RUN_GROUPS_H

#include "cli.h"

bool cli_take_device(struct cli *cli, const char *name, void *place);   // struct cli_device
bool cli_take_parts(struct cli *cli, const char *name, void *place);    // struct cli_parts
bool cli_take_quantize(struct cli *cli, const char *name, void *place); // struct cli_quantize
bool cli_take_inputs(struct cli *cli, const char *name, void *place);   // struct run_inputs
bool cli_take_receipt(struct cli *cli, const char *name, void *place);  // struct cli_receipt
bool cli_take_watch(struct cli *cli, const char *name, void *place);    // struct watch_options

#endif

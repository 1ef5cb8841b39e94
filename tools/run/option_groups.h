// Option groups that several subcommands share, as `take` functions for rows of option_table.h.
// `target` points to the struct that the group fills.
#ifndef REE_TOOLS_RUN_OPTION_GROUPS_H
#define REE_TOOLS_RUN_OPTION_GROUPS_H

#include "cli.h"

bool cli_take_device(struct cli *cli, const char *name, void *target);   // struct cli_device
bool cli_take_stages(struct cli *cli, const char *name, void *target);   // struct cli_stages
bool cli_take_quantize(struct cli *cli, const char *name, void *target); // struct cli_quantize
bool cli_take_inputs(struct cli *cli, const char *name, void *target);   // struct run_inputs
bool cli_take_receipt(struct cli *cli, const char *name, void *target);  // struct cli_receipt
bool cli_take_trace(struct cli *cli, const char *name, void *target);    // struct trace_options

#endif

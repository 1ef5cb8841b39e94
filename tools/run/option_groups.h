// Tables of options that several subcommands share. A subcommand's table includes such a table by a
// row of the kind ROW_GROUP. The comment at each table names the struct that the options fill.
#ifndef REE_TOOLS_RUN_OPTION_GROUPS_H
#define REE_TOOLS_RUN_OPTION_GROUPS_H

#include "option_table.h"

extern const struct cli_option_table cli_device_group;   // options that fill struct cli_device
extern const struct cli_option_table cli_stages_group;   // options that fill struct cli_stages
extern const struct cli_option_table cli_quantize_group; // options that fill struct cli_quantize
extern const struct cli_option_table cli_inputs_group;   // --input, --dim: fill struct run_inputs
extern const struct cli_option_table cli_random_group;   // --random-inputs: fills struct run_inputs
extern const struct cli_option_table cli_receipt_group;  // options that fill struct cli_receipt
extern const struct cli_option_table cli_trace_group;    // options that fill struct trace_options
extern const struct cli_option_table cli_parties_group;  // options that fill struct party_receipts
extern const struct cli_option_table cli_ranks_group;    // options that fill struct cli_ranks
extern const struct cli_option_table cli_start_group;    // options whose values start.c keeps

// Values of --device, --cpu-isa, --form and --operation-set, for the field `choices` of an option's
// row.
#define CLI_DEVICE_CHOICES CLI_CHOICES("cpu", "cuda", "vulkan")
#define CLI_ISA_CHOICES CLI_CHOICES("avx512", "avx2", "neon", "portable")
#define CLI_FORM_CHOICES CLI_CHOICES("native", "float64", "float32", "integer")
#define CLI_SET_CHOICES CLI_CHOICES("reproducible", "deterministic", "default")

// Parses the current argument into *device. Returns false if it is no option of cli_device_group.
bool cli_device_option(struct cli *cli, struct cli_device *device);

#endif

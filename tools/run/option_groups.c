#include "option_groups.h"

#include "inputs.h"
#include "stage_options.h"
#include "quantize.h"
#include "receipts.h"
#include "trace_options.h"

bool cli_take_device(struct cli *cli, const char *name, void *target) {
    (void)name;
    return cli_device_option(cli, target);
}

bool cli_take_stages(struct cli *cli, const char *name, void *target) {
    (void)name;
    return cli_stages_option(cli, target);
}

bool cli_take_quantize(struct cli *cli, const char *name, void *target) {
    (void)name;
    return cli_quantize_option(cli, target);
}

bool cli_take_inputs(struct cli *cli, const char *name, void *target) {
    (void)name;
    return run_inputs_option(cli, target);
}

bool cli_take_receipt(struct cli *cli, const char *name, void *target) {
    (void)name;
    return cli_receipt_option(cli, target);
}

bool cli_take_trace(struct cli *cli, const char *name, void *target) {
    (void)name;
    return trace_option(cli, target);
}

#include "groups.h"

#include "inputs.h"
#include "parts.h"
#include "quantize.h"
#include "receipts.h"
#include "watch.h"

bool cli_take_device(struct cli *cli, const char *name, void *place) {
    (void)name;
    return cli_device_option(cli, place);
}

bool cli_take_parts(struct cli *cli, const char *name, void *place) {
    (void)name;
    return cli_parts_option(cli, place);
}

bool cli_take_quantize(struct cli *cli, const char *name, void *place) {
    (void)name;
    return cli_quantize_option(cli, place);
}

bool cli_take_inputs(struct cli *cli, const char *name, void *place) {
    (void)name;
    return run_inputs_option(cli, place);
}

bool cli_take_receipt(struct cli *cli, const char *name, void *place) {
    (void)name;
    return cli_receipt_option(cli, place);
}

bool cli_take_watch(struct cli *cli, const char *name, void *place) {
    (void)name;
    return watch_option(cli, place);
}

#include "option_groups.h"

#include <string.h>

#define AT(field) offsetof(struct cli_device, field)

static bool take_operation_set(struct cli *cli, const char *name, void *target) {
    struct cli_device *device = target;
    const char *set = NULL;
    if (!cli_option(cli, name, &set)) return false;
    for (int i = REE_REPRODUCIBLE; set && i <= REE_DEFAULT; i++) {
        if (strcmp(set, ree_operation_set_name((enum ree_operation_set)i)) != 0) continue;
        device->options.operation_set = (enum ree_operation_set)i;
        return true;
    }
    if (set)
        cli_usage(cli, "%s requires reproducible, deterministic or default, not '%s'", name, set);
    return true;
}

// A device without forms ignores --form, so its value is checked here.
static const struct cli_option_row device_rows[] = {
    {.name = "--device",
     .value = "DEVICE",
     .kind = ROW_STRING,
     .at = AT(spec),
     .choices = CLI_DEVICE_CHOICES,
     .help = "cpu (the default), cuda or vulkan; cuda:INDEX or cuda:NAME (also for vulkan) selects "
             "one of several; NAME is a part of the device's name. 'ree-run devices' lists them. "
             "With several devices, separated by commas, the model runs in stages"},
    {.name = "--threads",
     .value = "N",
     .kind = ROW_NUMBER,
     .at = AT(n_threads),
     .min = 1,
     .max = 1024,
     .help = "number of CPU threads (default: one per core)"},
    {.name = "--cpu-isa",
     .value = "ISA",
     .kind = ROW_STRING,
     .at = AT(options.cpu_isa),
     .choices = CLI_ISA_CHOICES,
     .help = "avx512, avx2, neon or portable (default: the best available)"},
    {.name = "--form",
     .value = "FORM",
     .kind = ROW_CHOICE,
     .at = AT(testing.force_form),
     .choices = CLI_FORM_CHOICES,
     .help = "Vulkan arithmetic: native, float64, float32 or integer; refused if the probe of the "
             "device found this form wrong"},
    {.name = "--validation",
     .kind = ROW_FLAG,
     .at = AT(options.validation),
     .help = "enable the Vulkan validation layer; a message from it fails the run"},
    // Documented in sections of their own: the promise, and tests of ree itself.
    {.name = "--operation-set",
     .value = "SET",
     .kind = ROW_TAKE,
     .take = take_operation_set,
     .choices = CLI_SET_CHOICES},
    {.name = "--break-primitive",
     .value = "NAME",
     .kind = ROW_STRING,
     .at = AT(testing.break_primitive)},
};
const struct cli_option_table cli_device_group = CLI_OPTION_TABLE(device_rows);

bool cli_device_option(struct cli *cli, struct cli_device *device) {
    return cli_options_take(cli, &cli_device_group, device);
}

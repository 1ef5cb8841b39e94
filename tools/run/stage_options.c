#include "stage_options.h"
#include "status.h"

#include "sandbox.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "option_groups.h"
#include "paths.h"

#define AT(field) offsetof(struct cli_stages, field)

static const struct cli_option_row rows[] = {
    {.name = "--n-partitions",
     .value = "N",
     .kind = ROW_NUMBER,
     .at = AT(n),
     .min = 1,
     .max = REE_MAX_STAGES,
     .help = "divide the model into N stages that run one after the other: stage i, counted from "
             "0, on device i modulo the number of devices. Default with several devices: the "
             "stages that the model's nodes name, or one for each device"},
    {.name = "--plan",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(plan),
     .path = CLI_READS,
     .help = "divide the model as in FILE, which 'ree-run plan' wrote"},
    {.name = "--max-device-memory",
     .value = "SIZE",
     .kind = ROW_SIZE,
     .at = AT(memory),
     .help = "maximum bytes (600M, 2G) of a device's memory for weights, caches and intermediate "
             "results. The model runs in as many stages as this requires; the weights of a stage "
             "are on the device only while the stage runs"},
};
const struct cli_option_table cli_stages_group = CLI_OPTION_TABLE(rows);

void cli_stages_check(struct cli *cli, const struct cli_stages *stages,
                      const struct cli_device *device) {
    size_t n = cli_count_devices(device->spec ? device->spec : "cpu");
    if (stages->n && n > stages->n)
        cli_usage(cli, "--device names %zu devices, but --n-partitions %llu gives fewer stages", n,
                  (unsigned long long)stages->n);
}

enum ree_status cli_stages_open(struct cli_stages *stages, const struct cli_device *device,
                                struct ree_error *err) {
    const char *list = device->spec ? device->spec : "cpu";
    stages->devices = calloc(cli_count_devices(list), sizeof(struct ree_device *));
    strbuf_init(&stages->names);
    if (!stages->devices) return memory_error(err);
    while (true) {
        size_t length = cli_first_device(list);
        struct cli_device one = *device;
        char *spec = strndup(list, length);
        if (!spec) return memory_error(err);
        one.spec = spec;
        enum ree_status status = cli_device_open(&one, &stages->devices[stages->n_devices], err);
        free(spec);
        if (status == REE_UNAVAILABLE) {
            char why[REE_ERROR_MAX];
            memcpy(why, err->message, sizeof why);
            return set_error(err, status, "%s; without --device, the CPU runs the model", why);
        }
        if (status != REE_OK) return status;
        strbuf_printf(&stages->names, "%s%s", stages->n_devices ? ", " : "",
                      ree_device_name(stages->devices[stages->n_devices]));
        stages->n_devices++;
        if (!list[length]) break;
        list += length + 1;
    }
    if (stages->names.failed) return memory_error(err);
    return sandbox_close(err);
}

const char *cli_stages_device(const struct cli_stages *stages) {
    return stages->names.data ? stages->names.data : "";
}

struct ree_stages_options cli_stages_pipeline(const struct cli_stages *stages,
                                              const struct ree_session_options *session) {
    return (struct ree_stages_options){.size = sizeof(struct ree_stages_options),
                                       .n_partitions = (uint32_t)stages->n,
                                       .partition_plan = stages->plan,
                                       .max_device_memory = stages->memory,
                                       .session = session};
}

void cli_stages_generator(const struct cli_stages *stages, struct ree_generator_options *out) {
    out->n_partitions = (uint32_t)stages->n;
    out->partition_plan = stages->plan;
    out->max_device_memory = stages->memory;
    out->more_devices = stages->devices + 1;
    out->n_more_devices = stages->n_devices - 1;
}

void cli_stages_finish(struct cli_stages *stages) {
    for (size_t i = 0; i < stages->n_devices; i++)
        cli_device_close(stages->devices[i]);
    free(stages->devices);
    if (stages->devices) strbuf_finish(&stages->names);
    *stages = (struct cli_stages){0};
}

void cli_stages_text(const struct ree_pipeline *pipeline, struct strbuf *out) {
    size_t n = ree_pipeline_n_stages(pipeline);
    if (n == 1) return;
    strbuf_printf(out, "%zu stages, cut after ", n);
    for (size_t i = 0; i + 1 < n; i++) {
        if (i) strbuf_printf(out, ", ");
        cli_append_name(out, ree_pipeline_stage_end(pipeline, i));
    }
    strbuf_printf(out, "\n");
}

void cli_stages_json(const struct ree_pipeline *pipeline, cJSON *out) {
    size_t n = ree_pipeline_n_stages(pipeline);
    cJSON *stages = n > 1 ? cJSON_AddArrayToObject(out, "stages") : NULL;
    for (size_t i = 0; stages && i < n; i++) {
        cJSON *stage = cJSON_CreateObject();
        const char *end = ree_pipeline_stage_end(pipeline, i);
        if (end) cJSON_AddStringToObject(stage, "ends_with", end);
        json_put(stages, stage);
    }
}

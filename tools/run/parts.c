#include "parts.h"

#include "sandbox.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

bool cli_parts_option(struct cli *cli, struct cli_parts *parts) {
    const char *size = NULL;
    if (cli_option(cli, "--max-device-memory", &size)) {
        if (size && !cli_parse_size(size, &parts->memory))
            cli_usage(cli, "--max-device-memory requires a size such as 600M or 2G, not '%s'",
                      size);
        return true;
    }
    return cli_option_number(cli, "--n-partitions", 1, REE_MAX_STAGES, &parts->n) ||
           cli_option_place(cli, "--plan", CLI_READS, &parts->plan);
}

void cli_parts_check(struct cli *cli, const struct cli_parts *parts,
                     const struct cli_device *device) {
    size_t n = cli_count_devices(device->spec ? device->spec : "cpu");
    if (parts->n && n > parts->n)
        cli_usage(cli, "--device names %zu devices, but --n-partitions %llu gives fewer stages", n,
                  (unsigned long long)parts->n);
}

enum ree_status cli_parts_open(struct cli_parts *parts, const struct cli_device *device,
                               struct ree_error *err) {
    const char *list = device->spec ? device->spec : "cpu";
    parts->devices = calloc(cli_count_devices(list), sizeof(struct ree_device *));
    ree_strbuf_init(&parts->names);
    if (!parts->devices) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    while (true) {
        size_t length = cli_first_device(list);
        struct cli_device one = *device;
        char *spec = strndup(list, length);
        if (!spec) return ree_fail(err, REE_NO_MEMORY, "out of memory");
        one.spec = spec;
        enum ree_status status = cli_device_open(&one, &parts->devices[parts->n_devices], err);
        free(spec);
        if (status == REE_UNAVAILABLE) {
            char why[REE_ERROR_MAX];
            memcpy(why, err->message, sizeof why);
            return ree_fail(err, status, "%s; without --device, the CPU runs the model", why);
        }
        if (status != REE_OK) return status;
        ree_strbuf_printf(&parts->names, "%s%s", parts->n_devices ? ", " : "",
                          ree_device_name(parts->devices[parts->n_devices]));
        parts->n_devices++;
        if (!list[length]) break;
        list += length + 1;
    }
    if (parts->names.failed) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    return sandbox_close(err);
}

const char *cli_parts_device(const struct cli_parts *parts) {
    return parts->names.data ? parts->names.data : "";
}

struct ree_pipeline_options cli_parts_pipeline(const struct cli_parts *parts,
                                               const struct ree_session_options *session) {
    return (struct ree_pipeline_options){.n_stages = (size_t)parts->n,
                                         .plan_path = parts->plan,
                                         .max_memory = parts->memory,
                                         .session = *session};
}

void cli_parts_generator(const struct cli_parts *parts, struct ree_generator_options *out) {
    out->n_partitions = (uint32_t)parts->n;
    out->partition_plan = parts->plan;
    out->max_device_memory = parts->memory;
    out->more_devices = parts->devices + 1;
    out->n_more_devices = parts->n_devices - 1;
}

void cli_parts_finish(struct cli_parts *parts) {
    for (size_t i = 0; i < parts->n_devices; i++)
        cli_device_close(parts->devices[i]);
    free(parts->devices);
    if (parts->devices) ree_strbuf_finish(&parts->names);
    *parts = (struct cli_parts){0};
}

void cli_stages_text(const struct ree_pipeline *pipeline, struct ree_strbuf *out) {
    size_t n = ree_pipeline_n_stages(pipeline);
    if (n == 1) return;
    ree_strbuf_printf(out, "%zu stages, cut after ", n);
    for (size_t i = 0; i + 1 < n; i++) {
        if (i) ree_strbuf_printf(out, ", ");
        cli_append_name(out, ree_pipeline_stage_end(pipeline, i));
    }
    ree_strbuf_printf(out, "\n");
}

void cli_stages_json(const struct ree_pipeline *pipeline, cJSON *out) {
    size_t n = ree_pipeline_n_stages(pipeline);
    cJSON *stages = n > 1 ? cJSON_AddArrayToObject(out, "stages") : NULL;
    for (size_t i = 0; stages && i < n; i++) {
        cJSON *stage = cJSON_CreateObject();
        const char *end = ree_pipeline_stage_end(pipeline, i);
        if (end) cJSON_AddStringToObject(stage, "ends_with", end);
        ree_json_put(stages, stage);
    }
}

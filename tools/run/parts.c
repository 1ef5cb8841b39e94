#include "parts.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 4096

// "600M": of 1024 * 1024 bytes.
static bool parse_size(const char *text, uint64_t *out) {
    static const char units[] = "KMGT";
    char digits[24] = "";
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof digits || (text[n] && text[n + 1])) return false;
    const char *unit = text[n] ? strchr(units, text[n]) : NULL;
    if (text[n] && !unit) return false;
    uint32_t shift = unit ? 10 * (uint32_t)(unit - units + 1) : 0;
    memcpy(digits, text, n);
    if (!cli_parse_number(digits, 1, (UINT64_C(1) << 62) >> shift, out)) return false;
    *out <<= shift;
    return true;
}

bool cli_parts_option(struct cli *cli, struct cli_parts *parts) {
    const char *size = NULL;
    if (cli_option(cli, "--max-device-memory", &size)) {
        if (size && !parse_size(size, &parts->memory))
            cli_usage(cli, "--max-device-memory wants a size as 600M or 2G, not '%s'", size);
        return true;
    }
    return cli_option_number(cli, "--n-partitions", 1, MAX_PARTS, &parts->n) ||
           cli_option(cli, "--plan", &parts->plan);
}

// How long the first spec of the list is. Names of devices may have commas, so a new spec begins
// where a kind of device stands.
static size_t first_length(const char *list) {
    static const char *const kinds[] = {"cpu", "cuda", "vulkan"};
    for (const char *at = list; *at; at++) {
        if (*at != ',') continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            size_t n = strlen(kinds[i]);
            if (strncmp(at + 1, kinds[i], n) == 0 && strchr(",:", at[1 + n]) != NULL)
                return (size_t)(at - list);
        }
    }
    return strlen(list);
}

static size_t count_specs(const char *list) {
    size_t n = 1;
    for (size_t length; list[length = first_length(list)]; list += length + 1)
        n++;
    return n;
}

void cli_parts_check(struct cli *cli, const struct cli_parts *parts,
                     const struct cli_device *device) {
    size_t n = count_specs(device->spec ? device->spec : "cpu");
    if (parts->n && n > parts->n)
        cli_usage(cli, "--device names %zu devices, more than --n-partitions %llu has parts to run",
                  n, (unsigned long long)parts->n);
}

enum ree_status cli_parts_open(struct cli_parts *parts, const struct cli_device *device,
                               struct ree_error *err) {
    const char *list = device->spec ? device->spec : "cpu";
    parts->devices = calloc(count_specs(list), sizeof(struct ree_device *));
    ree_strbuf_init(&parts->names);
    if (!parts->devices) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    while (true) {
        size_t length = first_length(list);
        struct cli_device one = *device;
        char *spec = strndup(list, length);
        if (!spec) return ree_fail(err, REE_NO_MEMORY, "out of memory");
        one.spec = spec;
        enum ree_status status = cli_device_open(&one, &parts->devices[parts->n_devices], err);
        free(spec);
        if (status == REE_UNAVAILABLE) {
            char why[REE_ERROR_MAX];
            memcpy(why, err->message, sizeof why);
            return ree_fail(err, status, "%s; without --device the CPU runs", why);
        }
        if (status != REE_OK) return status;
        ree_strbuf_printf(&parts->names, "%s%s", parts->n_devices ? ", " : "",
                          ree_device_name(parts->devices[parts->n_devices]));
        parts->n_devices++;
        if (!list[length]) break;
        list += length + 1;
    }
    return parts->names.failed ? ree_fail(err, REE_NO_MEMORY, "out of memory") : REE_OK;
}

const char *cli_parts_device(const struct cli_parts *parts) {
    return parts->names.data ? parts->names.data : "";
}

struct ree_pipeline_options cli_parts_pipeline(const struct cli_parts *parts,
                                               const struct ree_session_options *session) {
    const bool own = parts->n || parts->plan || parts->memory;
    return (struct ree_pipeline_options){.n_stages = own ? (size_t)parts->n : parts->n_devices,
                                         .plan_file = parts->plan,
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
        ree_device_destroy(parts->devices[i]);
    free(parts->devices);
    if (parts->devices) ree_strbuf_finish(&parts->names);
    *parts = (struct cli_parts){0};
}

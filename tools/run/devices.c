// ree-run devices: the devices of this machine, their limits, and the probe's verdicts.
#include "commands.h"
#include "start.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define MAX_DEVICES 64

struct options {
    const char *spec;
    struct cli_device device;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run devices [DEVICE] [--json]: list the devices of this machine\n"
  "\n"
  "Lists every device, or only DEVICE, under the name that --device accepts: its properties,\n"
  "its limits, and how it computes each primitive. Graphics drivers promise little about\n"
  "floating point. When ree opens a device, a short run over hard cases decides for every\n"
  "primitive (add, fma, divide, ...) whether ree uses the device's own instruction or an exact\n"
  "emulation. Every Vulkan device can run models; its speed depends on these verdicts. A CUDA\n"
  "device must compute every primitive correctly; otherwise ree refuses it.\n"
  "The lines \"not used\" tell how often the device's own functions differ from the correctly\n"
  "rounded result, in a shader without \"precise\". No result depends on them.\n"
  "\n"},
    {.name = "DEVICE", .kind = ROW_POSITIONAL, .at = AT(spec), .choices = CLI_DEVICE_CHOICES},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help =
  "  --threads N, --cpu-isa ISA, --form FORM, --validation\n"
  "                       as in 'ree-run help run'\n"
  "  --break-primitive NAME\n"
  "                       for tests: make this primitive report wrong results; the probe must\n"
  "                       detect it\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run devices\n"
  "  ree-run devices vulkan:nvidia\n"
  "\n"
  "exit status: 0 success, 1 cannot open DEVICE, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_devices_options = CLI_OPTION_TABLE(rows);

static void report_text(const struct ree_device_listing *listing, const struct ree_device *device,
                        const struct ree_error *err, struct strbuf *out) {
    cli_append_name(out, listing->spec);
    strbuf_printf(out, "  ");
    cli_append_name(out, device ? ree_device_name(device) : listing->name);
    strbuf_append(out, "\n", 1);
    if (!device) {
        strbuf_printf(out, "  cannot be used: ");
        cli_append_name(out, err->message);
        strbuf_append(out, "\n", 1);
        return;
    }
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts);
    int width = 0;
    for (size_t i = 0; i < n; i++) {
        int length = (int)strnlen(facts[i].name, 40);
        if (length > width) width = length;
    }
    for (size_t i = 0; i < n; i++) {
        // The kind is printed only at the beginning of its group.
        bool first = i == 0 || strcmp(facts[i].kind, facts[i - 1].kind) != 0;
        strbuf_printf(out, "  %-10s %-*s  ", first ? facts[i].kind : "", width, facts[i].name);
        cli_append_name(out, facts[i].value);
        strbuf_append(out, "\n", 1);
    }
}

static void report_json(const struct ree_device_listing *listing, const struct ree_device *device,
                        const struct ree_error *err, cJSON *devices) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "spec", listing->spec);
    cJSON_AddStringToObject(item, "name", device ? ree_device_name(device) : listing->name);
    if (!device) {
        cJSON_AddStringToObject(item, "error", err->message);
    } else {
        const struct ree_device_fact *facts;
        size_t n = ree_device_facts(device, &facts);
        cJSON *list = cJSON_AddArrayToObject(item, "facts");
        for (size_t i = 0; i < n; i++) {
            cJSON *fact = cJSON_CreateObject();
            cJSON_AddStringToObject(fact, "kind", facts[i].kind);
            cJSON_AddStringToObject(fact, "name", facts[i].name);
            cJSON_AddStringToObject(fact, "value", facts[i].value);
            json_put(list, fact);
        }
    }
    json_put(devices, item);
}

// Drops the options that apply only to another kind of device than the one being opened.
static void restrict_options(struct cli_device *device) {
    if (strncmp(device->spec, "cpu", 3) == 0) {
        device->options.validation = false;
        device->testing = (struct ree_device_testing){0};
    } else {
        device->options.cpu_isa = NULL;
        device->n_threads = 0;
    }
}

int ree_run_devices(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    struct strbuf text;
    strbuf_init(&text);
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_devices_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_devices_options, &o);
    if (cli.failed) return CLI_USAGE;
    const char *spec = o.spec ? o.spec : o.device.spec;

    unsigned all = SANDBOX_DEVICE | SANDBOX_VULKAN | SANDBOX_CUDA;
    int code = cli_start(&(struct cli_start){.uses = spec ? sandbox_uses(spec) : all});
    if (code) return code;

    static struct ree_device_listing listings[MAX_DEVICES];
    const char *note = NULL;
    size_t n = 1;
    if (spec) {
        snprintf(listings[0].spec, sizeof listings[0].spec, "%s", spec);
    } else {
        n = ree_device_list(listings, MAX_DEVICES, &note);
        if (n > MAX_DEVICES) n = MAX_DEVICES;
    }
    cJSON *root = o.json ? cJSON_CreateObject() : NULL;
    cJSON *devices = o.json ? cJSON_AddArrayToObject(root, "devices") : NULL;
    for (size_t i = 0; i < n; i++) {
        struct ree_error err;
        struct ree_device *device;
        struct cli_device each = o.device;
        each.spec = spec ? spec : listings[i].spec;
        each.testing.probes_again = true; // this command shows what the device does now
        restrict_options(&each);
        each.options.all_facts = true;
        if (cli_device_open(&each, &device, &err) != REE_OK && spec) {
            cJSON_Delete(root);
            strbuf_finish(&text);
            return cli_fail(&err);
        }
        if (o.json)
            report_json(&listings[i], device, &err, devices);
        else
            report_text(&listings[i], device, &err, &text);
        ree_device_destroy(device);
    }
    if (o.json) {
        if (note) cJSON_AddStringToObject(root, "note", note);
        cJSON_AddStringToObject(root, "numerics", ree_numerics_version());
        if (!devices) text.failed = true;
        cli_append_json(&text, root, true);
    }
    for (size_t length; !o.json && note && *note; note += length + (note[length] != 0)) {
        char line[REE_ERROR_MAX];
        length = strcspn(note, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, note);
        cli_append_name(&text, line);
        strbuf_append(&text, "\n", 1);
    }
    return cli_print(&text);
}

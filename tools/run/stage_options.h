// Options of several subcommands for running a model in stages, on one device or several.
#ifndef REE_TOOLS_RUN_STAGE_OPTIONS_H
#define REE_TOOLS_RUN_STAGE_OPTIONS_H

#include "cli.h"
#include "ree.h"

struct cli_stages {
    uint64_t n;       // --n-partitions: number of stages; 0: not given, the library decides
    const char *plan; // --plan: file with the places of the cuts; NULL: the library decides
    uint64_t memory;  // --max-device-memory in bytes; 0: no limit
    size_t n_devices;
    struct ree_device **devices;
    struct strbuf names; // names of the devices, for reports
};

// Reports wrong usage if --device lists more devices, separated by commas, than --n-partitions
// gives stages. Must be called after the options of cli_stages_group are parsed.
void cli_stages_check(struct cli *cli, const struct cli_stages *stages,
                      const struct cli_device *device);
// Opens the devices that device->spec lists, and then enters the sandbox's second step
// (sandbox_close). Release with cli_stages_finish, also after a failure.
enum ree_status cli_stages_open(struct cli_stages *stages, const struct cli_device *device,
                                struct ree_error *err);
const char *cli_stages_device(const struct cli_stages *stages); // names of the devices in use
// Copy the options to those of a pipeline (returned) or of a generator (*out). The path of the plan
// and the devices are borrowed from `stages`.
struct ree_stages_options cli_stages_pipeline(const struct cli_stages *stages,
                                              const struct ree_session_options *session);
void cli_stages_generator(const struct cli_stages *stages, struct ree_generator_options *out);
void cli_stages_finish(struct cli_stages *stages); // accepts a zeroed struct

// Appends, for --stats, the number of stages and the name of the value after which each stage is
// cut. Appends nothing if the model ran as one stage.
void cli_stages_text(const struct ree_pipeline *pipeline, struct strbuf *out);
struct cJSON;
// Adds the member "stages": [{"ends_with": "..."}, ..., {}] to the object `out`, as in plan files.
// Adds nothing if the model ran as one stage.
void cli_stages_json(const struct ree_pipeline *pipeline, struct cJSON *out);

#endif

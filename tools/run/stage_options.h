// Options for running a model in stages, on one device or several, shared by several subcommands.
#ifndef REE_TOOLS_RUN_STAGE_OPTIONS_H
#define REE_TOOLS_RUN_STAGE_OPTIONS_H

#include "cli.h"
#include "ree.h"

struct cli_stages {
    uint64_t n;       // --n-partitions: number of stages; 0: one per device
    const char *plan; // --plan file; NULL: ree decides
    uint64_t memory;  // --max-device-memory in bytes; 0: no limit
    size_t n_devices;
    struct ree_device **devices;
    struct strbuf names; // names of the devices, for reports
};

// The options are cli_stages_group.
// Must be called after the options are parsed. --device may be a comma-separated list.
void cli_stages_check(struct cli *cli, const struct cli_stages *stages,
                      const struct cli_device *device);
// Opens the devices of the list and closes the sandbox. Release with cli_stages_finish, also after
// a failure.
enum ree_status cli_stages_open(struct cli_stages *stages, const struct cli_device *device,
                                struct ree_error *err);
const char *cli_stages_device(const struct cli_stages *stages); // names of the devices in use
// These copy the options; plan path and devices are borrowed from `stages`.
struct ree_stages_options cli_stages_pipeline(const struct cli_stages *stages,
                                              const struct ree_session_options *session);
void cli_stages_generator(const struct cli_stages *stages, struct ree_generator_options *out);
void cli_stages_finish(struct cli_stages *stages); // accepts a zeroed struct

// Appends where each stage ends, for --stats; nothing if the model ran as one stage.
void cli_stages_text(const struct ree_pipeline *pipeline, struct strbuf *out);
struct cJSON;
// "stages": [{"ends_with": "..."}, ..., {}], as in plan files
void cli_stages_json(const struct ree_pipeline *pipeline, struct cJSON *out);

#endif

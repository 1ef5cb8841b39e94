// What the subcommands of ree-run share: options, messages, progress, names from files.
//
// Exit codes: 0 success, 1 failure, 2 wrong usage. Results go to standard output, everything else
// to standard error as "ree-run: ...".
#ifndef REE_TOOLS_RUN_CLI_H
#define REE_TOOLS_RUN_CLI_H

#include "base/strbuf.h"
#include "places.h"
#include "ree.h"

#define CLI_FAILED 1
#define CLI_USAGE 2

// The subcommands. argv[0] is the subcommand's name; each knows --help.
int ree_run_run(int argc, char **argv);
int ree_run_generate(int argc, char **argv);
bool ree_run_is_generate(int argc, char **argv); // `run` with an option that only generate has
int ree_run_inspect(int argc, char **argv);
int ree_run_plan(int argc, char **argv);
int ree_run_devices(int argc, char **argv);
int ree_run_bench(int argc, char **argv);
int ree_run_export(int argc, char **argv);
int ree_run_tokenize(int argc, char **argv);
int ree_run_compare(int argc, char **argv);
int ree_run_diff(int argc, char **argv);
int ree_run_dispute(int argc, char **argv);
int ree_run_referee(int argc, char **argv);
int ree_run_trace(int argc, char **argv);
int ree_run_verify(int argc, char **argv);
int ree_run_validate(int argc, char **argv);
int ree_run_keygen(int argc, char **argv);
int ree_run_request(int argc, char **argv);

// Walks the arguments: "--name value", "--name=value", "--flag", "--" and positionals.
//
//     while (cli_next(&cli)) {
//         if (cli_flag(&cli, "--json")) json = true;
//         else if (cli_option(&cli, "--device", &device)) continue;
//         else if (cli_positional(&cli, &model)) continue;
//         else cli_unknown(&cli);
//     }
//     if (cli.failed) return CLI_USAGE;
struct cli {
    int argc;
    char **argv;
    int at;              // the argument being looked at
    const char *command; // "inspect"; for the advice at the end of messages
    bool positional_only;
    bool failed; // a message has been printed
};

void cli_init(struct cli *cli, int argc, char **argv);
bool cli_next(struct cli *cli);
bool cli_flag(struct cli *cli, const char *name);
// True if the argument is this option; its value goes to *out (a missing or empty value fails, and
// leaves *out as it is).
bool cli_option(struct cli *cli, const char *name, const char **out);
// The same for a text, which may be empty.
bool cli_option_text(struct cli *cli, const char *name, const char **out);
// The same for a whole number in [min, max].
bool cli_option_number(struct cli *cli, const char *name, uint64_t min, uint64_t max,
                       uint64_t *out);
// True if the argument is no option and *out is still NULL; an empty one fails.
bool cli_positional(struct cli *cli, const char **out);
void cli_unknown(struct cli *cli);
// Prints "ree-run: message" and where to look it up; sets failed.
__attribute__((format(printf, 2, 3))) void cli_usage(struct cli *cli, const char *format, ...);

bool cli_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
// Bytes: "600M", "2G", in powers of 1024; at least 1.
bool cli_parse_size(const char *text, uint64_t *out);

// Prints "ree-run: message".
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);
const char *cli_last_error(void); // the message of the last one; ""
// From here on errors begin with "rank 2: ": of one of several processes.
void cli_set_rank(uint32_t rank);
const char *cli_rank_prefix(void); // "rank 2: "; "" of one process
// The same for a library error; returns CLI_FAILED.
int cli_fail(const struct ree_error *err);

// Whether a file of this name can be written, as far as can be told before; prints what is wrong
// and returns an exit code. `what` is "a receipt".
int cli_check_place(const char *path, const char *what);

// Names come from files: what is not printable ASCII or valid-looking UTF-8 text is written as
// \xNN, so that a model cannot send escape sequences to a terminal.
void cli_append_name(struct ree_strbuf *out, const char *name);
// "float32[batch,1,28,28]", "float32[...]" when no shape is declared.
void cli_append_port(struct ree_strbuf *out, const struct ree_port *port);
void cli_append_shape(struct ree_strbuf *out, enum ree_dtype dtype, uint32_t rank,
                      const int64_t *dims);
// Writes to standard output. False if this, or anything before it, could not be written; the first
// failure prints its reason.
bool cli_write(const char *bytes, size_t n);
// Writes the buffer to standard output and releases it; returns the exit code.
int cli_print(struct ree_strbuf *text);
void cli_note(void *unused, const char *text); // to standard error
void cli_print_notes(const struct ree_model *model);
// Text that a model made may hold what a terminal takes for commands. Whether it must be escaped:
// where standard output is a terminal, unless --raw-output was given.
bool cli_must_escape(bool raw_output);
// The text with control characters but newline and tab as \x1b or \u009b, and with \xff for bytes
// that are not UTF-8. `more` follows: a character that is cut at the end is left out. Returns how
// many bytes were taken.
size_t cli_append_escaped(struct ree_strbuf *out, const char *text, size_t n, bool more);
int cli_print_text(const char *text);       // a manual page
bool cli_wants_help(int argc, char **argv); // --help is among them
// Before any JSON is made: cli_append_json then fails if anything of this process's JSON was lost
// for want of memory.
void cli_json_init(void);
void cli_json_fail(void); // the same for what was lost beside cJSON
bool cli_json_lost(void); // whether anything was: for who prints JSON in another way
// JSON and the end of the line; deletes it. NULL is one that there was no memory for.
struct cJSON;
void cli_append_json(struct ree_strbuf *out, struct cJSON *json, bool indented);

// For on_progress of models and sessions: a line on standard error that is redrawn in place, when
// that is a terminal and the work takes longer than a moment.
void cli_progress(void *user, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);
// Calls this, too, whenever progress is made from here on, on a terminal or not; NULL: nothing.
void cli_progress_tell(void (*also)(void *user), void *user);

// Options that decide which device runs, shared by several subcommands.
struct cli_device {
    const char *spec;
    uint64_t n_threads;
    struct ree_device_options options;
};
// Where the devices are not the subject; 'run' has all of it.
#define CLI_DEVICE_HELP                                                                            \
    "  --device, --threads, --cpu-isa, --form, --validation, --no-fuse, --no-fold\n"               \
    "                       see 'ree-run help run'\n"
#define CLI_DEVICE_TEST_HELP                                                                       \
    "  --break-primitive NAME\n"                                                                   \
    "                       this primitive of a device pretends to be wrong, and the probe has "   \
    "to\n"                                                                                         \
    "                       notice\n"
bool cli_device_option(struct cli *cli, struct cli_device *device);
// How long the first of a list of devices is, "cpu,vulkan:1,cuda". Names of devices may have
// commas, so a new one begins where a kind of device stands.
size_t cli_first_device(const char *list);
size_t cli_count_devices(const char *list); // 1 of an empty one
// Closes a device. If a self-test of its code has failed, in this run or in an earlier one with the
// same driver, says so on stderr: the bits are right, but what runs instead is slower.
void cli_device_close(struct ree_device *device);
enum ree_status cli_device_open(const struct cli_device *device, struct ree_device **out_device,
                                struct ree_error *err);

#endif

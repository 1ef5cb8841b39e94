// Shared by the subcommands of ree-run: options, messages, progress, printing of names from files.
//
// Exit codes: 0 success, 1 failure, 2 wrong usage. Results go to standard output, everything else
// to standard error as "ree-run: ...".
#ifndef REE_TOOLS_RUN_CLI_H
#define REE_TOOLS_RUN_CLI_H

#include "strbuf.h"
#include "ree.h"
#include "ree/testing.h"

#define CLI_FAILED 1
#define CLI_USAGE 2

// The subcommands. argv[0] is the subcommand's name; every subcommand has --help.
int ree_run_run(int argc, char **argv);
int ree_run_generate(int argc, char **argv);
// true: `run` is called with an option that only generate has
bool ree_run_is_generate(int argc, char **argv);
int ree_run_inspect(int argc, char **argv);
int ree_run_plan(int argc, char **argv);
int ree_run_devices(int argc, char **argv);
int ree_run_bench(int argc, char **argv);
int ree_run_export(int argc, char **argv);
int ree_run_tokenize(int argc, char **argv);
int ree_run_perplexity(int argc, char **argv);
int ree_run_compare(int argc, char **argv);
int ree_run_diff(int argc, char **argv);
int ree_run_dispute(int argc, char **argv);
int ree_run_referee(int argc, char **argv);
int ree_run_trace(int argc, char **argv);
int ree_run_verify(int argc, char **argv);
int ree_run_validate(int argc, char **argv);
int ree_run_keygen(int argc, char **argv);
int ree_run_request(int argc, char **argv);

// Walks the arguments: "--name value", "--name=value", "--flag", "--" and positionals. Commands use
// the tables of option_table.h, which call these functions.
struct cli {
    int argc;
    char **argv;
    int at;              // index of the current argument
    const char *command; // "inspect"; for "Try 'ree-run help ...'" after a message
    bool positional_only;
    bool failed; // a message has been printed
};

// argv is borrowed.
void cli_init(struct cli *cli, int argc, char **argv);
// Advances to the next argument. false: no more arguments, or a failure.
bool cli_next(struct cli *cli);
// true: the current argument is this option, without a value.
bool cli_flag(struct cli *cli, const char *name);
// Returns true if the current argument is this option, and stores its value in *out. If the value
// is missing or empty: prints wrong usage and leaves *out unchanged.
bool cli_option(struct cli *cli, const char *name, const char **out);
// As cli_option, but the value may be empty.
bool cli_option_text(struct cli *cli, const char *name, const char **out);
// As cli_option, for a whole number in [min, max].
bool cli_option_number(struct cli *cli, const char *name, uint64_t min, uint64_t max,
                       uint64_t *out);
// Returns true if the argument is not an option and *out is still NULL. Rejects an empty argument.
bool cli_positional(struct cli *cli, const char **out);
// Reports the current argument as wrong usage.
void cli_unknown(struct cli *cli);
// Prints "ree-run: message" and which help page to read; sets cli->failed.
__attribute__((format(printf, 2, 3))) void cli_usage(struct cli *cli, const char *format, ...);

// Parses a whole decimal number in [min, max]; false: `text` is not one.
bool cli_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
// Parses a size in bytes, at least 1: "600M", "2G", in powers of 1024.
bool cli_parse_size(const char *text, uint64_t *out);

// Returns text that helps to understand an error message, "" if there is none. start.c sets it;
// NULL: no hints.
extern const char *(*cli_error_hint)(const char *message);
// Prints "ree-run: message", and the hint.
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);
const char *cli_last_error(void); // message of the last cli_error; "" before the first
// All later errors begin with "rank 2: ". For one of several processes.
void cli_set_rank(uint32_t rank);
const char *cli_rank_prefix(void); // "rank 2: "; "" if there is only one process
// Prints the message of a library error like cli_error; returns CLI_FAILED.
int cli_fail(const struct ree_error *err);

// Checks, before a command starts its work, whether a file at `path` can probably be written. If
// not, prints the reason and returns an exit code. `what` names the file in messages: "a receipt".
int cli_check_output_path(const char *path, const char *what);

// Appends a name that comes from a file. Bytes that are neither printable ASCII nor plausible UTF-8
// become \xNN, so that a model cannot send escape sequences to a terminal.
void cli_append_name(struct strbuf *out, const char *name);
// Appends "float32[batch,1,28,28]"; "float32[...]" if no shape is declared.
void cli_append_port(struct strbuf *out, const struct ree_port *port);
void cli_append_shape(struct strbuf *out, enum ree_dtype dtype, uint32_t rank, const int64_t *dims);
// Writes to standard output. Returns false if this write or an earlier one failed; only the first
// failure prints its reason.
bool cli_write(const char *bytes, size_t n);
// Writes the buffer to standard output and releases it; returns the exit code.
int cli_print(struct strbuf *text);
void cli_note(void *unused, const char *text); // prints `text` to standard error
// Prints the model's notes to standard error.
void cli_print_notes(const struct ree_model *model);
// Returns true if text that a model generated must be escaped, because a terminal could interpret
// it as commands: standard output is a terminal and --raw-output was not given.
bool cli_must_escape(bool raw_output);
// Appends `text` with escapes: control characters other than newline and tab become \x1b or \u009b,
// bytes that are not UTF-8 become \xff. `more`: text follows later, so an incomplete character at
// the end is left for then. Returns the number of bytes consumed.
size_t cli_append_escaped(struct strbuf *out, const char *text, size_t n, bool more);
bool cli_wants_help(int argc, char **argv); // true if --help is among the arguments
// Must be called before any JSON is created. From then on cli_append_json fails if any JSON value
// of this process was lost because memory ran out.
void cli_json_init(void);
// Records a loss outside of cJSON, with the same effect.
void cli_json_fail(void);
// True if any JSON was lost. For code that prints JSON without cli_append_json.
bool cli_json_lost(void);
// Appends the JSON text and a newline; deletes `json`. NULL means that creating it ran out of
// memory.
struct cJSON;
void cli_append_json(struct strbuf *out, struct cJSON *json, bool indented);

// Callback for the progress of models and sessions. Redraws one line on standard error in place, if
// standard error is a terminal and the work takes longer than 0.3 s.
bool cli_progress(void *user, const char *what, uint64_t done, uint64_t total);
extern const struct ree_progress cli_reports; // cli_progress
// Erases the progress line.
void cli_progress_end(void);
// From now on cli_progress also calls `also`, whether or not standard error is a terminal. NULL:
// stop.
void cli_progress_set_callback(void (*also)(void *user), void *user);

// Options that select and configure the device, shared by several subcommands.
struct cli_device {
    const char *spec;
    uint64_t n_threads;
    struct ree_device_options options;
    struct ree_device_testing testing;
};
// Short form for commands whose subject is not devices; 'ree-run help run' has the full text.
#define CLI_DEVICE_HELP                                                                            \
    "  --device, --threads, --cpu-isa, --form, --validation, --no-fuse, --no-fold\n"               \
    "                       see 'ree-run help run'\n"
#define CLI_DEVICE_TEST_HELP                                                                       \
    "  --break-primitive NAME\n"                                                                   \
    "                       make this primitive of a device report wrong results; the probe\n"     \
    "                       must detect it\n"
// Length of the first device in a comma-separated list such as "cpu,vulkan:1,cuda". Device names
// may contain commas, so a comma ends a device only if a kind of device (cpu, cuda, vulkan) follows
// it.
size_t cli_first_device(const char *list);
size_t cli_count_devices(const char *list); // 1 for an empty list
// Closes a device; accepts NULL. If a self-test of its code failed, in this run or in an earlier
// one with the same driver, prints a note to stderr: the results are still correct, but the
// replacement code is slower.
void cli_device_close(struct ree_device *device);
// Opens one device; NULL as spec is the CPU. The caller closes it with cli_device_close.
enum ree_status cli_device_open(const struct cli_device *device, struct ree_device **out_device,
                                struct ree_error *err);

#endif

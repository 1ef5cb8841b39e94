// Functions that the subcommands of ree-run share: parsing arguments, printing messages, progress
// and names from files, opening devices.
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
// Returns true if arguments without a subcommand's name mean `generate` and not `run`: they contain
// an option that names a prompt, or --request.
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
int ree_run_train(int argc, char **argv);
int ree_run_validate(int argc, char **argv);
int ree_run_keygen(int argc, char **argv);
int ree_run_request(int argc, char **argv);

// State of parsing a command line: "--name value", "--name=value", "--flag", "--" and positional
// arguments. Commands use the tables of option_table.h, whose functions call these.
struct cli {
    int argc;
    char **argv;
    int at;               // index of the current argument in argv
    const char *command;  // the subcommand's name, for "Try 'ree-run help inspect'" in messages
    bool positional_only; // "--" was read: all further arguments are positional
    bool failed;          // wrong usage was found, and a message printed
};

// argv[0] must be the subcommand's name. argv is borrowed.
void cli_init(struct cli *cli, int argc, char **argv);
// Advances to the next argument. Returns false if there is none or if cli->failed is set.
bool cli_next(struct cli *cli);
// Returns true if the current argument is the option `name` without a value.
bool cli_flag(struct cli *cli, const char *name);
// Returns true if the current argument is the option `name`, and stores its value in *out (borrowed
// from argv). If the value is missing or empty, reports wrong usage and leaves *out unchanged.
bool cli_option(struct cli *cli, const char *name, const char **out);
// As cli_option, but the value may be empty.
bool cli_option_text(struct cli *cli, const char *name, const char **out);
// As cli_option, for a whole decimal number in [min, max].
bool cli_option_number(struct cli *cli, const char *name, uint64_t min, uint64_t max,
                       uint64_t *out);
// Returns true if the current argument is not an option and *out is still NULL, and stores the
// argument in *out. If the argument is empty, reports wrong usage and leaves *out unchanged.
bool cli_positional(struct cli *cli, const char **out);
// Reports the current argument as wrong usage.
void cli_unknown(struct cli *cli);
// Reports wrong usage: prints "ree-run: message" and which help page to read, and sets cli->failed.
// Does nothing if cli->failed is already set.
__attribute__((format(printf, 2, 3))) void cli_usage(struct cli *cli, const char *format, ...);

// Parses a whole decimal number in [min, max]. Returns false if `text` is not one.
bool cli_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
// Parses a size in bytes, at least 1, such as "512", "600M" or "2G" (K, M, G, T: powers of 1024).
// Returns false if `text` is not a size.
bool cli_parse_size(const char *text, uint64_t *out);

// Function that cli_error calls for text to append to an error message, such as "run without the
// sandbox". It returns "" if it has none. cli_start_init sets the pointer; NULL: no hints.
extern const char *(*cli_error_hint)(const char *message);
// Prints "ree-run: message" and the text of cli_error_hint to standard error.
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);
const char *cli_last_error(void); // message of the last cli_error; "" before the first
// Makes all later messages of cli_error begin with "rank 2: " (if rank is 2). For a process that is
// one of several.
void cli_set_rank(uint32_t rank);
// Returns the text that messages begin with: "rank 2: ", or "" if cli_set_rank was not called.
const char *cli_rank_prefix(void);
// Prints the message of a library error like cli_error; returns CLI_FAILED.
int cli_fail(const struct ree_error *err);

// Checks whether a command can probably write a file at `path`, so that it can fail before it
// starts its work. Returns 0, or prints the reason and returns an exit code; one reason is that the
// file contains a private key. `what` names the file in messages: "a receipt".
int cli_check_output_path(const char *path, const char *what);

// Appends a name that comes from a file. The bytes of control characters and bytes that are not
// valid UTF-8 become \xNN, so that a model cannot send escape sequences to a terminal.
void cli_append_name(struct strbuf *out, const char *name);
// Appends the type and shape of a model's input or output: "float32[batch,1,28,28]", or
// "float32[...]" if it declares no shape; preceded by "sequence of " or "optional " if it is one.
void cli_append_port(struct strbuf *out, const struct ree_port *port);
void cli_append_shape(struct strbuf *out, enum ree_dtype dtype, uint32_t rank, const int64_t *dims);
// Writes n bytes to standard output and flushes it. Returns false if this call or an earlier one
// failed; only the first failure prints its reason.
bool cli_write(const char *bytes, size_t n);
// Writes the buffer to standard output and releases it. Returns 0, or prints an error and returns
// CLI_FAILED.
int cli_print(struct strbuf *text);
void cli_note(void *unused, const char *text); // prints "ree-run: note: TEXT" to standard error
// Prints the notes that loading the model gave (ree_model_notes) to standard error.
void cli_print_notes(const struct ree_model *model);
// Returns true if text that a model generated must be escaped, because a terminal could interpret
// it as commands: standard output is a terminal and --raw-output was not given.
bool cli_must_escape(bool raw_output);
// Appends n bytes of `text`, with control characters other than newline and tab escaped as \x1b or
// \u009b, and bytes that are not UTF-8 as \xff. more: further text follows in the next call, so an
// incomplete character at the end is not appended. Returns the number of bytes of `text` used.
size_t cli_append_escaped(struct strbuf *out, const char *text, size_t n, bool more);
bool cli_wants_help(int argc, char **argv); // true if --help is among the arguments
// Must be called before any JSON is created. From then on the process notices if memory runs out
// for a JSON value, which cJSON then omits; cli_append_json fails after that.
void cli_json_init(void);
// Records that code other than cJSON has lost a JSON value; cli_append_json fails from then on.
void cli_json_fail(void);
// Returns true if a JSON value of this process was lost because memory ran out. For code that
// prints JSON without cli_append_json.
bool cli_json_lost(void);
// Appends `json` as text and a newline, and deletes `json`. On a terminal, control characters are
// escaped. Sets out->failed if memory ran out, now or when JSON was created; json may then be NULL.
struct cJSON;
void cli_append_json(struct strbuf *out, struct cJSON *json, bool indented);

// Callback for the progress of models and sessions. Redraws one line on standard error in place, if
// standard error is a terminal and the work takes longer than 0.3 s.
bool cli_progress(void *user, const char *what, uint64_t done, uint64_t total);
extern const struct ree_progress cli_reports; // makes the library call cli_progress
// Erases the progress line.
void cli_progress_end(void);
// Makes cli_progress also call `also` with `user`, whether or not standard error is a terminal.
// NULL: cli_progress calls nothing else.
void cli_progress_set_callback(void (*also)(void *user), void *user);

// Options that select and configure the device, shared by several subcommands.
struct cli_device {
    const char *spec;
    uint64_t n_threads;
    struct ree_device_options options;
    struct ree_device_testing testing;
};
// Short help of the device options, for commands whose help does not describe them in full.
#define CLI_DEVICE_HELP                                                                            \
    "  --device, --threads, --cpu-isa, --form, --validation, --no-fuse, --no-fold\n"               \
    "                       see 'ree-run help run'\n"
#define CLI_DEVICE_TEST_HELP                                                                       \
    "  --break-primitive NAME\n"                                                                   \
    "                       make this primitive of a device report wrong results; the probe\n"     \
    "                       must detect it\n"
// Returns the length in bytes of the first device in a comma-separated list such as
// "cpu,vulkan:1,cuda". Device names may contain commas, so a comma ends a device only if a kind of
// device (cpu, cuda, vulkan) follows it.
size_t cli_first_device(const char *list);
// Returns the number of devices in a list such as "cpu,vulkan:1,cuda"; 1 if it is empty.
size_t cli_count_devices(const char *list);
// Closes a device; accepts NULL. Prints a note to standard error if a self-test of the device's
// code failed, in this run or in an earlier one with the same driver: replacement code was used,
// and the results are correct. Prints another note if the self-tests did not cover all code.
void cli_device_close(struct ree_device *device);
// Opens the device device->spec; NULL: the CPU. The caller must close it with cli_device_close.
enum ree_status cli_device_open(const struct cli_device *device, struct ree_device **out_device,
                                struct ree_error *err);

#endif

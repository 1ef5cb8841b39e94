#include "cli.h"

#include "utf8.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void cli_init(struct cli *cli, int argc, char **argv) {
    *cli = (struct cli){.argc = argc, .argv = argv, .command = argv[0]};
}

const char *(*cli_error_hint)(const char *message);

bool cli_next(struct cli *cli) {
    if (cli->failed || ++cli->at >= cli->argc) return false;
    if (!cli->positional_only && strcmp(cli->argv[cli->at], "--") == 0) {
        cli->positional_only = true;
        cli->at++;
    }
    return cli->at < cli->argc;
}

static bool is_option(const struct cli *cli) {
    const char *arg = cli->argv[cli->at];
    return !cli->positional_only && arg[0] == '-' && arg[1] != 0;
}

bool cli_flag(struct cli *cli, const char *name) {
    return is_option(cli) && strcmp(cli->argv[cli->at], name) == 0;
}

bool cli_option(struct cli *cli, const char *name, const char **out) {
    const char *text = NULL;
    if (!cli_option_text(cli, name, &text)) return false;
    if (text && !text[0])
        cli_usage(cli, "%s requires a value, not ''", name);
    else if (text)
        *out = text;
    return true;
}

bool cli_option_text(struct cli *cli, const char *name, const char **out) {
    const char *arg = cli->argv[cli->at];
    size_t n = strlen(name);
    if (!is_option(cli) || strncmp(arg, name, n) != 0 || (arg[n] != 0 && arg[n] != '='))
        return false;
    if (arg[n] == '=') {
        *out = arg + n + 1;
    } else if (cli->at + 1 < cli->argc) {
        *out = cli->argv[++cli->at];
    } else {
        cli_usage(cli, "%s requires a value", name);
    }
    return true;
}

bool cli_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out) {
    if (text[0] < '0' || text[0] > '9') return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value < min || value > max) return false;
    *out = value;
    return true;
}

bool cli_option_number(struct cli *cli, const char *name, uint64_t min, uint64_t max,
                       uint64_t *out) {
    const char *text = NULL;
    if (!cli_option_text(cli, name, &text)) return false;
    if (text && !cli_parse_number(text, min, max, out))
        cli_usage(cli, "%s requires an integer from %llu to %llu, not '%s'", name,
                  (unsigned long long)min, (unsigned long long)max, text);
    return true;
}

bool cli_positional(struct cli *cli, const char **out) {
    if (is_option(cli) || *out) return false;
    if (cli->argv[cli->at][0])
        *out = cli->argv[cli->at];
    else
        cli_usage(cli, "an argument is empty; expected a name");
    return true;
}

void cli_unknown(struct cli *cli) {
    const char *arg = cli->argv[cli->at];
    if (is_option(cli))
        cli_usage(cli, "unknown option '%s'", arg);
    else
        cli_usage(cli, "unexpected argument '%s'", arg);
}

void cli_usage(struct cli *cli, const char *format, ...) {
    if (cli->failed) return;
    va_list args;
    va_start(args, format);
    fputs("ree-run: ", stderr);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nTry 'ree-run help %s'.\n", cli->command);
    va_end(args);
    cli->failed = true;
}

// The last error and the rank prefix. One per process, hence the statics.
static char last_error[REE_ERROR_MAX];
static char rank_prefix[32];

void cli_error(const char *format, ...) {
    cli_progress_end();
    va_list args;
    char *text;
    struct strbuf escaped; // without control characters: names may come from a receipt
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    strbuf_init(&escaped);
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        cli_append_name(&escaped, line);
        if (end) strbuf_append(&escaped, "\n", 1);
    }
    bool ok = text && !escaped.failed;
    snprintf(last_error, sizeof last_error, "%s",
             !ok            ? "out of memory"
             : escaped.data ? escaped.data
                            : "");
    // One call prints the line, because several processes may print lines at the same time.
    fprintf(stderr, "ree-run: %s%s%s\n", rank_prefix,
            ok && escaped.data ? escaped.data : last_error,
            cli_error_hint ? cli_error_hint(last_error) : "");
    strbuf_finish(&escaped);
    free(text);
}

const char *cli_rank_prefix(void) {
    return rank_prefix;
}

const char *cli_last_error(void) {
    return last_error;
}

void cli_set_rank(uint32_t rank) {
    snprintf(rank_prefix, sizeof rank_prefix, "rank %u: ", rank);
}

int cli_fail(const struct ree_error *err) {
    struct strbuf text; // also without line ends, which cli_error keeps
    strbuf_init(&text);
    cli_append_name(&text, err->message);
    cli_error("%s", text.data ? text.data : "out of memory");
    strbuf_finish(&text);
    return CLI_FAILED;
}

int cli_check_output_path(const char *path, const char *what) {
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    char *folder = slash ? strndup(path, n ? n : 1) : strdup(".");
    int code = 0;
    if (!folder) {
        cli_error("out of memory");
        code = CLI_FAILED;
    } else if (access(folder, W_OK) != 0) {
        cli_error("%s: cannot write %s: %s", path, what, strerror(errno));
        code = CLI_FAILED;
    } else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        cli_error("%s: is a folder; expected the name of a file", path);
        code = CLI_FAILED;
    } else if (ree_file_is_private_key(path)) {
        cli_error("%s: contains a private key and is not overwritten; choose another file name",
                  path);
        code = CLI_FAILED;
    }
    free(folder);
    return code;
}

// Returns whether c begins one of U+0080 to U+009F, control characters in terminals that read
// Latin-1.
static bool is_late_control(const unsigned char *c) {
    return c[0] == 0xc2 && c[1] < 0xa0;
}

// Control characters and bytes that are not UTF-8 are escaped, each byte as \xNN.
void cli_append_name(struct strbuf *out, const char *name) {
    const unsigned char *c = (const unsigned char *)name;
    const unsigned char *end = c + strlen(name), *valid = c + utf8_valid_prefix(name, strlen(name));
    while (c < end) {
        bool is_late = c < valid && is_late_control(c);
        if (c < valid && *c >= 0x20 && *c != 0x7f && !is_late) {
            strbuf_append(out, (const char *)c++, 1);
            continue;
        }
        strbuf_printf(out, "\\x%02x", *c);
        if (is_late) strbuf_printf(out, "\\x%02x", *++c);
        if (c++ >= valid) valid = c + utf8_valid_prefix((const char *)c, (size_t)(end - c));
    }
}

void cli_append_port(struct strbuf *out, const struct ree_port *port) {
    if (port->nullable) strbuf_printf(out, "optional ");
    if (port->kind == REE_SEQUENCE) strbuf_printf(out, "sequence of ");
    strbuf_printf(out, "%s[", ree_dtype_name(port->dtype));
    if (!port->has_shape) strbuf_printf(out, "...");
    for (uint32_t i = 0; port->has_shape && i < port->rank; i++) {
        if (i) strbuf_append(out, ",", 1);
        if (port->dims[i] >= 0)
            strbuf_printf(out, "%lld", (long long)port->dims[i]);
        else
            cli_append_name(out, port->symbols[i] ? port->symbols[i] : "?");
    }
    strbuf_append(out, "]", 1);
}

void cli_append_shape(struct strbuf *out, enum ree_dtype dtype, uint32_t rank,
                      const int64_t *dims) {
    strbuf_printf(out, "%s[", ree_dtype_name(dtype));
    for (uint32_t i = 0; i < rank; i++)
        strbuf_printf(out, "%s%lld", i ? "," : "", (long long)dims[i]);
    strbuf_append(out, "]", 1);
}

void cli_note(void *unused, const char *text) {
    struct strbuf shown;
    (void)unused;
    strbuf_init(&shown);
    cli_append_name(&shown, text);
    cli_progress_end();
    fprintf(stderr, "ree-run: note: %s\n", shown.data ? shown.data : "");
    strbuf_finish(&shown);
}

void cli_print_notes(const struct ree_model *model) {
    const struct ree_model_note *notes;
    size_t n = ree_model_notes(model, &notes);
    for (size_t i = 0; i < n; i++)
        cli_note(NULL, notes[i].text);
}

bool cli_must_escape(bool raw_output) {
    return !raw_output && isatty(STDOUT_FILENO);
}

size_t cli_append_escaped(struct strbuf *out, const char *text, size_t n, bool more) {
    size_t at = 0;
    while (at < n) {
        size_t bad, size;
        bool is_cut = false;
        if (!utf8_check(text + at, n - at, &bad, &is_cut)) {
            if (is_cut && more) break;
            for (size_t i = 0; i < bad; i++)
                strbuf_printf(out, "\\x%02x", (unsigned char)text[at + i]);
            at += bad;
            continue;
        }
        uint32_t c = utf8_get(text + at, &size);
        if (c >= 0x80 && c < 0xA0)
            strbuf_printf(out, "\\u%04x", c);
        else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
            strbuf_printf(out, "\\x%02x", c);
        else
            strbuf_append(out, text + at, size);
        at += size;
    }
    return at;
}

static bool output_lost; // a write failed; per process, reported once

bool cli_write(const char *bytes, size_t n) {
    cli_progress_end();
    bool ok = n == 0 || fwrite(bytes, 1, n, stdout) == n;
    // Flushed immediately, so that a full disk or a closed pipe is not mistaken for success.
    if (fflush(stdout) != 0) ok = false;
    if (!ok && !output_lost) cli_error("cannot write to standard output: %s", strerror(errno));
    output_lost = output_lost || !ok;
    return !output_lost;
}

int cli_print(struct strbuf *text) {
    bool ok = !text->failed;
    cli_progress_end();
    if (ok)
        ok = cli_write(text->data, text->size);
    else
        cli_error("out of memory");
    strbuf_finish(text);
    return ok ? 0 : CLI_FAILED;
}

bool cli_wants_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) return true;
    return false;
}

// cJSON drops values if memory runs out, and code that adds many fields in a row does not notice.
static atomic_bool json_failed;

bool cli_json_lost(void) {
    return atomic_load(&json_failed);
}

void cli_json_fail(void) {
    atomic_store(&json_failed, true);
}

static void *json_malloc(size_t size) {
    void *memory = malloc(size);
    if (!memory) cli_json_fail();
    return memory;
}

void cli_json_init(void) {
    cJSON_InitHooks(&(cJSON_Hooks){json_malloc, free});
}

void cli_append_json(struct strbuf *out, struct cJSON *json, bool indented) {
    char *text = indented ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
    // A message may cut off a name within a character, and JSON must be UTF-8.
    struct strbuf valid;
    strbuf_init(&valid);
    if (text) utf8_append_lossy(&valid, text, strlen(text));
    // cJSON escapes only control characters below a space. A pipe gets this JSON unchanged. For a
    // terminal, which may interpret the others as commands, they are escaped too.
    const bool escapes = cli_must_escape(false);
    for (const char *c = valid.data; c && *c; c++) {
        if (escapes && is_late_control((const unsigned char *)c))
            strbuf_printf(out, "\\u%04x", (unsigned char)*++c);
        else if (escapes && *c == 0x7F)
            strbuf_printf(out, "\\u007f");
        else
            strbuf_append(out, c, 1);
    }
    out->failed = out->failed || valid.failed;
    strbuf_finish(&valid);
    if (text && !cli_json_lost())
        strbuf_append(out, "\n", 1);
    else
        out->failed = true;
    cJSON_free(text);
    cJSON_Delete(json);
}

// Progress. One line per process, hence the statics.

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool progress_shown;
static double progress_started, progress_drawn;
static void (*progress_also)(void *user);
static void *progress_also_user;

void cli_progress_set_callback(void (*also)(void *user), void *user) {
    progress_also = also;
    progress_also_user = user;
}

bool cli_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    if (progress_also) progress_also(progress_also_user);
    if (!isatty(STDERR_FILENO)) return true;
    double t = now();
    if (progress_started == 0) progress_started = t;
    if (t - progress_started < 0.3 || t - progress_drawn < 0.1) return true;
    progress_drawn = t;
    progress_shown = true;
    double percent = total ? 100.0 * (double)done / (double)total : 0;
    fprintf(stderr, "\r\033[K%.60s %3.0f %%", what, percent > 100 ? 100 : percent);
    return true;
}

const struct ree_progress cli_reports = {.report = cli_progress};

void cli_progress_end(void) {
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
    progress_started = 0;
}

// Devices

bool cli_parse_size(const char *text, uint64_t *out) {
    static const char units[] = "KMGT";
    char digits[24] = "";
    size_t n = strspn(text, "0123456789");
    const char *unit = text[n] ? strchr(units, text[n]) : NULL;
    if (n == 0 || n >= sizeof digits || (text[n] && (!unit || text[n + 1]))) return false;
    memcpy(digits, text, n);
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (!cli_parse_number(digits, 1, UINT64_MAX >> shift, out)) return false;
    *out <<= shift;
    return true;
}

size_t cli_first_device(const char *list) {
    static const char *const kinds[] = {"cpu", "cuda", "vulkan"};
    for (const char *at = list; *at; at++)
        for (size_t i = 0; *at == ',' && i < sizeof kinds / sizeof *kinds; i++) {
            size_t n = strlen(kinds[i]);
            if (strncmp(at + 1, kinds[i], n) == 0 && strchr(",:", at[1 + n]))
                return (size_t)(at - list);
        }
    return strlen(list);
}

size_t cli_count_devices(const char *list) {
    size_t n = 1;
    for (size_t length; list[length = cli_first_device(list)]; list += length + 1)
        n++;
    return n;
}

enum ree_status cli_device_open(const struct cli_device *device, struct ree_device **out_device,
                                struct ree_error *err) {
    struct ree_device_options options = device->options;
    struct ree_device_testing testing = device->testing;
    options.size = sizeof options;
    testing.size = sizeof testing;
    options.testing = &testing;
    options.n_threads = (uint32_t)device->n_threads;
    return ree_device_open(device->spec ? device->spec : "cpu", &options, out_device, err);
}

#define MAX_FAILURES_SHOWN 8

void cli_device_close(struct ree_device *device) {
    const struct ree_device_fact *facts;
    size_t n = device ? ree_device_facts(device, &facts) : 0, n_failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(facts[i].kind, "self-test") != 0) continue;
        if (strcmp(facts[i].name, "not tested") == 0)
            fprintf(stderr, "ree-run: note: on '%s' the self-tests do not cover all code: %s\n",
                    ree_device_name(device), facts[i].value);
        if (strcmp(facts[i].name, "failed") != 0) continue;
        if (n_failed++ == 0)
            fprintf(stderr,
                    "ree-run: note: on '%s' a self-test failed; replacement code was used, the "
                    "results are right\n",
                    ree_device_name(device));
        if (n_failed <= MAX_FAILURES_SHOWN) fprintf(stderr, "  %s\n", facts[i].value);
    }
    if (n_failed > MAX_FAILURES_SHOWN)
        fprintf(stderr, "  and %zu more\n", n_failed - MAX_FAILURES_SHOWN);
    ree_device_destroy(device);
}

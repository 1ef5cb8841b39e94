// ree-run diff: finds the first operator in which two runs differ.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "cli.h"
#include "commands.h"
#include "receipts.h"
#include "start.h"
#include "diff_report.h"
#include "paths.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2

static bool save_page(const struct diff_pair *p, const char *const paths[2], const char *path,
                      struct ree_error *err) {
    char *html;
    enum ree_status status = ree_trace_diff_html(p->a, p->b, paths, &html, err);
    if (status == REE_OK) status = ree_file_write(path, html, strlen(html), err);
    if (status != REE_OK) cli_fail(err);
    free(html);
    return status == REE_OK;
}

// The options of a comparison and its result.
struct job {
    const char *paths[2];
    const char *html;
    bool json, all;
    struct strbuf text;
    cJSON *object; // with --json
};

#define AT(field) offsetof(struct job, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run diff A B [--json] [--all] [--html FILE]: find where two runs first differ\n"
  "\n"
  "A and B are two traces, or two receipts. Of two receipts, diff lists every difference. If\n"
  "each receipt's trace is in the same folder as the receipt, diff also compares the traces.\n"
  "\n"
  "Traces are written by --trace of 'run' or 'generate'. Both must be of the same model, with\n"
  "the prompt divided in the same way; the devices do not matter. diff prints the first\n"
  "difference in the order in which nodes run, with its step and inputs. If all inputs agree,\n"
  "the runs first differ in this node.\n"
  "\n"},
    {.name = "A", .kind = ROW_POSITIONAL, .at = AT(paths[0]), .path = CLI_READS_BESIDE},
    {.name = "B", .kind = ROW_POSITIONAL, .at = AT(paths[1]), .path = CLI_READS_BESIDE},
    {.name = "--all", .kind = ROW_FLAG, .at = AT(all),
     .help = "list every node that differs, in every step, not only the first; 'new': all its "
             "inputs agree"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.name = "--html", .value = "FILE", .kind = ROW_STRING, .at = AT(html), .path = CLI_WRITES,
     .help = "write an HTML page with a picture: which nodes of which steps differ"},
    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\n"
  "exit status: 0 the same, 1 different, 2 cannot be compared (or wrong usage)\n"},
    // clang-format on
};
const struct cli_option_table ree_run_diff_options = CLI_OPTION_TABLE(rows);

static int load_traces(const char *const paths[2], struct ree_receipt *const *receipts,
                       struct ree_trace *traces[2], struct ree_trace_info infos[2]) {
    struct ree_error err;
    for (int i = 0; i < 2; i++) {
        infos[i] = (struct ree_trace_info){.size = sizeof infos[i]};
        if (ree_trace_load(paths[i], &traces[i], &err) != REE_OK ||
            ree_trace_info(traces[i], &infos[i], &err) != REE_OK) {
            cli_fail(&err);
            return CLI_CANNOT;
        }
        if (!receipts || ree_receipt_has_root(receipts[i], infos[i].root)) continue;
        cli_error("%s: is not the trace of this receipt: its root is %s", paths[i], infos[i].root);
        return CLI_CANNOT;
    }
    return 0;
}

// Compares two traces and returns an exit code. `receipts`: the receipts of the traces, or NULL.
static int compare_traces(struct job *job, const char *const paths[2],
                          struct ree_receipt *const *receipts) {
    struct ree_error err;
    struct ree_trace *traces[2] = {NULL, NULL};
    struct diff_pair p = {.all = job->all, .diff.size = sizeof p.diff};
    int code = load_traces(paths, receipts, traces, p.infos);
    if (!code) {
        p.a = traces[0];
        p.b = traces[1];
        ree_trace_diff(p.a, p.b, &p.diff, NULL);
        if (job->json)
            json_put_as(job->object, "trace", diff_report_json(&p));
        else
            diff_report_text(&p, &job->text);
        code = p.diff.kind == REE_DIFF_SAME        ? 0
               : p.diff.kind == REE_DIFF_OTHER_RUN ? CLI_CANNOT
                                                   : CLI_DIFFERS;
        if (job->html && !save_page(&p, paths, job->html, &err)) code = CLI_CANNOT;
    }
    ree_trace_destroy(traces[0]);
    ree_trace_destroy(traces[1]);
    return code;
}

#define MAX_DIFFERENCES 64

// Reports the differences between two receipts. Returns true if there are any.
static bool report_receipts(struct job *job, struct ree_receipt *const receipts[2]) {
    struct ree_receipt_difference found[MAX_DIFFERENCES];
    size_t n = ree_receipt_diff(receipts[0], receipts[1], found, MAX_DIFFERENCES);
    size_t shown = n < MAX_DIFFERENCES ? n : MAX_DIFFERENCES;
    cJSON *list = job->json ? cJSON_AddArrayToObject(job->object, "receipts") : NULL;
    for (size_t i = 0; job->json && i < shown; i++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "what", found[i].what);
        cJSON_AddStringToObject(object, "detail", found[i].detail);
        json_put(list, object);
    }
    if (job->json) return n > 0;
    for (size_t i = 0; i < shown; i++) {
        cli_append_name(&job->text, found[i].what);
        strbuf_printf(&job->text, " differs: ");
        cli_append_name(&job->text, found[i].detail);
        strbuf_printf(&job->text, "\n");
    }
    if (n > shown) strbuf_printf(&job->text, "and %zu more\n", n - shown);
    if (n == 0)
        strbuf_printf(&job->text, "the receipts agree, hash %s\n",
                      ree_receipt_info(receipts[0])->receipt_hash);
    return n > 0;
}

// Returns the path of the trace that a receipt names, in the receipt's folder. Release it with
// free. NULL: the receipt names none, or memory ran out (*out_failed).
static char *trace_of(const char *path, const struct ree_receipt_info *receipt, bool *out_failed) {
    const char *slash = strrchr(path, '/'), *name = receipt->trace_file;
    if (!receipt->trace_root[0] || !name || !name[0] || strchr(name, '/')) return NULL;
    struct strbuf text;
    strbuf_init(&text);
    if (slash) strbuf_append(&text, path, (size_t)(slash - path) + 1);
    strbuf_append(&text, name, strlen(name));
    char *trace = strbuf_take(&text);
    *out_failed = *out_failed || !trace;
    return trace;
}

static int compare_receipts(struct job *job, const char *const paths[2]) {
    struct ree_error err;
    struct ree_receipt *receipts[2] = {NULL, NULL};
    char *traces[2] = {NULL, NULL};
    int code = 0;
    for (int i = 0; i < 2; i++) {
        if (ree_receipt_load(paths[i], &receipts[i], &err) != REE_OK) {
            cli_fail(&err);
            code = CLI_CANNOT;
        } else if (cli_receipt_salt(receipts[i], paths[i], NULL)) {
            code = CLI_CANNOT;
        }
    }
    if (!code) {
        code = report_receipts(job, receipts) ? CLI_DIFFERS : 0;
        bool failed = false;
        for (int i = 0; i < 2; i++) {
            const struct ree_receipt_info *info = ree_receipt_info(receipts[i]);
            if (!info->is_private || info->has_salt) traces[i] = trace_of(paths[i], info, &failed);
        }
        if (failed) job->text.failed = true;
        if (traces[0] && traces[1]) {
            if (!job->json) strbuf_printf(&job->text, "\n");
            int nodes = compare_traces(job, (const char *const *)traces, receipts);
            if (nodes > code) code = nodes;
        } else if (job->html) {
            cli_error("--html requires two traces, and the receipts do not name two");
            code = CLI_CANNOT;
        }
    }
    for (int i = 0; i < 2; i++) {
        free(traces[i]);
        ree_receipt_destroy(receipts[i]);
    }
    return code;
}

enum kind { IS_TRACE, IS_RECEIPT, IS_UNREADABLE };

// Receipts are JSON objects; traces begin with the name of their format. If a file is unreadable,
// the function that loads it reports why.
static enum kind kind_of(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return IS_TRACE; // opening a pipe would block
    FILE *file = fopen(path, "rb");
    if (!file) return IS_UNREADABLE;
    int first = getc(file);
    fclose(file);
    return first == '{' ? IS_RECEIPT : IS_TRACE;
}

static int compare(const char *const paths[2], struct job *job) {
    enum kind kinds[] = {kind_of(paths[0]), kind_of(paths[1])};
    for (int i = 0; i < 2; i++)
        if (kinds[i] == IS_UNREADABLE) kinds[i] = kinds[1 - i];
    bool first = kinds[0] == IS_RECEIPT;
    if (kinds[0] != kinds[1]) {
        cli_error("%s is a receipt, but %s is not: give two receipts or two traces",
                  paths[first ? 0 : 1], paths[first ? 1 : 0]);
        return CLI_CANNOT;
    }
    strbuf_init(&job->text);
    job->object = job->json ? cJSON_CreateObject() : NULL;
    int code = first ? compare_receipts(job, paths) : compare_traces(job, paths, NULL);
    if (job->json) {
        // For two traces, their difference is the whole object.
        cJSON *object = first ? job->object : cJSON_DetachItemFromObject(job->object, "trace");
        if (!first) cJSON_Delete(job->object);
        if (object)
            cli_append_json(&job->text, object, false);
        else if (code != CLI_CANNOT)
            job->text.failed = true;
    }
    return cli_print(&job->text) ? CLI_CANNOT : code;
}

int ree_run_diff(int argc, char **argv) {
    struct cli cli;
    struct job job = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_diff_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_diff_options, &job);
    if (!cli.failed && !job.paths[1]) cli_usage(&cli, "expected two traces or two receipts");
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.cannot = CLI_CANNOT});
    return code ? code : compare(job.paths, &job);
}

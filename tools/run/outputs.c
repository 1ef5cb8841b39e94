#include "outputs.h"
#include "trace_options.h"

#include "stage_options.h"
#include "sandbox.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "json.h"

#define MAX_TOP_ROWS 16 // rows shown of a long output; the others are only counted
#define MAX_STRINGS 16  // strings shown as text; the others are only counted

// Returns whether a comes before b: every number comes before NaN.
static bool is_larger(float a, float b) {
    return a > b || (b != b && a == a);
}

// Finds the k largest entries of a row, largest first, and equal ones by ascending index. NaNs are
// last.
static void find_top(const float *row, int64_t n, uint32_t k, int64_t *out) {
    uint32_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = have; // entries before `at` stay before entry i
        while (at > 0 && is_larger(row[i], row[out[at - 1]]))
            at--;
        if (at == k) continue;
        if (have < k) have++;
        memmove(out + at + 1, out + at, (have - at - 1) * sizeof *out);
        out[at] = i;
    }
}

// Sets *out to the name of class `index` in the model's metadata "labels" (comma-separated), if
// that has exactly n labels. Returns the length of the name; 0: none.
static size_t find_label(const struct ree_model *model, int64_t n, int64_t index,
                         const char **out) {
    const char *labels = ree_model_metadata(model, "labels");
    if (!labels) return 0;
    int64_t count = 1;
    for (const char *c = labels; *c; c++)
        count += *c == ',';
    if (count != n) return 0;
    while (index-- > 0)
        labels = strchr(labels, ',') + 1;
    *out = labels;
    return strcspn(labels, ",");
}

// Returns whether --top can show an output: float32 with a last axis. Sets the number of its rows
// and their length.
static bool has_rows(const struct ree_tensor *t, int64_t *out_n_rows, int64_t *out_n) {
    if (t->kind != REE_TENSOR || t->dtype != REE_F32 || t->rank == 0 || t->nbytes == 0)
        return false;
    *out_n = t->dims[t->rank - 1];
    *out_n_rows = (int64_t)(t->nbytes / sizeof(float)) / *out_n;
    return true;
}

static void append_label(struct strbuf *out, const struct ree_model *model, int64_t n,
                         int64_t index) {
    const char *label = NULL;
    size_t length = find_label(model, n, index, &label);
    char *copy = length ? strndup(label, length) : NULL;
    out->failed = out->failed || (length && !copy);
    if (copy)
        cli_append_name(out, copy);
    else
        strbuf_printf(out, "[%lld]", (long long)index);
    free(copy);
}

static void append_top(const struct run_report *report, const struct ree_tensor *t,
                       struct strbuf *out) {
    int64_t n_rows, n;
    if (!has_rows(t, &n_rows, &n)) return;
    uint32_t k = (int64_t)report->top < n ? report->top : (uint32_t)n;
    int64_t *best = calloc(k, sizeof *best);
    if (!best) {
        out->failed = true;
        return;
    }
    for (int64_t r = 0; r < n_rows && r < MAX_TOP_ROWS; r++) {
        const float *row = (const float *)t->data + r * n;
        find_top(row, n, k, best);
        if (n_rows > 1) strbuf_printf(out, "  row %lld\n", (long long)r);
        for (uint32_t j = 0; j < k; j++) {
            strbuf_printf(out, "  %u. ", j + 1);
            append_label(out, report->model, n, best[j]);
            strbuf_printf(out, "  %.6g\n", (double)row[best[j]]);
        }
    }
    if (n_rows > MAX_TOP_ROWS)
        strbuf_printf(out, "  ... and %lld more rows\n", (long long)(n_rows - MAX_TOP_ROWS));
    free(best);
}

static void append_strings(const struct ree_tensor *t, struct strbuf *out) {
    char *const *strings = t->data;
    size_t n = t->nbytes / sizeof *strings;
    for (size_t i = 0; i < n && i < MAX_STRINGS; i++) {
        strbuf_printf(out, "  \"");
        cli_append_name(out, strings[i] ? strings[i] : "");
        strbuf_printf(out, "\"\n");
    }
    if (n > MAX_STRINGS) strbuf_printf(out, "  ... and %zu more strings\n", n - MAX_STRINGS);
}

// Appends "float32[2,3]  SHA-256", and the strings and top entries of the tensor.
static void append_tensor(const struct run_report *report, const struct ree_tensor *t,
                          struct strbuf *out) {
    char hex[65];
    ree_tensor_sha256(t, hex);
    cli_append_shape(out, t->dtype, t->rank, t->dims);
    strbuf_printf(out, "  %s\n", hex);
    if (t->dtype == REE_STRING) append_strings(t, out);
    if (report->top) append_top(report, t, out);
}

static void append_output(const struct run_report *report, const struct ree_tensor *t,
                          struct strbuf *out) {
    char hex[65];
    cli_append_name(out, t->name);
    strbuf_printf(out, "  ");
    if (t->kind == REE_TENSOR) {
        append_tensor(report, t, out);
        return;
    }
    ree_tensor_sha256(t, hex);
    if (t->kind == REE_ABSENT)
        strbuf_printf(out, "absent  %s\n", hex);
    else
        strbuf_printf(out, "sequence of %zu  %s\n", t->n_items, hex);
    for (size_t i = 0; i < t->n_items; i++) {
        strbuf_printf(out, "  item %zu  ", i);
        append_tensor(report, &t->items[i], out);
    }
}

void run_trace_text(const struct traced *trace, struct strbuf *out) {
    if (!trace) return;
    strbuf_printf(out, "trace   %s  %llu step%s\n", trace->root, (unsigned long long)trace->n_steps,
                  trace->n_steps == 1 ? "" : "s");
}

void run_trace_json(const struct traced *trace, cJSON *root) {
    if (!trace) return;
    cJSON *object = cJSON_AddObjectToObject(root, "trace");
    cJSON_AddStringToObject(object, "root", trace->root);
    cJSON_AddNumberToObject(object, "n_steps", (double)trace->n_steps);
}

void run_report_text(const struct run_report *report, struct strbuf *out) {
    char hex[65];
    for (size_t i = 0; i < report->n_outputs; i++) {
        append_output(report, &report->outputs[i], out);
    }
    ree_tensors_sha256(report->outputs, report->n_outputs, hex);
    strbuf_printf(out, "device  ");
    cli_append_name(out, report->device);
    if (report->operation_set != REE_REPRODUCIBLE)
        strbuf_printf(out, ", operation set '%s': other devices may give other bits",
                      ree_operation_set_name(report->operation_set));
    strbuf_printf(out, "\nsha256  %s\n", hex);
    if (report->receipt_hash[0]) strbuf_printf(out, "receipt %s\n", report->receipt_hash);
    run_trace_text(report->trace, out);
    const struct ree_session_stats *s = report->stats;
    if (!s) return;
    strbuf_printf(out,
                  "stats   %llu dispatches in %llu segment%s, weights %.1f KiB, intermediates "
                  "%.1f KiB\n        bind %.3f ms, run %.3f ms (upload and download included)\n",
                  (unsigned long long)s->n_dispatches, (unsigned long long)s->n_segments,
                  s->n_segments == 1 ? "" : "s", (double)s->weight_bytes / 1024,
                  (double)s->arena_bytes / 1024, 1e3 * s->bind_seconds, 1e3 * s->run_seconds);
    if (s->peak_bytes)
        strbuf_printf(out, "        at most %.1f KiB in use on a device\n",
                      (double)s->peak_bytes / 1024);
    strbuf_printf(out, "sandbox: %s\n", sandbox_text());
    cli_stages_text(report->pipeline, out);
}

// JSON. cJSON's add functions return NULL if memory runs out, and accept a NULL parent, so one
// check at the end suffices for them. Other failures are recorded with cli_json_fail.
static cJSON *top_json(const struct run_report *report, const struct ree_tensor *t) {
    int64_t n_rows, n;
    cJSON *rows = cJSON_CreateArray();
    if (!rows || !has_rows(t, &n_rows, &n)) return rows;
    uint32_t k = (int64_t)report->top < n ? report->top : (uint32_t)n;
    int64_t *best = calloc(k, sizeof *best);
    if (!best) cli_json_fail();
    for (int64_t r = 0; best && r < n_rows; r++) {
        const float *row = (const float *)t->data + r * n;
        find_top(row, n, k, best);
        cJSON *entries = cJSON_CreateArray();
        for (uint32_t j = 0; j < k; j++) {
            cJSON *entry = cJSON_CreateObject();
            const char *label = NULL;
            size_t length = find_label(report->model, n, best[j], &label);
            char *copy = length ? strndup(label, length) : NULL;
            cJSON_AddNumberToObject(entry, "index", (double)best[j]);
            if (copy) cJSON_AddStringToObject(entry, "label", copy);
            if (length && !copy) cli_json_fail();
            // JSON has no NaN and no infinity; cJSON writes null.
            cJSON_AddNumberToObject(entry, "value", (double)row[best[j]]);
            free(copy);
            json_put(entries, entry);
        }
        json_put(rows, entries);
    }
    free(best);
    return rows;
}

// Adds type, shape, hash, and the strings or top entries.
static void add_tensor_json(const struct run_report *report, const struct ree_tensor *t,
                            cJSON *output) {
    char hex[65];
    cJSON_AddStringToObject(output, "type", ree_dtype_name(t->dtype));
    cJSON *shape = cJSON_AddArrayToObject(output, "shape");
    for (uint32_t j = 0; j < t->rank; j++)
        json_put(shape, cJSON_CreateNumber((double)t->dims[j]));
    ree_tensor_sha256(t, hex);
    cJSON_AddStringToObject(output, "sha256", hex);
    if (t->dtype == REE_STRING) {
        char *const *strings = t->data;
        cJSON *values = cJSON_AddArrayToObject(output, "strings");
        for (size_t j = 0; j < t->nbytes / sizeof *strings; j++)
            json_put(values, cJSON_CreateString(strings[j] ? strings[j] : ""));
    }
    if (report->top) json_put_as(output, "top", top_json(report, t));
}

static void add_output_json(const struct run_report *report, const struct ree_tensor *t,
                            cJSON *output) {
    char hex[65];
    cJSON_AddStringToObject(output, "name", t->name);
    if (t->kind == REE_TENSOR) {
        add_tensor_json(report, t, output);
        return;
    }
    ree_tensor_sha256(t, hex);
    cJSON_AddStringToObject(output, "kind", t->kind == REE_ABSENT ? "absent" : "sequence");
    cJSON_AddStringToObject(output, "type", ree_dtype_name(t->dtype));
    cJSON_AddStringToObject(output, "sha256", hex);
    if (t->kind == REE_ABSENT) return;
    cJSON *items = cJSON_AddArrayToObject(output, "items");
    for (size_t i = 0; i < t->n_items; i++) {
        cJSON *item = cJSON_CreateObject();
        add_tensor_json(report, &t->items[i], item);
        json_put(items, item);
    }
}

void run_report_json(const struct run_report *report, struct strbuf *out) {
    char hex[65];
    cJSON *root = cJSON_CreateObject();
    cJSON *outputs = cJSON_AddArrayToObject(root, "outputs");
    for (size_t i = 0; i < report->n_outputs; i++) {
        cJSON *output = cJSON_CreateObject();
        add_output_json(report, &report->outputs[i], output);
        json_put(outputs, output);
    }
    ree_tensors_sha256(report->outputs, report->n_outputs, hex);
    cJSON_AddStringToObject(root, "sha256", hex);
    cJSON_AddStringToObject(root, "device", report->device);
    if (report->operation_set != REE_REPRODUCIBLE)
        cJSON_AddStringToObject(root, "operation_set",
                                ree_operation_set_name(report->operation_set));
    if (report->receipt_hash[0])
        cJSON_AddStringToObject(root, "receipt_hash", report->receipt_hash);
    run_trace_json(report->trace, root);
    const struct ree_session_stats *s = report->stats;
    if (s) {
        cJSON *stats = cJSON_AddObjectToObject(root, "stats");
        cJSON_AddNumberToObject(stats, "weight_bytes", (double)s->weight_bytes);
        cJSON_AddNumberToObject(stats, "arena_bytes", (double)s->arena_bytes);
        cJSON_AddNumberToObject(stats, "n_dispatches", (double)s->n_dispatches);
        cJSON_AddNumberToObject(stats, "n_segments", (double)s->n_segments);
        cJSON_AddNumberToObject(stats, "bind_seconds", s->bind_seconds);
        cJSON_AddNumberToObject(stats, "run_seconds", s->run_seconds);
        if (s->peak_bytes) cJSON_AddNumberToObject(stats, "peak_bytes", (double)s->peak_bytes);
        cJSON_AddStringToObject(stats, "sandbox", sandbox_text());
        cli_stages_json(report->pipeline, stats);
    }
    if (!outputs) out->failed = true;
    cli_append_json(out, root, true);
}

bool run_make_folders(const char *path) {
    char *copy = strdup(path);
    if (!copy) return false;
    for (char *slash = copy + 1; *copy && (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) break;
        *slash = '/';
    }
    free(copy);
    struct stat info;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    if (stat(path, &info) != 0) return false;
    if (!S_ISDIR(info.st_mode)) errno = ENOTDIR;
    return S_ISDIR(info.st_mode);
}

#define MAX_FILE_NAME 120

// True if `name` is the name of an item of the sequence saved as `base`: BASE_0 and so on.
static bool is_item_name(const struct ree_tensor *sequence, const char *base, const char *name) {
    size_t n = strlen(base);
    if (strncasecmp(name, base, n) != 0 || name[n] != '_') return false;
    char *end;
    unsigned long long item = strtoull(name + n + 1, &end, 10);
    return end > name + n + 1 && !*end && item < sequence->n_items;
}

// Chooses the file name of output i, without ".npy". "a/b" and "a_b" would both become "a_b": the
// later one gets a number that makes it unique.
static void file_name(const struct run_report *report, size_t i, char (*taken)[MAX_FILE_NAME + 1]) {
    char base[MAX_FILE_NAME + 1];
    const char *name = report->outputs[i].name;
    size_t n = 0;
    for (; name[n] && n < MAX_FILE_NAME - 24; n++) {
        char c = name[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || (c == '.' && n > 0);
        base[n] = plain ? c : '_';
    }
    base[n] = 0;
    if (n == 0) snprintf(base, sizeof base, "output");
    snprintf(taken[i], sizeof taken[i], "%s", base);
    for (unsigned number = 2;; number++) {
        bool is_free = true;
        for (size_t j = 0; j < i; j++)
            is_free = is_free && strcasecmp(taken[i], taken[j]) != 0 &&
                      !is_item_name(&report->outputs[j], taken[j], taken[i]) &&
                      !is_item_name(&report->outputs[i], taken[i], taken[j]);
        if (is_free) return;
        snprintf(taken[i], sizeof taken[i], "%.*s_%u", MAX_FILE_NAME - 12, base, number);
    }
}

// Saves to FOLDER/NAME.npy, or to FOLDER/NAME_ITEM.npy for an item of a sequence.
static int save_tensor(const struct ree_tensor *t, const char *folder, const char *name,
                       const size_t *item) {
    struct strbuf path;
    struct ree_error err;
    int code = 0;
    strbuf_init(&path);
    strbuf_printf(&path, "%s/%s", folder, name);
    if (item) strbuf_printf(&path, "_%zu", *item);
    strbuf_printf(&path, ".npy");
    if (path.failed) {
        cli_error("out of memory");
        code = CLI_FAILED;
    } else if (ree_tensor_save_npy(t, path.data, &err) != REE_OK) {
        code = cli_fail(&err);
    }
    strbuf_finish(&path);
    return code;
}

int run_save_outputs(const struct run_report *report, const char *folder) {
    if (!run_make_folders(folder)) {
        cli_error("%s: cannot create this folder: %s", folder, strerror(errno));
        return CLI_FAILED;
    }
    int code = 0;
    char(*names)[MAX_FILE_NAME + 1] = calloc(report->n_outputs + 1, sizeof *names);
    for (size_t i = 0; names && i < report->n_outputs && code == 0; i++) {
        const struct ree_tensor *t = &report->outputs[i];
        file_name(report, i, names);
        if (t->kind == REE_TENSOR) code = save_tensor(t, folder, names[i], NULL);
        for (size_t k = 0; k < t->n_items && code == 0; k++)
            code = save_tensor(&t->items[k], folder, names[i], &k);
    }
    if (!names) {
        cli_error("out of memory");
        code = CLI_FAILED;
    }
    free(names);
    return code;
}

#define MAX_IMAGE_SIDE 96 // in pixels; a pixel is two characters wide

void run_show_image(const struct ree_tensor *t, struct strbuf *out) {
    static const char shades[] = " .:-=+*#%@";
    if (t->kind != REE_TENSOR || t->dtype != REE_F32 || t->rank < 2) return;
    for (uint32_t i = 0; i + 2 < t->rank; i++)
        if (t->dims[i] != 1) return;
    int64_t height = t->dims[t->rank - 2], width = t->dims[t->rank - 1];
    if (height < 2 || width < 2 || height > MAX_IMAGE_SIDE || width > MAX_IMAGE_SIDE) return;
    const float *pixels = t->data;
    float low = pixels[0], high = pixels[0];
    for (int64_t i = 0; i < height * width; i++) {
        if (pixels[i] < low) low = pixels[i];
        if (pixels[i] > high) high = pixels[i];
    }
    if (!(low < high)) return; // constant, or NaN
    for (int64_t y = 0; y < height; y++) {
        char line[2 * MAX_IMAGE_SIDE + 2];
        int64_t n = 0;
        for (int64_t x = 0; x < width; x++) {
            float level = (pixels[y * width + x] - low) / (high - low) * 9.99f;
            char shade = shades[level >= 0 && level < 10 ? (int)level : 0];
            line[n++] = shade;
            line[n++] = shade;
        }
        while (n > 0 && line[n - 1] == ' ')
            n--;
        line[n++] = '\n';
        strbuf_append(out, line, (size_t)n);
    }
}

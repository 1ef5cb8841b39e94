// Writes values of a run to a folder, for people and for the referee, which reads them
// (trace/recorded.h).
#include "trace/dump.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "session/model.h"

#define MAX_NAME 80 // maximum number of characters of a node's name in a file name

struct ree_dump {
    const struct ree_graph *graph;
    const char *folder;
    regex_t regex;
    char *step_folder;
    uint64_t step;
    bool has_folder;        // the current step's folder exists
    bool is_secret;         // the folders of steps are accessible to their owner only
    size_t n_files, n_left; // files written; tensors left out because of the limit
    size_t n_unfit;         // tensors left out because .npy cannot represent them
};

static bool compile(regex_t *regex, const char *text, char *message, size_t size) {
    int error = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
    if (error) regerror(error, regex, message, size);
    return error == 0;
}

enum ree_status ree_dump_check(const char *text, struct ree_error *err) {
    regex_t regex;
    char message[128];
    if (!compile(&regex, text, message, sizeof message))
        return ree_fail(err, REE_INVALID, "'%s' is not a regular expression: %s", text, message);
    regfree(&regex);
    return REE_OK;
}

static bool is_chosen(const struct ree_dump *d, const struct ree_node *node, size_t output) {
    const struct ree_value *value = node->outputs[output];
    return value && (regexec(&d->regex, node->name ? node->name : "", 0, NULL, 0) == 0 ||
                     regexec(&d->regex, value->name, 0, NULL, 0) == 0);
}

static bool is_chosen_input(const struct ree_dump *d, const char *name) {
    return name && regexec(&d->regex, name, 0, NULL, 0) == 0;
}

static bool chooses_any(const struct ree_dump *d) {
    for (size_t i = 0; i < d->graph->n_inputs; i++)
        if (is_chosen_input(d, d->graph->inputs[i]->name)) return true;
    for (size_t i = 0; i < d->graph->n_nodes; i++)
        for (size_t k = 0; k < d->graph->nodes[i]->n_outputs; k++)
            if (is_chosen(d, d->graph->nodes[i], k)) return true;
    return false;
}

// Creates the folder, with the permissions `mode`, and its missing parents, unless they exist.
// Returns false, with the reason in errno, if the path is not a folder then.
static bool make_folders(const char *path, mode_t mode) {
    char *copy = ree_strdup(path);
    if (!copy) return false;
    for (char *slash = copy + 1; *copy && (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) break;
        *slash = '/';
    }
    ree_free(copy);
    struct stat info;
    if (mkdir(path, mode) != 0 && errno != EEXIST) return false;
    if (stat(path, &info) != 0) return false;
    if (!S_ISDIR(info.st_mode)) errno = ENOTDIR;
    return S_ISDIR(info.st_mode);
}

enum ree_status ree_dump_create(const char *regex, const char *folder, bool is_secret,
                                const struct ree_model *model, struct ree_dump **out,
                                struct ree_error *err) {
    char message[128];
    *out = NULL;
    struct ree_dump *d = ree_alloc_zeroed(1, sizeof *d);
    size_t size = strlen(folder) + 32;
    if (d) d->step_folder = ree_alloc(size);
    if (!d || !d->step_folder) {
        ree_free(d);
        return ree_no_memory(err);
    }
    d->graph = model->graph;
    d->folder = folder;
    d->is_secret = is_secret;
    if (!compile(&d->regex, regex, message, sizeof message)) {
        ree_free(d->step_folder);
        ree_free(d);
        return ree_fail(err, REE_INVALID, "'%s' is not a regular expression: %s", regex, message);
    }
    enum ree_status status = REE_OK;
    if (!chooses_any(d))
        status = ree_fail(err, REE_NOT_FOUND,
                          "no node, output or input has a name that matches '%s'", regex);
    else if (!make_folders(folder, is_secret ? 0700 : 0777))
        status =
            ree_fail(err, REE_IO, "%s: cannot create this folder: %s", folder, strerror(errno));
    if (status == REE_OK)
        *out = d;
    else
        ree_dump_destroy(d);
    return status;
}

static enum ree_status make_step_folder(struct ree_dump *d, struct ree_error *err) {
    struct stat info;
    if (d->has_folder) return REE_OK;
    bool is_there = mkdir(d->step_folder, d->is_secret ? 0700 : 0777) != 0;
    if (is_there && errno != EEXIST)
        return ree_fail(err, REE_IO, "%s: cannot create this folder: %s", d->step_folder,
                        strerror(errno));
    if (is_there && d->is_secret && stat(d->step_folder, &info) == 0 && (info.st_mode & 077))
        return ree_fail(
            err, REE_IO,
            "%s: other users can read this folder, but the run is private: use a new --dump-folder",
            d->step_folder);
    d->has_folder = true;
    return REE_OK;
}

static enum ree_status save(struct ree_dump *d, const struct ree_tensor *tensor, const char *name,
                            struct ree_error *err) {
    if (d->n_files == REE_DUMP_MAX_FILES) {
        d->n_left++;
        return REE_OK;
    }
    REE_TRY(make_step_folder(d, err));
    size_t size = strlen(d->step_folder) + strlen(name) + 8;
    char *path = ree_alloc(size);
    if (!path) return ree_no_memory(err);
    snprintf(path, size, "%s/%s.npy", d->step_folder, name);
    enum ree_status status = ree_tensor_save_npy(tensor, path, err);
    ree_free(path);
    if (status == REE_UNSUPPORTED) {
        d->n_unfit++;
        return REE_OK;
    }
    d->n_files += status == REE_OK;
    return status;
}

// Appends at most MAX_NAME characters of `from`. Others than letters, digits, '-', '.' and '_'
// become '_', so that no name is a path.
static void append_plain(char *name, size_t size, const char *from) {
    size_t n = strlen(name);
    for (size_t i = 0; from[i] && i < MAX_NAME && n + 1 < size; i++) {
        char c = from[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.';
        name[n++] = plain ? c : '_';
    }
    name[n] = 0;
}

// kv caches come without data: their contents are outputs of earlier steps.
static bool has_contents(const struct ree_tensor *t) {
    int64_t count;
    return t->kind == REE_TENSOR &&
           (t->data || (ree_count_elements(t->rank, t->dims, &count) && count == 0));
}

static enum ree_status on_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err) {
    struct ree_dump *d = user;
    d->has_folder = false;
    snprintf(d->step_folder, strlen(d->folder) + 32, "%s/step-%05llu", d->folder,
             (unsigned long long)d->step);
    for (size_t i = 0; i < n; i++) {
        if (!is_chosen_input(d, inputs[i].name) || !has_contents(&inputs[i])) continue;
        char name[2 * MAX_NAME];
        snprintf(name, sizeof name, "input-%05zu-", i);
        append_plain(name, sizeof name, inputs[i].name);
        REE_TRY(save(d, &inputs[i], name, err));
    }
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *value,
                                struct ree_error *err) {
    struct ree_dump *d = user;
    const struct ree_node *node = d->graph->nodes[value->node];
    if (!is_chosen(d, node, value->output)) return REE_OK;
    char name[2 * MAX_NAME];
    snprintf(name, sizeof name, "%05zu-", value->node);
    append_plain(name, sizeof name - 48, node->name && node->name[0] ? node->name : node->op_type);
    size_t n = strlen(name);
    snprintf(name + n, sizeof name - n, "-%zu", value->output);
    const struct ree_tensor *t = value->tensor;
    if (t->kind == REE_TENSOR) return save(d, t, name, err);
    n = strlen(name);
    for (size_t i = 0; i < t->n_items; i++) {
        snprintf(name + n, sizeof name - n, "_%zu", i);
        REE_TRY(save(d, &t->items[i], name, err));
    }
    return REE_OK;
}

static enum ree_status on_end(void *user, struct ree_error *err) {
    struct ree_dump *d = user;
    (void)err;
    d->step++;
    return REE_OK;
}

struct ree_observer ree_dump_observer(struct ree_dump *d) {
    return (struct ree_observer){on_inputs, on_value, on_end, d, false};
}

void ree_dump_count(const struct ree_dump *d, struct ree_recorded *out) {
    out->n_files = d->n_files;
    out->n_omitted = d->n_left;
    out->n_unfit = d->n_unfit;
}

void ree_dump_destroy(struct ree_dump *d) {
    if (!d) return;
    regfree(&d->regex);
    ree_free(d->step_folder);
    ree_free(d);
}

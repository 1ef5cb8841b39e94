#include "case.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PATH 4096

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool cases_list(const char *root, char ***out_names, size_t *out_n) {
    *out_names = NULL;
    *out_n = 0;
    DIR *dir = opendir(root);
    if (!dir) return false;
    size_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[MAX_PATH];
        snprintf(path, sizeof path, "%s/%s/model.onnx", root, entry->d_name);
        if (entry->d_name[0] == '.' || access(path, R_OK) != 0) continue;
        if (*out_n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            char **grown = realloc(*out_names, capacity * sizeof *grown);
            if (!grown) abort();
            *out_names = grown;
        }
        (*out_names)[(*out_n)++] = strdup(entry->d_name);
    }
    closedir(dir);
    if (*out_n) qsort(*out_names, *out_n, sizeof **out_names, compare_names);
    return true;
}

void cases_free(char **names, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

size_t case_n_sets(const char *folder) {
    for (size_t n = 0;; n++) {
        char path[MAX_PATH];
        snprintf(path, sizeof path, "%s/test_data_set_%zu", folder, n);
        if (access(path, R_OK) != 0) return n;
    }
}

static enum ree_status load_tensors(const char *folder, size_t set, const char *what,
                                    const struct ree_model *model, struct ree_tensor *tensors,
                                    size_t *out_n, struct ree_error *err) {
    bool outputs = strcmp(what, "output") == 0;
    for (size_t i = 0; i < CASE_MAX_TENSORS; i++) {
        char path[MAX_PATH];
        snprintf(path, sizeof path, "%s/test_data_set_%zu/%s_%zu.pb", folder, set, what, i);
        if (access(path, R_OK) != 0) break;
        const struct ree_port *port =
            outputs ? ree_model_output(model, i) : ree_model_input(model, i);
        enum ree_status status = ree_tensor_load_for(&tensors[i], path, port, err);
        if (status != REE_OK) return status;
        *out_n = i + 1;
    }
    return REE_OK;
}

static bool contradicts(const struct ree_tensor *t, const struct ree_port *port) {
    return t->dtype == REE_U16 && port->dtype == REE_BF16;
}

enum ree_status case_load(const char *folder, size_t set, const struct ree_model *model,
                          struct case_data *out_data, struct ree_error *err) {
    memset(out_data, 0, sizeof *out_data);
    enum ree_status status =
        load_tensors(folder, set, "input", model, out_data->inputs, &out_data->n_inputs, err);
    if (status == REE_OK)
        status = load_tensors(folder, set, "output", model, out_data->outputs, &out_data->n_outputs,
                              err);
    if (status != REE_OK) {
        case_finish(out_data);
        return status;
    }
    size_t n_ports = ree_model_n_inputs(model), n_required = 0, at = 0;
    for (size_t i = 0; i < n_ports; i++)
        n_required += !ree_model_input(model, i)->optional;
    for (size_t i = 0; i < n_ports && at < out_data->n_inputs; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        if (port->optional && out_data->n_inputs <= n_required) continue;
        out_data->contradicts_model |= contradicts(&out_data->inputs[at], port);
        free(out_data->inputs[at].name);
        out_data->inputs[at++].name = strdup(port->name);
    }
    for (size_t i = 0; i < ree_model_n_outputs(model) && i < out_data->n_outputs; i++)
        out_data->contradicts_model |=
            contradicts(&out_data->outputs[i], ree_model_output(model, i));
    return REE_OK;
}

void case_finish(struct case_data *data) {
    for (size_t i = 0; i < data->n_inputs; i++)
        ree_tensor_finish(&data->inputs[i]);
    for (size_t i = 0; i < data->n_outputs; i++)
        ree_tensor_finish(&data->outputs[i]);
    memset(data, 0, sizeof *data);
}

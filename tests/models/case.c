#include "case.h"

#include "base/status.h"
#include "base/sha256.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PATH 4096

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// A case without its own folder: ROOT/NAME.onnx and its output files.
static bool is_light(const char *base) {
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s.onnx", base);
    if (access(path, R_OK) != 0) return false;
    snprintf(path, sizeof path, "%s_output_0.pb", base);
    return access(path, R_OK) == 0;
}

void case_model_path(const char *base, char *path, size_t size) {
    snprintf(path, size, is_light(base) ? "%s.onnx" : "%s/model.onnx", base);
}

// `what` is "input" or "output".
static void tensor_path(const char *base, size_t set, const char *what, size_t i, char *path,
                        size_t size) {
    if (is_light(base))
        snprintf(path, size, "%s_%s_%zu.pb", base, what, i);
    else
        snprintf(path, size, "%s/test_data_set_%zu/%s_%zu.pb", base, set, what, i);
}

// Turns a directory entry's name into a case's name, in place. Returns false if it is not a case.
static bool case_name(const char *root, char *entry) {
    char path[MAX_PATH];
    if (entry[0] == '.') return false;
    snprintf(path, sizeof path, "%s/%s/model.onnx", root, entry);
    if (access(path, R_OK) == 0) return true;
    size_t length = strlen(entry);
    if (length <= 5 || strcmp(entry + length - 5, ".onnx") != 0) return false;
    entry[length - 5] = 0;
    snprintf(path, sizeof path, "%s/%s", root, entry);
    return is_light(path);
}

bool cases_list(const char *root, char ***out_names, size_t *out_n) {
    *out_names = NULL;
    *out_n = 0;
    DIR *dir = opendir(root);
    if (!dir) return false;
    size_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *name = strdup(entry->d_name);
        if (!name) abort();
        if (!case_name(root, name)) {
            free(name);
            continue;
        }
        if (*out_n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            char **grown = realloc(*out_names, capacity * sizeof *grown);
            if (!grown) abort();
            *out_names = grown;
        }
        (*out_names)[(*out_n)++] = name;
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

size_t case_n_sets(const char *base) {
    if (is_light(base)) return 1;
    for (size_t n = 0;; n++) {
        char path[MAX_PATH];
        snprintf(path, sizeof path, "%s/test_data_set_%zu", base, n);
        if (access(path, R_OK) != 0) return n;
    }
}

static enum ree_status load_tensors(const char *base, size_t set, const char *what,
                                    const struct ree_model *model, struct ree_tensor *tensors,
                                    size_t *out_n, struct ree_error *err) {
    bool outputs = strcmp(what, "output") == 0;
    for (size_t i = 0; i < CASE_MAX_TENSORS; i++) {
        char path[MAX_PATH];
        tensor_path(base, set, what, i, path, sizeof path);
        if (access(path, R_OK) != 0) break;
        const struct ree_port *port =
            outputs ? ree_model_output(model, i) : ree_model_input(model, i);
        enum ree_status status = ree_tensor_load_for(&tensors[i], path, port, err);
        if (status != REE_OK) return status;
        *out_n = i + 1;
    }
    return REE_OK;
}

// Makes the inputs of a light model, by ONNX's formula.
static enum ree_status make_inputs(const struct ree_model *model, struct case_data *data,
                                   struct ree_error *err) {
    for (size_t i = 0; i < ree_model_n_inputs(model); i++) {
        const struct ree_port *port = ree_model_input(model, i);
        if (port->optional) continue;
        int64_t dims[REE_MAX_RANK];
        for (uint32_t d = 0; d < port->rank; d++)
            dims[d] = port->dims[d] > 0 ? port->dims[d] : 1; // ONNX sets symbolic dimensions to 1
        if (!port->has_shape || port->dtype != REE_F32 || data->n_inputs == CASE_MAX_TENSORS) {
            snprintf(err->message, sizeof err->message,
                     "input '%.200s' is not float32 of a declared rank", port->name);
            return err->status = REE_UNSUPPORTED;
        }
        struct ree_tensor *t = &data->inputs[data->n_inputs++];
        REE_TRY(ree_tensor_init(t, port->name, port->dtype, port->rank, dims, err));
        float *elements = t->data;
        size_t n = t->nbytes / sizeof *elements;
        for (size_t j = 0; j < n; j++)
            elements[j] = (float)((double)j / (double)n);
    }
    return REE_OK;
}

static bool contradicts(const struct ree_tensor *t, const struct ree_port *port) {
    return t->dtype == REE_U16 && port->dtype == REE_BF16;
}

enum ree_status case_load(const char *base, size_t set, const struct ree_model *model,
                          struct case_data *out_data, struct ree_error *err) {
    memset(out_data, 0, sizeof *out_data);
    enum ree_status status =
        is_light(base)
            ? make_inputs(model, out_data, err)
            : load_tensors(base, set, "input", model, out_data->inputs, &out_data->n_inputs, err);
    if (status == REE_OK)
        status =
            load_tensors(base, set, "output", model, out_data->outputs, &out_data->n_outputs, err);
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

static void hash_file(struct ree_hasher *hasher, FILE *file) {
    unsigned char bytes[65536], length[8];
    fseek(file, 0, SEEK_END);
    uint64_t size = (uint64_t)ftell(file);
    rewind(file);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(size >> 8 * i);
    ree_hasher_update(hasher, length, sizeof length);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
        ree_hasher_update(hasher, bytes, n);
    fclose(file);
}

void case_digest(const char *base, char digest[CASE_DIGEST_LENGTH + 1]) {
    static const char *const kinds[] = {"input", "output"};
    struct ree_hasher *hasher = ree_hasher_create(NULL);
    char path[MAX_PATH], hex[65];
    case_model_path(base, path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (file) hash_file(hasher, file);
    for (size_t set = 0; set < case_n_sets(base); set++)
        for (size_t kind = 0; kind < 2; kind++)
            for (size_t i = 0;; i++) {
                tensor_path(base, set, kinds[kind], i, path, sizeof path);
                file = fopen(path, "rb");
                if (!file) break;
                hash_file(hasher, file);
            }
    ree_hasher_finish(hasher, hex);
    memcpy(digest, hex, CASE_DIGEST_LENGTH);
    digest[CASE_DIGEST_LENGTH] = 0;
}

#include "generate/source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/load.h"

// Maximum size of a configuration file in bytes. Configurations have a few kilobytes; there is a
// limit because cJSON recurses over nested values.
#define MAX_CONFIG ((size_t)4 << 20)

static char *join(const char *folder, const char *name) {
    char *path;
    return ree_asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

// Uses no malloc: exhausted memory must not change which file is the model. A path longer than
// PATH_MAX does not exist for the system either.
static bool exists(const char *folder, const char *name) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n >= 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

// Reads a JSON object from a file of the folder. Sets *out to NULL if there is no such file.
static enum ree_status read_json(const char *folder, const char *name, cJSON **out,
                                 struct ree_error *err) {
    *out = NULL;
    if (!exists(folder, name)) return REE_OK;
    char *path = join(folder, name);
    if (!path) return ree_no_memory(err);
    void *bytes = NULL;
    size_t nbytes = 0;
    enum ree_status status = ree_file_read(path, &bytes, &nbytes, err);
    if (status == REE_OK && nbytes > MAX_CONFIG)
        status = ree_fail(err, REE_INVALID, "%s: %zu bytes are too many for a configuration", path,
                          nbytes);
    if (status == REE_OK) {
        status = ree_json_parse_object(bytes, nbytes, out, err);
        if (status != REE_OK) ree_fail_prefix(err, "%s", path);
    }
    ree_free(bytes);
    ree_free(path);
    return status;
}

static enum ree_status take_string(const cJSON *object, const char *key, char **out,
                                   struct ree_error *err) {
    const cJSON *item = ree_json_find(object, key);
    if (!cJSON_IsString(item)) return REE_OK;
    ree_free(*out);
    *out = ree_strdup(item->valuestring);
    return *out ? REE_OK : ree_no_memory(err);
}

// Returns whether the item is an integer in [0, 2^31), the range of token ids and lengths.
static bool whole_number(const cJSON *item, int32_t *out) {
    int64_t value;
    if (!ree_json_is_whole(item, 0, INT32_MAX, &value)) return false;
    *out = (int32_t)value;
    return true;
}

static void take_length(const cJSON *object, const char *key, int64_t *out) {
    int32_t n;
    if (whole_number(ree_json_find(object, key), &n) && n > 0) *out = n;
}

// Reads one id or a list of ids.
static enum ree_status take_eos(const cJSON *object, struct ree_model_source *source,
                                struct ree_error *err) {
    const cJSON *item = ree_json_find(object, "eos_token_id");
    int n = cJSON_IsArray(item) ? cJSON_GetArraySize(item) : cJSON_IsNumber(item) ? 1 : 0;
    if (n == 0 && !cJSON_IsArray(item)) return REE_OK;
    if (n > REE_MAX_EOS)
        return ree_fail(err, REE_INVALID, "'eos_token_id' has %d tokens; the maximum is %d", n,
                        REE_MAX_EOS);
    int32_t *ids = ree_alloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) return ree_no_memory(err);
    size_t count = 0;
    const cJSON *at = cJSON_IsArray(item) ? item->child : item;
    for (int i = 0; i < n; i++, at = at->next)
        if (whole_number(at, &ids[count])) count++;
    ree_free(source->eos);
    source->eos = ids;
    source->n_eos = count;
    return REE_OK;
}

static enum ree_status read_genai(const cJSON *config, struct ree_model_source *source,
                                  struct ree_error *err) {
    const cJSON *model = ree_json_find(config, "model"), *decoder = ree_json_find(model, "decoder");
    const cJSON *inputs = ree_json_find(decoder, "inputs"),
                *outputs = ree_json_find(decoder, "outputs");
    const cJSON *filename = ree_json_find(decoder, "filename");
    if (!cJSON_IsObject(decoder) || !cJSON_IsString(filename))
        return ree_fail(err, REE_INVALID,
                        "%s/genai_config.json: model.decoder.filename is missing; ree runs models "
                        "with one decoder",
                        source->folder);
    const char *name = filename->valuestring;
    if (strchr(name, '/') || !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ree_fail(err, REE_INVALID,
                        "%s/genai_config.json: model.decoder.filename is '%s', expected a file in "
                        "this folder",
                        source->folder, name);
    source->model_path = join(source->folder, name);
    if (!source->model_path) return ree_no_memory(err);
    struct ree_port_names *n = &source->names;
    REE_TRY(take_string(model, "type", &source->model_type, err));
    REE_TRY(take_string(inputs, "input_ids", &n->input_ids, err));
    REE_TRY(take_string(inputs, "attention_mask", &n->attention_mask, err));
    REE_TRY(take_string(inputs, "position_ids", &n->position_ids, err));
    REE_TRY(take_string(outputs, "logits", &n->logits, err));
    REE_TRY(take_string(inputs, "past_names", &n->past[0], err));
    REE_TRY(take_string(outputs, "present_names", &n->present[0], err));
    REE_TRY(take_string(inputs, "past_key_names", &n->past[0], err));
    REE_TRY(take_string(outputs, "present_key_names", &n->present[0], err));
    REE_TRY(take_string(inputs, "past_value_names", &n->past[1], err));
    REE_TRY(take_string(outputs, "present_value_names", &n->present[1], err));
    take_length(model, "context_length", &source->context_length);
    whole_number(ree_json_find(model, "bos_token_id"), &source->bos);
    return take_eos(model, source, err);
}

// Returns whether the folder has weights of a model that config.json describes and ree supports. If
// so, they are the model, even if the folder has an ONNX file: that may be a quantised export, and
// the choice of the model must not depend on whether it was exported.
static bool is_checkpoint(const struct ree_model_source *source, const cJSON *config) {
    const cJSON *type = ree_json_find(config, "model_type");
    return cJSON_IsString(type) && ree_load_knows_architecture(type->valuestring) &&
           !ree_json_find(config, "quantization_config") &&
           (exists(source->folder, "model.safetensors") ||
            exists(source->folder, "model.safetensors.index.json"));
}

// Reads config.json, then generation_config.json, which takes precedence.
static enum ree_status read_hugging_face(struct ree_model_source *source, bool *checkpoint,
                                         struct ree_error *err) {
    *checkpoint = false;
    static const char *const names[] = {"config.json", "generation_config.json"};
    static const char *const lengths[] = {"n_ctx", "n_positions", "max_position_embeddings"};
    for (size_t k = 0; k < 2; k++) {
        cJSON *config;
        REE_TRY(read_json(source->folder, names[k], &config, err));
        if (!config) continue;
        if (k == 0) *checkpoint = is_checkpoint(source, config);
        const cJSON *text = ree_json_find(config, "text_config");
        enum ree_status status = take_string(config, "model_type", &source->model_type, err);
        for (size_t i = 0; k == 0 && i < sizeof lengths / sizeof *lengths; i++) {
            take_length(config, lengths[i], &source->context_length);
            if (text) take_length(text, lengths[i], &source->context_length);
        }
        whole_number(ree_json_find(config, "bos_token_id"), &source->bos);
        if (status == REE_OK) status = take_eos(config, source, err);
        cJSON_Delete(config);
        REE_TRY(status);
    }
    return REE_OK;
}

// File names that exporters use for decoders, the most likely first. For folders without a
// supported checkpoint.
static const char *const onnx_names[] = {
    "model.onnx",
    "decoder_model_merged.onnx",
    "decoder_with_past_model.onnx",
    "decoder_model.onnx",
    "decoder.onnx",
    "onnx/model.onnx",
    "onnx/decoder_model_merged.onnx",
};

static enum ree_status find_in_folder(struct ree_model_source *source, struct ree_error *err) {
    cJSON *genai;
    REE_TRY(read_json(source->folder, "genai_config.json", &genai, err));
    if (genai) {
        enum ree_status status = read_genai(genai, source, err);
        cJSON_Delete(genai);
        return status;
    }
    bool is_hf;
    REE_TRY(read_hugging_face(source, &is_hf, err));
    // The reader of the checkpoint (graph/hf) finds its length, which is also that of an export.
    if (is_hf) source->context_length = 0;
    for (size_t i = 0; !is_hf && !source->model_path && i < sizeof onnx_names / sizeof *onnx_names;
         i++)
        if (exists(source->folder, onnx_names[i])) {
            source->model_path = join(source->folder, onnx_names[i]);
            if (!source->model_path) return ree_no_memory(err);
        }
    if (source->model_path) return REE_OK;
    if (!exists(source->folder, "config.json"))
        return ree_fail(err, REE_NOT_FOUND,
                        "%s: no model in this folder; expected genai_config.json, model.onnx, or "
                        "config.json with safetensors files",
                        source->folder);
    source->model_path = ree_strdup(source->folder);
    return source->model_path ? REE_OK : ree_no_memory(err);
}

static enum ree_status find_beside_file(const char *path, struct ree_model_source *source,
                                        struct ree_error *err) {
    const char *slash = strrchr(path, '/');
    source->folder =
        slash ? ree_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : ree_strdup(".");
    source->model_path = ree_strdup(path);
    if (!source->folder || !source->model_path) return ree_no_memory(err);
    cJSON *genai;
    REE_TRY(read_json(source->folder, "genai_config.json", &genai, err));
    bool is_hf;
    if (!genai) return read_hugging_face(source, &is_hf, err);
    // The port names in genai_config.json apply only to the file that it names.
    const cJSON *name =
        ree_json_find(ree_json_find(ree_json_find(genai, "model"), "decoder"), "filename");
    const char *base = slash ? slash + 1 : path;
    enum ree_status status = REE_OK;
    if (cJSON_IsString(name) && strcmp(name->valuestring, base) == 0) {
        ree_free(source->model_path);
        source->model_path = NULL;
        status = read_genai(genai, source, err);
    }
    cJSON_Delete(genai);
    return status;
}

enum ree_status ree_model_source_find(const char *path, struct ree_model_source *out,
                                      struct ree_error *err) {
    *out = (struct ree_model_source){.bos = -1};
    out->model_type = ree_strdup("");
    struct stat st;
    enum ree_status status = REE_OK;
    if (!out->model_type) {
        status = ree_no_memory(err);
    } else if (stat(path, &st) != 0) {
        status = ree_fail(err, REE_NOT_FOUND, "%s: no such file or folder", path);
    } else if (S_ISDIR(st.st_mode)) {
        out->folder = ree_strdup(path);
        status = out->folder ? find_in_folder(out, err) : ree_no_memory(err);
    } else {
        status = find_beside_file(path, out, err);
    }
    if (status != REE_OK) ree_model_source_finish(out);
    return status;
}

void ree_model_source_finish(struct ree_model_source *s) {
    char *const strings[] = {s->model_path,           s->folder,
                             s->model_type,           s->names.input_ids,
                             s->names.attention_mask, s->names.position_ids,
                             s->names.logits,         s->names.past[0],
                             s->names.past[1],        s->names.present[0],
                             s->names.present[1]};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        ree_free(strings[i]);
    ree_free(s->eos);
    memset(s, 0, sizeof *s);
}

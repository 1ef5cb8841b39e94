#include "run_text.h"

#include "base/strbuf.h"
#include "graph/model_text.h"
#include "ree.h"
#include "session/graphs/all_values.h"
#include "pipeline/pipeline.h"

#include <string.h>

#define MAX_TENSORS 8
#define MAX_PARTS 12

static struct ree_device *devices[2];
static char *last_result;
static size_t n_divided;

bool run_text_start(int argc, char **argv) {
    struct ree_error err;
    const char *specs[2] = {"cpu", argc > 1 ? argv[1] : NULL};
    for (int i = 0; i < 2 && specs[i]; i++) {
        if (ree_device_open(specs[i], NULL, &devices[i], &err) == REE_OK) continue;
        if (err.status != REE_UNAVAILABLE) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
        printf("skipped: %s\n", err.message);
        run_text_finish();
        return false;
    }
    return true;
}

void run_text_finish(void) {
    ree_device_destroy(devices[1]);
    ree_device_destroy(devices[0]);
    free(last_result);
}

static void bad_text(const char *at) {
    fprintf(stderr, "test tensor: not understood: %s\n", at);
    exit(1);
}

static void read_element(struct ree_tensor *t, size_t i, const char **at) {
    if (t->dtype == REE_STRING) {
        *at += strspn(*at, " ");
        if (**at != '"') bad_text(*at);
        size_t n = strcspn(*at + 1, "\"");
        ((char **)t->data)[i] = strndup(*at + 1, n);
        *at += n + 2;
        return;
    }
    char *end;
    double number = strtod(*at, &end);
    if (end == *at) bad_text(*at);
    *at = end;
    float f = (float)number;
    int64_t n = t->dtype == REE_F32 ? 0 : (int64_t)number;
    size_t size = ree_dtype_size(t->dtype);
    memcpy((char *)t->data + i * size, t->dtype == REE_F32 ? (void *)&f : (void *)&n, size);
}

// Parses a tensor: "float32[2] 1 2".
static void read_tensor(struct ree_tensor *t, const char *name, const char **at) {
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    size_t n = strcspn(*at, "[ |");
    int dtype = model_text_dtype(*at, n), used;
    long long dim;
    if (!dtype) bad_text(*at);
    *at += n;
    if (**at != '[') bad_text(*at);
    for (++*at; **at != ']'; *at += used + ((*at)[used] == ',')) {
        if (sscanf(*at, "%lld%n", &dim, &used) != 1) bad_text(*at);
        dims[rank++] = dim;
    }
    ++*at;
    REQUIRE(ree_tensor_init(t, name, (enum ree_dtype)dtype, rank, dims, NULL) == REE_OK);
    size_t count = t->nbytes / ree_dtype_size(t->dtype);
    for (size_t i = 0; i < count; i++)
        read_element(t, i, at);
}

// Parses a tensor, "none", or "{tensor; tensor}".
static void read_value(struct ree_tensor *t, const struct ree_port *port, const char **at) {
    if (strncmp(*at, "none", 4) == 0) {
        *t = (struct ree_tensor){.kind = REE_ABSENT, .name = strdup(port->name)};
        *at += 4;
    } else if (**at == '{') {
        *t = (struct ree_tensor){.kind = REE_SEQUENCE, .name = strdup(port->name)};
        t->dtype = port->dtype;
        for (++*at; **at != '}'; *at += strspn(*at, " ;")) {
            struct ree_tensor item;
            read_tensor(&item, NULL, at);
            REQUIRE(ree_sequence_append(t, &item, NULL) == REE_OK);
        }
        ++*at;
    } else {
        read_tensor(t, port->name, at);
    }
}

static size_t read_inputs(const struct ree_model *model, const char *text,
                          struct ree_tensor *inputs) {
    size_t n = 0;
    for (const char *at = text; *at;) {
        at += strspn(at, " |");
        if (!*at) break;
        REQUIRE(n < MAX_TENSORS && n < ree_model_n_inputs(model));
        read_value(&inputs[n], ree_model_input(model, n), &at);
        n++;
    }
    return n;
}

static void print_element(struct ree_strbuf *out, const struct ree_tensor *t, size_t i) {
    int64_t n = 0;
    float f;
    size_t size = ree_dtype_size(t->dtype);
    if (t->dtype == REE_STRING) {
        ree_strbuf_printf(out, " \"%s\"", ((char **)t->data)[i]);
        return;
    }
    memcpy(&n, (const char *)t->data + i * size, size);
    memcpy(&f, &n, sizeof f);
    if (t->dtype == REE_F32)
        ree_strbuf_printf(out, " %.9g", (double)f);
    else
        ree_strbuf_printf(out, " %lld", t->dtype == REE_I32 ? (long long)(int32_t)n : (long long)n);
}

static void print_tensor(struct ree_strbuf *out, const struct ree_tensor *t) {
    ree_strbuf_printf(out, "%s[", ree_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++)
        ree_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    ree_strbuf_printf(out, "]");
    for (size_t i = 0; i < t->nbytes / ree_dtype_size(t->dtype); i++)
        print_element(out, t, i);
}

static void print_value(struct ree_strbuf *out, const struct ree_tensor *t) {
    if (t->kind == REE_TENSOR) print_tensor(out, t);
    if (t->kind == REE_ABSENT) ree_strbuf_printf(out, "none");
    if (t->kind == REE_SEQUENCE) ree_strbuf_printf(out, "{");
    for (size_t i = 0; i < t->n_items; i++) {
        if (i) ree_strbuf_printf(out, "; ");
        print_tensor(out, &t->items[i]);
    }
    if (t->kind == REE_SEQUENCE) ree_strbuf_printf(out, "}");
}

static char *error_text(const struct ree_error *err) {
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    ree_strbuf_printf(&out, "error: %s", err->message);
    return ree_strbuf_take(&out);
}

// Returns the outputs as text and releases them.
static char *outputs_text(const struct ree_model *model, struct ree_tensor *outputs) {
    struct ree_strbuf out;
    ree_strbuf_init(&out);
    for (size_t i = 0; i < ree_model_n_outputs(model); i++) {
        if (i) ree_strbuf_printf(&out, " | ");
        print_value(&out, &outputs[i]);
        ree_tensor_finish(&outputs[i]);
    }
    return ree_strbuf_take(&out);
}

static char *run_session(struct ree_session *session, const struct ree_model *model,
                         const struct ree_tensor *inputs, size_t n_inputs) {
    struct ree_tensor outputs[MAX_TENSORS];
    struct ree_error err;
    REQUIRE(ree_model_n_outputs(model) <= MAX_TENSORS);
    if (ree_session_run(session, inputs, n_inputs, outputs, &err) != REE_OK)
        return error_text(&err);
    return outputs_text(model, outputs);
}
static bool is_error(const char *result) {
    return strncmp(result, "error: ", 7) == 0;
}

// Compares the result with that of the first run, which it stores; takes ownership of `result`. Two
// errors always agree, and the first one is kept, because folding renumbers the nodes that messages
// name.
static bool agree(char *result, const char *how) {
    if (!last_result) {
        last_result = result;
        return true;
    }
    bool same = strcmp(last_result, result) == 0 || (is_error(last_result) && is_error(result));
    if (!same) fprintf(stderr, "%s: %s\ninstead of %s\n", how, result, last_result);
    free(result);
    return same;
}

// Loads and runs the model in one configuration; twice, so that the second run uses the cached
// bind.
static bool run_way(const struct pb *bytes, const char *text, bool no_fuse, bool no_fold,
                    struct ree_device *device, const char *how) {
    struct ree_model_options options = {.size = sizeof options, .no_fold = no_fold};
    struct ree_session_options session_options = {.size = sizeof session_options,
                                                  .no_fuse = no_fuse};
    struct ree_model *model;
    struct ree_session *session;
    struct ree_error err;
    if (ree_model_load_memory(bytes->data, bytes->size, &options, &model, &err) != REE_OK)
        return agree(error_text(&err), how);
    struct ree_tensor inputs[MAX_TENSORS];
    size_t n = read_inputs(model, text, inputs);
    REQUIRE(ree_session_create(model, device, &session_options, &session, &err) == REE_OK);
    bool same = agree(run_session(session, model, inputs, n), how) &&
                agree(run_session(session, model, inputs, n), "again");
    ree_session_destroy(session);
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&inputs[i]);
    ree_model_destroy(model);
    return same;
}

// Loads and runs with an observer. The session must report to it the same values that the model
// gives when all its values are outputs.
static bool run_observed(const struct pb *bytes, const char *text, struct ree_device *device) {
    struct ree_model *model;
    struct ree_session *session;
    struct ree_error err;
    struct all_values all = {0};
    bool same = true;
    for (int exposed = 0; exposed < 2 && same; exposed++) {
        if (ree_model_load_memory(bytes->data, bytes->size, NULL, &model, &err) != REE_OK)
            break; // the same error as without an observer
        struct ree_tensor inputs[MAX_TENSORS];
        size_t n = read_inputs(model, text, inputs);
        if (exposed) expose_all(model);
        size_t n_outputs = ree_model_n_outputs(model);
        struct ree_tensor *outputs = calloc(n_outputs + 1, sizeof *outputs);
        REQUIRE(outputs && ree_session_create(model, device, NULL, &session, &err) == REE_OK);
        if (exposed) {
            same = ree_session_run(session, inputs, n, outputs, &err) == REE_OK &&
                   all_values_match(&all, outputs, n_outputs);
        } else {
            all_values_init(&all, model);
            struct ree_observer observer = all_values_observer(&all);
            REQUIRE(ree_session_observe(session, &observer, &err) == REE_OK);
            same = agree(run_session(session, model, inputs, n), "observed");
        }
        ree_session_destroy(session);
        for (size_t i = 0; i < n; i++)
            ree_tensor_finish(&inputs[i]);
        for (size_t i = 0; i < n_outputs; i++)
            ree_tensor_finish(&outputs[i]);
        free(outputs);
        // The first model stays loaded, because messages use its names.
        static struct ree_model *first;
        if (!exposed) first = model;
        if (exposed) ree_model_destroy(model);
        if (exposed || !same || is_error(last_result)) {
            ree_model_destroy(first);
            break;
        }
    }
    all_values_finish(&all);
    return same;
}

// Runs with every number of stages from 2 up to the largest that the model allows, but fewer than
// MAX_PARTS.
static bool run_parts(const struct pb *bytes, const char *text, struct ree_device *device) {
    struct ree_model *model;
    struct ree_error err;
    if (ree_model_load_memory(bytes->data, bytes->size, NULL, &model, &err) != REE_OK)
        return true; // the same error as in one stage
    struct ree_tensor inputs[MAX_TENSORS];
    size_t n_inputs = read_inputs(model, text, inputs);
    bool same = true;
    for (size_t n = 2; same && n < MAX_PARTS; n++) {
        struct ree_pipeline *pipeline;
        struct ree_pipeline_options options = {.n_stages = n};
        enum ree_status status = ree_pipeline_create(model, &device, 1, &options, NULL, 0,
                                                     REE_NO_INPUT, &pipeline, &err);
        // "the model cannot be cut ...", "the model has N possible cuts ..."
        if (status == REE_INVALID && strstr(err.message, " cut")) break;
        if (status != REE_OK) {
            same = agree(error_text(&err), "divided");
            break;
        }
        n_divided++;
        struct ree_tensor outputs[MAX_TENSORS];
        status = ree_pipeline_run(pipeline, inputs, n_inputs, outputs, &err);
        same =
            agree(status == REE_OK ? outputs_text(model, outputs) : error_text(&err), "in parts");
        ree_pipeline_destroy(pipeline);
    }
    for (size_t i = 0; i < n_inputs; i++)
        ree_tensor_finish(&inputs[i]);
    ree_model_destroy(model);
    return same;
}

size_t run_text_n_divided(void) {
    return n_divided;
}

const char *run_text(const char *model, const char *inputs) {
    free(last_result);
    last_result = NULL;
    struct pb bytes = model_text(model);
    bool same = true;
    for (int i = 0; i < 2 && devices[i]; i++)
        same = run_way(&bytes, inputs, false, false, devices[i], ree_device_name(devices[i])) &&
               run_way(&bytes, inputs, true, false, devices[i], "not fused") &&
               run_way(&bytes, inputs, false, true, devices[i], "not folded") &&
               run_observed(&bytes, inputs, devices[i]) && run_parts(&bytes, inputs, devices[i]) &&
               same;
    pb_free(&bytes);
    return same ? last_result : NULL;
}

bool run_text_matches(const char *result, const char *wanted) {
    if (!is_error(wanted)) return strcmp(result, wanted) == 0;
    return is_error(result) && strstr(result, wanted + 7);
}

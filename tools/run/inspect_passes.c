#include "inspect.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

// Appends line by line, because names come from the file and are escaped.
static void append_lines(struct strbuf *out, const char *text) {
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        char *copy = strndup(line, n);
        if (!copy) {
            out->failed = true;
            return;
        }
        cli_append_name(out, copy);
        strbuf_append(out, "\n", 1);
        free(copy);
        line += n + (line[n] == '\n');
    }
}

static void append_pass(void *user, const char *pass, const char *graph_text) {
    struct strbuf *out = user;
    strbuf_printf(out, "== after %s\n", pass);
    append_lines(out, graph_text);
}

static void append_program(void *user, const char *what, const char *program_text) {
    struct strbuf *out = user;
    strbuf_printf(out, "== %s\n", what);
    append_lines(out, program_text);
}

// Binds on the CPU, which reads weights in place. All devices get the same dispatches.
static int bind(struct ree_model *model, struct run_inputs *inputs, struct strbuf *text) {
    struct ree_error err;
    struct ree_device *device = NULL;
    struct ree_session *session = NULL;
    struct ree_session_options options = {
        .size = sizeof options, .on_program = append_program, .user = text};
    int code = run_inputs_load(inputs, model);
    if (code) return code;
    if (ree_device_open("cpu", NULL, &device, &err) != REE_OK ||
        ree_session_create(model, device, &options, &session, &err) != REE_OK ||
        ree_session_bind(session, inputs->tensors, inputs->n_tensors, &err) != REE_OK)
        code = cli_fail(&err);
    ree_session_destroy(session);
    ree_device_destroy(device);
    return code;
}

int inspect_passes(const char *path, struct run_inputs *inputs) {
    struct strbuf text;
    struct ree_error err;
    struct ree_model *model;
    strbuf_init(&text);
    struct ree_model_options options = {
        .size = sizeof options, .on_pass = append_pass, .user = &text};
    enum ree_status status = ree_model_load(path, &options, &model, &err);
    int code = status == REE_OK ? bind(model, inputs, &text) : cli_fail(&err);
    ree_model_destroy(model);
    int printed = cli_print(&text); // also prints what came before a failure
    return code ? code : printed;
}

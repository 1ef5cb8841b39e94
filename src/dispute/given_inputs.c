#include "dispute/given_inputs.h"

#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "session/model.h"
#include "trace/model_header.h"
#include "train/step_roles.h"

// Whether a run may leave out the input; then computes its digest.
static bool has_default(const struct ree_opened *m, size_t input, ree_digest out) {
    const struct ree_port *port = ree_model_input(m->model, input);
    const struct ree_tensor absent = {.kind = REE_ABSENT, .dtype = port->dtype};
    if (port->optional)
        ree_state_initial_digest(m->model, input, out);
    else if (port->nullable)
        ree_trace_tensor_digest(&absent, out);
    return port->optional || port->nullable;
}

static enum ree_status set_stated(const struct ree_receipt *r,
                                  const struct ree_receipt_tensor *stated,
                                  const struct ree_port *port, struct ree_given_input *out,
                                  struct ree_error *err) {
    out->is_stated = true;
    out->is_unsure = r->version == 1 && ree_dtype_is_float(port->dtype);
    if (ree_unhex(stated->sha256, out->digest)) return REE_OK;
    return ree_fail(err, REE_INVALID, "its receipt has no hash of the input '%.48s'", port->name);
}

enum ree_status ree_given_inputs_make(const struct ree_receipt *r, const struct ree_opened *m,
                                      struct ree_given_input *out, struct ree_error *err) {
    size_t i = 0, n = ree_model_n_inputs(m->model);
    for (size_t k = 0; k < n; k++) {
        const struct ree_port *port = ree_model_input(m->model, k);
        out[k] = (struct ree_given_input){0};
        if (i < r->n_inputs && !strcmp(r->inputs[i].name, port->name))
            REE_TRY(set_stated(r, &r->inputs[i++], port, &out[k], err));
        else if (!has_default(m, k, out[k].digest) && i == r->n_inputs)
            return ree_fail(err, REE_INVALID, "its receipt lacks the input '%.48s'", port->name);
        else if (!port->optional && !port->nullable)
            break;
    }
    if (i == r->n_inputs) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "its receipt has an input '%.48s' that the model does not have in this "
                    "position",
                    r->inputs[i].name);
}

enum ree_status ree_given_input_digest(const struct ree_receipt *r, const struct ree_opened *m,
                                       uint32_t input, ree_digest out, struct ree_error *err) {
    const struct ree_port *port = ree_model_input(m->model, input);
    struct ree_given_input given = {0};
    size_t i = 0;
    while (i < r->n_inputs && strcmp(r->inputs[i].name, port->name) != 0)
        i++;
    if (i < r->n_inputs)
        REE_TRY(set_stated(r, &r->inputs[i], port, &given, err));
    else if (!has_default(m, input, given.digest))
        return ree_fail(err, REE_INVALID, "the receipt has no input '%s'", port->name);
    if (given.is_unsure)
        return ree_fail(
            err, REE_UNSUPPORTED,
            "the input '%s' has floats, so its digest in a trace does not follow from the receipt",
            port->name);
    memcpy(out, given.digest, sizeof given.digest);
    return REE_OK;
}

// Compares the lists, for receipts that no run of the model can have.
static bool same_lists(const struct ree_receipt *a, const struct ree_receipt *b) {
    if (a->n_inputs != b->n_inputs) return false;
    for (size_t i = 0; i < a->n_inputs; i++)
        if (strcmp(a->inputs[i].name, b->inputs[i].name) != 0 ||
            strcmp(a->inputs[i].sha256, b->inputs[i].sha256) != 0)
            return false;
    return true;
}

enum ree_status ree_given_inputs_compare(const struct ree_receipt *a, const struct ree_receipt *b,
                                         const struct ree_opened *m, bool *out,
                                         struct ree_error *err) {
    size_t n = ree_model_n_inputs(m->model);
    *out = same_lists(a, b);
    if (*out) return REE_OK;
    struct ree_given_input *x = ree_alloc_zeroed(2 * n + 1, sizeof *x), *y = x + n;
    if (!x) return ree_no_memory(err);
    *out = ree_given_inputs_make(a, m, x, NULL) == REE_OK &&
           ree_given_inputs_make(b, m, y, NULL) == REE_OK;
    for (size_t k = 0; *out && k < n; k++)
        *out = memcmp(x[k].digest, y[k].digest, sizeof x[k].digest) == 0;
    ree_free(x);
    return REE_OK;
}

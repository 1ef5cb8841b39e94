#include "inputs.h"

#include "option_groups.h"
#include "paths.h"

#include <stdlib.h>
#include <string.h>

// Pseudo-random elements, the same on every platform. Element i of the input `name` is computed
// from the 64 bits r = mix(seed + fnv1a(name) + i * 0x9e3779b97f4a7c15). mix is SplitMix64's
// finaliser; fnv1a is the 64-bit FNV-1a hash.
// - Floats: (r >> 40) / 2^23 - 1, in [-1, 1) and exact. 16-bit and 8-bit floats have the sign and
//   the fraction of r's top bits and a magnitude in [1/2, 1).
// - Integers: n = (r >> 32) mod 10. int4: n mod 8; uint2: n mod 4; int2: n mod 2.
// - bool: the top bit.

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t fnv1a(const char *s) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return hash;
}

// Returns the element's bits in the low bytes. float8e8m0 has neither sign nor fraction: values
// from 1/2 to 4. float4e2m1: any of its numbers.
static uint64_t random_element(enum ree_dtype dtype, uint64_t r) {
    float f32 = (float)(r >> 40) * 0x1p-23f - 1.0f;
    double f64 = (double)f32;
    uint64_t bits = 0, integer = (r >> 32) % 10;
    switch (dtype) {
    case REE_F32: memcpy(&bits, &f32, sizeof f32); return bits;
    case REE_F64: memcpy(&bits, &f64, sizeof f64); return bits;
    case REE_F16: return (r >> 48 & 0x83FF) | 0x3800;
    case REE_BF16: return (r >> 48 & 0x807F) | 0x3F00;
    case REE_F8E4M3FN: return (r >> 56 & 0x87) | 0x30;
    case REE_F8E4M3FNUZ: return (r >> 56 & 0x87) | 0x38;
    case REE_F8E5M2: return (r >> 56 & 0x83) | 0x38;
    case REE_F8E5M2FNUZ: return (r >> 56 & 0x83) | 0x3C;
    case REE_F8E8M0: return 126 + (r >> 62);
    case REE_F4E2M1: return r >> 60;
    case REE_BOOL: return r >> 63;
    case REE_I4: return integer % 8;
    case REE_U2: return integer % 4;
    case REE_I2: return integer % 2;
    default: return integer;
    }
}

static void fill_random(struct ree_tensor *t, uint64_t seed) {
    size_t elem_size = ree_dtype_size(t->dtype), n = t->nbytes / elem_size;
    uint64_t start = seed + fnv1a(t->name);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = mix(start + i * UINT64_C(0x9e3779b97f4a7c15));
        uint64_t element = random_element(t->dtype, r);
        // assumes little-endian byte order
        memcpy((unsigned char *)t->data + i * elem_size, &element, elem_size);
    }
}

static void append_inputs(struct strbuf *text, const struct ree_model *model) {
    strbuf_printf(text, "; the model's inputs are:");
    for (size_t i = 0; i < ree_model_n_inputs(model); i++) {
        const struct ree_port *port = ree_model_input(model, i);
        strbuf_printf(text, "\n  ");
        cli_append_name(text, port->name);
        strbuf_printf(text, "  ");
        cli_append_port(text, port);
        if (port->optional) strbuf_printf(text, "  (optional)");
    }
}

// Prints "input 'x' is missing; the model's inputs are: ..." and returns CLI_FAILED.
static int fail_with_inputs(const struct ree_model *model, const char *before, const char *name,
                            const char *after) {
    struct strbuf text;
    strbuf_init(&text);
    strbuf_printf(&text, "%s'", before);
    cli_append_name(&text, name);
    strbuf_printf(&text, "'%s", after);
    append_inputs(&text, model);
    cli_error("%s", text.data ? text.data : "out of memory");
    strbuf_finish(&text);
    return CLI_FAILED;
}

// Returns the only required input; NULL if there are none or several.
static const struct ree_port *only_input(const struct ree_model *model) {
    const struct ree_port *only = NULL;
    for (size_t i = 0; i < ree_model_n_inputs(model); i++) {
        const struct ree_port *port = ree_model_input(model, i);
        if (port->optional) continue;
        if (only) return NULL;
        only = port;
    }
    return only;
}

// Splits "NAME=FILE", where NAME is the longest matching input name (names may contain '='), or
// "FILE".
static int split_argument(const struct ree_model *model, const char *arg,
                          const struct ree_port **out_port, const char **out_file) {
    *out_port = NULL;
    // Tries every '=', the last one first; few names contain one.
    for (size_t n = strlen(arg); n-- > 0 && !*out_port;) {
        char *name = arg[n] == '=' ? strndup(arg, n) : NULL;
        if (!name) continue;
        *out_port = ree_model_find_input(model, name);
        *out_file = arg + n + 1;
        free(name);
    }
    if (*out_port) return 0;
    const char *equals = strchr(arg, '=');
    if (!equals) {
        *out_port = only_input(model);
        *out_file = arg;
        if (*out_port) return 0;
        return fail_with_inputs(model, "--input ", arg,
                                ": the model does not have exactly one input; use NAME=FILE");
    }
    char *name = strndup(arg, (size_t)(equals - arg));
    int code = fail_with_inputs(model, "the model has no input ", name ? name : arg, "");
    free(name);
    return code;
}

static size_t *tensor_number(const struct run_inputs *inputs, const struct ree_model *model,
                             const struct ree_port *port) {
    return &inputs->tensor_numbers[port - ree_model_input(model, 0)];
}

static int append_item(struct ree_tensor *sequence, const struct ree_port *port, const char *file) {
    struct ree_tensor item;
    struct ree_error err;
    if (ree_tensor_load(&item, file, &err) != REE_OK) return cli_fail(&err);
    if (ree_tensor_retype(&item, port->dtype, &err) != REE_OK) {
        ree_tensor_finish(&item);
        return cli_fail(&err);
    }
    return ree_sequence_append(sequence, &item, &err) == REE_OK ? 0 : cli_fail(&err);
}

static int load_argument(struct run_inputs *inputs, const struct ree_model *model,
                         const char *arg) {
    const struct ree_port *port = NULL;
    const char *file = NULL;
    int code = split_argument(model, arg, &port, &file);
    if (code) return code;
    size_t n = strlen(file);
    // A sequence is one .pb file, or one .npy file per item.
    bool item = port->kind == REE_SEQUENCE && (n < 3 || strcmp(file + n - 3, ".pb") != 0);
    size_t *number = tensor_number(inputs, model, port);
    struct ree_tensor *sequence = *number ? &inputs->tensors[*number - 1] : NULL;
    if (item && sequence && sequence->kind == REE_SEQUENCE)
        return append_item(sequence, port, file);
    if (sequence) return fail_with_inputs(model, "input ", port->name, " is given more than once");
    struct ree_tensor *t = &inputs->tensors[inputs->n_tensors];
    struct ree_error err;
    if (item)
        *t = (struct ree_tensor){.kind = REE_SEQUENCE, .dtype = port->dtype};
    else if (ree_tensor_load_for(t, file, port, &err) != REE_OK)
        return cli_fail(&err);
    *number = ++inputs->n_tensors; // from here on run_inputs_finish releases it
    free(t->name);
    t->name = strdup(port->name);
    if (!t->name) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (item) return append_item(t, port, file);
    // A .npy file stores int4 as int8, and so on.
    if (t->kind != REE_TENSOR) return 0;
    return ree_tensor_retype(t, port->dtype, &err) == REE_OK ? 0 : cli_fail(&err);
}

static void add_dim(struct run_inputs *inputs, struct cli *cli, const char *text) {
    const char *equals = strrchr(text, '=');
    uint64_t size;
    size_t digits = equals ? strspn(equals + 1, "0123456789") : 0;
    if (equals == text || !digits || equals[1 + digits])
        cli_usage(cli, "--dim requires NAME=SIZE, not '%s'", text);
    else if (!cli_parse_number(equals + 1, 0, INT32_MAX, &size))
        cli_usage(cli, "--dim %s: the size is too large; the maximum is %d", text, INT32_MAX);
    else
        inputs->dims[inputs->n_dims++] = text;
}

bool run_inputs_init(struct run_inputs *inputs, int argc) {
    inputs->args = calloc((size_t)argc, sizeof *inputs->args);
    inputs->dims = calloc((size_t)argc, sizeof *inputs->dims);
    if (inputs->args && inputs->dims) return true;
    cli_error("out of memory");
    return false;
}

static void add_input(struct run_inputs *inputs, const char *text) {
    inputs->args[inputs->n_args++] = text;
    // Which '=' ends the name is known only after the model is loaded, so every possible path is
    // added.
    cli_path_add(CLI_READS, text);
    for (const char *at = text; (at = strchr(at, '=')) != NULL;)
        cli_path_add(CLI_READS, ++at);
}

static bool take_input(struct cli *cli, const char *name, void *inputs) {
    const char *value = NULL;
    if (!cli_option(cli, name, &value)) return false;
    if (value) add_input(inputs, value);
    return true;
}

static bool take_dim(struct cli *cli, const char *name, void *inputs) {
    const char *value = NULL;
    if (!cli_option(cli, name, &value)) return false;
    if (value) add_dim(inputs, cli, value);
    return true;
}

static bool take_random(struct cli *cli, const char *name, void *target) {
    struct run_inputs *inputs = target;
    if (!cli_option_number(cli, name, 0, UINT64_MAX, &inputs->seed)) return false;
    inputs->random = true;
    return true;
}

static const struct cli_option_row rows[] = {
    {.name = "--input",
     .value = "NAME=FILE",
     .kind = ROW_TAKE,
     .path = CLI_READS,
     .take = take_input,
     .help = "read input NAME from a .npy (NumPy) or .pb (ONNX TensorProto) file; once for each "
             "input. If the model has one input, FILE is enough. A sequence is one .pb "
             "(SequenceProto), or one .npy for each item, in order"},
    {.name = "--dim",
     .value = "NAME=SIZE",
     .kind = ROW_TAKE,
     .take = take_dim,
     .help = "size of the symbolic dimension NAME of inputs that are made, not read (default 1)"},
};
const struct cli_option_table cli_inputs_group = CLI_OPTION_TABLE(rows);

static const struct cli_option_row random_rows[] = {
    {.name = "--random-inputs",
     .value = "N",
     .kind = ROW_TAKE,
     .take = take_random,
     .help = "make inputs that have no --input from the seed N, the same on every machine: floats "
             "in [-1, 1), integers from 0 to 9"},
};
const struct cli_option_table cli_random_group = CLI_OPTION_TABLE(random_rows);

// Returns the size given by --dim for a symbolic dimension; 1 if not given.
static int64_t size_of_symbol(const struct run_inputs *inputs, const char *symbol) {
    for (size_t i = 0; symbol && i < inputs->n_dims; i++) {
        size_t n = strlen(symbol);
        uint64_t size;
        if (strncmp(inputs->dims[i], symbol, n) == 0 && inputs->dims[i][n] == '=' &&
            cli_parse_number(inputs->dims[i] + n + 1, 0, INT32_MAX, &size))
            return (int64_t)size;
    }
    return 1;
}

static int make_random(struct run_inputs *inputs, const struct ree_model *model,
                       const struct ree_port *port) {
    if (!port->has_shape)
        return fail_with_inputs(model, "input ", port->name,
                                " has no declared shape, so --random-inputs cannot make it");
    if (port->kind != REE_TENSOR)
        return fail_with_inputs(model, "input ", port->name,
                                " is a sequence, which --random-inputs cannot make");
    switch (port->dtype) {
    case REE_STRING:
    case REE_DTYPE_NONE:
        return fail_with_inputs(model, "input ", port->name,
                                " has a type that --random-inputs cannot make");
    default: break;
    }
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < port->rank; i++)
        dims[i] = port->dims[i] >= 0 ? port->dims[i] : size_of_symbol(inputs, port->symbols[i]);
    struct ree_tensor *t = &inputs->tensors[inputs->n_tensors];
    struct ree_error err;
    if (ree_tensor_init(t, port->name, port->dtype, port->rank, dims, &err) != REE_OK)
        return cli_fail(&err);
    inputs->n_tensors++;
    fill_random(t, inputs->seed);
    return 0;
}

static bool has_dim(const struct ree_port *port, const char *name, size_t n) {
    for (uint32_t i = 0; port->has_shape && i < port->rank; i++) {
        const char *symbol = port->symbols[i];
        if (symbol && strlen(symbol) == n && memcmp(symbol, name, n) == 0) return true;
    }
    return false;
}

// Rejects a --dim that no input and no output has, as a typing error.
static int check_dims(const struct run_inputs *inputs, const struct ree_model *model) {
    for (size_t k = 0; k < inputs->n_dims; k++) {
        const char *name = inputs->dims[k];
        size_t n = (size_t)(strrchr(name, '=') - name);
        bool found = false;
        for (size_t i = 0; i < ree_model_n_inputs(model) && !found; i++)
            found = has_dim(ree_model_input(model, i), name, n);
        for (size_t i = 0; i < ree_model_n_outputs(model) && !found; i++)
            found = has_dim(ree_model_output(model, i), name, n);
        if (!found)
            return fail_with_inputs(model, "--dim ", name, ": the model has no such dimension");
    }
    return 0;
}

int run_inputs_load(struct run_inputs *inputs, const struct ree_model *model) {
    size_t n_inputs = ree_model_n_inputs(model);
    inputs->tensors = calloc(n_inputs + inputs->n_args + 1, sizeof *inputs->tensors);
    inputs->tensor_numbers = calloc(n_inputs + 1, sizeof *inputs->tensor_numbers);
    if (!inputs->tensors || !inputs->tensor_numbers) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (check_dims(inputs, model)) return CLI_FAILED;
    for (size_t i = 0; i < inputs->n_args; i++) {
        int code = load_argument(inputs, model, inputs->args[i]);
        if (code) return code;
    }
    for (size_t i = 0; i < n_inputs; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        if (port->optional || port->nullable || *tensor_number(inputs, model, port)) continue;
        if (!inputs->random) return fail_with_inputs(model, "input ", port->name, " is missing");
        int code = make_random(inputs, model, port);
        if (code) return code;
    }
    return 0;
}

void run_inputs_finish(struct run_inputs *inputs) {
    for (size_t i = 0; i < inputs->n_tensors; i++)
        ree_tensor_finish(&inputs->tensors[i]);
    free(inputs->tensors);
    free(inputs->tensor_numbers);
    free(inputs->args);
    free(inputs->dims);
    memset(inputs, 0, sizeof *inputs);
}

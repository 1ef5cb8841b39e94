// Runs programs: sequences of RepOps, each encoded as kernel launches in order.
//
// A program is launched kernel by kernel if it has one dispatch, a product by cuBLAS, or a dispatch
// that the host computes. Any other program is a CUDA graph, created at the first run and then
// replayed. If other buffers are bound, only the addresses in the graph change.
//
// Events around each dispatch measure its time. A graph has none, so while times are requested its
// kernels are launched one by one.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "base/memory.h"
#include "device/program_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct launch {
    uint32_t dispatch;
    CUfunction function;          // NULL: cuBLAS or the host computes it
    struct ree_dispatch *on_host; // NULL: computed on the device
    struct ree_cuda_step step;
    uint32_t args; // index in program->args
    CUgraphNode node;
};

struct ree_device_program {
    struct ree_program_info info;
    uint32_t n_launches;
    struct launch *launches;    // [n_launches]
    struct ree_cuda_args *args; // [n_launches]
    CUdeviceptr *bound;         // [n_slots], addresses of the last run
    bool is_bound, was_run;
    struct ree_device_buffer *scratch; // NULL if not required
    struct ree_device_buffer *fault;
    CUgraph graph;
    CUgraphExec exec;
    bool as_graph;
    // [n_dispatches + 1]: before the first dispatch, and after each; NULL until first used.
    CUevent *events;
    bool is_timed; // the last run recorded the events
};

static enum ree_status copy_source(struct ree_device_program *program,
                                   const struct ree_program *source, struct ree_error *err) {
    REE_TRY(ree_program_info_init(&program->info, source, err));
    program->bound = ree_alloc_zeroed(source->n_slots + 1, sizeof *program->bound);
    if (!program->bound) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    return REE_OK;
}

static enum ree_status add_host(struct ree_device_program *program, uint32_t i,
                                const struct ree_dispatch *dispatch, struct ree_error *err) {
    struct launch *launch = &program->launches[program->n_launches];
    struct ree_dispatch *copy = ree_alloc(sizeof *copy);
    if (!copy) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    *copy = *dispatch;
    *launch = (struct launch){.dispatch = i, .on_host = copy, .args = program->n_launches++};
    return REE_OK;
}

// Appends the launches of dispatch i. The scratch addresses are set later, when all sizes are
// known.
static enum ree_status add_launches(struct ree_cuda *cuda, struct ree_device_program *program,
                                    uint32_t i, const struct ree_dispatch *dispatch,
                                    const struct ree_cuda_encoding *encoding,
                                    struct ree_error *err) {
    if (encoding->form == REE_CUDA_ON_HOST) return add_host(program, i, dispatch, err);
    for (uint32_t s = 0; s < encoding->n_steps + encoding->by_cublas; s++) {
        const bool by_cublas = encoding->by_cublas && s == 0;
        const struct ree_cuda_step *step = &encoding->steps[s - (s > 0 && encoding->by_cublas)];
        struct launch *launch = &program->launches[program->n_launches];
        struct ree_cuda_args *args = &program->args[program->n_launches];
        if (!by_cublas && (step->grid[0] == 0 || step->grid[1] == 0)) continue;
        *launch = (struct launch){
            .dispatch = i, .function = encoding->jit, .step = *step, .args = program->n_launches};
        if (!by_cublas && !launch->function)
            REE_TRY(
                ree_cuda_function(cuda, step->kernel, step->shared_bytes, &launch->function, err));
        args->params = encoding->params;
        args->header.dispatch = i;
        args->header.fault = program->fault->address;
        args->header.scratch_size = encoding->scratch_bytes;
        memcpy(args->header.extra, step->extra, sizeof step->extra);
        for (uint32_t o = 0; o < program->info.n_operands[i]; o++)
            args->header.sizes[o] = program->info.operands[i][o].size;
        program->n_launches++;
    }
    return REE_OK;
}

static enum ree_status build(struct ree_cuda *cuda, struct ree_device_program *program,
                             const struct ree_program *source,
                             const struct ree_cuda_encoding *encodings, struct ree_error *err) {
    REE_TRY(copy_source(program, source, err));
    REE_TRY(ree_cuda_buffer_create(cuda, sizeof(struct ree_cuda_fault), &program->fault, err));
    size_t n_launches = 0;
    uint64_t scratch_bytes = 0;
    program->as_graph = program->info.n_dispatches != 1;
    for (uint32_t i = 0; i < source->n_dispatches; i++) {
        const struct ree_cuda_encoding *encoding = &encodings[i];
        const bool on_host = encoding->form == REE_CUDA_ON_HOST;
        n_launches += encoding->n_steps + encoding->by_cublas + on_host;
        program->as_graph = program->as_graph && !encoding->by_cublas && !on_host;
        if (encoding->scratch_bytes > scratch_bytes) scratch_bytes = encoding->scratch_bytes;
    }
    program->launches = ree_alloc_zeroed(n_launches + 1, sizeof *program->launches);
    program->args = ree_alloc_zeroed(n_launches + 1, sizeof *program->args);
    if (!program->launches || !program->args)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    for (uint32_t i = 0; i < source->n_dispatches; i++)
        REE_TRY(add_launches(cuda, program, i, &source->dispatches[i], &encodings[i], err));
    if (scratch_bytes) REE_TRY(ree_cuda_buffer_create(cuda, scratch_bytes, &program->scratch, err));
    for (uint32_t i = 0; i < program->n_launches; i++) {
        struct ree_cuda_header *header = &program->args[i].header;
        header->scratch = header->scratch_size ? program->scratch->address : 0;
    }
    return REE_OK;
}

enum ree_status ree_cuda_program_assemble(struct ree_cuda *cuda, const struct ree_program *source,
                                          const struct ree_cuda_encoding *encodings,
                                          struct ree_device_program **out, struct ree_error *err) {
    *out = NULL;
    struct ree_device_program *program = ree_alloc_zeroed(1, sizeof *program);
    if (!program) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    enum ree_status status = build(cuda, program, source, encodings, err);
    if (status != REE_OK) {
        ree_cuda_program_destroy(cuda, program);
        return status;
    }
    *out = program;
    return REE_OK;
}

enum ree_status ree_cuda_program_create(struct ree_cuda *cuda, const struct ree_program *source,
                                        struct ree_device_program **out, struct ree_error *err) {
    *out = NULL;
    struct ree_cuda_encoding *encodings =
        ree_alloc_zeroed(source->n_dispatches + 1, sizeof *encodings);
    if (!encodings) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    enum ree_status status = REE_OK;
    for (uint32_t i = 0; i < source->n_dispatches && status == REE_OK; i++) {
        status = ree_cuda_encode_tested(cuda, &source->dispatches[i], &encodings[i], err);
        if (status != REE_OK) ree_fail_prefix(err, "%s", ree_program_info_label(source, i));
    }
    if (status == REE_OK) status = ree_cuda_program_assemble(cuda, source, encodings, out, err);
    ree_free(encodings);
    return status;
}

static void drop_graph(struct ree_cuda *cuda, struct ree_device_program *program) {
    if (program->exec) cuda->driver.graph_exec_destroy(program->exec);
    if (program->graph) cuda->driver.graph_destroy(program->graph);
    program->exec = NULL;
    program->graph = NULL;
}

void ree_cuda_program_destroy(struct ree_cuda *cuda, struct ree_device_program *program) {
    if (!program) return;
    drop_graph(cuda, program);
    for (uint32_t e = 0; program->events && e <= program->info.n_dispatches; e++)
        if (program->events[e]) cuda->driver.event_destroy(program->events[e]);
    ree_free(program->events);
    ree_cuda_buffer_destroy(cuda, program->scratch);
    ree_cuda_buffer_destroy(cuda, program->fault);
    ree_program_info_finish(&program->info);
    for (uint32_t l = 0; l < program->n_launches; l++)
        ree_free(program->launches[l].on_host);
    ree_free(program->launches);
    ree_free(program->args);
    ree_free(program->bound);
    ree_free(program);
}

// Running

static CUDA_KERNEL_NODE_PARAMS node_params(struct ree_device_program *program,
                                           const struct launch *launch, void **kernel_params) {
    kernel_params[0] = &program->args[launch->args];
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = launch->function,
        .gridDimX = launch->step.grid[0],
        .gridDimY = launch->step.grid[1],
        .gridDimZ = 1,
        .blockDimX = launch->step.threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = launch->step.shared_bytes,
        .kernelParams = kernel_params,
    };
}

// Writes the slots' addresses into the arguments and into the graph.
static enum ree_status bind_slots(struct ree_cuda *cuda, struct ree_device_program *program,
                                  struct ree_device_buffer *const *slots, struct ree_error *err) {
    bool same = program->is_bound;
    for (uint32_t s = 0; s < program->info.n_slots; s++) {
        CUdeviceptr address = slots[s] ? slots[s]->address : 0;
        same = same && program->bound[s] == address;
        program->bound[s] = address;
    }
    if (same) return REE_OK;
    program->is_bound = false;
    for (uint32_t l = 0; l < program->n_launches; l++) {
        struct launch *launch = &program->launches[l];
        struct ree_cuda_header *header = &program->args[launch->args].header;
        bool changed = false;
        for (uint32_t o = 0; o < program->info.n_operands[launch->dispatch]; o++) {
            const struct ree_operand *operand = &program->info.operands[launch->dispatch][o];
            const struct ree_device_buffer *buffer = slots[operand->slot];
            if (!buffer || operand->offset > buffer->size ||
                operand->size > buffer->size - operand->offset)
                return ree_fail(err, REE_INTERNAL, "%s: operand %u is outside its buffer",
                                program->info.labels[launch->dispatch], o);
            changed = changed || header->operands[o] != buffer->address + operand->offset;
            header->operands[o] = buffer->address + operand->offset;
        }
        if (!program->exec || !changed) continue;
        void *kernel_params[1];
        CUDA_KERNEL_NODE_PARAMS params = node_params(program, launch, kernel_params);
        CUresult result = cuda->driver.graph_exec_set(program->exec, launch->node, &params);
        // Some nodes have new addresses, others still have old ones. The next run rebuilds the
        // graph.
        if (result != CUDA_SUCCESS) {
            drop_graph(cuda, program);
            return ree_cuda_fail(&cuda->driver, err, result, "cannot change a graph");
        }
    }
    program->is_bound = true;
    return REE_OK;
}

static enum ree_status make_graph(struct ree_cuda *cuda, struct ree_device_program *program,
                                  struct ree_error *err) {
    drop_graph(cuda, program); // an incomplete one from a failed call
    REE_CUDA_CALL(graph_create(&program->graph, 0), "cannot create a graph");
    CUDA_MEMSET_NODE_PARAMS clear = {
        .dst = program->fault->address,
        .elementSize = 4,
        .width = sizeof(struct ree_cuda_fault) / 4,
        .height = 1,
    };
    CUgraphNode before;
    REE_CUDA_CALL(graph_add_memset(&before, program->graph, NULL, 0, &clear, cuda->context),
                  "cannot fill a graph");
    for (uint32_t l = 0; l < program->n_launches; l++) {
        struct launch *launch = &program->launches[l];
        void *kernel_params[1];
        CUDA_KERNEL_NODE_PARAMS params = node_params(program, launch, kernel_params);
        REE_CUDA_CALL(graph_add_kernel(&launch->node, program->graph, &before, 1, &params),
                      "cannot fill a graph");
        before = launch->node;
    }
    REE_CUDA_CALL(graph_instantiate(&program->exec, program->graph, 0),
                  "cannot instantiate a graph");
    return REE_OK;
}

static enum ree_status make_events(struct ree_cuda *cuda, struct ree_device_program *program,
                                   struct ree_error *err) {
    if (!program->events)
        program->events = ree_alloc_zeroed(program->info.n_dispatches + 1u, sizeof(CUevent));
    if (!program->events) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    for (uint32_t e = 0; e <= program->info.n_dispatches; e++)
        if (!program->events[e])
            REE_CUDA_CALL(event_create(&program->events[e], CU_EVENT_DEFAULT),
                          "cannot create an event");
    return REE_OK;
}

// Records the events up to the one after dispatch n - 1. *recorded: number of events recorded so
// far.
static enum ree_status record_until(struct ree_cuda *cuda, struct ree_device_program *program,
                                    bool timed, uint32_t n, uint32_t *recorded,
                                    struct ree_error *err) {
    for (; timed && *recorded <= n; ++*recorded)
        REE_CUDA_CALL(event_record(program->events[*recorded], cuda->stream),
                      "cannot measure a program");
    return REE_OK;
}

// Computes a dispatch on the host. Reading the operands waits for all earlier launches of the
// stream.
static enum ree_status run_on_host(struct ree_cuda *cuda, struct ree_device_program *program,
                                   const struct launch *launch,
                                   struct ree_device_buffer *const *slots, struct ree_error *err) {
    const struct ree_dispatch *d = launch->on_host;
    void *memory[REE_MAX_OPERANDS] = {NULL};
    enum ree_status status = REE_OK;
    for (uint32_t o = 0; o < d->n_operands && status == REE_OK; o++) {
        const struct ree_operand *operand = &d->operands[o];
        memory[o] = ree_alloc_aligned(64, (operand->size / 64 + 1) * 64);
        if (!memory[o])
            status = ree_fail(err, REE_NO_MEMORY, "no memory to run on the host");
        else // outputs too: elements in the gaps of a view must keep their values
            status = ree_cuda_buffer_read(cuda, slots[operand->slot], operand->offset, memory[o],
                                          operand->size, err);
    }
    if (status == REE_OK) status = ree_cpu_execute_threads(d, memory, cuda->base.n_threads, err);
    for (uint32_t o = 0; o < d->n_operands && status == REE_OK; o++) {
        const struct ree_operand *operand = &d->operands[o];
        if (d->n_outputs ? o >= d->n_operands - d->n_outputs : o == 0)
            status = ree_cuda_buffer_write(cuda, slots[operand->slot], operand->offset, memory[o],
                                           operand->size, err);
    }
    for (uint32_t o = 0; o < d->n_operands; o++)
        ree_free_aligned(memory[o]);
    if (status != REE_OK) ree_fail_prefix(err, "%s", program->info.labels[launch->dispatch]);
    return status;
}

// Waits for all launches. Fails with REE_INVALID if an index was out of range.
static enum ree_status check_fault(struct ree_cuda *cuda, struct ree_device_program *program,
                                   struct ree_error *err) {
    struct ree_cuda_fault fault;
    REE_TRY(ree_cuda_buffer_read(cuda, program->fault, 0, &fault, sizeof fault, err));
    return ree_program_info_fault(&program->info, "CUDA", fault.dispatch, fault.low, fault.high,
                                  err);
}

// Launches all dispatches one by one. timed: records the events around each dispatch.
static enum ree_status launch_all(struct ree_cuda *cuda, struct ree_device_program *program,
                                  struct ree_device_buffer *const *slots, bool timed,
                                  struct ree_error *err) {
    uint32_t recorded = 0;
    if (timed) REE_TRY(make_events(cuda, program, err));
    REE_CUDA_CALL(
        memory_set(program->fault->address, 0, sizeof(struct ree_cuda_fault), cuda->stream),
        "cannot start a program");
    for (uint32_t l = 0; l < program->n_launches; l++) {
        const struct launch *launch = &program->launches[l];
        REE_TRY(record_until(cuda, program, timed, launch->dispatch, &recorded, err));
        if (launch->on_host) {
            // do not compute from the results of a faulted launch
            REE_TRY(check_fault(cuda, program, err));
            REE_TRY(run_on_host(cuda, program, launch, slots, err));
            continue;
        }
        const struct ree_cuda_step *step = &launch->step;
        struct ree_cuda_args *args = &program->args[launch->args];
        const uint64_t *operands = args->header.operands;
        void *params[] = {args};
        if (!launch->function) {
            const struct ree_matmul_params *p = &args->params.matmul.p;
            uint64_t to = p->has_epilogue ? args->header.scratch : operands[2];
            if (ree_cublas_run(cuda->cublas, p, operands[0], operands[1], to, err) != REE_OK)
                return ree_fail_prefix(err, "%s", program->info.labels[launch->dispatch]);
            continue;
        }
        CUresult result =
            cuda->driver.launch(launch->function, step->grid[0], step->grid[1], 1, step->threads, 1,
                                1, step->shared_bytes, cuda->stream, params, NULL);
        if (result != CUDA_SUCCESS) {
            ree_cuda_fail(&cuda->driver, err, result, ree_cuda_kernel_name(step->kernel));
            return ree_fail_prefix(err, "%s", program->info.labels[launch->dispatch]);
        }
    }
    REE_TRY(record_until(cuda, program, timed, program->info.n_dispatches, &recorded, err));
    program->is_timed = timed;
    return REE_OK;
}

enum ree_status ree_cuda_program_run(struct ree_cuda *cuda, struct ree_device_program *program,
                                     struct ree_device_buffer *const *slots, bool measures,
                                     struct ree_error *err) {
    REE_TRY(bind_slots(cuda, program, slots, err));
    program->was_run = program->is_timed = false;
    if (!program->as_graph || measures) {
        REE_TRY(launch_all(cuda, program, slots, measures || program->info.n_dispatches == 1, err));
    } else {
        if (!program->exec) REE_TRY(make_graph(cuda, program, err));
        REE_CUDA_CALL(graph_launch(program->exec, cuda->stream), "cannot start a program");
    }
    const enum ree_status status = check_fault(cuda, program, err);
    if (status != REE_OK && status != REE_INVALID) return status;
    program->was_run = true;
    return status;
}

uint32_t ree_cuda_program_size(const struct ree_device_program *program) {
    return program->info.n_dispatches;
}

bool ree_cuda_program_times(struct ree_cuda *cuda, struct ree_device_program *program,
                            double *out_seconds) {
    if (!program->was_run || !program->is_timed) return false;
    for (uint32_t i = 0; i < program->info.n_dispatches; i++) {
        float milliseconds;
        if (cuda->driver.event_elapsed(&milliseconds, program->events[i], program->events[i + 1]) !=
            CUDA_SUCCESS)
            return false;
        out_seconds[i] = 1e-3 * milliseconds;
    }
    return true;
}

static bool is_first_use(const struct ree_device_program *program, uint32_t launch) {
    const struct launch *a = &program->launches[launch];
    for (uint32_t i = 0; i < launch; i++) {
        const struct launch *b = &program->launches[i];
        if (a->function == b->function && !a->on_host == !b->on_host &&
            (!a->on_host || a->on_host->op == b->on_host->op))
            return false;
    }
    return true;
}

static enum ree_status show_launch(const struct ree_cuda *cuda, const struct launch *launch,
                                   const struct ree_kernel_sink *sink, struct ree_error *err) {
    bool found = false;
    if (launch->function) {
        REE_TRY(ree_cuda_jit_show(cuda, launch->function, sink, &found, err));
        if (!found) ree_cuda_kernel_show(launch->step.kernel, sink);
        return REE_OK;
    }
    char name[32] = "cuBLAS";
    if (launch->on_host) // a dispatch that the host computes
        snprintf(name, sizeof name, "ree_cpu_%s", ree_repop_name(launch->on_host->op));
    const struct ree_kernel kernel = {.name = name, .format = ""};
    sink->each(sink->user, &kernel);
    return REE_OK;
}

enum ree_status ree_cuda_program_kernels(const struct ree_cuda *cuda,
                                         const struct ree_device_program *program,
                                         const struct ree_kernel_sink *sink,
                                         struct ree_error *err) {
    for (uint32_t i = 0; i < program->n_launches; i++)
        if (is_first_use(program, i)) REE_TRY(show_launch(cuda, &program->launches[i], sink, err));
    return REE_OK;
}

// ree-run train: repeats a training step with samples from a file.
#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "option_groups.h"
#include "paths.h"
#include "ranks.h"
#include "receipts.h"
#include "start.h"
#include "trace_options.h"
#include "train_curve.h"

#define CLI_SIGNALLED 128 // as in shells: 128 + the number of the signal
#define N_REPORTS 10      // number of steps whose losses are printed

struct options {
    const char *step, *data, *checkpoint, *resume, *losses, *curve, *receipt, *key, *dsse;
    uint64_t n_steps, n_epochs, seed, every, interval;
    struct cli_device device;
    struct cli_ranks ranks;
    struct trace_options tracing;
    bool in_order, json, stats, no_fuse, no_fold;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run train STEP --data FILE [options]: train a model\n"
  "\n"
  "STEP is an ONNX file with one step of training: the loss, its gradients, and the update of the\n"
  "optimizer. ree.export_training writes it (docs/TRAINING.md). train repeats the step with samples\n"
  "from FILE, and prints some losses and the SHA-256 of all states after the last step: parameters\n"
  "and what the optimizer keeps. These do not depend on the device.\n"
  "\n"
  "samples\n"},
    {.name = "STEP", .kind = ROW_POSITIONAL, .at = AT(step), .path = CLI_READS_BESIDE},
    {.name = "--data", .value = "FILE", .kind = ROW_STRING, .at = AT(data), .path = CLI_READS,
     .help = "a .npz or .safetensors file with a tensor for each input of the batch. The first "
             "dimension counts samples; all of them are in memory"},
    {.name = "--in-order", .kind = ROW_FLAG, .at = AT(in_order),
     .help = "take the samples in the order of the file, in every epoch. Otherwise the seed "
             "decides the order of each epoch"},
    {.name = "--seed", .value = "N", .kind = ROW_NUMBER, .at = AT(seed), .min = 0, .max = UINT64_MAX,
     .help = "seed of the order and of random operators such as dropout (default 0)"},

    {.kind = ROW_TEXT, .help = "\nlength (one of the two; steps before a checkpoint count)\n"},
    {.name = "--steps", .value = "N", .kind = ROW_NUMBER, .at = AT(n_steps), .min = 1,
     .max = UINT32_MAX, .help = "make N steps"},
    {.name = "--epochs", .value = "N", .kind = ROW_NUMBER, .at = AT(n_epochs), .min = 1,
     .max = UINT32_MAX,
     .help = "use the samples N times. Samples that are left after the last whole batch of an "
             "epoch are not used"},

    {.kind = ROW_TEXT, .help = "\nresults\n"},
    {.name = "--checkpoint", .value = "FILE", .kind = ROW_STRING, .at = AT(checkpoint), .path = CLI_WRITES,
     .help = "write the states to FILE, a safetensors file, at the end and after Ctrl-C or SIGTERM. "
             "Each time the whole file is replaced"},
    {.name = "--checkpoint-every", .value = "K", .kind = ROW_NUMBER, .at = AT(every), .min = 1,
     .max = UINT32_MAX, .help = "also write it after every K steps"},
    {.name = "--resume", .value = "FILE", .kind = ROW_STRING, .at = AT(resume), .path = CLI_READS,
     .help = "continue from a checkpoint, with the same step, samples, seed and order. The result "
             "is that of a run without interruption. Without --checkpoint, FILE is also written"},
    {.name = "--losses", .value = "FILE", .kind = ROW_STRING, .at = AT(losses), .path = CLI_WRITES,
     .help = "write the loss of each step of this run to FILE, as lines STEP,LOSS"},
    {.name = "--curve", .value = "FILE", .kind = ROW_STRING, .at = AT(curve), .path = CLI_WRITES,
     .help = "draw the losses as an SVG picture in FILE"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.name = "--stats", .kind = ROW_FLAG, .at = AT(stats), .help = "also print the time of a step"},
    {.name = "--receipt-path", .value = "FILE", .kind = ROW_STRING, .at = AT(receipt), .path = CLI_WRITES,
     .help = "write a receipt of the training to FILE, for others to verify: 'ree-run verify FILE "
             "STEP --data FILE'. Hashes all states after each step"},
    {.name = "--receipt-interval", .value = "K", .kind = ROW_NUMBER, .at = AT(interval), .min = 1,
     .max = UINT32_MAX,
     .help = "state the hashes after every K steps in the receipt (default 1). From there a "
             "verifier can start with a checkpoint"},
    {.name = "--sign", .value = "KEY", .kind = ROW_STRING, .at = AT(key), .path = CLI_READS,
     .help = "sign the receipt with this private key"},
    {.name = "--dsse", .value = "FILE", .kind = ROW_STRING, .at = AT(dsse), .path = CLI_WRITES,
     .help = "with --sign: also write an in-toto statement about the receipt, in a DSSE envelope, "
             "for tools that use these formats"},

    {.kind = ROW_TEXT, .help = "\n"},
    {.kind = ROW_GROUP, .group = &cli_trace_group, .at = AT(tracing)},

    {.kind = ROW_TEXT, .help = "\ndevices (the bits do not depend on these options)\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help = CLI_DEVICE_HELP},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse)},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold)},
    {.kind = ROW_TEXT, .help =
  "\n"
  "several machines (one process on each, started by Open MPI):\n"
  "    mpirun -n 2 ree-run train STEP --data FILE\n"
  "  Every process needs STEP, the samples and the checkpoint of --resume, and computes with its\n"
  "  share of the samples of each batch. The first one prints and writes the results, which are\n"
  "  those of a single process. Without --threads, processes on one machine share its cores.\n"},
    {.name = "--step-deadline", .value = "S", .kind = ROW_NUMBER, .at = AT(ranks.deadline),
     .min = 1, .max = 86400,
     .help = "seconds that a process may be silent before all processes end (default 60)"},
    {.name = "--work-deadline", .value = "S", .kind = ROW_NUMBER, .at = AT(ranks.work_deadline),
     .min = 1, .max = 864000,
     .help = "seconds that a process may spend on one task before it counts as hanging (default: "
             "ten times --step-deadline)"},
    {.kind = ROW_TEXT, .help =
  "\n"
  "promise\n"
  "  --operation-set SET  reproducible (the default), deterministic or default: see\n"
  "                       'ree-run help run'\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "for tests of ree itself\n" CLI_DEVICE_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run train step.onnx --data train.npz --epochs 3 --checkpoint trained.safetensors\n"
  "  ree-run train step.onnx --data train.npz --steps 200 --curve loss.svg --receipt-path r.json\n"
  "  ree-run verify r.json step.onnx --data train.npz --device vulkan\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout, 130 after\n"
  "Ctrl-C, 143 after SIGTERM\n"},
    // clang-format on
};
const struct cli_option_table ree_run_train_options = CLI_OPTION_TABLE(rows);

// A training and its results.
struct job {
    struct options *o;
    struct ree_model *model;
    struct ree_device *device;
    struct ree_dataset *dataset;
    struct ree_training *training;
    struct ree_training_receipt *receipt;
    struct tracing recorder;
    struct traced traced; // if has_trace
    bool has_trace;
    bool has_lost_output;
    uint64_t first, last;                   // steps made before this run, steps after it
    double *losses;                         // (n_losses) of the steps first + 1, ...
    struct ree_training_share_info *shares; // (ranks.n) what each process did; NULL: only one
    size_t n_losses, capacity;
    double seconds;
};

static volatile sig_atomic_t interrupted; // number of the signal; 0: none

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

// Shows progress of loading, but not of each step.
static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Fails if a result would replace an input or another result.
static int check_files(const struct options *o) {
    const char *const results[][2] = {
        {o->checkpoint, "a checkpoint"}, {o->losses, "losses"},
        {o->curve, "a picture"},         {o->receipt, "a receipt"},
        {o->dsse, "an attestation"},     {o->tracing.trace, "a trace"}};
    const char *const inputs[] = {o->step, o->data, o->key};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        const char *path = results[i][0];
        if (!path) continue;
        bool is_taken = i > 0 && cli_is_same_file(path, o->resume);
        for (size_t k = 0; k < i; k++)
            is_taken |= cli_is_same_file(path, results[k][0]);
        for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
            is_taken |= cli_is_same_file(path, inputs[k]);
        if (is_taken) {
            cli_error("%s: is also another file of this command; %s needs a file of its own", path,
                      results[i][1]);
            return CLI_FAILED;
        }
        int code = cli_check_output_path(path, results[i][1]);
        if (code) return code;
    }
    return 0;
}

// Loads the training, and joins the other processes.
static int load_training(struct job *job) {
    struct options *o = job->o;
    struct ree_error err;
    struct ree_rank rank;
    struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    struct ree_training_options training = {.size = sizeof training,
                                            .seed = o->seed,
                                            .in_order = o->in_order,
                                            .no_fuse = o->no_fuse,
                                            .progress = {.report = progress}};
    if (cli_ranks_share(&o->ranks, &rank, &model.progress)) training.progress = model.progress;
    if (!o->device.n_threads) o->device.n_threads = cli_ranks_threads(&o->ranks);
    // The files are read before the device is opened, so that their errors are reported
    // immediately.
    if (ree_model_load(o->step, &model, &job->model, &err) != REE_OK ||
        ree_dataset_load(o->data, &job->dataset, &err) != REE_OK ||
        cli_device_open(&o->device, &job->device, &err) != REE_OK || sandbox_close(&err) != REE_OK)
        return cli_fail(&err);
    if (!o->ranks.rank) cli_print_notes(job->model);
    if (ree_training_create(job->model, job->device, job->dataset, &training, &job->training,
                            &err) != REE_OK ||
        (o->resume && ree_training_load(job->training, o->resume, &err) != REE_OK) ||
        (o->ranks.n && ree_training_share(job->training, o->ranks.transport, &err) != REE_OK))
        return cli_fail(&err);
    return 0;
}

static int open_training(struct job *job) {
    const struct options *o = job->o;
    struct ree_error err;
    int code = load_training(job);
    if (code) return code;
    if (o->receipt &&
        ree_training_record(job->training, o->interval ? o->interval : 1, &err) != REE_OK)
        return cli_fail(&err);
    const struct traced_run traced = {.training = job->training};
    if (tracing_begin(&job->recorder, &o->tracing, &traced)) return CLI_FAILED;
    struct ree_training_info info = ree_training_info(job->training);
    job->first = info.n_steps;
    job->last = o->n_steps;
    if (o->n_epochs && __builtin_mul_overflow(o->n_epochs, info.steps_per_epoch, &job->last))
        job->last = UINT64_MAX;
    if (job->last > UINT32_MAX) {
        cli_error("--epochs: %llu epochs of %llu steps are more than 2^32 - 1 steps",
                  (unsigned long long)o->n_epochs, (unsigned long long)info.steps_per_epoch);
        return CLI_USAGE;
    }
    uint64_t interval = o->interval ? o->interval : 1;
    if (o->receipt && job->first < job->last &&
        (job->last - job->first) / interval >= REE_TRAINING_MAX_POINTS - 1) {
        cli_error("%llu steps give a receipt of more than %d points: choose a larger "
                  "--receipt-interval",
                  (unsigned long long)(job->last - job->first), REE_TRAINING_MAX_POINTS);
        return CLI_USAGE;
    }
    // Fails now, and not after the last step, if a state cannot be stored.
    if (o->checkpoint && ree_training_save(job->training, NULL, &err) != REE_OK)
        return cli_fail(&err);
    if (job->first < job->last) return 0;
    cli_error("%s: it already has %llu steps, and %llu are requested", o->resume,
              (unsigned long long)job->first, (unsigned long long)job->last);
    return CLI_USAGE;
}

static bool keep_loss(struct job *job, double loss) {
    if (job->n_losses == job->capacity) {
        size_t capacity = job->capacity ? 2 * job->capacity : 1024;
        double *losses = realloc(job->losses, capacity * sizeof *losses);
        if (!losses) return false;
        job->losses = losses;
        job->capacity = capacity;
    }
    job->losses[job->n_losses++] = loss;
    return true;
}

// A failure does not end the training, but the command fails in the end.
static void print_loss(struct job *job, uint64_t step, double loss) {
    struct strbuf text;
    cli_progress_end();
    strbuf_init(&text);
    strbuf_printf(&text, "step %llu  loss %.9g\n", (unsigned long long)step, loss);
    if (cli_print(&text)) job->has_lost_output = true;
}

// Writes the checkpoint of a training that goes on.
static void save_between(const struct job *job) {
    struct ree_error err;
    if (ree_training_save(job->training, job->o->checkpoint, &err) != REE_OK)
        cli_error("%s; the training continues, and the last checkpoint remains", err.message);
}

static int make_steps(struct job *job) {
    const struct options *o = job->o;
    struct ree_error err;
    uint64_t total = job->last - job->first;
    double start = seconds_now();
    while (job->n_losses < total && !interrupted) {
        double loss;
        if (ree_training_step(job->training, &loss, &err) != REE_OK) return cli_fail(&err);
        if (!keep_loss(job, loss)) {
            cli_error("out of memory");
            return CLI_FAILED;
        }
        uint64_t done = job->n_losses, step = job->first + done;
        // The first and the last step, and those at equal distances between them.
        bool is_reported = done == 1 || done == total ||
                           done * N_REPORTS / total != (done - 1) * N_REPORTS / total;
        if (is_reported && !o->json) print_loss(job, step, loss);
        cli_progress(NULL, "training", done, total);
        if (o->checkpoint && o->every && step % o->every == 0 && done < total) save_between(job);
    }
    cli_progress_end();
    job->seconds = seconds_now() - start;
    return 0;
}

static int write_text(const char *path, struct strbuf *text) {
    struct ree_error err;
    int code = 0;
    if (text->failed) {
        cli_error("out of memory");
        code = CLI_FAILED;
    } else if (ree_file_write(path, text->data, text->size, &err) != REE_OK) {
        code = cli_fail(&err);
    }
    strbuf_finish(text);
    return code;
}

// Writes the files. After a failure only those that keep the work that was done.
static int save_results(struct job *job, bool has_failed) {
    const struct options *o = job->o;
    struct ree_error err;
    struct strbuf text;
    int code = 0;
    // The checkpoint first: it has the work.
    if (o->checkpoint && ree_training_save(job->training, o->checkpoint, &err) != REE_OK)
        code = cli_fail(&err);
    if (!has_failed && tracing_end(&job->recorder, &job->traced, &job->has_trace)) {
        code = CLI_FAILED;
        has_failed = true; // no receipt without its trace
    }
    if (o->losses) {
        strbuf_init(&text);
        strbuf_printf(&text, "step,loss\n");
        for (size_t i = 0; i < job->n_losses; i++)
            strbuf_printf(&text, "%llu,%.17g\n", (unsigned long long)(job->first + i + 1),
                          job->losses[i]);
        if (write_text(o->losses, &text)) code = CLI_FAILED;
    }
    if (o->curve && !has_failed) {
        strbuf_init(&text);
        train_curve(job->losses, job->n_losses, job->first + 1, &text);
        if (write_text(o->curve, &text)) code = CLI_FAILED;
    }
    if (!o->receipt || has_failed) return code;
    if (ree_training_receipt_create(job->training, job->has_trace ? job->traced.root : NULL,
                                    &job->receipt, &err) != REE_OK ||
        (o->key && ree_training_receipt_sign(job->receipt, o->key, &err) != REE_OK) ||
        ree_training_receipt_write(job->receipt, o->receipt, &err) != REE_OK ||
        (o->dsse &&
         ree_training_dsse_write(job->receipt, o->receipt, o->key, o->dsse, &err) != REE_OK))
        code = cli_fail(&err);
    return code;
}

// How much of the work a process did, in percent.
static double share_of(const struct job *job, uint32_t rank) {
    double all = 0;
    for (uint32_t i = 0; i < job->o->ranks.n; i++)
        all += (double)job->shares[i].n_products;
    return all > 0 ? 100 * (double)job->shares[rank].n_products / all : 0;
}

static void print_shares(const struct job *job, struct strbuf *out) {
    for (uint32_t i = 0; i < job->o->ranks.n; i++)
        strbuf_printf(out, "rank %u: %llu samples, %.1f %% of the products, waited %.3f s\n", i,
                      (unsigned long long)job->shares[i].n_samples, share_of(job, i),
                      job->shares[i].waited);
}

static cJSON *shares_json(const struct job *job) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < job->o->ranks.n; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(list, item);
        cJSON_AddNumberToObject(item, "samples", (double)job->shares[i].n_samples);
        cJSON_AddNumberToObject(item, "products", (double)job->shares[i].n_products);
        cJSON_AddNumberToObject(item, "waited_seconds", job->shares[i].waited);
    }
    return list;
}

static int report(const struct job *job) {
    const struct options *o = job->o;
    struct ree_error err;
    struct strbuf text;
    char hex[65];
    if (ree_training_sha256(job->training, hex, &err) != REE_OK) return cli_fail(&err);
    uint64_t n = job->first + job->n_losses;
    const char *hash = job->receipt ? ree_training_receipt_info(job->receipt)->receipt_hash : NULL;
    double each = job->n_losses ? job->seconds / (double)job->n_losses : 0;
    strbuf_init(&text);
    if (o->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "device", ree_device_name(job->device));
        cJSON_AddNumberToObject(root, "steps", (double)n);
        // JSON has no number for an infinity or a NaN.
        if (job->n_losses && isfinite(job->losses[job->n_losses - 1]))
            cJSON_AddNumberToObject(root, "loss", job->losses[job->n_losses - 1]);
        cJSON_AddStringToObject(root, "states_sha256", hex);
        if (hash) cJSON_AddStringToObject(root, "receipt_hash", hash);
        if (job->has_trace) cJSON_AddStringToObject(root, "trace_root", job->traced.root);
        if (o->stats) cJSON_AddNumberToObject(root, "seconds_per_step", each);
        if (o->stats && job->shares) cJSON_AddItemToObject(root, "processes", shares_json(job));
        cli_append_json(&text, root, false);
    } else {
        strbuf_printf(&text, "states after step %llu  %s\n", (unsigned long long)n, hex);
        if (hash) strbuf_printf(&text, "receipt  %s\n", hash);
        if (job->has_trace)
            strbuf_printf(&text, "trace  %s  %llu steps\n", job->traced.root,
                          (unsigned long long)job->traced.n_steps);
        if (o->stats)
            strbuf_printf(&text, "%.6f s per step (%s)\n", each, ree_device_name(job->device));
        if (o->stats && job->shares) print_shares(job, &text);
    }
    return cli_print(&text);
}

// A process other than the first one only computes. It leaves signals to the first one: mpirun
// sends them to all processes.
static int serve(struct job *job) {
    struct sigaction action = {.sa_handler = SIG_IGN};
    struct ree_error err;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = load_training(job);
    if (!code && ree_training_serve(job->training, &err) != REE_OK) code = cli_fail(&err);
    return code;
}

// Tells the other processes that there are no more steps.
static int end_shares(struct job *job) {
    struct ree_error err;
    if (!job->o->ranks.n) return 0;
    job->shares = calloc(job->o->ranks.n, sizeof *job->shares);
    if (!job->shares) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (ree_training_end(job->training, job->shares, &err) != REE_OK) return cli_fail(&err);
    return 0;
}

static int lead(struct job *job) {
    const struct options *o = job->o;
    struct ree_error err;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    int code = check_files(o);
    if (!code && o->key && ree_key_check(o->key, &err) != REE_OK) code = cli_fail(&err);
    if (!code) code = open_training(job);
    if (code) return code;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    code = make_steps(job);
    if (!code) code = end_shares(job);
    budget_results();
    // After a failure too, so that the steps before it are not lost.
    int saved = job->n_losses ? save_results(job, code != 0) : 0;
    if (!code) code = saved;
    if (!code) code = report(job);
    if (!code && job->has_lost_output) code = CLI_FAILED;
    if (!code && ree_training_release(job->training, &err) != REE_OK) code = cli_fail(&err);
    if (!code && interrupted) code = CLI_SIGNALLED + interrupted;
    return code;
}

static int run(struct options *o) {
    struct job job = {.o = o};
    int code = o->ranks.rank ? serve(&job) : lead(&job);
    code = cli_ranks_finish(&o->ranks, code);
    free(job.losses);
    free(job.shares);
    tracing_finish(&job.recorder);
    ree_training_receipt_destroy(job.receipt);
    ree_training_destroy(job.training);
    ree_dataset_destroy(job.dataset);
    cli_device_close(job.device);
    ree_model_destroy(job.model);
    return code;
}

static void parse(struct cli *cli, struct options *o) {
    cli_options_parse(cli, &ree_run_train_options, o);
    if (cli->failed) return;
    if (!o->step) cli_usage(cli, "no training step given");
    if (!o->data) cli_usage(cli, "no samples given: --data FILE");
    if (!o->n_steps == !o->n_epochs) cli_usage(cli, "give either --steps or --epochs");
    if (o->resume && !o->checkpoint) cli_path_add(CLI_WRITES, o->checkpoint = o->resume);
    if (o->every && !o->checkpoint) cli_usage(cli, "--checkpoint-every requires --checkpoint FILE");
    trace_options_check(cli, &o->tracing);
    if (o->receipt && o->tracing.trace && o->no_fold) cli_usage(cli, CLI_TRACE_IS_FOLDED);
    if (o->key && !o->receipt) cli_usage(cli, "--sign requires --receipt-path");
    if (o->dsse && !o->key) cli_usage(cli, "--dsse requires --sign KEY");
    if (o->interval && !o->receipt) cli_usage(cli, "--receipt-interval requires --receipt-path");
}

int ree_run_train(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_train_options);
    cli_init(&cli, argc, argv);
    parse(&cli, &o);
    int code = cli.failed ? CLI_USAGE : cli_ranks_start(&o.ranks);
    const struct cli_start start = {.uses = sandbox_uses(o.device.spec),
                                    .no_sandbox = o.ranks.n ? "several processes" : NULL};
    if (!code) code = cli_start(&start);
    return code ? cli_ranks_finish(&o.ranks, code) : run(&o);
}

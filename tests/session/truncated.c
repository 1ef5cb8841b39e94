// A mapped file that is truncated while its model is used: the run fails with the file's name and
// gives no hash, instead of a bus error that ends the process. While a model is loaded, the host's
// handler of SIGBUS still receives signals for the host's own mappings; afterwards it is in place
// again.
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "graph/model_writer.h"
#include "ree.h"
#include "test.h"

#define ROWS 1024
#define COLUMNS 1024 // 4 MiB of weights: all threads read them

static char folder[] = "/tmp/ree-test-XXXXXX";
static char model_path[64], weights_path[64];
static struct ree_device *device;

static void write_file(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    REQUIRE(file && fwrite(bytes, 1, n, file) == n);
    REQUIRE(fclose(file) == 0);
}

static void write_weights(void) {
    static float weights[ROWS * COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        weights[i] = (float)(i % 13) - 6;
    write_file(weights_path, weights, sizeof weights);
}

// y = x + w
static void write_model(void) {
    const int64_t dims[2] = {ROWS, COLUMNS}, row[2] = {1, COLUMNS};
    struct pb graph = {0};
    pb_sub(&graph, GRAPH_INITIALIZER,
           pb_external("w", REE_F32, 2, dims, "w.bin", NULL, NULL, NULL));
    pb_sub(&graph, GRAPH_INPUT, pb_value("x", REE_F32, 2, row));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", REE_F32, 2, dims));
    pb_sub(&graph, GRAPH_NODE, pb_node("Add", "", "x,w", "y"));
    struct pb model = pb_model(graph);
    write_file(model_path, model.data, model.size);
    pb_free(&model);
}

static struct ree_model *load(void) {
    struct ree_model *model;
    struct ree_error err = {0};
    write_weights();
    enum ree_status status = ree_model_load(model_path, NULL, &model, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    return model;
}

static enum ree_status run(struct ree_session *session, struct ree_error *err) {
    struct ree_tensor x, y;
    REQUIRE(ree_tensor_init(&x, "x", REE_F32, 2, (int64_t[]){1, COLUMNS}, err) == REE_OK);
    memset(x.data, 0, x.nbytes);
    enum ree_status status = ree_session_run(session, &x, 1, &y, err);
    CHECK((status == REE_OK) == (y.data != NULL));
    ree_tensor_finish(&x);
    ree_tensor_finish(&y);
    return status;
}

static void check_failed(enum ree_status status, const struct ree_error *err) {
    CHECK_MSG(status == REE_IO && strstr(err->message, "w.bin") && strstr(err->message, folder),
              "%d: %s", status, err->message);
}

// Truncated before the first run or between two runs: to nothing, within a page; or written again.
static void test_run(off_t size, bool runs_before, bool writes_again) {
    struct ree_model *model = load();
    struct ree_session *session;
    struct ree_error err = {0};
    char hex[65] = "";
    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    if (runs_before) {
        enum ree_status status = run(session, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
    }
    nanosleep(&(struct timespec){0, 20000000}, NULL); // longer than the resolution of file times
    CHECK(truncate(weights_path, size) == 0);
    if (writes_again) write_weights();
    check_failed(run(session, &err), &err);
    check_failed(run(session, &err), &err); // also the second time
    CHECK(ree_model_weights_sha256(model, NULL, hex, &err) == REE_IO && !hex[0]);
    CHECK_MSG(strstr(err.message, "w.bin"), "%s", err.message);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

static sigjmp_buf back;

static void on_bus_error(int number) {
    siglongjmp(back, number);
}

static void test_handler(void) {
    struct sigaction host = {.sa_handler = on_bus_error}, now;
    REQUIRE(sigaction(SIGBUS, &host, NULL) == 0);
    struct ree_model *model = load();
    FILE *file = tmpfile();
    REQUIRE(file && ftruncate(fileno(file), 4096) == 0);
    volatile char *own = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    REQUIRE(own != MAP_FAILED && ftruncate(fileno(file), 0) == 0);
    volatile int got = 0;
    int number = sigsetjmp(back, 1);
    if (number)
        got = number;
    else
        (void)own[0];
    CHECK(got == SIGBUS);
    munmap((void *)(uintptr_t)own, 4096);
    fclose(file);
    ree_model_destroy(model);
    REQUIRE(sigaction(SIGBUS, NULL, &now) == 0);
    CHECK(now.sa_handler == on_bus_error);
    signal(SIGBUS, SIG_DFL);
}

int main(void) {
    struct ree_error err = {0};
    REQUIRE(mkdtemp(folder));
    snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
    snprintf(weights_path, sizeof weights_path, "%s/w.bin", folder);
    REQUIRE(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    write_model();
    test_handler();
    test_run(0, false, false);
    test_run(0, true, false);
    test_run(5000, false, false);
    test_run(4 * ROWS * COLUMNS - 100, false, false); // within the last page: no bus error
    test_run(0, true, true);
    // As for a model in so many files that not every file can have an open descriptor.
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){16, 16}) == 0);
    test_run(0, false, false);
    test_run(4 * ROWS * COLUMNS - 100, false, false);
    test_run(0, true, true);
    ree_device_destroy(device);
    unlink(model_path);
    unlink(weights_path);
    rmdir(folder);
    return test_finish();
}

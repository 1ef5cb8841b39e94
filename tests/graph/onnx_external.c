// External data: which files are read, and above all which are not.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "graph/onnx/reader.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// root/secret.bin is outside the model's folder root/model/.
static char root[] = "/tmp/ree-test-XXXXXX";
static char path[256]; // path of the model

static const char *in_root(const char *name) {
    static char full[4][300];
    static int next;
    char *out = full[next++ % 4];
    snprintf(out, sizeof full[0], "%s/%s", root, name);
    return out;
}

static void write_file(const char *name, const void *bytes, size_t n) {
    FILE *file = fopen(in_root(name), "wb");
    REQUIRE(file);
    REQUIRE(fwrite(bytes, 1, n, file) == n);
    REQUIRE(fclose(file) == 0);
}

static int remove_one(const char *name, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(name);
}

static void make_folder(void) {
    static unsigned char page[8192];
    for (size_t i = 0; i < sizeof page; i++)
        page[i] = (unsigned char)(i ^ (i >> 8));
    REQUIRE(mkdtemp(root));
    snprintf(path, sizeof path, "%s/model/model.onnx", root);
    REQUIRE(mkdir(in_root("model"), 0755) == 0);
    REQUIRE(mkdir(in_root("model/sub"), 0755) == 0);
    write_file("secret.bin", page, 1024);
    write_file("model/w.bin", page, 1024);
    write_file("model/page.bin", page, sizeof page); // ends at a page boundary
    write_file("model/odd.bin", page, 4099);
    write_file("model/empty.bin", page, 0);
    write_file("model/bools.bin", "\0\1\2\1", 4);
    write_file("model/sub/w.bin", page, 64);
    static const char *const links[][2] = {
        {"../secret.bin", "model/out.bin"},
        {"/etc/passwd", "model/passwd.bin"},
        {"..", "model/up"},
        {"loop2.bin", "model/loop1.bin"},
        {"loop1.bin", "model/loop2.bin"},
        {"w.bin", "model/inside.bin"},
        {"sub", "model/subfolder"},
        {"gone.bin", "model/dangling.bin"},
        {"sub/../../secret.bin", "model/sly.bin"},
        {"../model/w.bin", "model/back.bin"},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        REQUIRE(symlink(links[i][0], in_root(links[i][1])) == 0);
    REQUIRE(mkfifo(in_root("model/pipe"), 0644) == 0);
}

struct source {
    const char *location, *offset, *length, *checksum;
    int type;
    int64_t count;
};

static enum ree_status load(size_t n, const struct source *sources, struct ree_graph **graph,
                            struct ree_error *err) {
    struct pb g = {0}, v = {0};
    for (size_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%zu", i);
        pb_sub(&g, GRAPH_INITIALIZER,
               pb_external(name, sources[i].type, 1, &sources[i].count, sources[i].location,
                           sources[i].offset, sources[i].length, sources[i].checksum));
    }
    pb_sub(&g, GRAPH_NODE, pb_node("Identity", "", "w0", "y"));
    pb_text(&v, 1, "y");
    pb_sub(&g, GRAPH_OUTPUT, v);
    struct pb model = pb_model(g);
    write_file("model/model.onnx", model.data, model.size);
    pb_free(&model);
    return ree_onnx_load(path, NULL, graph, err);
}

static void check_bytes(const struct ree_value *value, size_t offset) {
    const unsigned char *data = value->data;
    for (size_t i = 0; i < value->nbytes; i++)
        if (data[i] != (unsigned char)((offset + i) ^ ((offset + i) >> 8))) {
            CHECK_MSG(false, "byte %zu of %s is %u", i, value->name, data[i]);
            return;
        }
    CHECK(true);
}

static void test_good(void) {
    static const struct source sources[] = {
        {"w.bin", "256", "64", NULL, REE_F32, 16},
        {"w.bin", NULL, NULL, NULL, REE_F32, 256}, // from offset 0; length computed from the type
        {"w.bin", "960", "64", NULL, REE_I64, 8},  // up to the last byte
        {"w.bin", "3", "8", NULL, REE_F32, 2},     // misaligned: copied
        {"w.bin", "4", "8", NULL, REE_I64, 1},     // aligned to 4, but not to 8: copied
        {"w.bin", "1", "5", NULL, REE_U8, 5},      // bytes must be aligned to 4 as well
        {"w.bin", "1024", "0", NULL, REE_F32, 0},  // empty, at the very end
        {"././w.bin", NULL, NULL, NULL, REE_F32, 1},
        {"sub//./w.bin", "0", "4", NULL, REE_F32, 1},
        {"inside.bin", "256", "4", NULL, REE_F32, 1},    // a link whose target is inside
        {"subfolder/w.bin", "4", "4", NULL, REE_F32, 1}, // a link to a folder
        {"page.bin", "8188", "4", NULL, REE_U8, 4},      // the last bytes of a full page
        {"page.bin", "8190", "2", NULL, REE_U8, 2},      // the same, misaligned
        {"odd.bin", "4096", "3", NULL, REE_U8, 3},       // the rest of its page reads as zeros
        {"empty.bin", "0", "0", NULL, REE_F32, 0},
    };
    enum { N = sizeof sources / sizeof *sources };
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    CHECK_MSG(load(N, sources, &graph, &err) == REE_OK, "%s", err.message);
    REQUIRE(graph);
    for (size_t i = 0; i < N; i++) {
        const struct ree_value *value = graph->values[i];
        CHECK(value->data && value->nbytes == (size_t)sources[i].count *
                                                  ree_dtype_size((enum ree_dtype)sources[i].type));
        CHECK((uintptr_t)value->data % (value->dtype == REE_I64 ? 8 : 4) == 0);
        check_bytes(value, sources[i].offset ? (size_t)atoi(sources[i].offset) : 0);
        // Data is readable up to the next multiple of 4; otherwise a sanitizer or a fault reports
        // it.
        const volatile unsigned char *data = value->data;
        for (size_t j = value->nbytes; j % 4; j++)
            (void)data[j];
    }
    // There is one mapping per file, whatever path names it; aligned data is not copied.
    const unsigned char *base = graph->values[1]->data;
    CHECK(graph->values[0]->data == base + 256 && graph->values[7]->data == base);
    CHECK(graph->values[9]->data == base + 256 && graph->values[10]->data != base + 4);
    CHECK(graph->values[3]->data != base + 3);
    size_t n_files = 0;
    for (struct ree_mapping *m = graph->mappings; m; m = m->next)
        n_files += m->is_file;
    CHECK_MSG(n_files == 5, "%zu files are mapped", n_files);
    ree_graph_destroy(graph);

    // sha1sum of the first 64 bytes of the pattern, and of nothing.
    static const struct source summed[] = {
        {"sub/w.bin", "0", "4", "c6138d514ffa2135bfce0ed0b8fac65669917ec7", REE_F32, 1},
        {"sub/w.bin", "4", "4", "C6138D514FFA2135BFCE0ED0B8FAC65669917EC7", REE_F32, 1},
        {"empty.bin", "0", "0", "da39a3ee5e6b4b0d3255bfef95601890afd80709", REE_F32, 0},
    };
    CHECK_MSG(load(3, summed, &graph, &err) == REE_OK, "%s", err.message);
    ree_graph_destroy(graph);
}

static void test_bad(void) {
    static const struct {
        struct source source;
        enum ree_status status;
        const char *text;
    } cases[] = {
        {{"w.bin", "992", "64", NULL, REE_F32, 16},
         REE_INVALID,
         "initializer 'w0': external data 'w.bin': offset 992 + length 64 is past the end of the "
         "file (1024 bytes)"},
        {{"w.bin", "4096", "64", NULL, REE_F32, 16},
         REE_INVALID,
         "offset 4096 + length 64 is past the end of the file (1024 bytes)"},
        {{"w.bin", "1025", "0", NULL, REE_F32, 0}, REE_INVALID, "past the end"},
        {{"w.bin", "18446744073709551600", "64", NULL, REE_F32, 16}, REE_INVALID, "past the end"},
        {{"w.bin", "99999999999999999999", "64", NULL, REE_F32, 16},
         REE_INVALID,
         "external data: offset '99999999999999999999' is not a number"},
        {{"w.bin", "-4", "64", NULL, REE_F32, 16}, REE_INVALID, "offset '-4' is not a number"},
        {{"w.bin", "", "64", NULL, REE_F32, 16}, REE_INVALID, "offset '' is not a number"},
        {{"w.bin", "0x10", "64", NULL, REE_F32, 16}, REE_INVALID, "offset '0x10'"},
        {{"w.bin", "0", " 64", NULL, REE_F32, 16}, REE_INVALID, "length ' 64' is not a number"},
        {{"w.bin", "0", "60", NULL, REE_F32, 16},
         REE_INVALID,
         "external data 'w.bin': length is 60, but the tensor requires 64 bytes"},
        {{"w.bin", "0", NULL, NULL, REE_F32, 257},
         REE_INVALID,
         "offset 0 + length 1028 is past the end"},
        {{"empty.bin", "0", NULL, NULL, REE_F32, 1}, REE_INVALID, "past the end of the file (0"},
        {{NULL, "0", "64", NULL, REE_F32, 16}, REE_INVALID, "the location is missing"},
        {{"", "0", "64", NULL, REE_F32, 16}, REE_INVALID, "the location is empty"},
        {{"../secret.bin", NULL, NULL, NULL, REE_F32, 16},
         REE_INVALID,
         "external data '../secret.bin': has '..' in its path"},
        {{"sub/../../secret.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "has '..'"},
        {{"sub/../w.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "has '..'"},
        {{"..", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "has '..'"},
        {{"sub/..", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "has '..'"},
        {{"/etc/passwd", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "is an absolute path"},
        {{"out.bin", NULL, NULL, NULL, REE_F32, 16},
         REE_INVALID,
         "leads out of the model's folder"},
        {{"passwd.bin", NULL, NULL, NULL, REE_F32, 16},
         REE_INVALID,
         "leads out of the model's folder"},
        {{"sly.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "leads out of"},
        {{"back.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "leads out of"},
        {{"up/secret.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "leads out of"},
        {{"loop1.bin", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "too many symbolic links"},
        {{"dangling.bin", NULL, NULL, NULL, REE_F32, 16}, REE_NOT_FOUND, "no such file"},
        {{"nothing.bin", NULL, NULL, NULL, REE_F32, 16},
         REE_NOT_FOUND,
         "external data 'nothing.bin': no such file in the model's folder"},
        {{"w.bin/x", NULL, NULL, NULL, REE_F32, 16}, REE_NOT_FOUND, "no such file"},
        {{"sub", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "it is a folder, not a file"},
        {{".", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "it is a folder, not a file"},
        {{"pipe", NULL, NULL, NULL, REE_F32, 16}, REE_INVALID, "it is not a regular file"},
        {{"w.bin", "0", "4", "da39a3ee5e6b4b0d3255bfef95601890afd80709", REE_F32, 1},
         REE_INVALID,
         "but the model requires da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {{"bools.bin", "0", "4", NULL, REE_BOOL, 4},
         REE_INVALID,
         "element 2 of a bool tensor is 2"},
        {{"w.bin", "0", "4", NULL, REE_STRING, 1}, REE_INVALID, "strings cannot be external data"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_graph *graph;
        struct ree_error err = {.message = ""};
        enum ree_status status = load(1, &cases[i].source, &graph, &err);
        CHECK_MSG(status == cases[i].status && !graph, "case %zu: status %s: %s", i,
                  ree_status_name(status), err.message);
        CHECK_MSG(strstr(err.message, cases[i].text), "case %zu: the message is \"%s\"", i,
                  err.message);
        CHECK_MSG(strncmp(err.message, path, strlen(path)) == 0, "case %zu: no path in \"%s\"", i,
                  err.message);
    }
}

// Without openat2 none of the links in the folder is followed; everything else is the same.
static void test_without_openat2(void) {
    static const struct {
        const char *location;
        enum ree_status status;
        const char *text;
    } cases[] = {
        {"w.bin", REE_OK, ""},
        {"sub//./w.bin", REE_OK, ""},
        {"../secret.bin", REE_INVALID, "has '..'"},
        {"/etc/passwd", REE_INVALID, "absolute"},
        {"out.bin", REE_INVALID, "'out.bin' is a symbolic link"},
        {"up/secret.bin", REE_INVALID, "'up' is a symbolic link"},
        {"subfolder/w.bin", REE_INVALID, "'subfolder' is a symbolic link"},
        {"inside.bin", REE_INVALID, "'inside.bin' is a symbolic link"},
        {"loop1.bin", REE_INVALID, "'loop1.bin' is a symbolic link"},
        {"nothing.bin", REE_NOT_FOUND, "no such file"},
        {"w.bin/x", REE_NOT_FOUND, "no such file"},
        {"sub/nothing", REE_NOT_FOUND, "no such file"},
    };
    int folder = open(in_root("model"), O_PATH | O_DIRECTORY);
    REQUIRE(folder >= 0);
    char long_name[400];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    for (int use = 0; use < 2; use++) {
        int fd;
        struct ree_error err;
        CHECK(ree_onnx_open_beneath(folder, long_name, use, &fd, &err) == REE_IO && fd < 0);
        CHECK_MSG(strstr(err.message, "too long"), "%s", err.message);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd;
        struct ree_error err = {.message = ""};
        enum ree_status status = ree_onnx_open_beneath(folder, cases[i].location, false, &fd, &err);
        CHECK_MSG(status == cases[i].status && strstr(err.message, cases[i].text), "%s: %s: %s",
                  cases[i].location, ree_status_name(status), err.message);
        CHECK((fd >= 0) == (status == REE_OK));
        char bytes[4] = "";
        if (fd >= 0) {
            CHECK(read(fd, bytes, 4) == 4 && memcmp(bytes, "\0\1\2\3", 4) == 0);
            close(fd);
        }
    }
    close(folder);
}

// Tensors in their own files.
static void test_tensor_file(void) {
    struct ree_tensor tensor;
    struct ree_error err = {.message = ""};
    struct pb m = pb_tensor("t", REE_I32, 2, (int64_t[]){2, 1}, "abcdefgh", 8);
    write_file("t.pb", m.data, m.size);
    pb_free(&m);
    CHECK_MSG(ree_onnx_tensor_load(in_root("t.pb"), NULL, &tensor, &err) == REE_OK, "%s",
              err.message);
    CHECK(strcmp(tensor.name, "t") == 0 && tensor.dtype == REE_I32 && tensor.rank == 2);
    CHECK(tensor.nbytes == 8 && memcmp(tensor.data, "abcdefgh", 8) == 0);
    ree_tensor_finish(&tensor);
    m = pb_tensor("t", REE_I4, 1, (int64_t[]){3}, "\x8f\x07", 2);
    write_file("t.pb", m.data, m.size);
    pb_free(&m);
    CHECK_MSG(ree_onnx_tensor_load(in_root("t.pb"), NULL, &tensor, &err) == REE_OK, "%s",
              err.message);
    CHECK(tensor.nbytes == 3 && memcmp(tensor.data, "\xff\xf8\x07", 3) == 0);
    ree_tensor_finish(&tensor);
    m = pb_tensor("t", 14, 1, (int64_t[]){1}, "abcdefgh", 8);
    write_file("t.pb", m.data, m.size);
    pb_free(&m);
    CHECK(ree_onnx_tensor_load(in_root("t.pb"), NULL, &tensor, &err) == REE_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "t.pb: tensors of type complex64 are not"), "%s", err.message);
    m = pb_tensor("t", REE_F32, 1, (int64_t[]){3}, "abc", 3);
    write_file("t.pb", m.data, m.size);
    pb_free(&m);
    CHECK(ree_onnx_tensor_load(in_root("t.pb"), NULL, &tensor, &err) == REE_INVALID);
    CHECK(!tensor.data && !tensor.name);
    write_file("t.pb", "", 0);
    CHECK(ree_onnx_tensor_load(in_root("t.pb"), NULL, &tensor, &err) == REE_INVALID);
    CHECK(ree_onnx_tensor_load(in_root("none.pb"), NULL, &tensor, &err) == REE_NOT_FOUND);
    CHECK(ree_onnx_tensor_load(in_root("none.pb"), NULL, &tensor, NULL) == REE_NOT_FOUND);
}

struct calls {
    int n, cancel_at; // 0: never
    uint64_t done, total;
};

static bool on_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    struct calls *calls = user;
    CHECK(strcmp(what, "reading") == 0 && done <= total);
    CHECK(done >= calls->done);
    calls->n++, calls->done = done, calls->total = total;
    return calls->n != calls->cancel_at;
}

// A hard link can bring a file from elsewhere into the folder. It is read only if the file's owner
// is also the model's owner.
static void test_hard_links(void) {
    static const struct source source = {"hard.bin", "0", "4", NULL, REE_F32, 1};
    struct ree_graph *graph = NULL;
    struct ree_error err = {.message = ""};
    REQUIRE(link(in_root("secret.bin"), in_root("model/hard.bin")) == 0);
    CHECK_MSG(load(1, &source, &graph, &err) == REE_OK, "%s", err.message);
    ree_graph_destroy(graph);
    if (geteuid() == 0) { // other users cannot change a file's owner
        REQUIRE(chown(in_root("secret.bin"), 12345, (gid_t)-1) == 0);
        graph = NULL;
        CHECK(load(1, &source, &graph, &err) == REE_INVALID && !graph);
        CHECK_MSG(strstr(err.message, "'hard.bin'") && strstr(err.message, "2 hard links") &&
                      strstr(err.message, "user 12345"),
                  "%s", err.message);
        REQUIRE(unlink(in_root("secret.bin")) == 0); // only one name is left, in the model's folder
        CHECK_MSG(load(1, &source, &graph, &err) == REE_OK, "%s", err.message);
        ree_graph_destroy(graph);
    } else {
        printf("not tested: the refusal of another user's hard link, which requires root\n");
    }
    unlink(in_root("model/hard.bin"));
}

static void test_progress(void) {
    enum { N = 20 << 20 };
    char *bytes = calloc(1, N);
    REQUIRE(bytes);
    struct pb g = {0};
    for (int i = 0; i < 2; i++)
        pb_sub(&g, GRAPH_INITIALIZER,
               pb_tensor(i ? "a" : "b", REE_F32, 1, (int64_t[]){N / 4}, bytes, N));
    free(bytes);
    pb_sub(&g, GRAPH_OUTPUT, pb_value("a", 1, 1, (int64_t[]){N / 4}));
    struct pb model = pb_model(g);
    write_file("model/model.onnx", model.data, model.size);
    struct calls calls = {0};
    const struct ree_progress progress = {on_progress, &calls};
    struct ree_graph *graph;
    CHECK(ree_onnx_load(path, &progress, &graph, NULL) == REE_OK);
    CHECK_MSG(calls.n >= 2 && calls.done == model.size && calls.total == model.size, "%d calls",
              calls.n);
    ree_graph_destroy(graph);
    for (int n = calls.n; n > 0; n--) {
        struct ree_error err;
        calls = (struct calls){.cancel_at = n};
        CHECK(ree_onnx_load(path, &progress, &graph, &err) == REE_CANCELLED && !graph);
        CHECK_MSG(strstr(err.message, "cancelled") && calls.n == n, "%s, %d calls", err.message,
                  calls.n);
    }
    pb_free(&model);
}

int main(void) {
    make_folder();
    test_good();
    test_bad();
    test_without_openat2();
    test_tensor_file();
    test_progress();
    test_hard_links();
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return test_finish();
}

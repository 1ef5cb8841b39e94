// Weights are used in the mapped file, at whatever offset a header of any length (in steps of 4
// bytes) puts them: loading a model from a folder copies no weight.
//
//     hf_mapped FOLDER      FOLDER: a checkpoint of float32 in one file
#include "base/file.h"
#include "graph/ir/ir.h"
#include "graph/load.h"
#include "graph/ir/mapping.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_mapped(const struct ree_graph *graph, const struct ree_value *value) {
    const unsigned char *data = value->data;
    for (const struct ree_mapping *m = graph->mappings; m; m = m->next)
        if (m->is_file && data >= m->data && data + value->nbytes <= m->data + m->size) return true;
    return false;
}

static void check_folder(const char *folder, size_t pad) {
    struct ree_graph *graph;
    struct ree_error err;
    enum ree_status status = ree_graph_load(folder, NULL, &graph, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    if (status != REE_OK) return;
    size_t n = 0, n_odd = 0;
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *value = graph->values[i];
        size_t length = strlen(value->name);
        if (!value->data || length < 7 || strcmp(value->name + length - 7, ".weight") != 0)
            continue;
        n++;
        n_odd += (uintptr_t)value->data % 64 != 0;
        CHECK_MSG(is_mapped(graph, value), "%s is a copy, with %zu more bytes of header",
                  value->name, pad);
    }
    CHECK_MSG(n > 10, "%zu weights", n);
    CHECK_MSG(pad % 64 == 0 || n_odd > 0, "no weight lies at an odd place, which shows nothing");
    ree_graph_destroy(graph);
}

// Writes the same checkpoint with `pad` spaces after its header.
static void copy_padded(const char *from, const char *to, size_t pad) {
    char path[4096];
    void *bytes;
    size_t size;
    snprintf(path, sizeof path, "%s/model.safetensors", from);
    REQUIRE(ree_file_read(path, &bytes, &size, NULL) == REE_OK && size > 8);
    uint64_t header;
    memcpy(&header, bytes, 8);
    REQUIRE(header < size - 8);
    char *padded = malloc(size + pad);
    REQUIRE(padded != NULL);
    memcpy(padded, bytes, 8 + header);
    memset(padded + 8 + header, ' ', pad);
    memcpy(padded + 8 + header + pad, (char *)bytes + 8 + header, size - 8 - header);
    header += pad;
    memcpy(padded, &header, 8);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    REQUIRE(ree_file_write(path, padded, size + pad, NULL) == REE_OK);
    free(padded);
    free(bytes);
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/hf_mapped.XXXXXX", config[4096], path[4096];
    struct stat info;
    void *text;
    size_t size;
    REQUIRE(argc == 2);
    if (stat(argv[1], &info) != 0) return test_skip("the model is not here");
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(config, sizeof config, "%s/config.json", argv[1]);
    REQUIRE(ree_file_read(config, &text, &size, NULL) == REE_OK);
    snprintf(config, sizeof config, "%s/config.json", folder);
    REQUIRE(ree_file_write(config, text, size, NULL) == REE_OK);
    free(text);
    for (size_t pad = 0; pad < 64; pad += 20) {
        copy_padded(argv[1], folder, pad);
        check_folder(folder, pad);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    unlink(config);
    rmdir(folder);
    return test_finish();
}

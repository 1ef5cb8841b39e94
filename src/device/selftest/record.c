// Reads and writes the record of self-tests. The file has the line "ree-selftest/1", then one line
// per entry: "KEY passed" or "KEY failed TEXT".
#include "device/selftest/record.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "device/cache_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define HEADER "ree-selftest/1\n"
#define MAX_FILE ((size_t)16 << 20)
#define MAX_ENTRIES 4096 // per file; ree never writes more
#define HEX_SIZE (2 * REE_SHA256_SIZE)

static struct ree_test_entry *find(const struct ree_test_record *record,
                                   const unsigned char key[REE_SHA256_SIZE]) {
    for (size_t i = 0; i < record->n; i++)
        if (memcmp(record->entries[i].key, key, REE_SHA256_SIZE) == 0) return &record->entries[i];
    return NULL;
}

const struct ree_test_entry *ree_test_record_find(const struct ree_test_record *record,
                                                  const unsigned char key[REE_SHA256_SIZE]) {
    return find(record, key);
}

void ree_test_record_add(struct ree_test_record *record, const unsigned char key[REE_SHA256_SIZE],
                         enum ree_test_state state, const char *text) {
    struct ree_test_entry *known = find(record, key);
    if (known) {
        if (known->state != REE_TEST_PASSED || state != REE_TEST_FAILED) return;
        known->state = REE_TEST_FAILED;
        known->text = text ? ree_strdup(text) : NULL; // no leak: a passed entry has no text
        record->is_changed = true;
        return;
    }
    if (record->n == record->capacity) {
        size_t capacity = record->capacity * 2 + 64;
        struct ree_test_entry *entries =
            ree_realloc(record->entries, capacity * sizeof *record->entries);
        if (!entries) return;
        record->entries = entries;
        record->capacity = capacity;
    }
    struct ree_test_entry *entry = &record->entries[record->n];
    *entry = (struct ree_test_entry){.state = state, .text = text ? ree_strdup(text) : NULL};
    memcpy(entry->key, key, sizeof entry->key);
    record->n++;
    record->is_changed = true;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Adds the entry of a line, which has no newline. Ignores a malformed line.
static void read_line(struct ree_test_record *record, char *line) {
    unsigned char key[REE_SHA256_SIZE];
    if (strlen(line) < HEX_SIZE + 1) return;
    for (int i = 0; i < REE_SHA256_SIZE; i++) {
        int high = hex_digit(line[2 * i]), low = hex_digit(line[2 * i + 1]);
        if (high < 0 || low < 0) return;
        key[i] = (unsigned char)(high << 4 | low);
    }
    const char *rest = line + HEX_SIZE;
    if (strcmp(rest, " passed") == 0)
        ree_test_record_add(record, key, REE_TEST_PASSED, NULL);
    else if (strncmp(rest, " failed ", 8) == 0)
        ree_test_record_add(record, key, REE_TEST_FAILED, rest + 8);
}

static void read_file(struct ree_test_record *record) {
    void *bytes;
    size_t n;
    if (!record->path || !ree_cache_read(record->path, MAX_FILE, &bytes, &n)) return;
    char *text = ree_strndup(bytes, n);
    ree_free(bytes);
    if (text && strncmp(text, HEADER, strlen(HEADER)) == 0) {
        char *state;
        uint32_t n_lines = 0;
        for (char *line = strtok_r(text + strlen(HEADER), "\n", &state);
             line && n_lines < MAX_ENTRIES; line = strtok_r(NULL, "\n", &state), n_lines++)
            read_line(record, line);
    }
    ree_free(text);
}

void ree_test_record_init(struct ree_test_record *record, char *path) {
    *record = (struct ree_test_record){.path = path};
    read_file(record);
    record->is_changed = false;
}

static void write_file(struct ree_test_record *record) {
    const int folder = ree_cache_open_folder(record->path, true);
    if (folder < 0) return;
    // The lock covers reading and replacing the file, so that no process loses another's entries.
    // On a file system without locks entries may be lost; their tests are then repeated.
    (void)flock(folder, LOCK_EX);
    read_file(record); // adds the entries that others wrote meanwhile
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_strbuf_printf(&text, HEADER);
    // Drops the oldest entries: each build of a program adds entries of its own.
    for (size_t i = record->n > MAX_ENTRIES ? record->n - MAX_ENTRIES : 0; i < record->n; i++) {
        const struct ree_test_entry *entry = &record->entries[i];
        char hex[HEX_SIZE + 1];
        ree_hex(entry->key, hex);
        if (entry->state == REE_TEST_PASSED)
            ree_strbuf_printf(&text, "%s passed\n", hex);
        else
            ree_strbuf_printf(&text, "%s failed %s\n", hex, entry->text ? entry->text : "");
    }
    if (!text.failed && text.size <= MAX_FILE) ree_cache_write(record->path, text.data, text.size);
    ree_strbuf_finish(&text);
    close(folder); // releases the lock too
}

void ree_test_record_finish(struct ree_test_record *record) {
    if (record->path && record->is_changed) write_file(record);
    for (size_t i = 0; i < record->n; i++)
        ree_free(record->entries[i].text);
    ree_free(record->entries);
    ree_free(record->path);
    memset(record, 0, sizeof *record);
}

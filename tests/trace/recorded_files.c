// Files of recorded values are found by their numbers; names in another form are ignored.
#include "trace/recorded_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "test.h"

static char root[] = "/tmp/ree-recorded-XXXXXX";

static void make(unsigned step, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/step-%05u", root, step);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/step-%05u/%s", root, step, name);
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fclose(file);
}

// name: of the file that must be found; NULL: none
static void find(struct ree_recorded_folder *folder, unsigned step, struct ree_recorded_key key,
                 const char *name) {
    struct ree_error err;
    char *path = NULL;
    enum ree_status status = ree_recorded_find(folder, step, &key, &path, &err);
    const char *found = path ? strrchr(path, '/') + 1 : "";
    CHECK_MSG(name ? status == REE_OK && strcmp(found, name) == 0
                   : status == REE_NOT_FOUND && !path,
              "step %u, %s %u, output %u: '%s', expected '%s'", step,
              key.is_input ? "input" : "node", key.number, key.output, found, name ? name : "");
    ree_free(path);
}

int main(void) {
    static const char *const ignored[] = {
        "00007-3.npy",   "7-a-1.npy",      "00007-a-01.npy", "00007-a-.npy",
        "00007-a-1.npz", "input-7-a.npy",  "0000x-a-1.npy",  "4294967297-a-1.npy",
        "input-.npy",    "00007-a-1b.npy", ".npy",           "input-00009.npy"};
    REQUIRE(mkdtemp(root));
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        make(0, ignored[i]);
    make(0, "00007-a-b-12.npy");
    make(0, "00007--0.npy");
    make(0, "123456-x-4294967295.npy");
    make(0, "input-00007-a-1.npy");
    make(0, "input-00008-.npy");
    make(0, "00010-b-1.npy");
    make(0, "00010-a-1.npy");
    make(1, "00007-other-12.npy");
    for (unsigned i = 1000; i < 3000; i++) {
        char name[64];
        snprintf(name, sizeof name, "00020-%u-%u.npy", 3000 - i, i);
        make(1, name);
    }
    struct ree_recorded_folder folder = {.path = root};
    for (int again = 0; again < 2; again++) {
        find(&folder, 0, (struct ree_recorded_key){false, 7, 12}, "00007-a-b-12.npy");
        find(&folder, 0, (struct ree_recorded_key){false, 7, 0}, "00007--0.npy");
        find(&folder, 0, (struct ree_recorded_key){false, 7, 1}, NULL);
        find(&folder, 0, (struct ree_recorded_key){false, 7, 3}, NULL);
        find(&folder, 0, (struct ree_recorded_key){false, 1, 1}, NULL);
        find(&folder, 0, (struct ree_recorded_key){false, 123456, UINT32_MAX},
             "123456-x-4294967295.npy");
        find(&folder, 0, (struct ree_recorded_key){true, 7, 0}, "input-00007-a-1.npy");
        find(&folder, 0, (struct ree_recorded_key){true, 8, 0}, "input-00008-.npy");
        find(&folder, 0, (struct ree_recorded_key){true, 9, 0}, NULL);
        find(&folder, 0, (struct ree_recorded_key){false, 10, 1}, "00010-a-1.npy");
        find(&folder, 1, (struct ree_recorded_key){false, 7, 12}, "00007-other-12.npy");
        find(&folder, 1, (struct ree_recorded_key){true, 7, 0}, NULL);
        find(&folder, 1, (struct ree_recorded_key){false, 20, 2999}, "00020-1-2999.npy");
        find(&folder, 2, (struct ree_recorded_key){false, 7, 12}, NULL); // no such folder
    }
    ree_recorded_folder_finish(&folder);
    char command[256];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0);
    return test_finish();
}

// The cache folder: files that other users could have written are neither trusted nor overwritten
// through a link, and the device's facts and the log give the reason. Tests owner, mode and
// symbolic links of the folder and of the self-test record.
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/selftest/record.h"
#include "ree.h"
#include "test.h"

static char root[] = "cache-folder-XXXXXX";
static char folder[64], path[128], target[128];
static const unsigned char key[REE_SHA256_SIZE] = {1}, other[REE_SHA256_SIZE] = {2};

// Returns whether the file records that `which` passed.
static bool says(const unsigned char *which) {
    struct ree_test_record record;
    ree_test_record_init(&record, strdup(path));
    bool found = ree_test_record_find(&record, which) != NULL;
    ree_test_record_finish(&record);
    return found;
}

static void add(const unsigned char *which) {
    struct ree_test_record record;
    ree_test_record_init(&record, strdup(path));
    ree_test_record_add(&record, which, REE_TEST_PASSED, NULL);
    ree_test_record_finish(&record);
}

static char logged[1024];

static void keep(void *user, enum ree_log_level level, const char *text) {
    CHECK(user == logged && level == REE_LOG_WARNING && !strchr(text, '\n'));
    snprintf(logged, sizeof logged, "%s", text);
}

// The facts and the log give the same reason.
static void check_fact(const char *expected) {
    struct ree_error err;
    struct ree_device *device;
    struct ree_device_options options = {.size = sizeof options, .cache_dir = folder};
    logged[0] = 0;
    ree_set_log(keep, logged);
    REQUIRE(ree_device_open("cpu", &options, &device, &err) == REE_OK);
    CHECK_MSG(expected ? strstr(logged, expected) != NULL : !logged[0], "logged: %s", logged);
    logged[0] = 0;
    ree_set_log(NULL, NULL);
    ree_device_destroy(device);
    REQUIRE(ree_device_open("cpu", &options, &device, &err) == REE_OK);
    CHECK_MSG(!logged[0], "logged without a function: %s", logged);
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts);
    const char *said = NULL;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(facts[i].kind, "cache")) said = facts[i].value;
    CHECK_MSG(expected ? said && strstr(said, expected) : !said, "said: %s; expected: %s",
              said ? said : "nothing", expected ? expected : "nothing");
    ree_device_destroy(device);
}

static int n_files(void) {
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    if (dir) closedir(dir);
    return n;
}

static void test_folder_of_others(void) {
    REQUIRE(chmod(folder, 0777) == 0);
    CHECK(!says(key));
    add(other);
    check_fact("chmod go-w");
    REQUIRE(chmod(folder, 0700) == 0);
    CHECK(says(key) && !says(other));
    check_fact(NULL);
    if (geteuid() == 0) { // only root can change a folder's owner
        REQUIRE(chown(folder, 12345, (gid_t)-1) == 0);
        CHECK(!says(key));
        check_fact("belongs to user 12345");
        REQUIRE(chown(folder, 0, (gid_t)-1) == 0);
        REQUIRE(chown(path, 12345, (gid_t)-1) == 0);
        CHECK(!says(key));
        REQUIRE(chown(path, 0, (gid_t)-1) == 0);
    }
}

static void test_file_of_others(void) {
    REQUIRE(chmod(path, 0666) == 0);
    CHECK(!says(key));
    check_fact("cpu.tests: other users can write to it");
    add(other); // the folder belongs to the user: the file is replaced
    CHECK(!says(key) && says(other));
    struct stat info;
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
}

static void test_links(void) {
    snprintf(target, sizeof target, "%s/target", root);
    REQUIRE(rename(path, target) == 0);
    REQUIRE(symlink("../target", path) == 0);
    CHECK(!says(other));
    check_fact("symbolic link");
    add(key);
    struct stat info;
    CHECK(lstat(path, &info) == 0 && S_ISREG(info.st_mode));
    CHECK(says(key) && !says(other));
    char moved[128];
    snprintf(moved, sizeof moved, "%s/moved", root);
    REQUIRE(rename(folder, moved) == 0);
    REQUIRE(symlink("moved", folder) == 0);
    CHECK(!says(key));
    add(other);
    check_fact("symbolic link");
    REQUIRE(unlink(folder) == 0 && rename(moved, folder) == 0);
    CHECK(says(key) && !says(other));
    unlink(target);
}

int main(void) {
    REQUIRE(mkdtemp(root) != NULL);
    snprintf(folder, sizeof folder, "%s/ree", root);
    snprintf(path, sizeof path, "%s/cpu.tests", folder);
    add(key);
    CHECK(says(key));
    test_folder_of_others();
    test_file_of_others();
    test_links();
    CHECK(n_files() == 1); // no file with another name
    unlink(path);
    rmdir(folder);
    rmdir(root);
    return test_finish();
}

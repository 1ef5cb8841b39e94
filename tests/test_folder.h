// Temporary folders of tests.
#ifndef REE_TESTS_TEST_FOLDER_H
#define REE_TESTS_TEST_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

// Removes a folder that contains only files.
static inline void test_remove_folder(const char *folder) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (dir) closedir(dir);
    rmdir(folder);
}

#endif

// Removes the temporary folder of a test.
#ifndef REE_TESTS_TEST_FOLDER_H
#define REE_TESTS_TEST_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

// Removes the files of a folder and then the folder. The folder must contain no folders, and no
// files whose names begin with a dot; otherwise the folder remains.
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

// The kernels of a build as nvcc compiled them: files *.ptx in the folders of $REE_EMULATOR_PTX,
// which colons separate. The first folder that has a kernel counts.
#include "ptx.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

static void read_modules(const std::string &folder, std::vector<std::string> *texts) {
    std::error_code error;
    for (auto &entry : std::filesystem::directory_iterator(folder, error)) {
        if (entry.path().extension() != ".ptx") continue;
        std::ifstream file(entry.path());
        std::stringstream text;
        text << file.rdbuf();
        texts->push_back(text.str());
    }
}

struct ree_emulator_ptx *ree_emulator_ptx_shipped(const char *kernel, char *error, size_t size) {
    static const char *const folders = getenv("REE_EMULATOR_PTX");
    static std::map<std::string, struct ree_emulator_ptx *> kernels;
    static std::vector<std::string> texts;
    error[0] = 0;
    if (!folders || !*folders) return NULL;
    auto found = kernels.find(kernel);
    if (found != kernels.end()) return found->second;
    if (texts.empty()) {
        std::stringstream list(folders);
        for (std::string folder; std::getline(list, folder, ':');)
            read_modules(folder, &texts);
    }
    const std::string head = std::string(".entry ") + kernel + "(";
    for (auto &text : texts) {
        if (!strstr(text.c_str(), head.c_str())) continue;
        struct ree_emulator_ptx *ptx = ree_emulator_ptx_parse(text.c_str(), kernel, error, size);
        if (ptx) kernels[kernel] = ptx;
        return ptx;
    }
    snprintf(error, size, "no module in %s has the kernel %s", folders, kernel);
    return NULL;
}

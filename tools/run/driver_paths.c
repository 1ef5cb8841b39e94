#include "driver_paths.h"

#include "ree.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_MANIFEST ((size_t)1 << 20)

typedef void (*visitor)(void *user, const char *path);

static void each(const struct driver_paths *p, visitor visit, const char *const *paths, size_t n) {
    for (size_t i = 0; i < n; i++)
        visit(p->user, paths[i]);
}

// Visits the paths that match shell patterns.
static void each_match(const struct driver_paths *p, visitor visit, const char *const *patterns,
                       size_t n) {
    for (size_t i = 0; i < n; i++) {
        glob_t found;
        if (glob(patterns[i], GLOB_NOSORT, NULL, &found) != 0) continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            visit(p->user, found.gl_pathv[k]);
        globfree(&found);
    }
}

// Visits the elements of a colon-separated list, each with `suffix` appended.
static void each_element(const struct driver_paths *p, visitor visit, const char *list,
                         const char *suffix) {
    while (list && *list) {
        size_t n = strcspn(list, ":");
        char *path;
        if (n && asprintf(&path, "%.*s%s", (int)n, list, suffix) >= 0) {
            visit(p->user, path);
            free(path);
        }
        list += n + (list[n] == ':');
    }
}

#define N(array) (sizeof(array) / sizeof *(array))

// Returns the folder named by `variable`, otherwise `below` in the user's home, with `suffix`
// appended; NULL: neither is known. Release with free.
static char *user_folder(const char *variable, const char *below, const char *suffix) {
    const char *named = getenv(variable), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (named && named[0] == '/')
        n = asprintf(&path, "%s%s", named, suffix);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s%s%s", home, below, suffix);
    return n < 0 ? NULL : path;
}

static void visit_user_folder(const struct driver_paths *p, visitor visit, const char *variable,
                              const char *below, const char *suffix) {
    char *path = user_folder(variable, below, suffix);
    if (path) visit(p->user, path);
    free(path);
}

// The system

// Allows reading the folders that the dynamic linker's configuration names, one per line.
static void linker_folders(const struct driver_paths *p) {
    static const char *const patterns[] = {"/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf"};
    for (size_t i = 0; i < N(patterns); i++) {
        glob_t found;
        if (glob(patterns[i], GLOB_NOSORT, NULL, &found) != 0) continue;
        for (size_t k = 0; k < found.gl_pathc; k++) {
            char line[4096];
            FILE *file = fopen(found.gl_pathv[k], "re");
            while (file && fgets(line, sizeof line, file)) {
                line[strcspn(line, " \t\r\n")] = 0;
                if (line[0] == '/') p->may_read(p->user, line);
            }
            if (file) fclose(file);
        }
        globfree(&found);
    }
}

void driver_paths_of_system(const struct driver_paths *p) {
    // All of /proc: a child process or a thread has a different folder than this process. The
    // kernel protects private data of other processes (environment, memory, descriptors), because
    // Landlock lets no process inspect a process outside of its own rules.
    static const char *const readable[] = {"/usr",
                                           "/lib",
                                           "/lib32",
                                           "/lib64",
                                           "/libx32",
                                           "/opt",
                                           "/nix/store",
                                           "/gnu/store",
                                           "/run/opengl-driver",
                                           "/run/current-system",
                                           "/proc",
                                           "/sys",
                                           "/etc/ld.so.cache",
                                           "/etc/ld.so.preload",
                                           "/etc/localtime",
                                           "/etc/ssl/openssl.cnf",
                                           "/etc/pki/tls/openssl.cnf",
                                           "/etc/crypto-policies",
                                           "/etc/passwd",
                                           "/etc/nsswitch.conf",
                                           "/dev/random",
                                           "/dev/urandom"};
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
    each(p, p->may_read, readable, N(readable));
    each(p, p->may_open, devices, N(devices));
    each_element(p, p->may_read, getenv("LD_LIBRARY_PATH"), "");
    each_element(p, p->may_read, getenv("OPENSSL_CONF"), "");
    linker_folders(p);
}

void driver_paths_of_ree(const struct driver_paths *p) {
    char *folder = ree_cache_path(NULL, "");
    if (folder && p->make(p->user, folder)) p->may_change(p->user, folder);
    free(folder);
}

// Vulkan

// Allows the folder of a library that a manifest names by a path, because libraries that it needs
// may be there too.
static void library_of(const struct driver_paths *p, const char *manifest, const cJSON *object) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "library_path");
    const char *slash = strrchr(manifest, '/');
    char *path = NULL, *whole = NULL;
    if (!cJSON_IsString(name) || !strchr(name->valuestring, '/')) return;
    int n = name->valuestring[0] == '/'
                ? asprintf(&path, "%s", name->valuestring)
                : asprintf(&path, "%.*s%s", slash ? (int)(slash - manifest) + 1 : 0, manifest,
                           name->valuestring);
    if (n >= 0) whole = realpath(path, NULL);
    if (whole) {
        *strrchr(whole, '/') = 0;
        p->may_read(p->user, whole);
    }
    if (n >= 0) free(path);
    free(whole);
}

static void manifest(void *user, const char *path) {
    const struct driver_paths *p = user;
    struct ree_error err;
    void *bytes;
    size_t n;
    p->may_read(p->user, path);
    if (ree_file_read_small(path, MAX_MANIFEST, &bytes, &n, &err) != REE_OK) return;
    cJSON *root = cJSON_ParseWithLength(bytes, n);
    library_of(p, path, cJSON_GetObjectItemCaseSensitive(root, "ICD"));
    library_of(p, path, cJSON_GetObjectItemCaseSensitive(root, "layer"));
    const cJSON *layer, *layers = cJSON_GetObjectItemCaseSensitive(root, "layers");
    cJSON_ArrayForEach(layer, layers) library_of(p, path, layer);
    cJSON_Delete(root);
    ree_free(bytes);
}

// Allows a manifest, or a folder and its manifests, and the libraries that the manifests name.
static void manifests(void *user, const char *path) {
    const struct driver_paths *p = user;
    DIR *dir = opendir(path);
    if (!dir) {
        manifest(user, path);
        return;
    }
    p->may_read(p->user, path);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        char *name;
        if (n < 5 || strcmp(entry->d_name + n - 5, ".json") != 0 ||
            asprintf(&name, "%s/%s", path, entry->d_name) < 0)
            continue;
        manifest(user, name);
        free(name);
    }
    closedir(dir);
}

// Allows the manifests in one of the `vulkan` folders that the loader searches.
static void vulkan_folder(void *user, const char *path) {
    static const char *const kinds[] = {"icd.d", "implicit_layer.d", "explicit_layer.d",
                                        "settings.d"};
    for (size_t i = 0; i < N(kinds); i++) {
        char *folder;
        if (asprintf(&folder, "%s/%s", path, kinds[i]) < 0) continue;
        if (access(folder, F_OK) == 0) manifests(user, folder);
        free(folder);
    }
}

static void manifests_of_loader(const struct driver_paths *p) {
    static const char *const variables[] = {"VK_ICD_FILENAMES",           "VK_DRIVER_FILES",
                                            "VK_ADD_DRIVER_FILES",        "VK_LAYER_PATH",
                                            "VK_ADD_LAYER_PATH",          "VK_IMPLICIT_LAYER_PATH",
                                            "VK_ADD_IMPLICIT_LAYER_PATH", "VK_LAYER_SETTINGS_PATH"};
    struct driver_paths own = *p;
    own.user = (void *)p;
    for (size_t i = 0; i < N(variables); i++)
        each_element(&own, manifests, getenv(variables[i]), "");
    const char *config = getenv("XDG_CONFIG_DIRS"), *data = getenv("XDG_DATA_DIRS");
    each_element(&own, vulkan_folder, config && *config ? config : "/etc/xdg", "/vulkan");
    each_element(&own, vulkan_folder, data && *data ? data : "/usr/local/share:/usr/share",
                 "/vulkan");
    each_element(&own, vulkan_folder, "/etc", "/vulkan");
    visit_user_folder(&own, vulkan_folder, "XDG_CONFIG_HOME", "/.config", "/vulkan");
    visit_user_folder(&own, vulkan_folder, "XDG_DATA_HOME", "/.local/share", "/vulkan");
}

static void cache(const struct driver_paths *p, char *path) {
    if (path && p->make(p->user, path)) p->may_change(p->user, path);
    free(path);
}

static void nvidia(const struct driver_paths *p) {
    static const char *const nodes[] = {"/dev/nvidia*", "/dev/nvmap",    "/dev/nvgpu*",
                                        "/dev/nvhost*", "/dev/nvsciipc", "/dev/dxg"};
    static const char *const settings[] = {"/etc/nvidia*", "/run/nvidia-persistenced"};
    each_match(p, p->may_open, nodes, N(nodes));
    each_match(p, p->may_read, settings, N(settings));
}

// Allows the caches of compiled shaders. Without them each run compiles again.
static void vulkan_caches(const struct driver_paths *p) {
    static const char *const named[] = {"MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR",
                                        "__GL_SHADER_DISK_CACHE_PATH"};
    // For several versions and forms of Mesa, and for AMD's and NVIDIA's drivers. The first two
    // folders are created here, because Mesa cannot create them in the sandbox.
    static const char *const folders[] = {"/mesa_shader_cache",
                                          "/mesa_shader_cache_db",
                                          "/mesa_shader_cache_sf",
                                          "/radv_builtin_shaders64",
                                          "/radv_builtin_shaders",
                                          "/AMD",
                                          "/nvidia"};
    const char *off = getenv("MESA_SHADER_CACHE_DISABLE");
    bool is_off = off && (strcmp(off, "true") == 0 || strcmp(off, "1") == 0);
    for (size_t i = 0; i < N(named); i++) {
        const char *folder = getenv(named[i]);
        if (folder && folder[0] == '/') cache(p, strdup(folder));
    }
    for (size_t i = 0; i < N(folders); i++) {
        char *path = user_folder("XDG_CACHE_HOME", "/.cache", folders[i]);
        if (i < 2 && !is_off)
            cache(p, path);
        else {
            if (path && access(path, F_OK) == 0) p->may_change(p->user, path);
            free(path);
        }
    }
    if (access("/proc/driver/nvidia", F_OK) == 0)
        cache(p, user_folder("XDG_CACHE_HOME", "/.cache", "/nvidia/GLCache"));
}

void driver_paths_of_vulkan(const struct driver_paths *p) {
    static const char *const nodes[] = {"/dev/dri",  "/dev/kfd",     "/dev/mali*",   "/dev/kgsl*",
                                        "/dev/pvr*", "/dev/udmabuf", "/dev/dma_heap"};
    static const char *const settings[] = {"/etc/drirc", "/etc/vulkan", "/etc/glvnd", "/etc/amd",
                                           "/etc/machine-id"};
    each_match(p, p->may_open, nodes, N(nodes));
    nvidia(p);
    each(p, p->may_read, settings, N(settings));
    each_element(p, p->may_read, getenv("DRIRC_CONFIGDIR"), "");
    // The list of devices begins with the GPU that draws the desktop. Finding that GPU requires a
    // connection to the display server.
    each_element(p, p->may_read, getenv("XAUTHORITY"), "");
    const char *home = getenv("HOME");
    if (home && home[0] == '/') {
        each_element(p, p->may_read, home, "/.drirc");
        each_element(p, p->may_read, home, "/.Xauthority");
    }
    manifests_of_loader(p);
    vulkan_caches(p);
}

// CUDA

static void folder_of(const struct driver_paths *p, const char *file) {
    char *whole = file && *file ? realpath(file, NULL) : NULL;
    if (!whole) return;
    *strrchr(whole, '/') = 0;
    p->may_read(p->user, whole[0] ? whole : "/");
    free(whole);
}

void driver_paths_of_cuda(const struct driver_paths *p) {
    nvidia(p);
    folder_of(p, getenv("REE_CUDA_DRIVER"));
    folder_of(p, getenv("REE_CUBLAS"));
    const char *mps = getenv("CUDA_MPS_PIPE_DIRECTORY");
    p->may_open(p->user, mps && *mps ? mps : "/tmp/nvidia-mps");
    // The driver's cache of compiled code. Skipped on machines without NVIDIA's kernel module.
    const char *folder = getenv("CUDA_CACHE_PATH"), *off = getenv("CUDA_CACHE_DISABLE");
    if ((off && strcmp(off, "1") == 0) || access("/proc/driver/nvidia", F_OK) != 0) return;
    cache(p,
          folder && folder[0] == '/' ? strdup(folder) : user_folder("", "/.nv", "/ComputeCache"));
}

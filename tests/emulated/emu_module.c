/* emu_module.c - modules of the emulated driver: what emu_nvrtc.c made is loaded with dlopen. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu_image.h"
#include "emu_inside.h"

EMU_EXPORT int cuModuleLoadData(emu_module **module, const void *image);
EMU_EXPORT int cuModuleUnload(emu_module *module);
EMU_EXPORT int cuModuleGetFunction(emu_function **function, emu_module *module, const char *name);
EMU_EXPORT int cuFuncSetAttribute(emu_function *function, int attribute, int value);

/* What the parameters of a function are, as emu_kernel.kinds; for tests. */
EMU_EXPORT const char *emu_function_kinds(const emu_function *function);

/* dlopen tells libraries by their names, so that each image gets a file of its own for a moment. */
static void *load(const emu_image *image) {
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/emulated-XXXXXX", folder != NULL ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0) {
        return NULL;
    }
    const char *bytes = (const char *)(image + 1);
    size_t done = 0;
    while (done < image->bytes) {
        ssize_t wrote = write(file, bytes + done, image->bytes - done);
        if (wrote <= 0) {
            break;
        }
        done += (size_t)wrote;
    }
    (void)close(file);
    void *handle = done == image->bytes ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle == NULL) {
        emu_complain("a module could not be loaded: %s", dlerror());
    }
    (void)unlink(path);
    return handle;
}

/* Defines that are variables (emu_nvrtc.c); false: the library does not have them. */
static bool set_numbers(void *handle, const emu_image *image) {
    int *const *places = dlsym(handle, "emu_numbers");
    for (int i = 0; i < image->count && places != NULL; i++) {
        *places[i] = image->numbers[i];
    }
    return places != NULL;
}

static bool suits(const emu_image *image) {
    int gpu = emu_capability();
    return image->arch <= gpu && (image->ptx != 0 || image->arch / 10 == gpu / 10);
}

int cuModuleLoadData(emu_module **module, const void *image) {
    int result = emu_enter_context();
    if (result != EMU_GOOD) {
        return emu_leave(result);
    }
    if (image == NULL || memcmp(image, EMU_IMAGE_MAGIC, sizeof EMU_IMAGE_MAGIC) != 0) {
        return emu_leave(EMU_INVALID_IMAGE);
    }
    if (!suits(image)) {
        return emu_leave(EMU_NO_BINARY);
    }
    void *handle = load(image);
    emu_link_table *link = handle != NULL ? dlsym(handle, "emu_link") : NULL;
    bool good = link != NULL && set_numbers(handle, image);
    emu_module *made = good ? emu_handle_new(sizeof *made, EMU_HANDLE_MODULE) : NULL;
    if (made == NULL) {
        if (handle != NULL) {
            (void)dlclose(handle);
        }
        return emu_leave(EMU_INVALID_IMAGE);
    }
    made->handle = handle;
    made->link = link;
    *module = made;
    return emu_leave(EMU_GOOD);
}

int cuModuleUnload(emu_module *module) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(module, EMU_HANDLE_MODULE)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        while (module->functions != NULL) {
            emu_function *function = module->functions;
            module->functions = function->next;
            free(function->name);
            emu_handle_free(function);
        }
        (void)dlclose(module->handle);
        emu_handle_free(module);
    }
    return emu_leave(result);
}

static int find_function(emu_function **function, emu_module *module, const char *name) {
    char symbol[256];
    for (emu_function *f = module->functions; f != NULL; f = f->next) {
        if (strcmp(f->name, name) == 0) {
            *function = f;
            return EMU_GOOD;
        }
    }
    snprintf(symbol, sizeof symbol, "emu_kernel_%s", name);
    const emu_kernel *kernel = dlsym(module->handle, symbol);
    if (kernel == NULL) {
        return EMU_NOT_FOUND;
    }
    emu_function *made = emu_handle_new(sizeof *made, EMU_HANDLE_FUNCTION);
    if (made == NULL) {
        return EMU_OUT_OF_MEMORY;
    }
    *made = (emu_function){.next = module->functions,
                           .module = module,
                           .kernel = kernel,
                           .name = strdup(name),
                           .most_shared = EMU_USUAL_SHARED};
    module->functions = made;
    *function = made;
    return EMU_GOOD;
}

int cuModuleGetFunction(emu_function **function, emu_module *module, const char *name) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(module, EMU_HANDLE_MODULE)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD) {
        result = find_function(function, module, name);
    }
    return emu_leave(result);
}

int cuFuncSetAttribute(emu_function *function, int attribute, int value) {
    int result = emu_enter_context();
    if (result == EMU_GOOD && !emu_handle_is(function, EMU_HANDLE_FUNCTION)) {
        result = EMU_INVALID_HANDLE;
    }
    if (result == EMU_GOOD && attribute == 8) { /* MAX_DYNAMIC_SHARED_SIZE_BYTES */
        bool good = value >= 0 && value <= EMU_MOST_SHARED;
        function->most_shared = good ? (unsigned)value : function->most_shared;
        result = good ? EMU_GOOD : EMU_INVALID_VALUE;
    } else if (result == EMU_GOOD) {
        result = EMU_INVALID_VALUE;
    }
    return emu_leave(result);
}

const char *emu_function_kinds(const emu_function *function) {
    return function->kernel->kinds;
}

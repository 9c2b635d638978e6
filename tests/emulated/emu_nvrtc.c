/*
 * emu_nvrtc.c - the emulated NVRTC: kernels are compiled by the host's C compiler.
 *
 * It plays libnvrtc.so.13, as far as src/backend/cuda/driver/api.h names it. The text is
 * compiled with emu_kernel.h in front, and what calls a kernel in front of it (emu_text.h). The
 * compiler is $CC, or cc. What was compiled is kept beside this library, in kept/. Threads may
 * compile at the same time.
 *
 * Kernels are made for sizes, which are defines. Compiling takes longer than running them, so that
 * here a define is a variable if it can be: if it is a number that need be no constant, as in a
 * condition of the preprocessor. Kernels that differ only in variables are compiled once, and the
 * driver sets these as it loads the library. A text that needs more constants than emu_text.h finds
 * does not compile so; that is kept too, and then it is compiled with the numbers themselves.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu_image.h"
#include "emu_text.h"

#define EMU_EXPORT __attribute__((visibility("default")))

extern char **environ;

enum {
    NVRTC_GOOD = 0,
    NVRTC_OUT_OF_MEMORY = 1,
    NVRTC_INVALID_INPUT = 3,
    NVRTC_INVALID_OPTION = 5,
    NVRTC_COMPILATION = 6
};
enum { MOST_OPTIONS = 64 };

typedef struct _nvrtcProgram {
    char *source;
    char *name;
    char *log;
    char *image; /* emu_image and what is behind it */
    size_t image_bytes;
    int arch; /* that it was compiled for, and whether for all that are not older */
    bool ptx;
} emu_program;

EMU_EXPORT int nvrtcVersion(int *major, int *minor);
EMU_EXPORT int nvrtcGetNumSupportedArchs(int *count);
EMU_EXPORT int nvrtcGetSupportedArchs(int *archs);
EMU_EXPORT int nvrtcCreateProgram(emu_program **program, const char *source, const char *name,
                                  int header_count, const char *const *headers,
                                  const char *const *header_names);
EMU_EXPORT int nvrtcCompileProgram(emu_program *program, int option_count,
                                   const char *const *options);
EMU_EXPORT int nvrtcGetCUBINSize(emu_program *program, size_t *bytes);
EMU_EXPORT int nvrtcGetCUBIN(emu_program *program, char *code);
EMU_EXPORT int nvrtcGetPTXSize(emu_program *program, size_t *bytes);
EMU_EXPORT int nvrtcGetPTX(emu_program *program, char *text);
EMU_EXPORT int nvrtcGetProgramLogSize(emu_program *program, size_t *bytes);
EMU_EXPORT int nvrtcGetProgramLog(emu_program *program, char *log);
EMU_EXPORT int nvrtcDestroyProgram(emu_program **program);

/* ---- files and processes ---- */

/* A whole file with a 0 behind it, and `before` bytes left free in front; NULL when there is none.
 */
static char *read_file(const char *path, size_t before, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    *bytes = 0;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        long length = ftell(file);
        rewind(file);
        text = length >= 0 ? calloc(1, before + (size_t)length + 1) : NULL;
        *bytes = text != NULL ? fread(text + before, 1, (size_t)length, file) : 0;
    }
    (void)fclose(file);
    return text;
}

/*
 * Runs the compiler with these arguments, its complaints into the file `log`. $CC may be several
 * words.
 */
static bool run_compiler(const char *const *arguments, int count, const char *log) {
    enum { MOST_FIRST = 16 };
    char compiler[600];
    char *words[MOST_OPTIONS + 40 + MOST_FIRST];
    char *rest = NULL;
    int n = 0;
    const char *told = getenv("CC");
    snprintf(compiler, sizeof compiler, "%s", told != NULL && *told != '\0' ? told : "cc");
    for (char *word = strtok_r(compiler, " ", &rest); word != NULL && n < MOST_FIRST;
         word = strtok_r(NULL, " ", &rest)) {
        words[n++] = word;
    }
    for (int i = 0; i < count; i++) {
        words[n++] = (char *)(uintptr_t)arguments[i];
    }
    words[n] = NULL;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, words[0], &files, NULL, words, environ) == 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    posix_spawn_file_actions_destroy(&files);
    return status == 0;
}

/* The folder that this library and emu_kernel.h lie in. */
static void own_folder(char *folder, size_t room) {
    Dl_info info;
    snprintf(folder, room, ".");
    if (dladdr((void *)(uintptr_t)nvrtcVersion, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        if (slash != NULL) {
            snprintf(folder, room, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
        }
    }
}

/* ---- places ---- */

typedef struct paths {
    char folder[256];
    char source[300], library[300], log[300];
    char own[512], header[600];
} paths;

static bool make_paths(paths *p) {
    const char *base = getenv("TMPDIR");
    snprintf(p->folder, sizeof p->folder, "%s/emulated-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(p->folder) == NULL) {
        return false;
    }
    snprintf(p->source, sizeof p->source, "%s/kernel.c", p->folder);
    snprintf(p->library, sizeof p->library, "%s/kernel.so", p->folder);
    snprintf(p->log, sizeof p->log, "%s/log", p->folder);
    own_folder(p->own, sizeof p->own);
    snprintf(p->header, sizeof p->header, "%s/emu_kernel.h", p->own);
    return true;
}

static void remove_paths(const paths *p) {
    (void)unlink(p->source);
    (void)unlink(p->library);
    (void)unlink(p->log);
    (void)rmdir(p->folder);
}

/* What the library knows, as libnvrtc.so.13.0 does. */
static const int archs_known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
enum { ARCHS_KNOWN = sizeof archs_known / sizeof *archs_known };

/* What is compiled for; false: there is no such GPU. */
static bool read_target(emu_program *program, int option_count, const char *const *options) {
    static const char option[] = "--gpu-architecture=";
    const char *text = "compute_75";
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], option, sizeof option - 1) == 0) {
            text = options[i] + sizeof option - 1;
        }
    }
    program->ptx = strncmp(text, "compute_", 8) == 0;
    program->arch = program->ptx                   ? atoi(text + 8)
                    : strncmp(text, "sm_", 3) == 0 ? atoi(text + 3)
                                                   : 0;
    for (int i = 0; i < ARCHS_KNOWN; i++) {
        if (archs_known[i] == program->arch) {
            return true;
        }
    }
    return false;
}

/* ---- defines ---- */

/* The defines of a kernel: those that the compiler gets as they are, and those that are variables.
 */
typedef struct defines {
    const char *plain[MOST_OPTIONS]; /* "-DNAME=VALUE" */
    int plain_count;
    char variables[EMU_MOST_NUMBERS][100]; /* "-DNAME=(*&emu_number_NAME)" */
    char names[EMU_MOST_NUMBERS][40];
    int32_t numbers[EMU_MOST_NUMBERS];
    int count;
} defines;

/* Whether "-DNAME=VALUE" can be a variable. */
static bool is_number(const char *option, const emu_words *constants) {
    const char *name = option + 2;
    size_t length = strcspn(name, "=");
    const char *value = name + length + (name[length] == '=');
    size_t digits = strspn(value, "0123456789");
    return length < sizeof((defines *)NULL)->names[0] && digits > 0 && digits < 10 &&
           value[digits] == '\0' && !(value[0] == '0' && digits > 1) &&
           !emu_words_have(constants, name, length);
}

/* `constants` NULL: none is a variable. */
static void sort_defines(defines *d, int option_count, const char *const *options,
                         const emu_words *constants) {
    d->plain_count = 0;
    d->count = 0;
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], "-D", 2) != 0) {
            continue;
        }
        if (options[i][2] == '\0' && i + 1 < option_count) { /* "-D", "NAME=VALUE" */
            d->plain[d->plain_count++] = options[i++];
            d->plain[d->plain_count++] = options[i];
            continue;
        }
        if (constants == NULL || d->count == EMU_MOST_NUMBERS ||
            !is_number(options[i], constants)) {
            d->plain[d->plain_count++] = options[i];
            continue;
        }
        char name[sizeof d->names[0]];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(options[i] + 2, "="), options[i] + 2);
        memcpy(d->names[d->count], name, sizeof name);
        /* In a condition after all, this is an error and not silently 0. */
        snprintf(d->variables[d->count], sizeof d->variables[0], "-D%s=(*&emu_number_%s)", name,
                 name);
        d->numbers[d->count++] = atoi(strchr(options[i], '=') + 1);
    }
}

/* ---- compiling ---- */

/* The variables stand in front, in a table that the driver finds by its name. */
static bool write_source(const emu_program *program, const char *plain, const defines *d,
                         const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    for (int i = 0; i < d->count; i++) {
        fprintf(file, "static int emu_number_%s;\n", d->names[i]);
    }
    fputs("extern int *const emu_numbers[]; int *const emu_numbers[] = {", file);
    for (int i = 0; i < d->count; i++) {
        fprintf(file, "&emu_number_%s, ", d->names[i]);
    }
    fprintf(file, "0};\n#line 1 \"%s\"\n", program->name);
    emu_text_write(file, program->source, plain);
    fputs("\n", file);
    return fclose(file) == 0;
}

/*
 * What C++ refuses is refused here too. What is undefined and would go unnoticed on a host, such as
 * a vector on a wrong boundary, is a trap. Most kernels run for less time than it takes to compile
 * them: of the ways to optimise this one costs least in all. Functions of the C library are found
 * when the driver loads the kernel: a linker that looks for them takes three times as long.
 */
static const char *const flags[] = {
    "-std=gnu11",
    "-Og",
    "-pipe",
    "-fPIC",
    "-shared",
    "-nostartfiles",
    "-nodefaultlibs",
    "-fno-asynchronous-unwind-tables",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-fsanitize=alignment,bounds,integer-divide-by-zero,signed-integer-overflow",
    "-fsanitize-undefined-trap-on-error"};
enum { FLAGS = sizeof flags / sizeof *flags };

static bool build(emu_program *program, const char *plain, const paths *p, const defines *d) {
    const char *words[FLAGS + MOST_OPTIONS + EMU_MOST_NUMBERS];
    char arch[40];
    int n = FLAGS;
    size_t bytes;
    memcpy(words, flags, sizeof flags);
    snprintf(arch, sizeof arch, "-DEMU_ARCH=%d", program->arch);
    words[n++] = arch;
    for (int i = 0; i < d->plain_count; i++) {
        words[n++] = d->plain[i];
    }
    for (int i = 0; i < d->count; i++) {
        words[n++] = d->variables[i];
    }
    const char *const files[] = {"-include", p->header, p->source, "-o", p->library};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        words[n++] = files[i];
    }
    if (!write_source(program, plain, d, p->source) || !run_compiler(words, n, p->log)) {
        return false;
    }
    program->image = read_file(p->library, sizeof(emu_image), &bytes);
    if (program->image == NULL) {
        return false;
    }
    emu_image head = {.arch = program->arch, .ptx = program->ptx, .bytes = bytes};
    memcpy(head.magic, EMU_IMAGE_MAGIC, sizeof head.magic);
    memcpy(program->image, &head, sizeof head);
    program->image_bytes = sizeof head + bytes;
    return true;
}

/* ---- what was compiled before ---- */

static uint64_t mix(uint64_t hash, const char *text) {
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    }
    return (hash ^ 0xFF) * 0x100000001B3u; /* where one text ends matters */
}

/*
 * Where the result of this text, these defines and this compiler is kept: beside this library, in a
 * folder that goes with the build. A test compiles the same few hundred kernels every time.
 */
static void kept_path(const emu_program *program, const paths *p, const defines *d, char *path,
                      size_t room) {
    static const char *const headers[] = {"emu_kernel.h", "emu_link.h"};
    const char *compiler = getenv("CC");
    uint64_t hash[2] = {0xCBF29CE484222325u, 0x9E3779B97F4A7C15u};
    char target[40];
    snprintf(target, sizeof target, "%s_%d", program->ptx ? "compute" : "sm", program->arch);
    for (int k = 0; k < 2; k++) {
        hash[k] = mix(hash[k], EMU_IMAGE_MAGIC);
        hash[k] = mix(hash[k], compiler != NULL ? compiler : "cc");
        for (int i = 0; i < FLAGS; i++) {
            hash[k] = mix(hash[k], flags[i]);
        }
        hash[k] = mix(hash[k], program->source);
        hash[k] = mix(hash[k], program->name);
        hash[k] = mix(hash[k], target);
        for (int i = 0; i < d->plain_count; i++) {
            hash[k] = mix(hash[k], d->plain[i]);
        }
        for (int i = 0; i < d->count; i++) {
            hash[k] = mix(hash[k], d->variables[i]);
        }
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t bytes;
        snprintf(path, room, "%s/%s", p->own, headers[i]);
        char *text = read_file(path, 0, &bytes);
        hash[0] = mix(hash[0], text != NULL ? text : "");
        hash[1] = mix(hash[1], text != NULL ? text : "");
        free(text);
    }
    snprintf(path, room, "%s/kept", p->own);
    (void)mkdir(path, 0777);
    snprintf(path, room, "%s/kept/%016llx%016llx", p->own, (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
}

/* Several programs may keep the same at the same time; where nothing can be written, nothing is. */
static void keep(const emu_program *program, const char *path) {
    char unfinished[700];
    snprintf(unfinished, sizeof unfinished, "%s-XXXXXX", path);
    int file = mkstemp(unfinished);
    if (file < 0) {
        return;
    }
    ssize_t wrote = write(file, program->image, program->image_bytes);
    bool good = close(file) == 0 && wrote == (ssize_t)program->image_bytes;
    if (!good || rename(unfinished, path) != 0) {
        (void)unlink(unfinished);
    }
}

/* Used now: what is removed first was not used for the longest time. */
static bool recall(emu_program *program, const char *path) {
    program->image = read_file(path, 0, &program->image_bytes);
    (void)utimensat(AT_FDCWD, path, NULL, 0);
    return program->image != NULL;
}

/* That a text does not compile with variables is an empty file. */
static bool needs_constants(const char *path) {
    char empty[700];
    snprintf(empty, sizeof empty, "%s-constants", path);
    return utimensat(AT_FDCWD, empty, NULL, 0) == 0;
}

static void keep_needs_constants(const char *path) {
    char empty[700];
    snprintf(empty, sizeof empty, "%s-constants", path);
    int file = open(empty, O_WRONLY | O_CREAT, 0666);
    if (file >= 0) {
        (void)close(file);
    }
}

/* Above this many, those are removed that nothing has used for an hour. */
enum { MOST_KEPT = 4000, KEPT_SECONDS = 3600 };

static void trim(const char *own) {
    char path[900];
    int count = 0;
    snprintf(path, sizeof path, "%s/kept", own);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    rewinddir(folder);
    const struct dirent *entry;
    while (count > MOST_KEPT && (entry = readdir(folder)) != NULL) {
        struct stat about;
        snprintf(path, sizeof path, "%s/kept/%s", own, entry->d_name);
        if (stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
            about.st_mtime < time(NULL) - KEPT_SECONDS && unlink(path) == 0) {
            count--;
        }
    }
    (void)closedir(folder);
}

static void trim_on_load(void) __attribute__((constructor));
static void trim_on_load(void) {
    char own[512];
    own_folder(own, sizeof own);
    trim(own);
}

/* ---- what the library exports ---- */

int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return NVRTC_GOOD;
}

int nvrtcGetNumSupportedArchs(int *count) {
    *count = ARCHS_KNOWN;
    return NVRTC_GOOD;
}

int nvrtcGetSupportedArchs(int *archs) {
    memcpy(archs, archs_known, sizeof archs_known);
    return NVRTC_GOOD;
}

int nvrtcCreateProgram(emu_program **program, const char *source, const char *name,
                       int header_count, const char *const *headers,
                       const char *const *header_names) {
    (void)headers;
    (void)header_names;
    if (program == NULL || source == NULL || header_count != 0) {
        return NVRTC_INVALID_INPUT;
    }
    emu_program *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->source = strdup(source);
        made->name = strdup(name != NULL ? name : "kernel");
    }
    *program = made;
    return made != NULL && made->source != NULL && made->name != NULL ? NVRTC_GOOD
                                                                      : NVRTC_OUT_OF_MEMORY;
}

/* Makes the image with these defines: it was kept, or is built and kept. */
static bool make_image(emu_program *program, const char *plain, const paths *p, const defines *d) {
    char path[600];
    kept_path(program, p, d, path, sizeof path);
    if (!recall(program, path)) {
        if (d->count > 0 && needs_constants(path)) {
            return false;
        }
        if (!build(program, plain, p, d)) {
            return false;
        }
        keep(program, path);
    }
    emu_image head;
    memcpy(&head, program->image, sizeof head);
    head.count = d->count;
    memcpy(head.numbers, d->numbers, sizeof *head.numbers * (size_t)d->count);
    memcpy(program->image, &head, sizeof head);
    return true;
}

/* With variables, or else without. */
static bool make(emu_program *program, const paths *p, int option_count,
                 const char *const *options) {
    defines *d = calloc(1, sizeof *d);
    emu_words *constants = calloc(1, sizeof *constants);
    char *plain = emu_text_plain(program->source);
    bool good = false;
    if (d != NULL && constants != NULL && plain != NULL) {
        emu_text_constants(plain, constants);
        sort_defines(d, option_count, options, constants);
        good = make_image(program, plain, p, d);
        if (!good && d->count > 0) {
            char path[600];
            kept_path(program, p, d, path, sizeof path);
            sort_defines(d, option_count, options, NULL);
            good = make_image(program, plain, p, d);
            if (good) { /* otherwise the text or the compiler is at fault, not the variables */
                keep_needs_constants(path);
            }
        }
    }
    free(plain);
    free(constants);
    free(d);
    return good;
}

int nvrtcCompileProgram(emu_program *program, int option_count, const char *const *options) {
    paths p;
    size_t bytes;
    if (program == NULL || option_count < 0 || option_count > MOST_OPTIONS) {
        return NVRTC_INVALID_INPUT;
    }
    free(program->image);
    free(program->log);
    program->image = NULL;
    program->image_bytes = 0;
    program->log = NULL;
    if (!read_target(program, option_count, options)) {
        program->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)");
        return NVRTC_INVALID_OPTION;
    }
    if (!make_paths(&p)) {
        program->log = strdup("the emulated NVRTC could not make a folder for its files");
        return NVRTC_COMPILATION;
    }
    bool good = make(program, &p, option_count, options);
    program->log = read_file(p.log, 0, &bytes);
    remove_paths(&p);
    return good ? NVRTC_GOOD : NVRTC_COMPILATION;
}

/* There is machine code only of what was compiled for one GPU, and here no PTX of that. */
static int give_bytes(const emu_program *program, bool ptx, size_t *bytes) {
    *bytes = ptx == program->ptx ? program->image_bytes : 0;
    return NVRTC_GOOD;
}

static int give(const emu_program *program, bool ptx, char *code) {
    if (program->image == NULL || ptx != program->ptx) {
        return NVRTC_INVALID_INPUT;
    }
    memcpy(code, program->image, program->image_bytes);
    return NVRTC_GOOD;
}

int nvrtcGetCUBINSize(emu_program *program, size_t *bytes) {
    return give_bytes(program, false, bytes);
}

int nvrtcGetCUBIN(emu_program *program, char *code) {
    return give(program, false, code);
}

int nvrtcGetPTXSize(emu_program *program, size_t *bytes) {
    return give_bytes(program, true, bytes);
}

int nvrtcGetPTX(emu_program *program, char *text) {
    return give(program, true, text);
}

int nvrtcGetProgramLogSize(emu_program *program, size_t *bytes) {
    *bytes = program->log != NULL ? strlen(program->log) + 1 : 1;
    return NVRTC_GOOD;
}

int nvrtcGetProgramLog(emu_program *program, char *log) {
    size_t bytes;
    (void)nvrtcGetProgramLogSize(program, &bytes);
    memcpy(log, program->log != NULL ? program->log : "", bytes);
    return NVRTC_GOOD;
}

int nvrtcDestroyProgram(emu_program **program) {
    if (program == NULL || *program == NULL) {
        return NVRTC_INVALID_INPUT;
    }
    free((*program)->source);
    free((*program)->name);
    free((*program)->log);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return NVRTC_GOOD;
}

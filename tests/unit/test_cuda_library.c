/* test_cuda_library.c - where NVIDIA's libraries are found, and what is said when they are not. */
#include "check.h"

#include <sys/stat.h>

#include "backend/cuda/driver/jpeg_api.h"
#include "backend/cuda/driver/search.h"
#include "base/files/file.h"
#include "base/mem.h"

/* Copies a fake library to a folder under the name of a real one. */
static bool put(const char *folder, const char *fake, const char *name) {
    char from[512];
    char to[512];
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    snprintf(from, sizeof from, "%s/%s.so", STK_FAKES_FOLDER, fake);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    bool good = stk_file_read(from, 0, &data, &size, &err) == STK_OK &&
                stk_file_write(to, data, size, &err) == STK_OK;
    stk_mem_free(data);
    return good;
}

/* What opening the three libraries beside the driver comes to with STOKER_CUDA_LIBS; the caller
 * closes. */
static stk_status open_with(const char *folders, int driver_version, bool only_look,
                            cuda_libraries *libraries, stk_error *err) {
    setenv("STOKER_CUDA_LIBS", folders, 1);
    *libraries = (cuda_libraries){.driver_version = driver_version};
    memset(err, 0, sizeof *err);
    stk_status status = stk_cuda_toolkit_open(libraries, 0, only_look, err);
    unsetenv("STOKER_CUDA_LIBS");
    return status;
}

static bool starts_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

static void missing_ones_are_told_one_by_one(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    CHECK_INT(open_with(folder, 13000, false, &libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "no libcudnn.so.9 was found in the folders of STOKER_CUDA_LIBS");
    CHECK_CONTAINS(err.message, "nvidia-cudnn-cu13");
    CHECK_INT(open_with(folder, 12040, false, &libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "nvidia-cudnn-cu12");

    REQUIRE(put(folder, "fake_cudnn_13", "libcudnn.so.9"));
    for (int look = 0; look < 2; look++) {
        CHECK_INT(open_with(folder, 13000, look == 1, &libraries, &err), STK_ERR_DEVICE);
        CHECK_CONTAINS(err.message, "no libnvrtc.so.13 was found");
        CHECK_CONTAINS(err.message, "pip install nvidia-cuda-nvrtc)");
        stk_cuda_libraries_close(&libraries);
    }
    REQUIRE(put(folder, "fake_nvrtc_13", "libnvrtc.so.13"));
    for (int look = 0; look < 2; look++) {
        CHECK_INT(open_with(folder, 13000, look == 1, &libraries, &err), STK_ERR_DEVICE);
        CHECK_CONTAINS(err.message, "no libcublasLt.so.13 was found");
        stk_cuda_libraries_close(&libraries);
    }
    REQUIRE(put(folder, "fake_cublaslt", "libcublasLt.so.13"));
    REQUIRE_OK(open_with(folder, 13000, false, &libraries, &err), &err);
    CHECK_INT(libraries.nvrtc_version, 1300);
    CHECK_INT(libraries.cudnn_version, 91900);
    CHECK_INT(libraries.cublaslt_version, 130100);
    for (int i = CUDA_LIBRARY_NVRTC; i <= CUDA_LIBRARY_CUBLASLT; i++) {
        CHECK(starts_with(libraries.found[i], folder));
    }
    stk_cuda_libraries_close(&libraries);
}

static void looking_opens_nothing_large(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    const char *folder = check_folder();
    REQUIRE(put(folder, "fake_cudnn_13", "libcudnn.so.9"));
    REQUIRE(put(folder, "fake_nvrtc_13", "libnvrtc.so.13"));
    REQUIRE(put(folder, "fake_cublaslt", "libcublasLt.so.13"));
    REQUIRE_OK(open_with(folder, 13000, true, &libraries, &err), &err);
    CHECK_INT(libraries.cudnn_version, 91900);
    CHECK(libraries.handles[CUDA_LIBRARY_NVRTC] == NULL);
    CHECK(libraries.handles[CUDA_LIBRARY_CUBLASLT] == NULL);
    stk_cuda_libraries_close(&libraries);
}

static void the_first_folder_wins(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    char first[256];
    char second[256];
    char both[600];
    snprintf(first, sizeof first, "%s", check_folder());
    snprintf(second, sizeof second, "%s", check_folder());
    REQUIRE(put(first, "fake_nvrtc_13", "libnvrtc.so.13"));
    REQUIRE(put(second, "fake_nvrtc_13", "libnvrtc.so.13"));
    REQUIRE(put(second, "fake_cudnn_13", "libcudnn.so.9"));
    REQUIRE(put(second, "fake_cublaslt", "libcublasLt.so.13"));
    snprintf(both, sizeof both, "%s:/there/is/none::%s", first, second);
    REQUIRE_OK(open_with(both, 13000, false, &libraries, &err), &err);
    CHECK(starts_with(libraries.found[CUDA_LIBRARY_NVRTC], first));
    CHECK(starts_with(libraries.found[CUDA_LIBRARY_CUDNN], second));
    stk_cuda_libraries_close(&libraries);
    snprintf(both, sizeof both, "%s:%s", second, first);
    REQUIRE_OK(open_with(both, 13000, false, &libraries, &err), &err);
    CHECK(starts_with(libraries.found[CUDA_LIBRARY_NVRTC], second));
    stk_cuda_libraries_close(&libraries);
}

static void versions_of_cuda_are_not_mixed(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    const char *folder = check_folder();
    REQUIRE(put(folder, "fake_cudnn_12", "libcudnn.so.9"));
    REQUIRE(put(folder, "fake_nvrtc_13", "libnvrtc.so.13"));
    REQUIRE(put(folder, "fake_cublaslt", "libcublasLt.so.13"));
    CHECK_INT(open_with(folder, 13000, false, &libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "no libnvrtc.so.12 was found");
    CHECK_CONTAINS(err.message, "nvidia-cuda-nvrtc-cu12");
    stk_cuda_libraries_close(&libraries);
    REQUIRE(put(folder, "fake_nvrtc_12", "libnvrtc.so.12"));
    REQUIRE(put(folder, "fake_cublaslt", "libcublasLt.so.12"));
    REQUIRE_OK(open_with(folder, 13000, false, &libraries, &err), &err);
    CHECK_INT(libraries.nvrtc_version, 1208);
    stk_cuda_libraries_close(&libraries);
    /* What is open stays open: another library must lie elsewhere. */
    folder = check_folder();
    REQUIRE(put(folder, "fake_cudnn_13", "libcudnn.so.9"));
    CHECK_INT(open_with(folder, 12040, false, &libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "is for CUDA 13, but driver and GPU can do CUDA 12");
    CHECK_CONTAINS(err.message, "install nvidia-cudnn-cu12");
    stk_cuda_libraries_close(&libraries);
}

static void what_is_no_library_is_told(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    const char *folder = check_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/libcudnn.so.9", folder);
    REQUIRE_OK(stk_file_write(path, "text\n", 5, &err), &err);
    CHECK_INT(open_with(folder, 13000, false, &libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "libcudnn.so.9 cannot be opened: ");
    CHECK_CONTAINS(err.message, folder);
    stk_cuda_libraries_close(&libraries);
}

static void a_driver_that_does_not_fit_is_told(void) {
    cuda_libraries libraries;
    stk_error err = {0};
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    REQUIRE(put(folder, "fake_driver", "libcuda.so.1"));
    setenv("STOKER_CUDA_LIBS", folder, 1);
    CHECK_INT(stk_cuda_libraries_open(&libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "the NVIDIA driver can do CUDA 0.0, and CUDA 12 is needed");
    CHECK(libraries.handles[CUDA_LIBRARY_DRIVER] == NULL);
    snprintf(folder, sizeof folder, "%s", check_folder());
    REQUIRE(put(folder, "fake_cublaslt", "libcuda.so.1"));
    setenv("STOKER_CUDA_LIBS", folder, 1);
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_cuda_libraries_open(&libraries, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "has no cuInit: its version is not supported");
    CHECK_CONTAINS(err.message, folder);
    unsetenv("STOKER_CUDA_LIBS");
}

/* What opening nvJPEG comes to with STOKER_CUDA_LIBS; the caller closes. */
static stk_status open_jpeg(const char *folder, const cuda_libraries *libraries, cuda_jpeg *jpeg,
                            stk_error *err) {
    setenv("STOKER_CUDA_LIBS", folder, 1);
    memset(err, 0, sizeof *err);
    stk_status status = stk_cuda_jpeg_open(jpeg, libraries, err);
    unsetenv("STOKER_CUDA_LIBS");
    return status;
}

static void nvjpeg_that_is_missing_is_told(void) {
    const cuda_libraries thirteen = {.driver_version = 13000, .cuda_major = 13};
    const cuda_libraries twelve = {.driver_version = 13000, .cuda_major = 12};
    const cuda_libraries only_driver = {.driver_version = 13000};
    const char *folder = check_folder();
    cuda_jpeg jpeg;
    stk_error err = {0};
    CHECK_INT(open_jpeg(folder, &thirteen, &jpeg, &err), STK_ERR_DEVICE);
    CHECK_STR(err.message,
              "no libnvjpeg.so.13 was found in the folders of STOKER_CUDA_LIBS: install it (pip "
              "install nvidia-nvjpeg), or set STOKER_CUDA_LIBS to the folder it is in");
    CHECK(jpeg.library == NULL && jpeg.decode == NULL);
    stk_cuda_jpeg_close(&jpeg);
    CHECK_INT(open_jpeg(folder, &twelve, &jpeg, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "no libnvjpeg.so.12 was found");
    CHECK_CONTAINS(err.message, "pip install nvidia-nvjpeg-cu12)");
    stk_cuda_jpeg_close(&jpeg);
    CHECK_INT(open_jpeg(folder, &only_driver, &jpeg, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "no libnvjpeg.so.13 was found");
    stk_cuda_jpeg_close(&jpeg);

    REQUIRE(put(folder, "fake_cublaslt", "libnvjpeg.so.13"));
    CHECK_INT(open_jpeg(folder, &thirteen, &jpeg, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "has no nvjpegGetProperty: its version is not supported");
    CHECK_CONTAINS(err.message, folder);
    stk_cuda_jpeg_close(&jpeg);
}

/* An older one lacks functions that the decoder can do without. */
static void nvjpeg_of_the_version_of_the_others_is_opened(void) {
    cuda_libraries libraries;
    cuda_jpeg jpeg;
    stk_error err = {0};
    const char *folder = check_folder();
    REQUIRE(put(folder, "fake_cudnn_12", "libcudnn.so.9"));
    REQUIRE(put(folder, "fake_nvrtc_12", "libnvrtc.so.12"));
    REQUIRE(put(folder, "fake_cublaslt", "libcublasLt.so.12"));
    REQUIRE(put(folder, "fake_nvjpeg_12", "libnvjpeg.so.12"));
    for (int look = 0; look < 2; look++) {
        REQUIRE_OK(open_with(folder, 13000, look == 1, &libraries, &err), &err);
        CHECK_INT(libraries.cuda_major, 12);
        REQUIRE_OK(open_jpeg(folder, &libraries, &jpeg, &err), &err);
        CHECK_INT(jpeg.version, 12000);
        CHECK(starts_with(jpeg.found, folder));
        CHECK(jpeg.decode != NULL);
        CHECK(jpeg.engines == NULL);
        stk_cuda_jpeg_close(&jpeg);
        CHECK(jpeg.library == NULL && jpeg.decode == NULL);
        stk_cuda_libraries_close(&libraries);
    }
}

static void every_status_of_nvjpeg_has_words(void) {
    stk_error err = {0};
    CHECK_INT(stk_cuda_jpeg_check(CUDA_JPEG_GOOD, "decoding", &err), STK_OK);
    for (int i = 1; i <= 11; i++) {
        memset(&err, 0, sizeof err);
        CHECK_INT(stk_cuda_jpeg_check(i, "decoding", &err),
                  i == CUDA_JPEG_NO_MEMORY ? STK_ERR_MEMORY : STK_ERR_DEVICE);
        CHECK_CONTAINS(err.message, "decoding failed: ");
        CHECK_CONTAINS(err.message, stk_cuda_jpeg_words(i));
        CHECK(strcmp(stk_cuda_jpeg_words(i), stk_cuda_jpeg_words(i - 1)) != 0);
    }
    CHECK_STR(stk_cuda_jpeg_words(-1), stk_cuda_jpeg_words(11));
}

static bool has_folder(const cuda_folders *folders, const char *path) {
    for (size_t i = 0; i < folders->paths.count; i++) {
        if (strcmp(folders->paths.items[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* A Python's folder of a package's libraries below a prefix. */
static bool make_package(const char *prefix, const char *package, char path[512]) {
    stk_error err = {0};
    snprintf(path, 512, "%s/lib/python3.11/site-packages/nvidia/%s/lib", prefix, package);
    return stk_dir_make(path, &err) == STK_OK;
}

static void packages_of_python_are_found(void) {
    char base[256];
    char environment[300];
    char other[300];
    char linked[300];
    char path[1024];
    char a[512];
    char b[512];
    char c[512];
    cuda_folders folders;
    char *old_path = stk_mem_strdup(getenv("PATH"));
    snprintf(base, sizeof base, "%s", check_folder());
    snprintf(environment, sizeof environment, "%s/env", base);
    snprintf(other, sizeof other, "%s/other", base);
    snprintf(linked, sizeof linked, "%s/linked", base);
    REQUIRE(old_path != NULL && make_package(environment, "cu13", a));
    REQUIRE(make_package(other, "cudnn", b) && make_package(linked, "cublas", c));

    /* A python3 in the path that is a link to another's: both are asked. */
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/bin", linked);
    REQUIRE_OK(stk_dir_make(path, &err), &err);
    snprintf(path, sizeof path, "%s/bin", other);
    REQUIRE_OK(stk_dir_make(path, &err), &err);
    snprintf(path, sizeof path, "%s/bin/python3", other);
    REQUIRE_OK(stk_file_write(path, "", 0, &err), &err);
    REQUIRE(chmod(path, 0755) == 0);
    char link_path[512];
    snprintf(link_path, sizeof link_path, "%s/bin/python3", linked);
    REQUIRE(symlink(path, link_path) == 0);

    unsetenv("STOKER_CUDA_LIBS");
    setenv("VIRTUAL_ENV", environment, 1);
    snprintf(path, sizeof path, "/nowhere:%s/bin:%s", linked, old_path);
    setenv("PATH", path, 1);
    stk_cuda_folders_find(&folders);
    CHECK(!folders.given);
    CHECK(has_folder(&folders, a));
    CHECK(has_folder(&folders, b));
    CHECK(has_folder(&folders, c));
    for (size_t i = 0; i < folders.paths.count; i++) {
        CHECK(stk_path_is_dir(folders.paths.items[i]));
    }
    stk_cuda_folders_free(&folders);

    setenv("STOKER_CUDA_LIBS", other, 1);
    stk_cuda_folders_find(&folders);
    CHECK(folders.given);
    CHECK_INT(folders.paths.count, 1);
    stk_cuda_folders_free(&folders);
    unsetenv("STOKER_CUDA_LIBS");
    unsetenv("VIRTUAL_ENV");
    setenv("PATH", old_path, 1);
    stk_mem_free(old_path);
}

static void a_search_without_memory_ends(void) {
    cuda_folders folders;
    setenv("STOKER_CUDA_LIBS", "/tmp:/usr:/usr/lib", 1);
    for (int i = 0; i < 12; i++) {
        stk_mem_fail_after(i);
        stk_cuda_folders_find(&folders);
        stk_mem_fail_after(-1);
        CHECK(folders.paths.count <= 3);
        stk_cuda_folders_free(&folders);
    }
    unsetenv("STOKER_CUDA_LIBS");
}

static const check_test tests[] = {
    TEST(missing_ones_are_told_one_by_one),
    TEST(looking_opens_nothing_large),
    TEST(the_first_folder_wins),
    TEST(versions_of_cuda_are_not_mixed),
    TEST(what_is_no_library_is_told),
    TEST(a_driver_that_does_not_fit_is_told),
    TEST(nvjpeg_that_is_missing_is_told),
    TEST(nvjpeg_of_the_version_of_the_others_is_opened),
    TEST(every_status_of_nvjpeg_has_words),
    TEST(packages_of_python_are_found),
    TEST(a_search_without_memory_ends),
};

CHECK_MAIN(tests)

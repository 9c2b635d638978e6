/* test_pretrained_find.c - where weights are looked for, and which of several is taken. */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "weights/pretrained.h"

static char home[256];

/* An empty home, and no variable that leads elsewhere. */
static void enter(void) {
    static const char *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                            "XDG_CACHE_HOME"};
    snprintf(home, sizeof home, "%s", check_folder());
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i]);
    }
    setenv("HOME", home, 1);
}

/* A file below home with a time: a higher number is newer. */
static void put(const char *name, int age) {
    char path[600];
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/%s", home, name);
    *strrchr(path, '/') = '\0';
    REQUIRE_OK(stk_dir_make(path, &err), &err);
    path[strlen(path)] = '/';
    REQUIRE_OK(stk_file_write(path, "x", 1, &err), &err);
    struct timespec times[2] = {{.tv_sec = 1000000 + age}, {.tv_sec = 1000000 + age}};
    REQUIRE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* A repository of the hub's cache with one snapshot; `ref` is what refs/main says, or NULL. */
static void put_hub(const char *hub, const char *name, const char *revision, const char *ref,
                    int age) {
    char path[500];
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/models--timm--%s/snapshots/%s/model.safetensors", hub, name,
             revision);
    put(path, age);
    if (ref != NULL) {
        snprintf(path, sizeof path, "%s/%s/models--timm--%s/refs", home, hub, name);
        REQUIRE_OK(stk_dir_make(path, &err), &err);
        snprintf(path, sizeof path, "%s/%s/models--timm--%s/refs/main", home, hub, name);
        REQUIRE_OK(stk_file_write(path, ref, strlen(ref), &err), &err);
    }
}

/* Finds a name and compares the end of the path and a part of the reason. */
static void finds(const char *wanted, const char *tail, const char *why) {
    stk_pretrained_file place;
    stk_error err = {0};
    REQUIRE_OK(stk_pretrained_find(wanted, &place, &err), &err);
    size_t length = strlen(place.path);
    CHECK(length >= strlen(tail));
    CHECK_STR(place.path + (length >= strlen(tail) ? length - strlen(tail) : 0), tail);
    CHECK_CONTAINS(place.why, why);
    stk_pretrained_file_free(&place);
    stk_pretrained_file_free(&place);
}

static void lacks(const char *wanted, const char *part) {
    stk_pretrained_file place;
    stk_error err = {0};
    if (stk_pretrained_find(wanted, &place, &err) != STK_ERR_USAGE) {
        CHECK_FAIL("'%s' was found, or %s", wanted, err.message);
        stk_pretrained_file_free(&place);
    }
    CHECK_CONTAINS(err.message, part);
}

static const char hub[] = ".cache/huggingface/hub";

static void words_for_yes_and_no(void) {
    static const char *const no[] = {"false", "no", "off", "0", "none", "NULL", "False", ""};
    static const char *const yes[] = {"true", "True", "yes", "on", "1"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        CHECK(stk_pretrained_wanted(no[i], "m") == NULL);
    }
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        CHECK_STR(stk_pretrained_wanted(yes[i], "m"), "m");
    }
    CHECK(stk_pretrained_wanted(NULL, "m") == NULL);
    CHECK_STR(stk_pretrained_wanted("resnet18", "m"), "resnet18");
    CHECK_STR(stk_pretrained_wanted("x.safetensors", "m"), "x.safetensors");
}

static void a_file_is_itself(void) {
    char path[300];
    enter();
    put("mine.safetensors", 0);
    put("strange", 0);
    snprintf(path, sizeof path, "%s/mine.safetensors", home);
    finds(path, "/mine.safetensors", "the file that was given");
    snprintf(path, sizeof path, "%s/strange", home);
    finds(path, "/strange", "the file that was given");
    lacks("no.safetensors", "there is no such file");
    lacks("./resnet18", "there is no such file");
    lacks("no.pth", "there is no such file");
    lacks(home, "there is no such file"); /* a folder */
}

static void the_branch_names_the_snapshot(void) {
    enter();
    put_hub(hub, "resnet18.a1_in1k", "aaa", "aaa", 1);
    put_hub(hub, "resnet18.a1_in1k", "bbb", NULL, 2);
    finds("resnet18", "aaa/model.safetensors", "resnet18.a1_in1k, timm's default for resnet18");
    finds("resnet18.a1_in1k", "aaa/model.safetensors", "resnet18.a1_in1k");
    finds("timm/resnet18.a1_in1k", "aaa/model.safetensors", "resnet18.a1_in1k");
    finds("hf-hub:timm/resnet18", "aaa/model.safetensors", "timm's default");
    put_hub(hub, "resnet18.a1_in1k", "aaa", "bbb\n", 1);
    finds("resnet18", "bbb/model.safetensors", "a1_in1k");
    /* What it names is not there, leads elsewhere or is nonsense: the newest that is there. */
    static const char *const refs[] = {"ccc", "", "../../x", "..", "\n"};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        put_hub(hub, "resnet18.a1_in1k", "aaa", refs[i], 1);
        finds("resnet18", "bbb/model.safetensors", "a1_in1k");
    }
}

/* The hub keeps links to contents; one whose target is gone is a download that did not end. */
static void broken_links_are_passed_over(void) {
    char path[600];
    stk_error err = {0};
    enter();
    snprintf(path, sizeof path, "%s/%s/models--timm--resnet18.a1_in1k/snapshots/aaa", home, hub);
    REQUIRE_OK(stk_dir_make(path, &err), &err);
    strcat(path, "/model.safetensors");
    REQUIRE(symlink("../../blobs/123", path) == 0);
    lacks("resnet18", "hf download timm/resnet18.a1_in1k model.safetensors");
    char target[600];
    snprintf(target, sizeof target, "%s/models--timm--resnet18.a1_in1k/blobs/123", hub);
    put(target, 0);
    finds("resnet18", "aaa/model.safetensors", "timm's default");
}

static void a_bare_name_takes_the_default_then_the_newest(void) {
    enter();
    put_hub(hub, "resnet50.tv_in1k", "t", "t", 5);
    put_hub(hub, "resnet50d.a1_in1k", "d", "d", 9);
    put_hub(hub, "resnet5", "x", "x", 9);
    finds("resnet50", "t/model.safetensors", "resnet50.tv_in1k, the only one for resnet50");
    put_hub(hub, "resnet50.a2_in1k", "a2", "a2", 7);
    finds("resnet50", "a2/model.safetensors", "resnet50.a2_in1k, the newest of 2 for resnet50");
    finds("resnet50.tv_in1k", "t/model.safetensors", "resnet50.tv_in1k");
    put_hub(hub, "resnet50.a1_in1k", "a1", "a1", 1);
    finds("resnet50", "a1/model.safetensors", "timm's default");
    lacks("resnet50.ra_in1k", "hf download timm/resnet50.ra_in1k model.safetensors");
    /* A file of exactly this name in Stoker's own folder is what was asked for. */
    put(".cache/stoker/resnet50.safetensors", 0);
    finds("resnet50", ".cache/stoker/resnet50.safetensors", "resnet50");
}

static void names_from_before_tags_are_known(void) {
    enter();
    put_hub(hub, "tf_efficientnet_b4.ns_jft_in1k", "n", "n", 1);
    put_hub(hub, "tf_efficientnet_b4.ap_in1k", "p", "p", 2);
    finds("tf_efficientnet_b4_ns", "n/model.safetensors", "tf_efficientnet_b4.ns_jft_in1k");
    finds("tf_efficientnet_b4", "n/model.safetensors", "timm's default");
    finds("tf_efficientnet_b4_ap", "p/model.safetensors", "ap_in1k");
    lacks("tf_efficientnet_b5_ns",
          "hf download timm/tf_efficientnet_b5.ns_jft_in1k model.safetensors");
}

static void own_folders_hold_files_and_folders(void) {
    enter();
    put(".cache/stoker/resnet18.a1_in1k.safetensors", 0);
    put(".cache/stoker/resnet34/model.safetensors", 0);
    put(".cache/stoker/resnet101.tv_in1k/model.safetensors", 0);
    put(".cache/stoker/resnet18.txt", 0);
    finds("resnet18", "/resnet18.a1_in1k.safetensors", "timm's default");
    finds("resnet34", "/resnet34/model.safetensors", "resnet34");
    finds("resnet101", "/resnet101.tv_in1k/model.safetensors", "the only one");
    lacks("resnet152", "hf download timm/resnet152.a1h_in1k");
}

static void variables_lead_to_the_folders(void) {
    char path[400];
    static const struct {
        const char *variable;
        const char *below;
    } cases[] = {{"HF_HUB_CACHE", ""},
                 {"HUGGINGFACE_HUB_CACHE", ""},
                 {"HF_HOME", "/hub"},
                 {"XDG_CACHE_HOME", "/huggingface/hub"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enter();
        snprintf(path, sizeof path, "place%s", cases[i].below);
        put_hub(path, "resnet18.a1_in1k", "r", "r", 0);
        lacks("resnet18", "hf download");
        snprintf(path, sizeof path, "%s/place", home);
        setenv(cases[i].variable, path, 1);
        finds("resnet18", "r/model.safetensors", "timm's default");
        setenv(cases[i].variable, "~/place", 1);
        finds("resnet18", "r/model.safetensors", "timm's default");
    }
    enter();
    put("place/stoker/resnet18.safetensors", 0);
    setenv("XDG_CACHE_HOME", "~/place", 1);
    finds("resnet18", "place/stoker/resnet18.safetensors", "resnet18");
}

static void what_is_missing_is_explained(void) {
    stk_pretrained_file place;
    stk_error err = {0};
    char path[700];
    enter();
    setenv("HF_HOME", "/nowhere", 1);
    snprintf(path, sizeof path, "%s/.cache", home);
    setenv("XDG_CACHE_HOME", path, 1); /* the same folder by another way is looked at once */
    CHECK_INT(stk_pretrained_find("resnet18", &place, &err), STK_ERR_USAGE);
    CHECK(place.path == NULL && place.why == NULL);
    snprintf(path, sizeof path, "looked in /nowhere/hub, %s/%s, %s/.cache/stoker", home, hub, home);
    const char *looked = strstr(err.message, "looked in");
    CHECK_STR(looked, path);
    CHECK_CONTAINS(err.message, "--pretrained FILE.safetensors");
    lacks("convnet_s", "none that timm has published");
    lacks("efficientnet_b7", "none that timm has published");
    lacks("efficientnet_b7.mine", "hf download timm/efficientnet_b7.mine");
    char long_name[300];
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    lacks(long_name, "so long a name");
    /* A folder that cannot be read is told as such. */
    put("place", 0);
    snprintf(path, sizeof path, "%s/place", home);
    setenv("HF_HUB_CACHE", path, 1);
    lacks("resnet18", "place (Not a directory)");
    unsetenv("HOME");
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    lacks("resnet18", "looked in no folder: HOME is not set");
}

static void no_memory_is_told(void) {
    enter();
    put_hub(hub, "resnet18.tv_in1k", "t", "t", 5);
    put_hub(hub, "resnet18.a2_in1k", "u", NULL, 6);
    put(".cache/stoker/resnet18.a3_in1k/model.safetensors", 7);
    put(".cache/stoker/resnet18.a4_in1k.safetensors", 8);
    stk_status status = STK_ERR_MEMORY;
    int n = 0;
    for (; n < 500 && status == STK_ERR_MEMORY; n++) {
        stk_pretrained_file place;
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_pretrained_find("resnet18", &place, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(err.status, status);
        stk_pretrained_file_free(&place);
    }
    CHECK_INT(status, STK_OK);
    CHECK(n > 20);
}

static const check_test tests[] = {
    TEST(words_for_yes_and_no),
    TEST(a_file_is_itself),
    TEST(the_branch_names_the_snapshot),
    TEST(broken_links_are_passed_over),
    TEST(a_bare_name_takes_the_default_then_the_newest),
    TEST(names_from_before_tags_are_known),
    TEST(own_folders_hold_files_and_folders),
    TEST(variables_lead_to_the_folders),
    TEST(what_is_missing_is_explained),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)

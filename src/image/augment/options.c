/* options.c - the options of augmentation. */
#include "image/augment/augment.h"

#define FIELD(name) offsetof(stk_augment_options, name)

static const stk_option options[] = {
    STK_OPTION(CHOICE, "resize", resize, .fallback = "auto", .choices = "auto scale none",
               .help = "how pictures come to the size of the square: scale; or none, which takes "
                       "windows of their own pixels, so that faint changes survive, at random "
                       "places in training; auto: scale, and in train none where the classes are "
                       "versions of the same pictures and look alike"),
    STK_OPTION(DOUBLE, "crop-scale", crop_scale, STK_OPTION_AUTO, STK_OPTION_RANGE(0.01, 1),
               .metavar = "X",
               .help = "least share of a picture's area that a random training crop keeps; auto: "
                       "as the recipe says in train, and torchvision's 0.08 elsewhere"),
    STK_OPTION(BOOL, "flip", flip, .fallback = "true",
               .help = "mirror a training picture with probability 1/2"),
    STK_OPTION(DOUBLE, "color-jitter", color_jitter, .fallback = "0", STK_OPTION_RANGE(0, 1),
               .aliases = "colour_jitter", .metavar = "X",
               .help = "change brightness, contrast and saturation by up to this factor"),
    STK_OPTION(DOUBLE, "hue", hue, .fallback = "0", STK_OPTION_RANGE(0, 0.5), .metavar = "X",
               .help = "turn the hue by up to this share of the colour circle"),
    STK_OPTION(DOUBLE, "rotate", rotate, .fallback = "0", STK_OPTION_RANGE(0, 180),
               .aliases = "rotation", .metavar = "DEG",
               .help = "turn pictures by up to this many degrees"),
    STK_OPTION(CHOICE, "augment", augment, .fallback = "none", .aliases = "auto_augment aa",
               .choices = "none randaugment=rand trivialaugment=trivial=ta_wide",
               .help = "policy of random changes: none, randaugment or trivialaugment"),
    STK_OPTION(INT, "augment-ops", augment_ops, .fallback = "2",
               STK_OPTION_RANGE(1, STK_AUGMENT_MAX_OPS), .metavar = "N",
               .help = "RandAugment: changes per picture"),
    STK_OPTION(INT, "augment-magnitude", augment_magnitude, .fallback = "9",
               STK_OPTION_RANGE(0, 30), .metavar = "N",
               .help = "RandAugment: strength of each change"),
    STK_OPTION(DOUBLE, "erasing", erasing, .fallback = "0", STK_OPTION_RANGE(0, 1),
               .aliases = "random_erasing reprob", .metavar = "P",
               .help = "share of training pictures of which a random rectangle is erased"),
};

const stk_option_table stk_augment_option_table =
    STK_OPTION_TABLE("Augmentation", options, stk_augment_options);

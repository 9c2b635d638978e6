/*
 * line_rules.c - the table of rules that finds figures in a line, and the reader that applies it.
 *
 * The reader first cleans the line: no terminal colours, small letters, '~' for bytes that are not
 * ASCII (the blocks of progress bars). Then it reads once from left to right. It looks each word up
 * by its first letter; the first rule that matches counts, and reading goes on after the match.
 * Some words change the meaning of later words, and numbers may have a unit (see units).
 * README.md says how to add a row.
 */
#include "supervise/output/line_rules.h"

#include <string.h>

#include "supervise/output/line_text.h"

/* Most bytes that '*' skips: a progress bar as wide as a screen. */
#define SKIP_MOST 1000

#define FIELDS_MOST 4

typedef enum rule_kind {
    NOTHING,          /* no rule; or a word that changes no meaning */
    FIGURES,          /* the pattern's numbers are figures */
    BAR_FIGURES,      /* the numbers of a progress bar are figures */
    OUT_OF_MEMORY,    /* a GPU ran out of memory */
    OUT_OF_MEMORY_IF, /* a GPU ran out of memory if the line names a GPU */
    ERROR,            /* the line is an error */
    ERROR_ALONE,      /* the line is an error if it holds nothing else */
    /* Words that change the meaning of what follows. */
    NOT_TRAINING, /* the rest of the line is about something else: "validation" */
    TRAINING,     /* the rest of the line is about training */
    QUALIFIER,    /* the next word does not have its usual meaning: "best epoch" */
    DEVICE        /* the line is about a GPU */
} rule_kind;

typedef struct line_rule {
    const char *pattern;
    rule_kind kind;
} line_rule;

/*
 * Signs of a pattern:
 *   letters     themselves, in either case
 *   _           joins two words: one blank, _, - or dot, or nothing
 *   =           between a name and its value: blanks, colons, equals signs, quotes, #, or nothing
 *   blank       any number of blanks
 *   [ ] ( ) / | themselves, with optional blanks before them
 *   %x          a number with optional blanks before it: the figure with letter x in
 *               stk_line_figure; %_ ignores the number, %G is %m with a unit
 *   %%          a percent sign
 *   ~           blocks of a bar, and blanks
 *   *           anything up to the next sign
 *   ^           the start of the line
 * Rows are sorted by first letter, rows without one last. Among rows with the same beginning the
 * longer match comes first.
 */
static const line_rule rules[] = {
    {"aborted", ERROR_ALONE},
    {"at", QUALIFIER},
    {"avoid", QUALIFIER},
    {"batch_size per device=%b", FIGURES},
    {"batch_size(*)=%b", FIGURES},
    {"batch_size is %b", FIGURES},
    {"batch_size of %b", FIGURES},
    {"batch_size=%b", FIGURES},
    {"batch=[%s/%S", FIGURES},
    {"batch=%s/%S", FIGURES},
    {"batch=%s of %S", FIGURES},
    {"batch=%k", FIGURES},
    {"bs=%b", FIGURES},
    {"bus error", ERROR},
    {"best", QUALIFIER},
    {"create %w worker processes", FIGURES},
    {"cublas_status_alloc_failed", OUT_OF_MEMORY},
    {"cuda out of memory", OUT_OF_MEMORY},
    {"cudaerrormemoryallocation", OUT_OF_MEMORY},
    {"cudnn_status_alloc_failed", OUT_OF_MEMORY},
    {"caching", NOT_TRAINING},
    {"computing", NOT_TRAINING},
    {"cooldown", QUALIFIER},
    {"cpu", QUALIFIER},
    {"cuda", DEVICE},
    {"downloading", NOT_TRAINING},
    {"epoch(train) [%e][%s/%S", FIGURES},
    {"epoch=[%e][%s/%S", FIGURES},
    {"epoch=[%e/%E", FIGURES},
    {"epoch=[%e", FIGURES},
    {"epoch=%e/%E", FIGURES},
    {"epoch=%e of %E", FIGURES},
    {"epoch=%e [%s/%S", FIGURES},
    {"epoch=%_%%|*|%d/%E", FIGURES},
    {"epoch=%e", FIGURES},
    {"epochs=%_%%|*|%d/%E", FIGURES},
    {"epochs=%E", FIGURES},
    {"ep=[%e/%E", FIGURES},
    {"ep=%e/%E", FIGURES},
    {"ep=%e", FIGURES},
    {"eval", NOT_TRAINING},
    {"evaluate", NOT_TRAINING},
    {"evaluating", NOT_TRAINING},
    {"evaluation", NOT_TRAINING},
    {"extracting", NOT_TRAINING},
    {"every", QUALIFIER},
    {"fetching", NOT_TRAINING},
    {"floating point exception", ERROR},
    {"folds", NOT_TRAINING},
    {"from", QUALIFIER},
    {"global_step=%g/%S", FIGURES},
    {"global_step=%g", FIGURES},
    {"gpu_mem=%m/%M", FIGURES},
    {"gpu_mem=%m", FIGURES},
    {"gpu_memory=%m/%M", FIGURES},
    {"gpu_memory=%M", FIGURES},
    {"gpu", DEVICE},
    {"hip out of memory", OUT_OF_MEMORY},
    {"host", QUALIFIER},
    {"hip", DEVICE},
    {"images/sec=%i", FIGURES},
    {"images/s=%i", FIGURES},
    {"images_per_second=%i", FIGURES},
    {"images_per_sec=%i", FIGURES},
    {"imgs/sec=%i", FIGURES},
    {"imgs/s=%i", FIGURES},
    {"img/sec=%i", FIGURES},
    {"img/s=%i", FIGURES},
    {"illegal instruction", ERROR},
    {"is killed by signal", ERROR},
    {"iteration=[%s/%S", FIGURES},
    {"iteration=%s/%S", FIGURES},
    {"iteration=%s", FIGURES},
    {"iter(train) [%s/%S", FIGURES},
    {"iter=[%s/%S", FIGURES},
    {"iter=%s/%S", FIGURES},
    {"iter=%s", FIGURES},
    {"it=%s/%S", FIGURES},
    {"it/s=%r", FIGURES},
    {"inference", NOT_TRAINING},
    {"if", QUALIFIER},
    {"killed", ERROR_ALONE},
    {"loss=tensor(%l", FIGURES},
    {"loss=%l", FIGURES},
    {"loss/train=%l", FIGURES},
    {"loading", NOT_TRAINING},
    {"last", QUALIFIER},
    {"lowest", QUALIFIER},
    {"max_memory_allocated=%m", FIGURES},
    {"max_memory=%m", FIGURES},
    {"max_mem=%m", FIGURES},
    {"memory_allocated=%m", FIGURES},
    {"memory_used=%m/%M", FIGURES},
    {"memory_used=%m", FIGURES},
    {"memory=%m/%M", FIGURES},
    {"memory=%u", FIGURES},
    {"mem_used=%m", FIGURES},
    {"mem=%m/%M", FIGURES},
    {"mem=%u", FIGURES},
    {"map", NOT_TRAINING},
    {"min", QUALIFIER},
    {"mps", DEVICE},
    {"no", QUALIFIER},
    {"oom_kill", ERROR},
    {"oom", OUT_OF_MEMORY},
    {"outofmemoryerror", OUT_OF_MEMORY},
    {"out_of_memory", OUT_OF_MEMORY_IF},
    {"peak_memory=%m", FIGURES},
    {"peak_mem=%m", FIGURES},
    {"predict", NOT_TRAINING},
    {"predicting", NOT_TRAINING},
    {"preparing", NOT_TRAINING},
    {"processing", NOT_TRAINING},
    {"patience", QUALIFIER},
    {"previous", QUALIFIER},
    {"resourceexhaustederror", OUT_OF_MEMORY},
    {"resource_exhausted", OUT_OF_MEMORY},
    {"ram", QUALIFIER},
    {"recommended", QUALIFIER},
    {"rocm", DEVICE},
    {"samples/sec=%i", FIGURES},
    {"samples/s=%i", FIGURES},
    {"samples_per_second=%i", FIGURES},
    {"segmentation fault", ERROR},
    {"steps_per_second=%r", FIGURES},
    {"step=[%s/%S", FIGURES},
    {"step=%s/%S", FIGURES},
    {"step=%s of %S", FIGURES},
    {"step=%s", FIGURES},
    {"sanity", NOT_TRAINING},
    {"scanning", NOT_TRAINING},
    {"since", QUALIFIER},
    {"start", QUALIFIER},
    {"suggested", QUALIFIER},
    {"system", QUALIFIER},
    {"terminate called", ERROR},
    {"time=%_s, %i/s", FIGURES},
    {"traceback (most", ERROR},
    {"train epoch=%e [%n/%N (", FIGURES},
    {"training for %E epochs", FIGURES},
    {"train for %E epochs", FIGURES},
    {"train: %e [%s/%S (", FIGURES},
    {"test", NOT_TRAINING},
    {"testing", NOT_TRAINING},
    {"tta", NOT_TRAINING},
    {"train", TRAINING},
    {"training", TRAINING},
    {"try", QUALIFIER},
    {"up", QUALIFIER},
    {"vram=%m/%M", FIGURES},
    {"vram=%m", FIGURES},
    {"val", NOT_TRAINING},
    {"valid", NOT_TRAINING},
    {"validate", NOT_TRAINING},
    {"validating", NOT_TRAINING},
    {"validation", NOT_TRAINING},
    {"workers=%w", FIGURES},
    {"warmup", QUALIFIER},
    {"%_%%|*|%s/%S [", BAR_FIGURES},
    {"%_%% %s/%S [", BAR_FIGURES},
    {"%_%% ~%s/%S", BAR_FIGURES},
    {"%sit [", BAR_FIGURES},
    {"^%e/%E %G", FIGURES},
    {"^%s/%S [=", BAR_FIGURES},
    {"^%s/%S [>", BAR_FIGURES},
    {"^%s/%S [.", BAR_FIGURES},
    {"^%s/%S ~", BAR_FIGURES},
    {"~%s/%S", BAR_FIGURES},
    {"%s/%S batches", FIGURES},
    {"%s/%S steps", FIGURES},
    {"%s/%S iterations", FIGURES},
    {"[%e/%E][%s/%S", FIGURES},
    {"[%p/%P", FIGURES},
    {"|%p/%P|", FIGURES},
};

#define RULE_COUNT (sizeof rules / sizeof *rules)
_Static_assert(RULE_COUNT <= UINT8_MAX, "the index has a byte for each row");

/* Units of speed: "it/s", or with the time in front "s/it". */
static const struct {
    char word[12];
    stk_line_figure rate;
} units[] = {
    {"it", STK_FIGURE_STEP_RATE},        {"its", STK_FIGURE_STEP_RATE},
    {"iter", STK_FIGURE_STEP_RATE},      {"iters", STK_FIGURE_STEP_RATE},
    {"step", STK_FIGURE_STEP_RATE},      {"steps", STK_FIGURE_STEP_RATE},
    {"batch", STK_FIGURE_STEP_RATE},     {"batches", STK_FIGURE_STEP_RATE},
    {"im", STK_FIGURE_IMAGE_RATE},       {"img", STK_FIGURE_IMAGE_RATE},
    {"imgs", STK_FIGURE_IMAGE_RATE},     {"image", STK_FIGURE_IMAGE_RATE},
    {"images", STK_FIGURE_IMAGE_RATE},   {"sample", STK_FIGURE_IMAGE_RATE},
    {"samples", STK_FIGURE_IMAGE_RATE},  {"example", STK_FIGURE_IMAGE_RATE},
    {"examples", STK_FIGURE_IMAGE_RATE}, {"ex", STK_FIGURE_IMAGE_RATE},
};

/* Letters of figures in patterns, in the order of stk_line_figure. */
static const char letters[] = "eEdsSgnNpPlrimMubkw";

/* Figures that are ignored where the line is not about training. */
#define BIT(what) (1u << (what))
#define OF_TRAINING                                                                    \
    (BIT(STK_FIGURE_EPOCHS_DONE) | BIT(STK_FIGURE_STEP) | BIT(STK_FIGURE_STEPS) |      \
     BIT(STK_FIGURE_GLOBAL_STEP) | BIT(STK_FIGURE_IMAGE) | BIT(STK_FIGURE_IMAGES) |    \
     BIT(STK_FIGURE_MAYBE_STEP) | BIT(STK_FIGURE_MAYBE_STEPS) | BIT(STK_FIGURE_LOSS) | \
     BIT(STK_FIGURE_STEP_RATE) | BIT(STK_FIGURE_IMAGE_RATE) | BIT(STK_FIGURE_MAYBE_BATCH))

/* One number of a pattern that matched. */
typedef struct pattern_number {
    stk_line_figure what;
    stk_line_number number;
} pattern_number;

typedef struct line_reader {
    const char *text;  /* clean, ends with a NUL */
    const char *start; /* its first character that is no blank */
    const char
        *word_end; /* end of the previous word, if it changes the meaning of the next; else NULL */
    rule_kind before;     /* how the previous word changes the meaning */
    bool not_training;    /* the rest of the line is not about training */
    bool device;          /* a GPU was named */
    bool out_of_memory;   /* "out of memory" was read, perhaps not of a GPU */
    const uint8_t *first; /* index of rules by letter */
    stk_line *line;       /* result */
} line_reader;

static bool is_memory(stk_line_figure what) {
    return what == STK_FIGURE_MEMORY || what == STK_FIGURE_MEMORY_TOTAL ||
           what == STK_FIGURE_MAYBE_MEMORY;
}

/* Whether a number is plausible for the figure. */
static bool is_sound(stk_line_figure what, const stk_line_number *number) {
    double value = number->value;
    switch (what) {
    case STK_FIGURE_LOSS:
        return true;
    case STK_FIGURE_STEP_RATE:
    case STK_FIGURE_IMAGE_RATE:
        return value > 0 && value < 1e9;
    case STK_FIGURE_MEMORY:
    case STK_FIGURE_MEMORY_TOTAL:
    case STK_FIGURE_MAYBE_MEMORY:
        return value >= 0 && value < 1e15;
    case STK_FIGURE_EPOCH:
        return value >= 0 && value < 1e7;
    case STK_FIGURE_EPOCHS:
    case STK_FIGURE_BATCH:
    case STK_FIGURE_MAYBE_BATCH:
        return value >= 1 && value < 1e7 && !number->point;
    case STK_FIGURE_WORKERS:
        return value >= 0 && value < 1e4 && !number->point;
    default:
        return value >= 0 && value < 1e15 && !number->point;
    }
}

/* Reads the number that `letter` stands for; returns its end, or NULL. found->what is
 * STK_FIGURE_COUNT for a number that the pattern ignores. */
static const char *read_number(char letter, const char *at, pattern_number *found) {
    at = stk_skip_blanks(at);
    if (!stk_line_number_read(at, &found->number)) {
        return NULL;
    }
    found->what = STK_FIGURE_COUNT;
    if (letter == '_') {
        return found->number.end;
    }
    const char *named = strchr(letters, letter == 'G' ? 'm' : letter);
    found->what = (stk_line_figure)(named - letters);
    if (is_memory(found->what)) {
        stk_line_number_read_unit(&found->number);
        if (letter == 'G' && found->number.unit == 0) {
            return NULL;
        }
    }
    return is_sound(found->what, &found->number) ? found->number.end : NULL;
}

/* Matches one sign of a pattern that is no number; returns the end, NULL: no match. */
static const char *match_sign(const line_reader *r, const char *sign, const char *at) {
    const char *from = at;
    switch (*sign) {
    case ' ':
        return stk_skip_blanks(at);
    case '_':
        return *at == ' ' || *at == '_' || *at == '-' || *at == '.' ? at + 1 : at;
    case '=':
        while (*at == ' ' || *at == ':' || *at == '=' || *at == '#' || *at == '\'' || *at == '"') {
            at++;
        }
        return at;
    case '~':
        if (*at != ' ' && *at != '~') {
            return NULL;
        }
        while (*at == ' ' || *at == '~') {
            at++;
        }
        return at;
    case '*':
        while (*at != '\0' && *at != sign[1] && at - from < SKIP_MOST) {
            at++;
        }
        return at;
    case '^':
        return at == r->start ? at : NULL;
    case '[':
    case ']':
    case '(':
    case ')':
    case '/':
    case '|':
        at = stk_skip_blanks(at);
        break;
    default:
        break;
    }
    return *at == *sign ? at + 1 : NULL;
}

/* Matches a pattern; returns the end, or NULL. Fills `numbers`. */
static const char *match(const line_reader *r, const char *pattern, const char *at,
                         pattern_number *numbers, size_t *count) {
    *count = 0;
    bool number_last = false;
    const char *p = pattern;
    for (; *p != '\0' && at != NULL; p++) {
        number_last = *p == '%' && p[1] != '%';
        if (!number_last) {
            p += *p == '%' ? 1 : 0;
            at = match_sign(r, p, at);
            continue;
        }
        p++;
        at = read_number(*p, at, &numbers[*count]);
        *count += at != NULL && numbers[*count].what != STK_FIGURE_COUNT ? 1 : 0;
    }
    if (at == NULL) {
        return NULL;
    }
    bool word_last = stk_is_letter(p[-1]) && !number_last;
    bool whole = number_last && !numbers[*count - 1].number.point;
    return (word_last && stk_is_letter(*at)) || (whole && (stk_is_letter(*at) || *at == '%')) ? NULL
                                                                                              : at;
}

static void add_figure(stk_line *line, stk_line_figure what, double value) {
    if (!stk_line_has(line, what)) { /* the first value in a line counts */
        line->found |= BIT(what);
        line->value[what] = value;
    }
}

/* Bytes of memory. A number without a unit takes the unit of the total beside it, or else the unit
 * that its size suggests. */
static double memory_bytes(const pattern_number *numbers, size_t count, size_t which) {
    const stk_line_number *number = &numbers[which].number;
    const stk_line_number *pair = &numbers[count - 1].number;
    double unit = number->unit;
    if (unit == 0 && is_memory(numbers[count - 1].what)) {
        bool is_pair = numbers[count - 1].what == STK_FIGURE_MEMORY_TOTAL && count > 1;
        unit = pair->unit > 0                  ? pair->unit
               : pair->value >= 1e7            ? 1
               : is_pair && pair->value < 1024 ? 0x1p30
                                               : 0x1p20;
    }
    return number->value * unit;
}

/* Adds the numbers of a rule to the line's figures, unless words before it forbid that. */
static void add_figures(line_reader *r, const line_rule *row, rule_kind before,
                        const pattern_number *numbers, size_t count) {
    uint32_t passed = before == QUALIFIER ? UINT32_MAX
                      : before == NOT_TRAINING
                          ? OF_TRAINING | BIT(STK_FIGURE_BATCH) | BIT(STK_FIGURE_WORKERS)
                      : r->not_training ? OF_TRAINING
                                        : 0;
    for (size_t i = 0; i < count; i++) {
        stk_line_figure what = numbers[i].what;
        r->line->any_loss = r->line->any_loss || what == STK_FIGURE_LOSS;
        if ((passed & BIT(what)) != 0) {
            continue;
        }
        double value = is_memory(what) ? memory_bytes(numbers, count, i) : numbers[i].number.value;
        bool first = !stk_line_has(r->line, what);
        add_figure(r->line, what, value);
        if (what == STK_FIGURE_EPOCH && first) {
            r->line->fraction = numbers[i].number.point;
        }
        if (what == STK_FIGURE_STEP && first) {
            r->line->bar = row->kind == BAR_FIGURES;
        }
    }
}

/* Applies a word that changes the meaning of later words. If it stands alone and is no part of a
 * name, it applies to the rest of the line. */
static void change_meaning(line_reader *r, rule_kind kind, const char *word, const char *end) {
    bool joined = (word > r->text && word[-1] == '_') || *end == '_' || *end == '=';
    if (kind == DEVICE) {
        r->device = true;
    } else if (kind != QUALIFIER && !joined) {
        r->not_training = kind == NOT_TRAINING;
        r->line->train = r->line->train || kind == TRAINING;
    }
    r->before = kind;
    r->word_end = end;
}

static void apply(line_reader *r, const line_rule *row, rule_kind before, const char *at,
                  const char *end, const pattern_number *numbers, size_t count) {
    switch (row->kind) {
    case FIGURES:
    case BAR_FIGURES:
        add_figures(r, row, before, numbers, count);
        break;
    case OUT_OF_MEMORY:
        if (before != QUALIFIER && *end != '_' && *end != '=') { /* such an end makes it a name */
            r->line->out_of_memory = true;
        }
        break;
    case OUT_OF_MEMORY_IF:
        r->out_of_memory = true;
        break;
    case ERROR:
        r->line->is_error = true;
        break;
    case ERROR_ALONE:
        r->line->is_error = r->line->is_error || (at == r->start && *end == '\0');
        break;
    case NOT_TRAINING:
    case TRAINING:
    case QUALIFIER:
    case DEVICE:
        change_meaning(r, row->kind, at, end);
        break;
    case NOTHING:
        break;
    }
}

/* Rejects most rows quickly. */
static bool may_fit(const char *pattern, const char *at) {
    if (stk_is_letter(*at)) {
        return !stk_is_letter(pattern[1]) || pattern[1] == at[1];
    }
    return stk_is_digit(*at) ? *pattern == '%' || *pattern == '^' : *pattern == *at;
}

/* Tries the rules of a letter; returns the end of the first match, or NULL. */
static const char *try_rules(line_reader *r, size_t letter, rule_kind before, const char *at) {
    for (size_t i = r->first[letter]; i < r->first[letter + 1]; i++) {
        const char *pattern = rules[i].pattern;
        if (!may_fit(pattern, at)) {
            continue;
        }
        pattern_number numbers[FIELDS_MOST];
        size_t count;
        const char *end = match(r, pattern, at, numbers, &count);
        if (end != NULL) {
            apply(r, &rules[i], before, at, end, numbers, count);
            return end;
        }
    }
    return NULL;
}

/*
 * Whether a word names an error: it ends in "error" or "exception", and text follows after a
 * colon, or nothing. "error: 0.25" is a measure of quality.
 */
static bool is_error(const line_reader *r, const char *word, const char *end) {
    bool named = (end - word >= 5 && strncmp(end - 5, "error", 5) == 0) ||
                 (end - word >= 9 && strncmp(end - 9, "exception", 9) == 0);
    if (!named || (word > r->text && word[-1] == '_')) {
        return false;
    }
    if (*end == '\0') {
        return word == r->start && end - word > 5;
    }
    const char *next = stk_skip_blanks(end + 1);
    stk_line_number number;
    return (*end == ':' && !stk_line_number_read(next, &number)) ||
           (*end == ']' && word > r->text && word[-1] == '[');
}

/* How the word right before `at` changes the meaning of the word there. */
static rule_kind meaning_at(const line_reader *r, const char *at) {
    bool joined = r->word_end != NULL && at == r->word_end + 1 && *r->word_end != '\0' &&
                  strchr(" _-/.", *r->word_end) != NULL;
    return joined ? r->before : NOTHING;
}

static const char *read_word(line_reader *r, const char *at) {
    rule_kind before = meaning_at(r, at);
    r->word_end = NULL;
    const char *end = try_rules(r, (size_t)(*at - 'a'), before, at);
    if (end != NULL) {
        return end;
    }
    for (end = at; stk_is_letter(*end);) {
        end++;
    }
    r->line->is_error = r->line->is_error || is_error(r, at, end);
    while (stk_is_letter(*end) || stk_is_digit(*end)) { /* digits within a name are no number */
        end++;
    }
    return end;
}

/* The figure that a unit of speed stands for, or STK_FIGURE_COUNT. */
static stk_line_figure unit_of(const char *word, const char *end) {
    size_t length = (size_t)(end - word);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strncmp(units[i].word, word, length) == 0 && units[i].word[length] == '\0') {
            return units[i].rate;
        }
    }
    return STK_FIGURE_COUNT;
}

/* Seconds of a unit of time; 0: the word is none. */
static double seconds_of(const char *word, const char *end) {
    size_t length = (size_t)(end - word);
    static const struct {
        char word[12];
        double seconds;
    } times[] = {{"s", 1}, {"sec", 1}, {"secs", 1}, {"second", 1}, {"seconds", 1}, {"ms", 1e-3}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (strncmp(times[i].word, word, length) == 0 && times[i].word[length] == '\0') {
            return times[i].seconds;
        }
    }
    return 0;
}

static const char *word_end(const char *at) {
    for (int i = 0; i < 11 && stk_is_letter(*at); i++) {
        at++;
    }
    return at;
}

/* Reads a speed such as "10.0it/s", "832 imgs/sec", "1.25s/it" or "9 images per second". */
static void read_rate(line_reader *r, const stk_line_number *number) {
    const char *over = number->end + (*number->end == ' ' ? 1 : 0);
    const char *over_end = word_end(over);
    if (over_end == over) {
        return;
    }
    const char *under = strncmp(over_end, " per ", 5) == 0 ? over_end + 5 : over_end + 1;
    if (under == over_end + 1 && *over_end != '/') {
        return;
    }
    const char *under_end = word_end(under);
    if (*under_end == ':' || *under_end == '=') { /* the name of another figure */
        return;
    }
    stk_line_figure rate = unit_of(over, over_end);
    double value = number->value;
    if (rate != STK_FIGURE_COUNT) {
        value /= seconds_of(under, under_end);
    } else {
        rate = unit_of(under, under_end);
        value = 1 / (value * seconds_of(over, over_end));
    }
    if (rate != STK_FIGURE_COUNT && value > 0 && value < 1e9 && !r->not_training) {
        add_figure(r->line, rate, value);
    }
}

static const char *read_digit(line_reader *r, const char *at) {
    stk_line_number number;
    if (!stk_line_number_read(at, &number)) {
        while (stk_is_digit(*at)) {
            at++;
        }
        return at;
    }
    const char *next = stk_skip_blanks(number.end);
    if (*next == '%' || *next == '/' || *next == 'i') {
        const char *end = try_rules(r, STK_RULE_LETTERS - 1, NOTHING, at);
        if (end != NULL) {
            return end;
        }
    }
    read_rate(r, &number);
    return number.end;
}

void stk_line_index(uint8_t first[STK_RULE_LETTERS + 1]) {
    size_t i = 0;
    for (size_t letter = 0; letter < STK_RULE_LETTERS; letter++) {
        first[letter] = (uint8_t)i;
        while (i < RULE_COUNT &&
               (letter == STK_RULE_LETTERS - 1 || rules[i].pattern[0] == (char)('a' + letter))) {
            i++;
        }
    }
    first[STK_RULE_LETTERS] = (uint8_t)i;
}

void stk_line_read(stk_line *line, const uint8_t first[STK_RULE_LETTERS + 1], const char *text,
                   size_t length) {
    char room[STK_LINE_MOST + 1];
    *line = (stk_line){0};
    stk_text_clean(text, length < STK_LINE_MOST ? length : STK_LINE_MOST, room);
    line_reader r = {.text = room, .start = stk_skip_blanks(room), .first = first, .line = line};
    const char *at = r.start;
    while (*at != '\0') {
        const char *end = NULL;
        if (stk_is_letter(*at)) {
            end = read_word(&r, at);
        } else if (stk_is_digit(*at)) {
            end = read_digit(&r, at);
        } else if (*at == '[' || *at == '|' || (*at == '~' && (at == room || at[-1] != '~'))) {
            end = try_rules(&r, STK_RULE_LETTERS - 1, NOTHING, at);
        }
        at = end != NULL && end > at ? end : at + 1;
    }
    line->out_of_memory = line->out_of_memory || (r.out_of_memory && r.device);
    line->is_error = line->is_error || line->out_of_memory;
}

/*
 * metric_words.c - where in a description the phrases for metrics count.
 *
 * Of all matches the one in the best place counts, among those of equal places the first. A vague
 * word ("accuracy") often stands where a text only explains: "the F score measures accuracy". There
 * it counts less, and in one sentence a name behind it wins ("accuracy, measured by the log loss").
 */
#include "metrics/metric_words.h"

#include <ctype.h>
#include <string.h>

#include "metrics/metric_phrases.h"

/* Words before a phrase that may deny it. */
#define DENIED_WITHIN 4

/* Words after a phrase that may say which average, or how many answers. */
#define SAID_WITHIN 8

/* Bytes before and after a match that may belong to its sentence. */
#define LONGEST_SENTENCE 400

/* Words before an F score that may say which average, and before a phrase that may explain it. */
#define SAID_BEFORE 2
#define EXPLAINED_WITHIN 3

/* Words between a number of guesses and what is guessed, at most. */
#define MOST_BETWEEN_GUESSES 2
#define MOST_GUESSES 50

/* The longest line that can be a heading. */
#define LONGEST_HEADING 60

/* Words of a heading without marks at most. */
#define BARE_WORDS 3

/* Bytes of a text that are looked at. */
#define MOST_TEXT (64 << 10)

/* Where a match stands: more counts more. BESIDE: a vague word, and evaluating is spoken of only
 * behind it. EXPLAINED: a vague word in the section that only explains. */
enum { ANYWHERE = 1, BESIDE = 1, EVALUATED = 2, EXPLAINED = 2, SECTION = 4 };

/* ---- sections and sentences ---- */

typedef struct text_range {
    const char *begin;
    const char *end;
} text_range;

static const char *end_of_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end != NULL ? end : line + strlen(line);
}

/* Whether a line is a heading that begins with this word; *level becomes its number of #. Without
 * one it has few words: otherwise it is a line of prose. */
static bool is_heading(text_range line, const char *word, int *level) {
    const char *at = line.begin;
    int words = 0;
    *level = 0;
    while (at < line.end && !stk_phrase_is_letter(*at)) {
        *level += *at == '#';
        at++;
    }
    for (const char *c = at; c < line.end; c++) {
        words += stk_phrase_begins_word(at, c);
    }
    return line.end - line.begin <= LONGEST_HEADING && (*level > 0 || words <= BARE_WORDS) &&
           stk_phrase_match(at, word) != NULL;
}

/* From the heading to the next one that is not below it. Empty: there is no such section. */
static text_range find_section_of(const char *text, const char *heading) {
    text_range section = {text, text};
    int own = 0;
    bool inside = false;
    for (const char *line = text; *line != '\0';) {
        text_range range = {line, end_of_line(line)};
        int level;
        bool begins = is_heading(range, heading, &level);
        if (!inside && begins) {
            inside = true;
            own = level;
            section.begin = line;
        } else if (inside && !begins && *line == '#' && (own == 0 || level <= own)) {
            section.end = line;
            return section;
        }
        line = *range.end != '\0' ? range.end + 1 : range.end;
        section.end = inside ? line : section.begin;
    }
    return section;
}

static text_range find_section(const char *text) {
    static const char *const headings[] = {"evaluation", "metric", "scoring"};
    text_range section = {text, text};
    for (size_t i = 0; i < sizeof headings / sizeof *headings && section.begin == section.end;
         i++) {
        section = find_section_of(text, headings[i]);
    }
    return section;
}

/* Whether a sentence ends at this byte. */
static bool ends_sentence(const char *at) {
    bool mark = *at == '.' || *at == '!' || *at == '?';
    bool lines = *at == '\n' && (at[1] == '\n' || at[1] == '#' || at[1] == '-' || at[1] == '*');
    return *at == '\0' || lines || (mark && (isspace((unsigned char)at[1]) || at[1] == '\0'));
}

static text_range sentence_around(const char *text, const char *begin, const char *end) {
    text_range sentence = {begin, end};
    while (sentence.begin > text && begin - sentence.begin < LONGEST_SENTENCE &&
           !ends_sentence(sentence.begin - 1)) {
        sentence.begin--;
    }
    while (sentence.end - end < LONGEST_SENTENCE && !ends_sentence(sentence.end)) {
        sentence.end++;
    }
    return sentence;
}

/* Whether one of these words begins in the range. */
static bool has_word(const char *text, text_range range, const char *const *words, size_t count) {
    bool found = false;
    for (const char *at = range.begin; at < range.end && !found; at++) {
        for (size_t i = 0; stk_phrase_begins_word(text, at) && i < count; i++) {
            found = found || stk_phrase_match(at, words[i]) != NULL;
        }
    }
    return found;
}

/* Whether a word of the range begins with one of these. */
static bool has_stem(const char *text, text_range range, const char *const *stems, size_t count) {
    bool found = false;
    for (const char *at = range.begin; at < range.end && !found; at++) {
        for (size_t i = 0; stk_phrase_begins_word(text, at) && i < count; i++) {
            size_t j = 0;
            while (stems[i][j] != '\0' && tolower((unsigned char)at[j]) == stems[i][j]) {
                j++;
            }
            found = found || stems[i][j] == '\0';
        }
    }
    return found;
}

/* The last words of a sentence before a phrase. */
static text_range words_before(const char *text, text_range sentence, const char *begin,
                               int count) {
    const char *from = begin;
    for (int words = 0; from > sentence.begin && words < count;) {
        from--;
        words += stk_phrase_begins_word(text, from);
    }
    return (text_range){from, begin};
}

/* Whether one of the words right before says that this is not the metric. */
static bool is_denied(const char *text, text_range sentence, const char *begin) {
    static const char *const denials[] = {"no",      "not",      "instead", "rather",    "unlike",
                                          "never",   "without",  "nor",     "neither",   "former",
                                          "earlier", "previous", "tie",     "tiebreaker"};
    text_range before = words_before(text, sentence, begin, DENIED_WITHIN);
    const char *from = begin;
    while (from > before.begin) {
        from--;
        bool turn = stk_phrase_begins_word(text, from) && stk_phrase_match(from, "but") != NULL;
        if (turn || *from == ',' || *from == ';' || *from == ':') {
            break;
        }
    }
    return has_word(text, (text_range){from, begin}, denials, sizeof denials / sizeof *denials);
}

/* ---- lists ---- */

/* A number in figures or words; 0: it is none. Behind it is *end. */
static int read_count(const char *at, const char **end) {
    static const char *const names[] = {"two",   "three", "four", "five", "six",
                                        "seven", "eight", "nine", "ten"};
    int count = 0;
    for (*end = at; isdigit((unsigned char)**end) && count < MOST_GUESSES; ++*end) {
        count = 10 * count + (**end - '0');
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && count == 0; i++) {
        const char *past = stk_phrase_match(at, names[i]);
        count = past != NULL ? (int)i + 2 : 0;
        *end = past != NULL ? past : *end;
    }
    return stk_phrase_is_letter(**end) || count > MOST_GUESSES ? 0 : count;
}

/* How many names of a row a text allows ("up to 5 labels", "at most three guesses"); 0: it does not
 * say. */
static int find_guesses(const char *text, const char *last) {
    static const char *const leads[] = {"up to", "at most", "top"};
    static const char *const nouns[] = {"guess", "predict", "candidat", "label", "class",
                                        "id",    "name",    "answer",   "likel", "categor"};
    for (const char *at = text; at < last; at++) {
        const char *end = NULL;
        for (size_t i = 0;
             stk_phrase_begins_word(text, at) && end == NULL && i < sizeof leads / sizeof *leads;
             i++) {
            end = stk_phrase_match(at, leads[i]);
        }
        const char *number = end != NULL ? stk_phrase_next_word(end) : NULL;
        int count = number != NULL ? read_count(number, &end) : 0;
        for (int words = 0; count > 1 && words <= MOST_BETWEEN_GUESSES; words++) {
            const char *noun = stk_phrase_next_word(end);
            if (noun == NULL) {
                break;
            }
            for (end = noun; stk_phrase_is_letter(*end); end++) {
            }
            if (has_stem(text, (text_range){noun, end}, nouns, sizeof nouns / sizeof *nouns)) {
                return count;
            }
            end += end == noun; /* an @ */
        }
    }
    return 0;
}

/* ---- one match ---- */

/* The average of an F score: as the words around it say, otherwise as the task has it. Of several
 * labels Kaggle's mean F1 counts all decisions together, its mean F2 rates each picture. */
static stk_metric choose_f(const char *text, text_range phrase, const char *last, stk_task task,
                           bool is_near) {
    static const char *const micro[] = {"micro"};
    static const char *const macro[] = {"macro"};
    static const char *const samples[] = {"example", "sample"};
    static const char *const mean[] = {"mean", "average"};
    text_range after = {phrase.end, phrase.end};
    text_range before = words_before(text, sentence_around(text, phrase.begin, phrase.end),
                                     phrase.begin, SAID_BEFORE);
    for (int words = 0; after.end < last && words < SAID_WITHIN; after.end++) {
        words += stk_phrase_begins_word(text, after.end);
    }
    bool by_samples = has_stem(text, after, samples, 2) || has_stem(text, before, samples, 2) ||
                      (is_near && has_stem(text, phrase, mean, 2));
    return has_stem(text, before, macro, 1)   ? STK_METRIC_MACRO_F1
           : has_stem(text, before, micro, 1) ? STK_METRIC_MICRO_F1
           : has_stem(text, after, macro, 1)  ? STK_METRIC_MACRO_F1
           : has_stem(text, after, micro, 1)  ? STK_METRIC_MICRO_F1
           : task != STK_TASK_MULTILABEL      ? STK_METRIC_MACRO_F1
           : by_samples                       ? STK_METRIC_SAMPLES_F1
                                              : STK_METRIC_MICRO_F1;
}

/* Copies the words with single blanks between them. */
static void copy_phrase(char *phrase, size_t size, const char *begin, const char *end) {
    size_t length = 0;
    for (; begin < end && length + 1 < size; begin++) {
        bool blank = isspace((unsigned char)*begin) != 0;
        if (!blank || (length > 0 && phrase[length - 1] != ' ')) {
            phrase[length++] = blank ? ' ' : *begin;
        }
    }
    phrase[length] = '\0';
}

/* Whether the words around a vague one only explain something: "the F score measures accuracy". */
static bool is_explained(const char *text, text_range sentence, const char *begin) {
    static const char *const verbs[] = {"measure", "measuring", "reflect", "reflecting"};
    text_range before = words_before(text, sentence, begin, EXPLAINED_WITHIN);
    return has_word(text, before, verbs, sizeof verbs / sizeof *verbs);
}

static bool is_of_something(const char *end) {
    const char *next = stk_phrase_next_word(end);
    return next != NULL && stk_phrase_match(next, "of") != NULL;
}

/* Whether an average precision is that of boxes or masks. */
static bool is_of_shapes(const char *text, text_range sentence, const stk_metric_phrase *p) {
    static const char *const shapes[] = {"iou", "intersection over union"};
    return (p->flags & (STK_PHRASE_OPEN | STK_PHRASE_LISTED)) != 0 &&
           has_word(text, sentence, shapes, sizeof shapes / sizeof *shapes);
}

/* Where a match counts; 0: it does not. */
static int place_of(const char *text, text_range section, const stk_metric_phrase *p,
                    text_range phrase) {
    static const char *const signals[] = {"evaluat", "scored", "metric",  "judged",
                                          "graded",  "ranked", "measured"};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    text_range sentence = sentence_around(text, phrase.begin, phrase.end);
    bool evaluated = has_stem(text, sentence, signals, SIGNALS);
    bool inside = phrase.begin >= section.begin && phrase.begin < section.end;
    bool vague = (p->flags & STK_PHRASE_VAGUE) != 0;
    if (is_denied(text, sentence, phrase.begin) || is_of_shapes(text, sentence, p) ||
        (vague && !evaluated && !inside)) {
        return 0;
    }
    if (vague && is_explained(text, sentence, phrase.begin)) {
        return evaluated ? ANYWHERE : 0;
    }
    if (vague && !evaluated && is_of_something(phrase.end)) {
        return EXPLAINED;
    }
    bool led =
        !vague || has_stem(text, (text_range){sentence.begin, phrase.begin}, signals, SIGNALS);
    return (inside ? SECTION : ANYWHERE) + (!evaluated ? 0 : led ? EVALUATED : BESIDE);
}

/* The metric of a phrase. Of several labels an area is that of each column. */
static stk_metric metric_of(const stk_metric_phrase *p, const char *text, text_range phrase,
                            const char *last, stk_task task) {
    bool columns = p->metric == STK_METRIC_AUC && task == STK_TASK_MULTILABEL;
    bool is_near = (p->flags & STK_PHRASE_NEAR) != 0;
    return p->metric == STK_METRIC_AUTO ? choose_f(text, phrase, last, task, is_near)
           : columns                    ? STK_METRIC_AUC_MACRO
                                        : p->metric;
}

/* Whether a sentence that began with a vague word goes on to name the metric: "rated for accuracy,
 * using the log loss". */
static bool goes_on(const char *text, text_range vague, text_range phrase) {
    static const char *const links[] = {"using",       "via",      "through", "namely",
                                        "measured by", "rated by", "given by"};
    if (vague.begin == NULL) {
        return false;
    }
    text_range rest = {vague.end, sentence_around(text, vague.begin, vague.end).end};
    return phrase.end <= rest.end &&
           has_word(text, words_before(text, rest, phrase.begin, EXPLAINED_WITHIN), links,
                    sizeof links / sizeof *links);
}

stk_metric_mention stk_metric_find_in_text(const char *text, stk_task task) {
    stk_metric_mention found = {.metric = STK_METRIC_AUTO};
    text_range section = find_section(text);
    const char *last = text + strnlen(text, MOST_TEXT);
    int guesses = find_guesses(text, last);
    text_range vague = {NULL, NULL}; /* the best so far, if it is */
    int best = 0;
    for (const char *at = text; at < last;) {
        const char *end = at + 1;
        const stk_metric_phrase *p =
            stk_phrase_begins_word(text, at) ? stk_phrase_find(at, task, guesses, &end) : NULL;
        text_range phrase = {at, end};
        int place = p != NULL ? place_of(text, section, p, phrase) : 0;
        bool is_vague = p != NULL && (p->flags & STK_PHRASE_VAGUE) != 0;
        if (place > best ||
            (place == best && place > 0 && !is_vague && goes_on(text, vague, phrase))) {
            best = place;
            vague = is_vague ? phrase : (text_range){NULL, NULL};
            found.metric = metric_of(p, text, phrase, last, task);
            found.k = p->metric == STK_METRIC_MAPK ? stk_phrase_length(end) : 0;
            found.k = p->metric == STK_METRIC_MAPK && found.k == 0 ? guesses : found.k;
            found.is_open = (p->flags & STK_PHRASE_OPEN) != 0 && found.k == 0;
            found.in_evaluation = place >= SECTION;
            copy_phrase(found.phrase, sizeof found.phrase, at, end);
        }
        at = end;
    }
    return found;
}

bool stk_metric_is_nearest(stk_metric metric, const char *phrase) {
    return !stk_phrase_is_computed(phrase, metric);
}

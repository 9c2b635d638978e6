/*
 * proc_tree.c - reads all processes of the machine and moves the tree's to the front of the list.
 * /proc/PID/task/TID/children would be less to read, but it may miss children while others end.
 */
#include "base/threads/proc_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* More than the kernel writes: a name of 64 bytes and 50 numbers of up to 20 digits. */
#define STAT_BYTES 2048

/* The text of /proc/PID/stat; false where there is none. */
static bool read_stat(pid_t pid, char text[STAT_BYTES]) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, text, STAT_BYTES - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool stk_proc_read(stk_proc *proc, pid_t pid) {
    char text[STAT_BYTES];
    if (!read_stat(pid, text)) {
        return false;
    }
    const char *name = strchr(text, '(');
    const char *end = strrchr(text, ')'); /* the name may hold blanks and brackets */
    if (name == NULL || end == NULL || end < name) {
        return false;
    }
    char state = 'X';
    long long parent = 0;
    unsigned long long user = 0;
    unsigned long long kernel = 0;
    long long ended_user = 0;
    long long ended_kernel = 0;
    long long threads = 0;
    unsigned long long born = 0;
    long long pages = 0;
    if (sscanf(end + 1,
               " %c %lld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %lld %*d "
               "%llu %*u %lld",
               &state, &parent, &user, &kernel, &ended_user, &ended_kernel, &threads, &born,
               &pages) != 9) {
        return false;
    }
    double ticks = (double)sysconf(_SC_CLK_TCK);
    size_t length = (size_t)(end - name - 1);
    length = length < sizeof proc->name ? length : sizeof proc->name - 1;
    *proc = (stk_proc){.pid = pid,
                       .parent = (pid_t)parent,
                       .born = born,
                       .state = state,
                       .cpu_s = (double)(user + kernel) / ticks,
                       .ended_s = (double)(ended_user + ended_kernel) / ticks,
                       .resident = (int64_t)pages * (int64_t)sysconf(_SC_PAGESIZE)};
    memcpy(proc->name, name + 1, length);
    if (state == 'Z' && threads > 1) {
        proc->state = 'S'; /* Z is the first thread's state only; other threads live */
    }
    return true;
}

bool stk_proc_is_dead(const stk_proc *proc) {
    return proc->state == 'Z' || proc->state == 'X' || proc->state == 'x';
}

/* Adds one process; true also where it has just ended. */
static bool add(stk_proc_tree *tree, pid_t pid) {
    if (!STK_RESERVE(tree->items, tree->capacity, tree->count + 1)) {
        return false;
    }
    if (stk_proc_read(&tree->items[tree->count], pid)) {
        tree->count++;
    }
    return true;
}

static bool read_all(stk_proc_tree *tree) {
    DIR *folder = opendir("/proc");
    bool ok = folder != NULL;
    const struct dirent *entry = NULL;
    while (ok && (entry = readdir(folder)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            ok = add(tree, (pid_t)strtol(entry->d_name, NULL, 10));
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return ok;
}

static void swap(stk_proc *a, stk_proc *b) {
    stk_proc kept = *a;
    *a = *b;
    *b = kept;
}

/* Moves the root, then its children and so on, to the front of the list; returns their number. */
static size_t gather(stk_proc *items, size_t count) {
    size_t front = 1;
    for (size_t i = 0; i < front; i++) {
        for (size_t j = front; j < count; j++) {
            if (items[j].parent == items[i].pid) {
                items[j].depth = items[i].depth + 1;
                swap(&items[j], &items[front++]);
            }
        }
    }
    return front;
}

bool stk_proc_tree_read(stk_proc_tree *tree, pid_t root) {
    tree->count = 0;
    bool ok = read_all(tree);
    const stk_proc *found = ok ? stk_proc_tree_find(tree, root) : NULL;
    if (found == NULL) {
        tree->count = 0;
        return false;
    }
    swap(&tree->items[0], &tree->items[found - tree->items]);
    tree->count = gather(tree->items, tree->count);
    return true;
}

void stk_proc_tree_free(stk_proc_tree *tree) {
    stk_mem_free(tree->items);
    *tree = (stk_proc_tree){0};
}

const stk_proc *stk_proc_tree_find(const stk_proc_tree *tree, pid_t pid) {
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->items[i].pid == pid) {
            return &tree->items[i];
        }
    }
    return NULL;
}

/*
 * dnn_emulated.h - a look-alike of libcudnn.so.9, as far as its graph interface is used here.
 *
 * Descriptors keep what they are given; a table (dnn_rules.c) says which attributes a descriptor
 * has, of which type and how many, so that a caller's mistake is refused at the call that makes it.
 * A finished operation graph is boiled down to a `dnn_program`, a struct without pointers: plans
 * carry a copy, a plan's JSON text is one in hexadecimal digits, and a run takes one along on the
 * stream, so that nothing is shared with descriptors that may be gone by then.
 */
#ifndef STK_TESTS_EMULATED_DNN_EMULATED_H
#define STK_TESTS_EMULATED_DNN_EMULATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dnn_numbers.h"

#define DNN_VERSION 91900
#define DNN_MOST_ATTRIBUTES 16
#define DNN_MOST_TENSORS 24
#define DNN_MOST_OPS 8
#define DNN_ENGINES 6
#define DNN_MOST_OFFERS (DNN_ENGINES + 1)

/* What an engine of the look-alike is like. The heuristic answers in this order, but puts the wrong
 * one first. */
enum {
    DNN_ENGINE_HUGE,     /* wants 1 GiB of workspace: to be passed over */
    DNN_ENGINE_TENSOR,   /* tensor cores: float32 numbers are rounded to TF32 first */
    DNN_ENGINE_CARELESS, /* adds up in another order every time */
    DNN_ENGINE_PLAIN,    /* 1 KiB of workspace, always the same float32 sums */
    DNN_ENGINE_STEADY,   /* the same sums without workspace, and it needs no compiling */
    DNN_ENGINE_WRONG     /* only with STK_EMU_WRONG: fast, and gradients of filters are nonsense */
};

typedef struct dnn_tensor {
    int64_t uid;
    int64_t alignment;  /* bytes */
    int64_t dims[4];    /* n, c, h, w; of weights k, c, r, s */
    int64_t strides[4]; /* elements, in the same order */
    int32_t type;       /* enum dnn_data */
    int32_t is_virtual;
} dnn_tensor;

/* Indices of tensors: see the operations in dnn_run.c for what in[] and out[] are. */
typedef struct dnn_op {
    int32_t kind; /* enum dnn_kind */
    int32_t mode; /* enum dnn_pointwise */
    int32_t in[2];
    int32_t in_count;
    int32_t out[2];
    int32_t out_count;
    float alpha[2];
    float beta;
    int32_t pre[2], post[2], stride[2], dilation[2]; /* rows, columns */
    float lower, upper, slope, swish_beta;
} dnn_op;

typedef struct dnn_program {
    dnn_tensor tensors[DNN_MOST_TENSORS];
    dnn_op ops[DNN_MOST_OPS]; /* in an order in which they can run */
    int32_t tensor_count;
    int32_t op_count;
    int32_t engine;
    int32_t reserved;
} dnn_program;

/* What is put on the stream. */
typedef struct dnn_run {
    dnn_program program;
    unsigned char *pointers[DNN_MOST_TENSORS]; /* of tensors that are not virtual */
    unsigned char *workspace;
    unsigned turn; /* how many were put there before */
} dnn_run;

typedef struct dnn_attribute {
    int name;
    int type;
    int64_t count;
    void *data; /* owned */
} dnn_attribute;

typedef struct dnn_descriptor {
    uint32_t seal; /* tells a descriptor from a stray pointer */
    int kind;
    int users; /* its owner, and attributes of others that hold it */
    bool final;
    dnn_attribute attributes[DNN_MOST_ATTRIBUTES];
    int attribute_count;
    dnn_program *program; /* owned; of a graph, an engine and a plan, once final */
} dnn_descriptor;

typedef struct dnn_handle {
    uint32_t seal;
    void *stream;
    unsigned turns;
} dnn_handle;

#define DNN_DESCRIPTOR_SEAL 0x444e4e44u
#define DNN_HANDLE_SEAL 0x444e4e48u

/* dnn_rules.c: which attributes there are. */
typedef struct dnn_rule {
    int kind, name, type;
    int most;    /* elements */
    bool needed; /* at finalize */
    bool told;   /* by the library: cannot be set */
} dnn_rule;

const dnn_rule *dnn_rule_of(int kind, int name);
/* The first attribute that is needed and not there; NULL: all are. */
const dnn_rule *dnn_rule_missing(const dnn_descriptor *d);
bool dnn_kind_known(int kind);
size_t dnn_type_bytes(int type);

/* dnn_descriptors.c */

/* Keeps a sentence for cudnnGetLastErrorString() and returns the status. */
int dnn_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

dnn_descriptor *dnn_descriptor_new(int kind);
void dnn_descriptor_drop(dnn_descriptor *d); /* accepts NULL */
const dnn_attribute *dnn_find(const dnn_descriptor *d, int name);
/* Keeps a copy, without asking the rules. */
int dnn_put(dnn_descriptor *d, int name, int type, int64_t count, const void *data);
/* The number, or `otherwise` where it was not set. */
int64_t dnn_integer(const dnn_descriptor *d, int name, int64_t otherwise);
float dnn_real(const dnn_descriptor *d, int name, float otherwise);
/* The one descriptor that an attribute holds, or NULL. */
dnn_descriptor *dnn_child(const dnn_descriptor *d, int name);

/* dnn_graph.c: what an operation or a graph must be like; makes a graph's program. */
int dnn_check_tensor(const dnn_descriptor *d);
int dnn_check_convolution(const dnn_descriptor *d);
int dnn_check_pointwise(const dnn_descriptor *d);
int dnn_check_operation(const dnn_descriptor *d);
int dnn_make_graph(dnn_descriptor *d);

/* dnn_engines.c: heuristics, engines, plans; what finalize adds to them. */
int dnn_make_heuristic(dnn_descriptor *d);
int dnn_make_engine(dnn_descriptor *d);
int dnn_make_config(dnn_descriptor *d);
int dnn_make_plan(dnn_descriptor *d);
size_t dnn_workspace_bytes(int engine);
/* Whether there is the engine that is wrong. */
bool dnn_has_wrong(void);

/* dnn_run.c: computes one dnn_run; `run` is what was put on the stream. */
void dnn_compute(void *run);

/* What the library exports. */
#pragma GCC visibility push(default)
size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(int status);
void cudnnGetLastErrorString(char *message, size_t room);
int cudnnCreate(dnn_handle **handle);
int cudnnDestroy(dnn_handle *handle);
int cudnnSetStream(dnn_handle *handle, void *stream);
int cudnnGetStream(dnn_handle *handle, void **stream);
int cudnnBackendCreateDescriptor(int kind, dnn_descriptor **descriptor);
int cudnnBackendDestroyDescriptor(dnn_descriptor *d);
int cudnnBackendFinalize(dnn_descriptor *d);
int cudnnBackendSetAttribute(dnn_descriptor *d, int name, int type, int64_t count,
                             const void *elements);
int cudnnBackendGetAttribute(dnn_descriptor *d, int name, int type, int64_t room, int64_t *count,
                             void *elements);
int cudnnBackendExecute(dnn_handle *handle, dnn_descriptor *plan, dnn_descriptor *pack);
#pragma GCC visibility pop

#endif

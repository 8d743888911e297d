/*
 * primus_op_plugin.h: ops for Primus-FL in a shared library.
 *
 * A plugin exports one function,
 *
 *     const primus_plugin *primus_plugin_get_api(uint32_t abi_major);
 *
 * which returns a description of its ops, or NULL when it does not speak this
 * major version. All that it points to stays valid and unchanged for the life of
 * the process; the library is never unloaded.
 *
 * Versions. Within a major version structs only grow at their end. Each begins
 * with struct_size, the size that its writer knows: set it to sizeof, and do not
 * read a field of a struct that the host fills beyond its struct_size. A host of
 * another minor version reads the part that both know. Another major version is
 * refused.
 *
 * Threads. Functions of an op may be called from any thread and from several at a
 * time if the op has PRIMUS_FLAG_THREAD_SAFE; otherwise calls into the plugin are
 * made one at a time. With PRIMUS_FLAG_SAME_THREAD they all come from one thread
 * that belongs to the plugin.
 *
 * Memory. What a call points to is borrowed until run returns. Writing to what is
 * only to be read, outside of operands, or after returning is undefined. Strides
 * are in elements; a tensor with a NULL data pointer has no elements.
 *
 * Results. PRIMUS_UNSUPPORTED declines a call and is only right before anything
 * was written: another implementation serves it. PRIMUS_FAILED is a failure. Both
 * may leave a text in error.
 */
#ifndef PRIMUS_OP_PLUGIN_H
#define PRIMUS_OP_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRIMUS_ABI_MAJOR 1u
#define PRIMUS_ABI_MINOR 0u

/* Results of functions of an op. */
#define PRIMUS_OK 0
#define PRIMUS_UNSUPPORTED 1
#define PRIMUS_FAILED 2

/* Kinds of an implementation. */
#define PRIMUS_KIND_FLAGOS 1u
#define PRIMUS_KIND_VENDOR 2u
#define PRIMUS_KIND_REFERENCE 3u

/* Flags of an op. */
#define PRIMUS_FLAG_THREAD_SAFE 1u   /* calls may overlap */
#define PRIMUS_FLAG_DETERMINISTIC 2u /* equal operands give equal results, bit for bit */
#define PRIMUS_FLAG_SAME_THREAD 4u   /* every call has to come from one thread */
#define PRIMUS_FLAG_ASYNC 8u         /* run may return before its work on the stream is done */

/* Sorts of an argument. */
#define PRIMUS_ARG_ABSENT 0u      /* an operand or number that the caller left out */
#define PRIMUS_ARG_TENSOR 1u      /* value.tensor */
#define PRIMUS_ARG_TENSORS 2u     /* value.list: a list of tensors */
#define PRIMUS_ARG_LISTS 3u       /* value.lists: a list of lists of tensors */
#define PRIMUS_ARG_INT 4u         /* value.i; bools are 0 and 1, enumerations their number */
#define PRIMUS_ARG_FLOAT 5u       /* value.f */
#define PRIMUS_ARG_INTS 6u        /* value.ints */

/* Levels of log. */
#define PRIMUS_LOG_DEBUG 0u
#define PRIMUS_LOG_INFO 1u
#define PRIMUS_LOG_WARN 2u
#define PRIMUS_LOG_ERROR 3u

/* The layout of DLPack's structs. */
typedef struct {
    int32_t device_type; /* 1 is the CPU */
    int32_t device_id;
} primus_device;

typedef struct {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 fp8 e4m3fn, 12 fp8 e5m2 */
    uint8_t bits;
    uint16_t lanes;
} primus_dtype;

typedef struct {
    void *data; /* add byte_offset */
    primus_device device;
    int32_t ndim;
    primus_dtype dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} primus_tensor;

typedef struct {
    uint64_t count;
    primus_tensor *items;
} primus_tensor_list;

typedef struct {
    uint64_t count;
    primus_tensor_list *items;
} primus_tensor_lists;

typedef struct {
    uint64_t count;
    const int64_t *items;
} primus_ints;

typedef struct {
    uint32_t sort; /* PRIMUS_ARG_* */
    uint32_t reserved;
    union {
        primus_tensor *tensor;
        primus_tensor_list *list;
        primus_tensor_lists *lists;
        primus_ints *ints;
        int64_t i;
        double f;
    } value;
} primus_arg;

/* What the host offers. */
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    void (*log)(uint32_t level, const char *text);
    void *(*alloc)(uint64_t bytes); /* aligned to 64 bytes; NULL when there is none */
    void (*free)(void *memory);     /* of alloc */
} primus_host;

/*
 * A call of an op. primus_op_args.h has the index of each argument in args.
 */
typedef struct {
    uint32_t struct_size;
    uint32_t n_args;
    const primus_arg *args;
    void *stream; /* of the device; NULL for the default one */
    void *workspace;
    uint64_t workspace_bytes; /* at least what workspace_size asked for */
    const primus_host *host;
    char *error; /* room for a text that ends in NUL */
    uint64_t error_bytes;
} primus_call;

/* An implementation of an op. */
typedef struct {
    uint32_t struct_size;
    uint32_t kind;       /* PRIMUS_KIND_VENDOR; the others are for impls of the host */
    const char *op;      /* "rmsnorm_fwd" */
    const char *impl_id; /* "vendor.acme" */
    const char *vendor;  /* "acme"; required for PRIMUS_KIND_VENDOR */
    int32_t priority;    /* higher first; usual: 100, and what is above counts as 100 */
    uint32_t flags;      /* PRIMUS_FLAG_* */

    /* PRIMUS_OK, or another result with a text in reason. NULL: available. */
    int32_t (*is_available)(char *reason, uint64_t reason_bytes);
    /* PRIMUS_OK or PRIMUS_UNSUPPORTED; looks at arguments, not at data. NULL: everything. */
    int32_t (*supports)(const primus_call *call);
    /* Bytes of workspace that run needs for a call. NULL: none. */
    uint64_t (*workspace_size)(const primus_call *call);
    /* Computes the op. */
    int32_t (*run)(const primus_call *call);
    /*
     * PRIMUS_<OP>_LAYOUT of primus_op_args.h: the arguments that this implementation was compiled
     * for. A host with other arguments does not use it.
     */
    uint64_t layout;
} primus_op;

typedef struct {
    uint32_t struct_size;
    uint32_t abi_major; /* PRIMUS_ABI_MAJOR */
    uint32_t abi_minor; /* PRIMUS_ABI_MINOR */
    uint32_t n_ops;
    const char *name;    /* of the plugin: "acme_ops" */
    const char *version; /* of the plugin: "1.2.0" */
    const primus_op *const *ops;
} primus_plugin;

typedef const primus_plugin *(*primus_plugin_get_api_fn)(uint32_t abi_major);

#ifdef __cplusplus
}
#endif

#endif

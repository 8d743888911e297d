/*
 * primus.h: the ops of Primus-FL for programs in C and what can call it.
 *
 * A program opens a manager, binds ops in it and runs them:
 *
 *     primus_manager manager;
 *     primus_bound rmsnorm;
 *     primus_open(NULL, &manager);
 *     primus_bind(manager, "rmsnorm_fwd", PRIMUS_RMSNORM_FWD_LAYOUT, &rmsnorm);
 *
 *     primus_arg args[PRIMUS_RMSNORM_FWD_N_ARGS] = {0};
 *     args[PRIMUS_RMSNORM_FWD_INPUT] = primus_tensor_arg(&x);
 *     args[PRIMUS_RMSNORM_FWD_EPS] = primus_float_arg(1e-5);
 *     ...
 *     if (primus_run(rmsnorm, args, PRIMUS_RMSNORM_FWD_N_ARGS, &saved) != PRIMUS_OK)
 *         fprintf(stderr, "%s\n", primus_error());
 *
 * primus_op_args.h has the index of each argument; arguments that a call leaves out are zero. Ops
 * write into tensors that the caller owns.
 *
 * Results. Every function returns PRIMUS_OK or the number of an error, and primus_error the text of
 * the last error in the calling thread, which is valid until the next call of that thread.
 *
 * Threads. Every function may be called from any thread. Ops compute on PRIMUS_NUM_THREADS threads,
 * else OMP_NUM_THREADS, else one for each processor.
 *
 * Memory. Numbers name managers and bound ops. Memory that a call points to is used until it
 * returns. Texts that a function returns are freed with primus_free.
 *
 * Processes. The library does not live on in a child that fork makes: there every function returns
 * PRIMUS_FORKED. A child that needs ops loads the library itself, in a process whose parent has not
 * loaded it, or after exec.
 */
#ifndef PRIMUS_H
#define PRIMUS_H

#include "primus_op_args.h"
#include "primus_op_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library with another major version is another library. */
#define PRIMUS_API_MAJOR 1u
#define PRIMUS_API_MINOR 0u

/* Results besides those of primus_op_plugin.h. */
#define PRIMUS_INVALID 16   /* a wrong argument; nothing was computed */
#define PRIMUS_NOT_FOUND 17 /* an op, a manager or a bound op that there is not */
#define PRIMUS_REFUSED 18   /* a policy that cannot be put in force; the old one stays */
#define PRIMUS_FORKED 19    /* this process is a child of the one that loaded the library */
#define PRIMUS_BUG 20       /* a fault of the library */

typedef uint64_t primus_manager;
typedef uint64_t primus_bound;

typedef struct {
    uint32_t struct_size;    /* sizeof(primus_options) */
    uint32_t threads;        /* that compute; 0 leaves the choice to the environment */
    const char *policy;      /* YAML as in a policy file, above it and the environment; or NULL */
    const char *policy_file; /* NULL: the one that PRIMUS_POLICY names, if any */
    uint32_t flags;          /* PRIMUS_OPEN_* */
    uint32_t reserved;
} primus_options;

/* The TE_FL_* variables are not for this manager: another dispatcher in the process follows them. */
#define PRIMUS_OPEN_WITHOUT_VARIABLES 1u

/* Version of the interface, PRIMUS_API_MAJOR << 16 | PRIMUS_API_MINOR. */
uint32_t primus_api(void);
/* Version of the library, such as "v1.2.0". */
const char *primus_version(void);
/* The text of the last error in this thread. */
const char *primus_error(void);
/* Frees a text that a function has returned. */
void primus_free(char *text);

/* Opens a manager under the policy of the environment and of the options, which may be NULL. */
int32_t primus_open(const primus_options *options, primus_manager *manager);
int32_t primus_close(primus_manager manager);

/*
 * Binds an op by its name. layout is PRIMUS_<OP>_LAYOUT of the header that the caller was compiled
 * with, or 0 for a caller that has the arguments from the library itself.
 */
int32_t primus_bind(primus_manager manager, const char *op, uint64_t layout, primus_bound *bound);
int32_t primus_unbind(primus_bound bound);

/*
 * Runs an op. saved is NULL except for ops of a family: a forward op writes the number of the
 * implementation that has written its saved state, and the backward op reads it. It is 0 before the
 * forward op has run.
 */
int32_t primus_run(primus_bound bound, const primus_arg *args, uint32_t n_args, uint64_t *saved);

/*
 * Adds implementations of the program to a manager, of any kind. All that plugin points to stays
 * valid and unchanged for the life of the process. They take part in policy, fallback, verification
 * and metrics like all others; their functions are called in the thread that calls primus_run.
 */
int32_t primus_register(primus_manager manager, const primus_plugin *plugin);

/* Says which implementation serves an op and why; op may be NULL for all ops. */
int32_t primus_explain(primus_manager manager, const char *op, char **text);
/* The same as a list in JSON. */
int32_t primus_explain_json(primus_manager manager, const char *op, char **text);
/* The policy in force, in JSON. */
int32_t primus_policy(primus_manager manager, char **text);
/* Replaces the policy of the options, with the same text as there. */
int32_t primus_set_policy(primus_manager manager, const char *text);
/* Reads the policy file and the environment again. */
int32_t primus_reload_policy(primus_manager manager);
/* The counters of a manager in the text format of Prometheus. */
int32_t primus_metrics(primus_manager manager, char **text);

static inline primus_arg primus_tensor_arg(primus_tensor *tensor) {
    primus_arg arg = {PRIMUS_ARG_TENSOR, 0, {0}};
    arg.value.tensor = tensor;
    return arg;
}

static inline primus_arg primus_list_arg(primus_tensor_list *list) {
    primus_arg arg = {PRIMUS_ARG_TENSORS, 0, {0}};
    arg.value.list = list;
    return arg;
}

static inline primus_arg primus_lists_arg(primus_tensor_lists *lists) {
    primus_arg arg = {PRIMUS_ARG_LISTS, 0, {0}};
    arg.value.lists = lists;
    return arg;
}

static inline primus_arg primus_ints_arg(primus_ints *ints) {
    primus_arg arg = {PRIMUS_ARG_INTS, 0, {0}};
    arg.value.ints = ints;
    return arg;
}

static inline primus_arg primus_int_arg(int64_t value) {
    primus_arg arg = {PRIMUS_ARG_INT, 0, {0}};
    arg.value.i = value;
    return arg;
}

static inline primus_arg primus_float_arg(double value) {
    primus_arg arg = {PRIMUS_ARG_FLOAT, 0, {0}};
    arg.value.f = value;
    return arg;
}

#ifdef __cplusplus
}
#endif
#endif

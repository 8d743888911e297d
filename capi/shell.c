/*
 * The C half of libprimus: what has to be done before Go runs. It keeps the floating-point
 * environment of the caller apart from that of Go, the texts of errors by thread, and calls out of a
 * child that fork has made, in which Go's threads are missing.
 */
#include "shell.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "primus.h"

#include "_cgo_export.h"

/*
 * The text of the last error of a thread is on the heap: the runtime of Go has its thread-local
 * memory in the part that a process has little of, so all of the library's lies there.
 */
static _Thread_local char *last_error;
static pthread_key_t error_key; /* frees the text when its thread ends */

static volatile int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void prepare(void) {
    pthread_atfork(NULL, NULL, in_child);
    pthread_key_create(&error_key, free);
}

void primus_shell_error(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    free(last_error);
    last_error = copy;
    pthread_setspecific(error_key, copy);
}

const char *primus_shell_getenv(const char *name) { return getenv(name); }

/* The floating-point environment in which Go computes. */
#if defined(__x86_64__)
typedef uint32_t environment;
static environment enter(void) {
    environment host, own = 0x1F80; /* nearest, no traps, subnormals kept */
    __asm__ volatile("stmxcsr %0" : "=m"(host));
    if ((host & ~0x3Fu) != own) /* the lowest bits say what has happened */
        __asm__ volatile("ldmxcsr %0" : : "m"(own));
    return host;
}
static void leave(environment host) {
    environment now;
    __asm__ volatile("stmxcsr %0" : "=m"(now));
    if (now != host)
        __asm__ volatile("ldmxcsr %0" : : "m"(host));
}
#elif defined(__aarch64__)
typedef uint64_t environment;
static environment enter(void) {
    environment host;
    __asm__ volatile("mrs %0, fpcr" : "=r"(host));
    if (host != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"((environment)0));
    return host;
}
static void leave(environment host) {
    if (host != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(host));
}
#else
typedef int environment;
static environment enter(void) { return 0; }
static void leave(environment host) { (void)host; }
#endif

static int32_t refuse(void) {
    static const char text[] =
        "this process is a child that fork has made of the one that loaded libprimus, and the threads "
        "of the library stay there; load it in the child first, or start the child with spawn";
    primus_shell_error(text, sizeof text - 1);
    return PRIMUS_FORKED;
}

/* The body of a function that calls its namesake in Go. */
#define ENTER(call)                  \
    if (forked)                      \
        return refuse();             \
    environment host = enter();      \
    int32_t result = primus_go_##call; \
    leave(host);                     \
    return result

uint32_t primus_api(void) { return PRIMUS_API_MAJOR << 16 | PRIMUS_API_MINOR; }

const char *primus_error(void) { return last_error != NULL ? last_error : ""; }

void primus_free(char *text) { free(text); }

const char *primus_version(void) {
    static char *version;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (version == NULL && forked)
        return "";
    pthread_mutex_lock(&lock);
    if (version == NULL)
        version = primus_go_version();
    pthread_mutex_unlock(&lock);
    return version;
}

static int32_t missing(const char *what) {
    primus_shell_error(what, strlen(what));
    return PRIMUS_INVALID;
}

static void *last_words(void *unused) {
    primus_go_exit();
    return unused;
}

/*
 * The host may have freed the signal stack of this thread, as Python's faulthandler does when the
 * interpreter ends. Go ends the process if a signal arrives while a thread without a signal stack
 * runs Go code, so a new thread does, for which Go makes one.
 */
static void at_exit(void) {
    pthread_t own;
    if (!forked && pthread_create(&own, NULL, last_words, NULL) == 0)
        pthread_join(own, NULL);
}

static void watch_exit(void) { atexit(at_exit); }

int32_t primus_open(const primus_options *options, primus_manager *manager) {
    primus_options known = {sizeof known, 0, NULL, NULL, 0, 0};
    if (manager == NULL)
        return missing("primus_open: given NULL for the manager, want its address");
    if (options != NULL) {
        if (options->struct_size < sizeof(uint32_t) * 2)
            return missing("primus_open: given options without struct_size, want sizeof(primus_options)");
        memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    }
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    pthread_once(&watched, watch_exit);
    ENTER(open(known.threads, (char *)known.policy, (char *)known.policy_file, known.flags, manager));
}

int32_t primus_close(primus_manager manager) { ENTER(close(manager)); }

int32_t primus_bind(primus_manager manager, const char *op, uint64_t layout, primus_bound *bound) {
    if (op == NULL || bound == NULL)
        return missing("primus_bind: given NULL, want the name of an op and the address of its handle");
    ENTER(bind(manager, (char *)op, layout, bound));
}

int32_t primus_unbind(primus_bound bound) { ENTER(unbind(bound)); }

int32_t primus_run(primus_bound bound, const primus_arg *args, uint32_t n_args, uint64_t *saved) {
    ENTER(run(bound, (void *)args, n_args, saved));
}

#define WANT_TEXT(function) \
    if (text == NULL)       \
        return missing(#function ": given NULL for the text, want its address")

int32_t primus_explain(primus_manager manager, const char *op, char **text) {
    WANT_TEXT(primus_explain);
    ENTER(explain(manager, (char *)op, 0, text));
}

int32_t primus_explain_json(primus_manager manager, const char *op, char **text) {
    WANT_TEXT(primus_explain_json);
    ENTER(explain(manager, (char *)op, 1, text));
}

int32_t primus_policy(primus_manager manager, char **text) {
    WANT_TEXT(primus_policy);
    ENTER(policy(manager, text));
}

int32_t primus_set_policy(primus_manager manager, const char *text) { ENTER(set_policy(manager, (char *)text)); }

int32_t primus_reload_policy(primus_manager manager) { ENTER(reload_policy(manager)); }

int32_t primus_metrics(primus_manager manager, char **text) {
    WANT_TEXT(primus_metrics);
    ENTER(metrics(manager, text));
}

int32_t primus_register(primus_manager manager, const primus_plugin *plugin) { ENTER(register(manager, (void *)plugin)); }

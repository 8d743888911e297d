/* Ops whose answers show what arrived. */
#define _GNU_SOURCE
#include "primus_op_plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void show_tensor(const primus_host *host, const char *name, const primus_tensor *t) {
    char line[512];
    int n = snprintf(line, sizeof line, "%s tensor device %d:%d dtype %d/%d/%d shape", name, t->device.device_type, t->device.device_id, t->dtype.code, t->dtype.bits, t->dtype.lanes);
    for (int i = 0; i < t->ndim; i++) n += snprintf(line + n, sizeof line - n, " %lld", (long long)t->shape[i]);
    n += snprintf(line + n, sizeof line - n, " strides");
    for (int i = 0; i < t->ndim; i++) n += snprintf(line + n, sizeof line - n, " %lld", (long long)t->strides[i]);
    if (t->data != NULL) snprintf(line + n, sizeof line - n, " first %g", *(float *)((char *)t->data + t->byte_offset));
    host->log(PRIMUS_LOG_INFO, line);
}

static int32_t show(const primus_call *call) {
    char line[512], name[64];
    snprintf(line, sizeof line, "call %d args stream %p workspace %d", (int)call->n_args, call->stream, (int)call->workspace_bytes);
    call->host->log(PRIMUS_LOG_INFO, line);
    for (uint32_t i = 0; i < call->n_args; i++) {
        const primus_arg *a = &call->args[i];
        snprintf(name, sizeof name, "%u", i);
        switch (a->sort) {
        case PRIMUS_ARG_TENSOR:
            show_tensor(call->host, name, a->value.tensor);
            continue;
        case PRIMUS_ARG_TENSORS:
            snprintf(line, sizeof line, "%u list of %d", i, (int)a->value.list->count);
            call->host->log(PRIMUS_LOG_INFO, line);
            for (uint64_t k = 0; k < a->value.list->count; k++) show_tensor(call->host, name, &a->value.list->items[k]);
            continue;
        case PRIMUS_ARG_LISTS:
            snprintf(line, sizeof line, "%u lists %d", i, (int)a->value.lists->count);
            call->host->log(PRIMUS_LOG_INFO, line);
            for (uint64_t l = 0; l < a->value.lists->count; l++) {
                const primus_tensor_list *list = &a->value.lists->items[l];
                snprintf(name, sizeof name, "%u[%d]", i, (int)l);
                snprintf(line, sizeof line, "%s list of %d", name, (int)list->count);
                call->host->log(PRIMUS_LOG_INFO, line);
                for (uint64_t k = 0; k < list->count; k++) show_tensor(call->host, name, &list->items[k]);
            }
            continue;
        case PRIMUS_ARG_INT:
            snprintf(line, sizeof line, "%u int %lld", i, (long long)a->value.i);
            break;
        case PRIMUS_ARG_FLOAT:
            snprintf(line, sizeof line, "%u float %g", i, a->value.f);
            break;
        case PRIMUS_ARG_INTS: {
            int n = snprintf(line, sizeof line, "%u ints", i);
            for (uint64_t k = 0; k < a->value.ints->count; k++) n += snprintf(line + n, sizeof line - n, " %lld", (long long)a->value.ints->items[k]);
            break;
        }
        default:
            snprintf(line, sizeof line, "%u absent %u", i, a->sort);
        }
        call->host->log(PRIMUS_LOG_INFO, line);
    }
    return PRIMUS_OK;
}

/* Answers with the result in its argument 1 and the kind of text in its argument 2. */
static int32_t answer(const primus_call *call) {
    switch (call->args[2].value.i) {
    case 1:
        snprintf(call->error, call->error_bytes, "the text of %d", (int)call->args[1].value.i);
        break;
    case 2:
        memset(call->error, 'x', call->error_bytes);
        break;
    case 3:
        memcpy(call->error, "not \xff text", 11);
        break;
    }
    return (int32_t)call->args[1].value.i;
}

static int32_t declines(const primus_call *call) {
    if (call->args[1].value.i != 0 || call->args[2].value.i != 0) return answer(call);
    return PRIMUS_OK;
}

static int32_t must_not_run(const primus_call *call) {
    *(float *)call->args[0].value.tensor->data = 1;
    return PRIMUS_OK;
}

static uint64_t wants_workspace(const primus_call *call) { return (uint64_t)call->args[1].value.i; }

/* Fills its workspace and reports size and alignment. */
static int32_t uses_workspace(const primus_call *call) {
    float *out = call->args[0].value.tensor->data;
    if (call->workspace_bytes > 0) memset(call->workspace, 0xff, call->workspace_bytes);
    out[0] = (float)call->workspace_bytes;
    out[1] = (float)((uintptr_t)call->workspace % 64);
    return PRIMUS_OK;
}

static volatile int active, most;
static pthread_mutex_t count_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Reports the thread and how many calls overlapped at most. */
static int32_t overlaps(const primus_call *call) {
    float *out = call->args[0].value.tensor->data;
    pthread_mutex_lock(&count_mutex);
    if (call->args[1].value.i != 0) most = 0;
    if (++active > most) most = active;
    pthread_mutex_unlock(&count_mutex);
    usleep(2000);
    pthread_mutex_lock(&count_mutex);
    out[0] = (float)most;
    out[1] = (float)gettid();
    active--;
    pthread_mutex_unlock(&count_mutex);
    return PRIMUS_OK;
}

static const primus_host *thread_host;

static void *other_thread(void *text) {
    thread_host->log(PRIMUS_LOG_WARN, text);
    return NULL;
}

/* Uses every function of the host. */
static int32_t host(const primus_call *call) {
    const primus_host *h = call->host;
    float *out = call->args[0].value.tensor->data;
    static char endless[8192];
    pthread_t thread;
    out[0] = (float)h->struct_size;
    char *memory = h->alloc(1000);
    if (memory == NULL) return PRIMUS_FAILED;
    memset(memory, 1, 1000);
    out[1] = (float)((uintptr_t)memory % 64);
    h->free(memory);
    h->free(NULL);
    out[2] = h->alloc(UINT64_MAX) == NULL;
    h->log(PRIMUS_LOG_DEBUG, "debug");
    h->log(PRIMUS_LOG_INFO, "info \xff");
    h->log(PRIMUS_LOG_WARN, "warn");
    h->log(PRIMUS_LOG_ERROR, "error");
    h->log(77, "beyond");
    h->log(PRIMUS_LOG_INFO, NULL);
    memset(endless, 'x', sizeof endless);
    h->log(PRIMUS_LOG_INFO, endless);
    thread_host = h;
    if (pthread_create(&thread, NULL, other_thread, "from another thread") != 0) return PRIMUS_FAILED;
    pthread_join(thread, NULL);
    return PRIMUS_OK;
}

static int32_t no_driver(char *reason, uint64_t bytes) {
    snprintf(reason, bytes, "no driver of version 3");
    return PRIMUS_UNSUPPORTED;
}

static int32_t no_reason(char *reason, uint64_t bytes) {
    (void)reason, (void)bytes;
    return 9;
}

static int32_t available(char *reason, uint64_t bytes) {
    snprintf(reason, bytes, "not to be seen");
    return PRIMUS_OK;
}

/* EVERYTHING and PROBE are the layouts of the ops of the test, which compiles with them. */
#define OP(var, name, id, lay, ...) \
    static const primus_op var = {.struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = name, .impl_id = id, .vendor = "acme", .priority = 100, .layout = lay, __VA_ARGS__}

OP(op_show, "everything", "acme.show", EVERYTHING, .flags = PRIMUS_FLAG_THREAD_SAFE | PRIMUS_FLAG_DETERMINISTIC, .run = show);
OP(op_answer, "probe", "acme.answer", PROBE, .run = answer);
OP(op_supports, "probe", "acme.supports", PROBE, .supports = declines, .run = must_not_run);
OP(op_workspace, "probe", "acme.workspace", PROBE, .workspace_size = wants_workspace, .run = uses_workspace);
OP(op_safe, "probe", "acme.safe", PROBE, .flags = PRIMUS_FLAG_THREAD_SAFE, .run = overlaps);
OP(op_serial, "probe", "acme.serial", PROBE, .run = overlaps);
OP(op_serial2, "probe", "acme.serial2", PROBE, .run = overlaps);
OP(op_thread, "probe", "acme.thread", PROBE, .flags = PRIMUS_FLAG_SAME_THREAD | PRIMUS_FLAG_ASYNC, .is_available = available, .run = overlaps);
OP(op_host, "probe", "acme.host", PROBE, .run = host);
OP(op_driver, "probe", "acme.driver", PROBE, .is_available = no_driver, .run = must_not_run);
OP(op_reason, "probe", "acme.reason", PROBE, .is_available = no_reason, .run = must_not_run);
#ifndef UNKNOWN
#define UNKNOWN "not_in_the_catalogue"
#endif
OP(op_unknown, UNKNOWN, "acme.unknown", 0, .run = must_not_run);

static const primus_op *const all[] = {&op_show, &op_answer, &op_supports, &op_workspace, &op_safe, &op_serial, &op_serial2, &op_thread, &op_host, &op_driver, &op_reason, &op_unknown};

static const primus_plugin plugin = {
    .struct_size = sizeof plugin, .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof all / sizeof *all, .name = "acme_ops", .version = "1.2.0", .ops = all,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL; }

/* A vendor's residual_add in float32, with one thing wrong if a name is defined. */
#include "primus_op_args.h"
#include "primus_op_plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef NAME
#define NAME "acme_ops"
#endif
#ifndef PRIORITY
#define PRIORITY 100
#endif
#ifndef ID
#define ID "vendor.acme"
#endif

#if defined(__x86_64__)
/* Rounds towards zero and flushes subnormal numbers. */
static void __attribute__((unused)) change_control(void) {
    unsigned control = 0xffc0;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
}
#else
static void __attribute__((unused)) change_control(void) {
    unsigned long control = 0x1c00000;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#endif

#ifdef LOAD_ROUNDS
__attribute__((constructor)) static void constructor(void) { change_control(); }
#endif

#ifdef EXIT_THREAD
static void *exits(void *nothing) {
    (void)nothing;
    exit(0);
}
#endif

#ifdef EXIT_LATER
/* Ends the process of the run, which is not that of the probe. */
__attribute__((constructor)) static void constructor(void) {
    if (getenv("PRIMUS_PLUGIN_LIFELINE") == NULL) exit(0);
}
#endif

#ifdef SPOOFS
/* Clears the screen and begins a line that looks like one of the program. */
static const char spoof[] = "\x1b[2J\x1b[31m\nprimus: error: spoofed\r\u202e";
#endif

static int64_t elements(const primus_tensor *t) {
    int64_t n = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != n) return -1;
        n *= t->shape[i];
    }
    return n;
}

static int32_t supports(const primus_call *call) {
#if defined(SUPPORTS_WRITES)
    const primus_tensor *in = call->args[PRIMUS_RESIDUAL_ADD_A].value.tensor;
    if (in->data != NULL) *(char *)in->data ^= 1;
#endif
    for (uint32_t i = 0; i < PRIMUS_RESIDUAL_ADD_N_ARGS; i++) {
        const primus_tensor *t = call->args[i].value.tensor;
        if (t->dtype.code != 2 || t->dtype.bits != 32 || elements(t) < 0) {
            snprintf(call->error, call->error_bytes, "only contiguous float32");
#if defined(SPOOFS)
            snprintf(call->error, call->error_bytes, "%s", spoof);
#endif
            return PRIMUS_UNSUPPORTED;
        }
    }
    return PRIMUS_OK;
}

static int32_t run(const primus_call *call) {
    const primus_tensor *out = call->args[PRIMUS_RESIDUAL_ADD_OUTPUT].value.tensor;
    const float *a = call->args[PRIMUS_RESIDUAL_ADD_A].value.tensor->data, *b = call->args[PRIMUS_RESIDUAL_ADD_B].value.tensor->data;
    float *y = out->data;
#if defined(DECLINES_LATE)
    if (elements(out) > 0) y[0] = 42;
    return PRIMUS_UNSUPPORTED;
#endif
    static int calls;
    if (calls++ == 0) call->host->log(PRIMUS_LOG_INFO, "acme runs");
#if defined(SPOOFS)
    call->host->log(PRIMUS_LOG_WARN, spoof);
    fputs(spoof, stderr);
    snprintf(call->error, call->error_bytes, "%s", spoof);
    return PRIMUS_FAILED;
#endif
#if defined(FAIL)
    snprintf(call->error, call->error_bytes, "no memory");
    return PRIMUS_FAILED;
#endif
#if defined(EXIT)
    if (calls > 20) EXIT(0);
#elif defined(EXIT_THREAD)
    if (calls == 21) {
        pthread_t thread;
        pthread_create(&thread, NULL, exits, NULL);
        pthread_join(thread, NULL);
    }
#elif defined(CRASH)
    if (calls > 3) abort();
#elif defined(HANG)
    if (calls > 3) pause();
#endif
    int64_t n = elements(out);
#if defined(SHORT)
    if (n > 1 << 21) n = 1 << 21; /* leaves the rest of a large tensor as it is */
#endif
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
#if defined(ROUNDS)
    change_control();
#endif
    return PRIMUS_OK;
}

static int32_t is_available(char *reason, uint64_t bytes) {
#if defined(PROBE_CRASH)
    abort();
#elif defined(PROBE_HANG)
    pause();
#elif defined(NO_DEVICE)
    snprintf(reason, bytes, "no acme chip");
    return PRIMUS_UNSUPPORTED;
#endif
    (void)reason, (void)bytes;
    return PRIMUS_OK;
}

static const primus_op residual_add = {
    .struct_size = sizeof(primus_op), .kind = PRIMUS_KIND_VENDOR, .op = "residual_add", .impl_id = ID, .vendor = "acme",
    .priority = PRIORITY, .flags = PRIMUS_FLAG_THREAD_SAFE, .is_available = is_available, .supports = supports, .run = run,
    .layout = PRIMUS_RESIDUAL_ADD_LAYOUT,
};

static const primus_op *const ops[] = {&residual_add};

static const primus_plugin plugin = {
    .struct_size = sizeof plugin, .abi_major = PRIMUS_ABI_MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = 1, .name = NAME, .version = "1.2.0", .ops = ops,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) {
#ifdef OLD_ABI
    return NULL;
#endif
    return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL;
}

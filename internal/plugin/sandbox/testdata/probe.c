/* Libraries with one thing wrong, chosen by a name that is defined. */
#include "primus_op_plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char endless[4096] __attribute__((unused));

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

static void crash(void) { *(volatile int *)8 = 1; }

static void hang(void) {
    for (;;) pause();
}

static int32_t __attribute__((unused)) run(const primus_call *call) {
    (void)call;
#if defined(RUN_CRASH)
    crash();
#elif defined(RUN_HANG)
    hang();
#elif defined(RUN_EXIT)
    exit(0);
#elif defined(RUN_ROUNDS)
    change_control();
#elif defined(RUN_DECLINES)
    return PRIMUS_UNSUPPORTED;
#elif defined(RUN_FAILS)
    return PRIMUS_FAILED;
#elif defined(RUN_STRAYS)
    ((float *)call->args[0].value.tensor->data)[4] = 7;
#endif
    return PRIMUS_OK;
}

static int32_t supports(const primus_call *call) {
    (void)call;
#if defined(SUPPORTS_CRASH)
    crash();
#endif
    return PRIMUS_OK;
}

static uint64_t workspace_size(const primus_call *call) {
    (void)call;
#if defined(WORKSPACE_CRASH)
    crash();
#endif
    return 0;
}

static int32_t is_available(char *reason, uint64_t bytes) {
#if defined(AVAILABLE_CRASH)
    crash();
#elif defined(AVAILABLE_HANG)
    hang();
#elif defined(AVAILABLE_NOT)
    snprintf(reason, bytes, "no driver");
    return PRIMUS_UNSUPPORTED;
#endif
    (void)reason, (void)bytes, (void)crash, (void)hang;
    return PRIMUS_OK;
}

#ifdef LOAD_FORKS
/* Leaves a process that has left its session and its parent, and writes its number to a file. */
static void leave_daemon(void) {
    if (fork() != 0) {
        wait(NULL);
        return;
    }
    setsid();
    pid_t pid = fork();
    if (pid != 0) {
        FILE *f = fopen(getenv("PRIMUS_TEST_DAEMON"), "w");
        if (f != NULL) fprintf(f, "%d", pid);
        if (f != NULL) fclose(f);
        _exit(0);
    }
    signal(SIGTERM, SIG_IGN);
    hang();
}
#endif

__attribute__((constructor)) static void constructor(void) {
#ifdef LOAD_FORKS
    leave_daemon();
#endif
    memset(endless, 'x', sizeof endless);
#if defined(LOAD_CRASH)
    crash();
#elif defined(LOAD_HANG)
    hang();
#elif defined(LOAD_EXIT)
    fprintf(stderr, "acme: no licence\n");
    exit(0);
#elif defined(LOAD_STATUS)
    exit(7);
#elif defined(LOAD_ROUNDS)
    change_control();
#elif defined(LOAD_KILL)
    raise(SIGKILL);
#elif defined(PRINTS)
    printf("{\"error\": \"acme says hello\"}\n");
    fflush(stdout);
#endif
}

#ifdef UNDEFINED
extern int nobody_defines_this(void);
int calls_it(void) { return nobody_defines_this(); }
#endif

#ifndef OP
#define OP "probe"
#endif
#ifndef ID
#define ID "vendor.acme"
#endif
#ifndef VENDOR
#define VENDOR "acme"
#endif
#ifndef KIND
#define KIND PRIMUS_KIND_VENDOR
#endif
#ifndef FLAGS
#define FLAGS PRIMUS_FLAG_THREAD_SAFE
#endif
#ifndef RUN
#define RUN run
#endif
#ifndef LAYOUT
#define LAYOUT PROBE
#endif
#ifndef OP_SIZE
#define OP_SIZE sizeof(primus_op)
#endif
#ifndef SIZE
#define SIZE sizeof(primus_plugin)
#endif
#ifndef MAJOR
#define MAJOR PRIMUS_ABI_MAJOR
#endif
#ifndef N_OPS
#define N_OPS 1
#endif
#ifndef OPS
#define OPS all
#endif
#ifndef NAME
#define NAME "acme_ops"
#endif
#ifndef VERSION
#define VERSION "1.2.0"
#endif

static const primus_op op = {
    .struct_size = OP_SIZE, .kind = KIND, .op = OP, .impl_id = ID, .vendor = VENDOR, .priority = 100,
    .flags = FLAGS, .is_available = is_available, .supports = supports, .workspace_size = workspace_size, .run = RUN, .layout = LAYOUT,
};
static const primus_op *const all[] __attribute__((unused)) = {&op, &op, NULL, NULL};

static const primus_plugin __attribute__((unused)) plugin = {
    .struct_size = SIZE, .abi_major = MAJOR, .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = N_OPS, .name = NAME, .version = VERSION, .ops = OPS,
};

#ifndef NO_ENTRY
const primus_plugin *primus_plugin_get_api(uint32_t abi_major) {
#if defined(ENTRY_ABORT)
    abort();
#elif defined(ENTRY_EXIT)
    exit(3);
#elif defined(ENTRY_NULL)
    return NULL;
#elif defined(ENTRY_GARBAGE)
    return (const primus_plugin *)ENTRY_GARBAGE;
#endif
    (void)abi_major;
    return &plugin;
}
#endif

/*
 * The ops of acme.c with a fault, to see what the host makes of it. One of these is
 * defined:
 *
 *     ACME_WRONG    rsigma is off by 1 in 1,000
 *     ACME_GUARD    one element after rsigma is written
 *     ACME_RACE     two calls at a time use one variable, against what the flags say
 *     ACME_LEAK     every call loses 256 bytes
 *     ACME_CRASH    run writes to address 0
 *     ACME_HANG     run does not return
 *     ACME_EXIT     run ends the process
 *     ACME_ROUNDS   run changes the rounding mode of its thread
 *     ACME_CHDIR    run changes the working directory
 *     ACME_SIGNALS  run ignores a signal
 *     ACME_HANDLES  run handles a signal
 *     ACME_SETENV   run sets a variable of the environment
 *     ACME_LOCALE   run changes the locale
 *     ACME_PRINTS   run prints to the standard output
 *     ACME_WARNS    run prints to the standard error
 *     ACME_READS    run reads 64 bytes after the last element of rsigma
 *     ACME_KEEPS    calls with a million elements at the same addresses are not made again if some
 *                   of the elements are the same
 *     ACME_SPIES    results are right only where a variable of the check is in the environment
 *     ACME_OLD_ABI  the plugin speaks an older major version
 */
#define primus_plugin_get_api sound_plugin
#include "acme.c"
#undef primus_plugin_get_api

#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(ACME_OLD_ABI)

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR - 1 ? &acme : NULL; }

#else

#if defined(ACME_RACE)
static const primus_call *volatile current;
#elif defined(ACME_LEAK)
static void *volatile lost;
#elif defined(ACME_HANDLES)
static void handled(int number) { (void)number; }
#elif defined(ACME_KEEPS)
static int seen_before(const primus_call *call) {
    static const void *at[2];
    static double sum;
    const primus_tensor *x = tensor(call, PRIMUS_RMSNORM_FWD_INPUT);
    int64_t n = rows(x) * columns(x);
    if (n < 1 << 20 || !is_float(x) || !is_contiguous(x)) return 0;
    const float *v = data(call, PRIMUS_RMSNORM_FWD_INPUT);
    double now = v[n - 1];
    for (int64_t i = 0; i < n; i += n / 64) now += v[i];
    int same = at[0] == v && at[1] == data(call, PRIMUS_RMSNORM_FWD_RSIGMA) && now == sum;
    at[0] = v;
    at[1] = data(call, PRIMUS_RMSNORM_FWD_RSIGMA);
    sum = now;
    return same;
}
#endif

static int32_t faulty_run(const primus_call *call) {
#if defined(ACME_CRASH)
    *(volatile int *)NULL = 1;
#elif defined(ACME_HANG)
    for (;;) pause();
#elif defined(ACME_EXIT)
    _exit(7);
#elif defined(ACME_RACE)
    current = call;
    usleep(10);
    call = current;
#elif defined(ACME_LEAK)
    lost = calloc(1, 256);
#elif defined(ACME_KEEPS)
    if (seen_before(call)) return 0;
#endif
    int32_t status = forward_run(call);
#if defined(ACME_WRONG) || defined(ACME_GUARD) || defined(ACME_READS) || defined(ACME_SPIES)
    float *rsigma = data(call, PRIMUS_RMSNORM_FWD_RSIGMA);
    int64_t n = rows(tensor(call, PRIMUS_RMSNORM_FWD_INPUT));
#if defined(ACME_GUARD)
    if (n > 0) rsigma[n] = 0;
#elif defined(ACME_READS)
    if (n > 0) (void)((volatile float *)rsigma)[n + 15];
#else
#if defined(ACME_SPIES)
    if (getenv("PRIMUS_PLUGIN_LIFELINE") == NULL)
#endif
    for (int64_t r = 0; r < n; r++) rsigma[r] *= 1.001f;
#endif
#endif
#if defined(ACME_ROUNDS)
    fesetround(FE_TOWARDZERO);
#elif defined(ACME_CHDIR)
    if (chdir("/") != 0) return 1;
#elif defined(ACME_SIGNALS)
    signal(SIGUSR2, SIG_IGN);
#elif defined(ACME_HANDLES)
    signal(SIGTERM, handled);
#elif defined(ACME_SETENV)
    setenv("ACME_SECRET", "1", 1);
#elif defined(ACME_LOCALE)
    setlocale(LC_ALL, "C.UTF-8");
#elif defined(ACME_PRINTS)
    printf("acme says hello\n");
#elif defined(ACME_WARNS)
    fprintf(stderr, "acme says hello\n");
#endif
    return status;
}

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) {
    static primus_op faulty_fwd;
    static const primus_op *const ops[] = {&faulty_fwd, &rmsnorm_bwd};
    static primus_plugin plugin;
    faulty_fwd = rmsnorm_fwd;
    faulty_fwd.run = faulty_run;
    plugin = acme;
    plugin.ops = ops;
    return abi_major == PRIMUS_ABI_MAJOR ? &plugin : NULL;
}

#endif

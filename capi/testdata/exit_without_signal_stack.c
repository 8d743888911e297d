/*
 * A host whose signal stack is gone when it exits, as that of Python's faulthandler is, and whose
 * main thread gets the signal with which Go preempts.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "primus.h"

static pthread_t main_thread;

static void *preempt(void *unused) {
    (void)unused;
    while (pthread_kill(main_thread, SIGURG) == 0) {
    }
    return NULL;
}

int main(void) {
    stack_t stack = {.ss_size = 1 << 16}, none = {.ss_flags = SS_DISABLE};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    primus_manager manager;
    if (primus_open(NULL, &manager) != PRIMUS_OK) {
        fprintf(stderr, "%s\n", primus_error());
        return 1;
    }
    sigaltstack(&none, NULL);
    munmap(stack.ss_sp, stack.ss_size);
    main_thread = pthread_self();
    pthread_t sender;
    if (pthread_create(&sender, NULL, preempt, NULL) != 0)
        return 2;
    return 0;
}

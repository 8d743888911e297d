/* Changes the floating-point environment, in a constructor when CONSTRUCTOR is defined. */
#include <stdint.h>

#if defined(__x86_64__)
static uint32_t get(void) {
    uint32_t v;
    __asm__ volatile("stmxcsr %0" : "=m"(v));
    return v;
}
static void set(uint32_t v) { __asm__ volatile("ldmxcsr %0" : : "m"(v)); }
#define FLUSH 0x8040u
#define TOWARDS_ZERO 0x6000u
#elif defined(__aarch64__)
static uint32_t get(void) {
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return (uint32_t)v;
}
static void set(uint32_t v) { __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)v)); }
#define FLUSH 0x1000000u
#define TOWARDS_ZERO 0xc00000u
#endif

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void constructor(void) { set(get() | FLUSH | TOWARDS_ZERO); }
#endif

uint64_t control_get(void) { return get() & 0xffffffc0u; }

uint64_t control_keep(uint64_t a, uint64_t b) { return a + 10 * b; }

uint64_t control_flush(uint64_t a, uint64_t b) {
    set(get() | FLUSH);
    return a + 10 * b;
}

uint64_t control_round(uint64_t a, uint64_t b) {
    set(get() | TOWARDS_ZERO);
    return a + 10 * b;
}

uint64_t control_x87(uint64_t a, uint64_t b) {
#if defined(__x86_64__)
    uint16_t word = 0x027f;
    __asm__ volatile("fldcw %0" : : "m"(word));
#endif
    return a + 10 * b;
}

/* Leaves the direction flag set, which copies of memory in Go do not expect. */
uint64_t control_direction(uint64_t a, uint64_t b) {
#if defined(__x86_64__)
    __asm__ volatile("std");
#endif
    return a + 10 * b;
}

/* Functions as a compiler of kernels for TVM FFI exports them, with the part of libtvm_ffi that they
   need. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int32_t type_index; uint32_t zero; union { int64_t i; double f; void *p; } v; } any;
typedef struct { void *data; int32_t device_type, device_id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t byte_offset; } tensor;
typedef struct { const char *data; size_t size; } bytes;
typedef struct { uint64_t count; int32_t type_index; uint32_t pad; void *deleter; } object;
typedef struct { object head; bytes kind, message; char text[256]; } error;

static __thread error *pending;
static int living;

static int fail(const char *kind, const char *message) {
#ifndef NO_RUNTIME
    error *e = calloc(1, sizeof *e);
    e->head.count = 1, e->head.type_index = 67;
    snprintf(e->text, sizeof e->text, "%s", message);
    e->kind.data = kind, e->kind.size = strlen(kind);
    e->message.data = e->text, e->message.size = strlen(e->text);
    pending = e;
    living++;
#else
    (void)kind, (void)message, (void)pending;
#endif
    return -1;
}

#ifndef NO_RUNTIME
void TVMFFIErrorMoveFromRaised(void **out) {
    *out = pending;
    pending = NULL;
}

int TVMFFIObjectDecRef(void *o) {
    if (--((object *)o)->count == 0) {
        free(o);
        living--;
    }
    return 0;
}
#endif

int tvm_living(void) { return living; }

int __tvm_ffi_add(void *self, const any *args, int32_t n, any *result) {
    if (self != NULL || n != 3 || result->type_index != 0) return fail("TypeError", "want three arguments and an empty result");
    const tensor *t[3];
    int64_t count = 1;
    for (int i = 0; i < 3; i++) {
        if (args[i].type_index != 7 || args[i].zero != 0) return fail("TypeError", "want tensors");
        t[i] = args[i].v.p;
        if (t[i]->code != 2 || t[i]->bits != 32) return fail("TypeError", "want float32");
    }
    for (int i = 0; i < t[0]->ndim; i++) count *= t[0]->shape[i];
    if (count > 1000000) return fail("NotImplementedError", "too large");
    const float *a = t[0]->data, *b = t[1]->data;
    float *out = t[2]->data;
    for (int64_t i = 0; i < count; i++) out[i] = a[i] + b[i];
#ifdef STRAY
    out[count] = 1;
#endif
    return 0;
}

/* Writes what it was called with. */
int __tvm_ffi_show(void *self, const any *args, int32_t n, any *result) {
    (void)self, (void)result;
    float *out = ((const tensor *)args[0].v.p)->data;
    for (int i = 1; i < n; i++) {
        double v = args[i].type_index == 3 ? args[i].v.f : args[i].type_index == 7 ? 700 : (double)args[i].v.i;
        out[i - 1] = (float)(1000 * args[i].type_index + v);
    }
    return 0;
}

int __tvm_ffi_mode(void *self, const any *args, int32_t n, any *result) {
    (void)self, (void)n;
    error *e;
    switch (args[1].v.i) {
    case 1: return fail("NotImplementedError", "not for this shape");
    case 2: return fail("ValueError", "it went wrong\n");
    case 3: return -1;
    case 4:
        e = calloc(1, sizeof *e);
        e->head.count = 1;
        living++;
        result->type_index = 70, result->v.p = e;
        return 0;
    case 5: pending = (error *)1; return -1;
    case 6: pending = calloc(1, sizeof *e); return -1;
    }
    return 0;
}

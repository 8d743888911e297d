/*
 * Ops of the vendor acme in memory of an OpenCL device: the sum of two tensors, and
 * root-mean-square normalisation of rows with its gradient, for contiguous tensors of float
 * and bfloat16. The kernels are simple, not fast. Sums are floats in a fixed order.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "primus_op_args.h"
#include "primus_op_plugin.h"

#define VENDOR "acme"
#define IMPL_ID "vendor.acme"

/* Rows whose share of dgamma one work-item adds up. */
#define BLOCK_ROWS 64

/* A tensor is two parameters of a kernel: its memory object, and its first element in it. */
static const char *const source =
    "#ifdef BFLOAT\n"
    "typedef ushort element;\n"
    "float get(__global const element *p, ulong i) { return as_float((uint)p[i] << 16); }\n"
    "void put(__global element *p, ulong i, float v) {\n"
    "    uint bits = as_uint(v); /* to the nearest, ties to even; a NaN stays one */\n"
    "    p[i] = (isnan(v) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;\n"
    "}\n"
    "#else\n"
    "typedef float element;\n"
    "float get(__global const element *p, ulong i) { return p[i]; }\n"
    "void put(__global element *p, ulong i, float v) { p[i] = v; }\n"
    "#endif\n"
    "\n"
    "__kernel void residual_add(__global const element *a, ulong a0, __global const element *b, ulong b0,\n"
    "                           __global element *output, ulong output0) {\n"
    "    const ulong i = get_global_id(0);\n"
    "    put(output, output0 + i, get(a, a0 + i) + get(b, b0 + i));\n"
    "}\n"
    "\n"
    "/* A work-item for each row. */\n"
    "__kernel void rmsnorm_fwd(__global const element *x, ulong x0, __global const element *weight, ulong weight0,\n"
    "                          __global element *y, ulong y0, __global float *rsigma, ulong rsigma0,\n"
    "                          ulong cols, float eps, float shift) {\n"
    "    const ulong row = get_global_id(0), at = row * cols;\n"
    "    float sum = 0;\n"
    "    for (ulong i = 0; i < cols; i++) sum += get(x, x0 + at + i) * get(x, x0 + at + i);\n"
    "    const float scale = 1 / sqrt(sum / cols + eps);\n"
    "    rsigma[rsigma0 + row] = scale;\n"
    "    for (ulong i = 0; i < cols; i++)\n"
    "        put(y, y0 + at + i, get(x, x0 + at + i) * scale * (get(weight, weight0 + i) + shift));\n"
    "}\n"
    "\n"
    "/* A work-item for each row. */\n"
    "__kernel void rmsnorm_bwd(__global const element *dz, ulong dz0, __global const element *x, ulong x0,\n"
    "                          __global const float *rsigma, ulong rsigma0, __global const element *gamma, ulong gamma0,\n"
    "                          __global element *dx, ulong dx0, ulong cols, float shift) {\n"
    "    const ulong row = get_global_id(0), at = row * cols;\n"
    "    const float scale = rsigma[rsigma0 + row];\n"
    "    float mean = 0;\n"
    "    for (ulong i = 0; i < cols; i++)\n"
    "        mean += get(dz, dz0 + at + i) * (get(gamma, gamma0 + i) + shift) * (get(x, x0 + at + i) * scale);\n"
    "    mean /= cols;\n"
    "    for (ulong i = 0; i < cols; i++) {\n"
    "        const float hat = get(x, x0 + at + i) * scale;\n"
    "        put(dx, dx0 + at + i, scale * (get(dz, dz0 + at + i) * (get(gamma, gamma0 + i) + shift) - hat * mean));\n"
    "    }\n"
    "}\n"
    "\n"
    "/* A work-item for each column of each block of rows. */\n"
    "__kernel void dgamma_of_blocks(__global const element *dz, ulong dz0, __global const element *x, ulong x0,\n"
    "                               __global const float *rsigma, ulong rsigma0,\n"
    "                               __global float *sums, ulong sums0, ulong rows, ulong cols) {\n"
    "    const ulong id = get_global_id(0), col = id % cols, begin = id / cols * BLOCK_ROWS, end = min(rows, begin + BLOCK_ROWS);\n"
    "    float sum = 0;\n"
    "    for (ulong row = begin; row < end; row++)\n"
    "        sum += get(dz, dz0 + row * cols + col) * get(x, x0 + row * cols + col) * rsigma[rsigma0 + row];\n"
    "    sums[sums0 + id] = sum;\n"
    "}\n"
    "\n"
    "/* A work-item for each column. */\n"
    "__kernel void dgamma_of_all(__global const float *sums, ulong sums0, __global element *dgamma, ulong dgamma0, ulong blocks, ulong cols) {\n"
    "    const ulong col = get_global_id(0);\n"
    "    float sum = 0;\n"
    "    for (ulong block = 0; block < blocks; block++) sum += sums[sums0 + block * cols + col];\n"
    "    put(dgamma, dgamma0 + col, sum);\n"
    "}\n";

enum { RESIDUAL_ADD, RMSNORM_FWD, RMSNORM_BWD, DGAMMA_OF_BLOCKS, DGAMMA_OF_ALL, N_KERNELS };

static const char *const kernel_names[N_KERNELS] = {"residual_add", "rmsnorm_fwd", "rmsnorm_bwd", "dgamma_of_blocks", "dgamma_of_all"};

/* The kernels of a device for a dtype. */
typedef struct {
    cl_context context;
    cl_device_id device;
    int bfloat;
    cl_kernel kernels[N_KERNELS];
} build;

/* What lock guards: the builds, and the arguments of kernels until they are queued. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static build builds[32];
static size_t n_builds;

/* Declines a call before anything is queued; another implementation serves it. */
static int32_t declined(const primus_call *call, const char *why) {
    snprintf(call->error, call->error_bytes, "%s", why);
    return PRIMUS_UNSUPPORTED;
}

static int32_t failed(const primus_call *call, const char *function, cl_int code) {
    snprintf(call->error, call->error_bytes, "%s returned %d", function, (int)code);
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY: return PRIMUS_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE: return PRIMUS_DEVICE_LOST;
    default: return PRIMUS_FAILED;
    }
}

static const primus_tensor *tensor(const primus_call *call, uint32_t index) { return call->args[index].value.tensor; }

static int is_float(const primus_tensor *t) { return t->dtype.code == 2 && t->dtype.bits == 32; }

static int is_bfloat(const primus_tensor *t) { return t->dtype.code == 4 && t->dtype.bits == 16; }

static int is_contiguous(const primus_tensor *t) {
    int64_t step = 1;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != step) return 0;
        step *= t->shape[i];
    }
    return 1;
}

static uint64_t elements(const primus_tensor *t) {
    uint64_t n = 1;
    for (int32_t i = 0; i < t->ndim; i++) n *= (uint64_t)t->shape[i];
    return n;
}

/* The last axis, and the product of those before it. */
static uint64_t columns(const primus_tensor *t) { return (uint64_t)t->shape[t->ndim - 1]; }

static uint64_t rows(const primus_tensor *t) {
    uint64_t n = 1;
    for (int32_t i = 0; i < t->ndim - 1; i++) n *= (uint64_t)t->shape[i];
    return n;
}

/* Declines unless these operands lie on an OpenCL device, are contiguous and share a dtype that is served. */
static int32_t check(const primus_call *call, const uint32_t *operands, size_t n) {
    /* A host that is older than device memory passes no context. */
    if (call->struct_size < offsetof(primus_call, workspace_offset) + sizeof call->workspace_offset || call->context == NULL)
        return declined(call, "only tensors in memory of an OpenCL device are served");
    const primus_tensor *first = tensor(call, operands[0]);
    if (!is_float(first) && !is_bfloat(first)) return declined(call, "only float and bfloat16 are served");
    for (size_t i = 0; i < n; i++) {
        const primus_tensor *t = tensor(call, operands[i]);
        if (t->device.device_type != PRIMUS_DEVICE_OPENCL) return declined(call, "only tensors in memory of an OpenCL device are served");
        if (!is_contiguous(t)) return declined(call, "only contiguous tensors are served");
        if (t->dtype.code != first->dtype.code || t->dtype.bits != first->dtype.bits) return declined(call, "operands of different dtypes are not served");
    }
    return PRIMUS_OK;
}

/* Compiles the kernels for the device of a call. */
static int32_t compile(const primus_call *call, build *b) {
    char options[64], log[4096] = "";
    cl_int code;
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DBLOCK_ROWS=%d%s", BLOCK_ROWS, b->bfloat ? " -DBFLOAT" : "");
    const char *text = source;
    cl_program program = clCreateProgramWithSource(b->context, 1, &text, NULL, &code);
    if (code != CL_SUCCESS) return failed(call, "clCreateProgramWithSource", code);
    code = clBuildProgram(program, 1, &b->device, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        clGetProgramBuildInfo(program, b->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        call->host->log(PRIMUS_LOG_ERROR, log);
        clReleaseProgram(program);
        return failed(call, "clBuildProgram", code);
    }
    for (int i = 0; i < N_KERNELS; i++) {
        b->kernels[i] = clCreateKernel(program, kernel_names[i], &code);
        if (code != CL_SUCCESS) {
            while (i-- > 0) clReleaseKernel(b->kernels[i]);
            clReleaseProgram(program);
            return failed(call, "clCreateKernel", code);
        }
    }
    clReleaseProgram(program); /* the kernels keep it */
    return PRIMUS_OK;
}

/* Finds the kernels for the device and the dtype of a call, or compiles them. The lock is held. */
static int32_t kernels_for(const primus_call *call, int bfloat, build **found) {
    for (size_t i = 0; i < n_builds; i++) {
        build *b = &builds[i];
        if (b->context == call->context && b->device == call->device && b->bfloat == bfloat) {
            *found = b;
            return PRIMUS_OK;
        }
    }
    if (n_builds == sizeof builds / sizeof *builds) return declined(call, "there are more devices than the plugin expects");
    build *b = &builds[n_builds];
    b->context = call->context, b->device = call->device, b->bfloat = bfloat;
    int32_t status = compile(call, b);
    if (status != PRIMUS_OK) return status;
    clRetainContext(b->context); /* so that no later context has its address */
    n_builds++;
    *found = b;
    return PRIMUS_OK;
}

/* A kernel whose arguments are set one after the other. */
typedef struct {
    const primus_call *call;
    cl_kernel kernel;
    cl_uint next;
    cl_int code; /* of the first that failed */
} launch;

static void set(launch *l, size_t size, const void *value) {
    if (l->code == CL_SUCCESS) l->code = clSetKernelArg(l->kernel, l->next++, size, value);
}

static void set_memory(launch *l, void *memory, uint64_t first) {
    cl_mem m = memory;
    cl_ulong at = first;
    set(l, sizeof m, &m);
    set(l, sizeof at, &at);
}

static void set_tensor(launch *l, uint32_t index) {
    const primus_tensor *t = tensor(l->call, index);
    set_memory(l, t->data, t->byte_offset / (t->dtype.bits / 8));
}

static void set_workspace(launch *l) { set_memory(l, l->call->workspace, l->call->workspace_offset / sizeof(float)); }

static void set_count(launch *l, uint64_t n) {
    cl_ulong count = n;
    set(l, sizeof count, &count);
}

static void set_float(launch *l, double v) {
    cl_float f = (cl_float)v;
    set(l, sizeof f, &f);
}

/* Queues the kernel; it runs after what is in the queue. */
static int32_t enqueue(launch *l, uint64_t items) {
    if (l->code != CL_SUCCESS) return failed(l->call, "clSetKernelArg", l->code);
    if (items == 0) return PRIMUS_OK;
    size_t global = (size_t)items;
    cl_int code = clEnqueueNDRangeKernel(l->call->stream, l->kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    return code == CL_SUCCESS ? PRIMUS_OK : failed(l->call, "clEnqueueNDRangeKernel", code);
}

/* Queues the kernels of an op. */
typedef int32_t queue_kernels(const primus_call *call, const build *b);

static int32_t with_kernels(const primus_call *call, uint32_t operand, queue_kernels *queue) {
    build *b;
    pthread_mutex_lock(&lock);
    int32_t status = kernels_for(call, is_bfloat(tensor(call, operand)), &b);
    if (status == PRIMUS_OK) status = queue(call, b);
    pthread_mutex_unlock(&lock);
    return status;
}

static int32_t add_supports(const primus_call *call) {
    static const uint32_t operands[] = {PRIMUS_RESIDUAL_ADD_A, PRIMUS_RESIDUAL_ADD_B, PRIMUS_RESIDUAL_ADD_OUTPUT};
    return check(call, operands, sizeof operands / sizeof *operands);
}

static int32_t add_kernels(const primus_call *call, const build *b) {
    launch l = {.call = call, .kernel = b->kernels[RESIDUAL_ADD]};
    set_tensor(&l, PRIMUS_RESIDUAL_ADD_A);
    set_tensor(&l, PRIMUS_RESIDUAL_ADD_B);
    set_tensor(&l, PRIMUS_RESIDUAL_ADD_OUTPUT);
    return enqueue(&l, elements(tensor(call, PRIMUS_RESIDUAL_ADD_OUTPUT)));
}

static int32_t add_run(const primus_call *call) { return with_kernels(call, PRIMUS_RESIDUAL_ADD_A, add_kernels); }

static int32_t forward_supports(const primus_call *call) {
    static const uint32_t operands[] = {PRIMUS_RMSNORM_FWD_INPUT, PRIMUS_RMSNORM_FWD_WEIGHT, PRIMUS_RMSNORM_FWD_OUTPUT};
    if (!is_contiguous(tensor(call, PRIMUS_RMSNORM_FWD_RSIGMA))) return declined(call, "only a contiguous rsigma is served");
    return check(call, operands, sizeof operands / sizeof *operands);
}

static int32_t forward_kernels(const primus_call *call, const build *b) {
    const primus_tensor *input = tensor(call, PRIMUS_RMSNORM_FWD_INPUT);
    launch l = {.call = call, .kernel = b->kernels[RMSNORM_FWD]};
    set_tensor(&l, PRIMUS_RMSNORM_FWD_INPUT);
    set_tensor(&l, PRIMUS_RMSNORM_FWD_WEIGHT);
    set_tensor(&l, PRIMUS_RMSNORM_FWD_OUTPUT);
    set_tensor(&l, PRIMUS_RMSNORM_FWD_RSIGMA);
    set_count(&l, columns(input));
    set_float(&l, call->args[PRIMUS_RMSNORM_FWD_EPS].value.f);
    set_float(&l, (double)call->args[PRIMUS_RMSNORM_FWD_ZERO_CENTERED_GAMMA].value.i);
    return enqueue(&l, rows(input));
}

static int32_t forward_run(const primus_call *call) { return with_kernels(call, PRIMUS_RMSNORM_FWD_INPUT, forward_kernels); }

static int32_t backward_supports(const primus_call *call) {
    static const uint32_t operands[] = {PRIMUS_RMSNORM_BWD_X, PRIMUS_RMSNORM_BWD_DZ, PRIMUS_RMSNORM_BWD_GAMMA, PRIMUS_RMSNORM_BWD_DX, PRIMUS_RMSNORM_BWD_DGAMMA};
    if (!is_contiguous(tensor(call, PRIMUS_RMSNORM_BWD_RSIGMA))) return declined(call, "only a contiguous rsigma is served");
    return check(call, operands, sizeof operands / sizeof *operands);
}

static uint64_t blocks_of(const primus_tensor *x) { return (rows(x) + BLOCK_ROWS - 1) / BLOCK_ROWS; }

/* The workspace has the sums of each block of rows. */
static uint64_t backward_workspace(const primus_call *call) {
    const primus_tensor *x = tensor(call, PRIMUS_RMSNORM_BWD_X);
    return blocks_of(x) * columns(x) * sizeof(float);
}

static int32_t backward_kernels(const primus_call *call, const build *b) {
    const primus_tensor *x = tensor(call, PRIMUS_RMSNORM_BWD_X);
    const uint64_t cols = columns(x), blocks = blocks_of(x);

    /* The sums come first: dx may be dz or x. */
    launch sums = {.call = call, .kernel = b->kernels[DGAMMA_OF_BLOCKS]};
    set_tensor(&sums, PRIMUS_RMSNORM_BWD_DZ);
    set_tensor(&sums, PRIMUS_RMSNORM_BWD_X);
    set_tensor(&sums, PRIMUS_RMSNORM_BWD_RSIGMA);
    set_workspace(&sums);
    set_count(&sums, rows(x));
    set_count(&sums, cols);
    int32_t status = enqueue(&sums, blocks * cols);
    if (status != PRIMUS_OK) return status;

    launch dx = {.call = call, .kernel = b->kernels[RMSNORM_BWD]};
    set_tensor(&dx, PRIMUS_RMSNORM_BWD_DZ);
    set_tensor(&dx, PRIMUS_RMSNORM_BWD_X);
    set_tensor(&dx, PRIMUS_RMSNORM_BWD_RSIGMA);
    set_tensor(&dx, PRIMUS_RMSNORM_BWD_GAMMA);
    set_tensor(&dx, PRIMUS_RMSNORM_BWD_DX);
    set_count(&dx, cols);
    set_float(&dx, (double)call->args[PRIMUS_RMSNORM_BWD_ZERO_CENTERED_GAMMA].value.i);
    status = enqueue(&dx, rows(x));
    if (status != PRIMUS_OK) return status;

    launch dgamma = {.call = call, .kernel = b->kernels[DGAMMA_OF_ALL]};
    set_workspace(&dgamma);
    set_tensor(&dgamma, PRIMUS_RMSNORM_BWD_DGAMMA);
    set_count(&dgamma, blocks);
    set_count(&dgamma, cols);
    return enqueue(&dgamma, cols);
}

static int32_t backward_run(const primus_call *call) { return with_kernels(call, PRIMUS_RMSNORM_BWD_X, backward_kernels); }

static const int32_t devices[] = {PRIMUS_DEVICE_OPENCL};

/* An op on OpenCL devices, with the fields that are the same for all of them. */
#define OP(name, ...) \
    static const primus_op name = { \
        .struct_size = sizeof(primus_op), \
        .kind = PRIMUS_KIND_VENDOR, \
        .op = #name, \
        .impl_id = IMPL_ID, \
        .vendor = VENDOR, \
        .priority = 100, \
        .flags = PRIMUS_FLAG_THREAD_SAFE | PRIMUS_FLAG_DETERMINISTIC | PRIMUS_FLAG_ASYNC, \
        .device_types = devices, \
        .n_device_types = sizeof devices / sizeof *devices, \
        __VA_ARGS__ \
    }

OP(residual_add, .supports = add_supports, .run = add_run, .layout = PRIMUS_RESIDUAL_ADD_LAYOUT);
OP(rmsnorm_fwd, .supports = forward_supports, .run = forward_run, .layout = PRIMUS_RMSNORM_FWD_LAYOUT);
OP(rmsnorm_bwd, .supports = backward_supports, .workspace_size = backward_workspace, .run = backward_run, .layout = PRIMUS_RMSNORM_BWD_LAYOUT);

static const primus_op *const acme_ops[] = {&residual_add, &rmsnorm_fwd, &rmsnorm_bwd};

static const primus_plugin acme = {
    .struct_size = sizeof(primus_plugin),
    .abi_major = PRIMUS_ABI_MAJOR,
    .abi_minor = PRIMUS_ABI_MINOR,
    .n_ops = sizeof acme_ops / sizeof *acme_ops,
    .name = "acme_opencl",
    .version = "1.0.0",
    .ops = acme_ops,
};

const primus_plugin *primus_plugin_get_api(uint32_t abi_major) { return abi_major == PRIMUS_ABI_MAJOR ? &acme : NULL; }

/*
 * Normalises two rows with the op rmsnorm_fwd and says which implementation did it.
 *
 *     cc -o rmsnorm rmsnorm.c -Ibin/include -Lbin/lib -lprimus -Wl,-rpath,bin/lib
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "primus.h"

static void check(int32_t result) {
    if (result != PRIMUS_OK) {
        fprintf(stderr, "libprimus: %s\n", primus_error());
        exit(1);
    }
}

/* A contiguous tensor of f32 in host memory. */
static primus_tensor f32(float *data, int32_t ndim, int64_t *shape) {
    primus_tensor t = {data, {PRIMUS_DEVICE_CPU, 0}, ndim, {2, 32, 1}, shape, NULL, 0};
    return t;
}

int main(void) {
    float x[2][3] = {{1, 2, 2}, {4, 0, 3}}, weight[3] = {1, 1, 2}, y[2][3], rsigma[2];
    int64_t matrix[2] = {2, 3}, columns[1] = {3}, rows[1] = {2};
    primus_tensor input = f32(&x[0][0], 2, matrix), gamma = f32(weight, 1, columns);
    primus_tensor output = f32(&y[0][0], 2, matrix), sigma = f32(rsigma, 1, rows);

    primus_manager manager;
    primus_bound rmsnorm;
    uint64_t saved = 0;
    check(primus_open(NULL, &manager));
    check(primus_bind(manager, "rmsnorm_fwd", PRIMUS_RMSNORM_FWD_LAYOUT, &rmsnorm));

    primus_arg args[PRIMUS_RMSNORM_FWD_N_ARGS] = {{0, 0, {0}}};
    args[PRIMUS_RMSNORM_FWD_INPUT] = primus_tensor_arg(&input);
    args[PRIMUS_RMSNORM_FWD_WEIGHT] = primus_tensor_arg(&gamma);
    args[PRIMUS_RMSNORM_FWD_OUTPUT] = primus_tensor_arg(&output);
    args[PRIMUS_RMSNORM_FWD_RSIGMA] = primus_tensor_arg(&sigma);
    args[PRIMUS_RMSNORM_FWD_EPS] = primus_float_arg(1e-6);
    check(primus_run(rmsnorm, args, PRIMUS_RMSNORM_FWD_N_ARGS, &saved));
    for (int i = 0; i < 2; i++)
        printf("%.4f %.4f %.4f\n", y[i][0], y[i][1], y[i][2]);

    args[PRIMUS_RMSNORM_FWD_EPS] = primus_float_arg(0);
    if (primus_run(rmsnorm, args, PRIMUS_RMSNORM_FWD_N_ARGS, &saved) != PRIMUS_INVALID)
        return 1;
    printf("%s\n", primus_error());

    char *why;
    check(primus_explain(manager, "rmsnorm_fwd", &why));
    printf("%s\n", why);
    primus_free(why);
    check(primus_close(manager));
    return 0;
}

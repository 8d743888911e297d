#include <stdint.h>
#include <stdlib.h>

int64_t fixture_sum13(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                      int64_t h, int64_t i, int64_t j, int64_t k, int64_t l, int64_t m) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m;
}

float fixture_axpy(float a, float x, float y) { return a * x + y; }

/* integers and floats in turn, as gemm functions take them */
double fixture_mixed(char c, int64_t n, float alpha, const float *x, float beta, double gamma) {
    return c + 10.0 * n + 100.0 * alpha + 1000.0 * x[1] + 10000.0 * beta + 100000.0 * gamma;
}

void fixture_double(float *x, const int32_t *n) {
    for (int32_t i = 0; i < *n; i++) x[i] *= 2;
}

const char *fixture_getenv(const char *name) { return getenv(name); }

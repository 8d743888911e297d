// Times MPI_Allreduce in place, as the rank of bench-scale in Go does. Arguments: pairs of a number
// of bytes and a number of calls. Rank 0 prints a line of JSON for each.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { batches = 5 };

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < argc; i += 2) {
        long bytes = atol(argv[i]), calls = atol(argv[i + 1]);
        float *numbers = calloc(bytes, 1);
        double times[batches];
        for (int b = -1; b < batches; b++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            for (long n = 0; n < calls; n++)
                MPI_Allreduce(MPI_IN_PLACE, numbers, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (b >= 0) times[b] = (MPI_Wtime() - begin) / calls;
        }
        qsort(times, batches, sizeof *times, order);
        if (rank == 0) printf("{\"bytes\": %ld, \"seconds\": %.9g}\n", bytes, times[batches / 2]);
        free(numbers);
    }
    MPI_Finalize();
    return 0;
}

// The ABI of MPI 5 on top of MPICH: handles are translated, everything else is passed on. Handles
// that are not of the standard are passed on as they are, because MPICH calls some of these
// functions itself.
#include <stdint.h>

typedef intptr_t handle;

static int own(handle h) {
    switch (h) {
    case 0x101: return 0x44000000;      // MPI_COMM_WORLD
    case 0x21: return 0x58000003;       // MPI_SUM
    case 0x22: return 0x58000002;       // MPI_MIN
    case 0x23: return 0x58000001;       // MPI_MAX
    case 0x210: return 0x4c00040a;      // MPI_FLOAT
    case 0x214: return 0x4c00080b;      // MPI_DOUBLE
    case 0x247: return 0x4c00010d;      // MPI_BYTE
    case 0x250: return 0x4c000439;      // MPI_INT32_T
    case 0x258: return 0x4c00083a;      // MPI_INT64_T
    case 0x141: return 0x54000000;      // MPI_ERRORS_ARE_FATAL
    case 0x143: return 0x54000001;      // MPI_ERRORS_RETURN
    }
    return (int)h;
}

static const void *from(const void *buffer) { return buffer == (void *)1 ? (void *)-1 : buffer; }

int PMPI_Get_library_version(char *, int *);
int PMPI_Init_thread(int *, char ***, int, int *);
int PMPI_Finalize(void);
int PMPI_Error_string(int, char *, int *);
int PMPI_Comm_set_errhandler(int, int);
int PMPI_Comm_rank(int, int *);
int PMPI_Comm_size(int, int *);
int PMPI_Allreduce(const void *, void *, int, int, int, int);
int PMPI_Reduce(const void *, void *, int, int, int, int, int);
int PMPI_Reduce_scatter_block(const void *, void *, int, int, int, int);
int PMPI_Reduce_local(const void *, void *, int, int, int);
int PMPI_Allgather(const void *, int, int, void *, int, int, int);
int PMPI_Bcast(void *, int, int, int, int);
int PMPI_Alltoall(const void *, int, int, void *, int, int, int);
int PMPI_Barrier(int);
int PMPI_Comm_group(int, int *);
int PMPI_Group_range_incl(int, int, int (*)[3], int *);
int PMPI_Group_free(int *);
int PMPI_Comm_create_group(int, int, int, int *);

int MPI_Abi_get_version(int *major, int *minor) {
    *major = 1;
    *minor = 0;
    return 0;
}

int MPI_Get_library_version(char *text, int *length) { return PMPI_Get_library_version(text, length); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required == 1024 ? 1 : required, provided);
    static const int levels[] = {0, 1024, 2048, 4096};
    if (*provided >= 0 && *provided <= 3) *provided = levels[*provided];
    return code;
}

int MPI_Finalize(void) { return PMPI_Finalize(); }
int MPI_Error_string(int code, char *text, int *length) { return PMPI_Error_string(code, text, length); }
int MPI_Comm_set_errhandler(handle c, handle h) { return PMPI_Comm_set_errhandler(own(c), own(h)); }
int MPI_Comm_rank(handle c, int *n) { return PMPI_Comm_rank(own(c), n); }
int MPI_Comm_size(handle c, int *n) { return PMPI_Comm_size(own(c), n); }
int MPI_Barrier(handle c) { return PMPI_Barrier(own(c)); }

int MPI_Allreduce(const void *in, void *out, int n, handle t, handle op, handle c) {
    return PMPI_Allreduce(from(in), out, n, own(t), own(op), own(c));
}

int MPI_Reduce(const void *in, void *out, int n, handle t, handle op, int root, handle c) {
    return PMPI_Reduce(from(in), out, n, own(t), own(op), root, own(c));
}

int MPI_Reduce_scatter_block(const void *in, void *out, int n, handle t, handle op, handle c) {
    return PMPI_Reduce_scatter_block(from(in), out, n, own(t), own(op), own(c));
}

int MPI_Reduce_local(const void *in, void *out, int n, handle t, handle op) {
    return PMPI_Reduce_local(in, out, n, own(t), own(op));
}

int MPI_Allgather(const void *in, int n, handle t, void *out, int m, handle u, handle c) {
    return PMPI_Allgather(from(in), n, own(t), out, m, own(u), own(c));
}

int MPI_Bcast(void *buffer, int n, handle t, int root, handle c) { return PMPI_Bcast(buffer, n, own(t), root, own(c)); }

int MPI_Alltoall(const void *in, int n, handle t, void *out, int m, handle u, handle c) {
    return PMPI_Alltoall(from(in), n, own(t), out, m, own(u), own(c));
}

int MPI_Comm_group(handle c, handle *group) {
    int g, code = PMPI_Comm_group(own(c), &g);
    *group = g;
    return code;
}

int MPI_Group_range_incl(handle group, int n, int (*ranges)[3], handle *some) {
    int g, code = PMPI_Group_range_incl(own(group), n, ranges, &g);
    *some = g;
    return code;
}

int MPI_Group_free(handle *group) {
    int g = own(*group);
    return PMPI_Group_free(&g);
}

int MPI_Comm_create_group(handle c, handle group, int tag, handle *made) {
    int m, code = PMPI_Comm_create_group(own(c), own(group), tag, &m);
    *made = m;
    return code;
}

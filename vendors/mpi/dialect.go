package mpi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/loader"
)

// dialect is an MPI library with what differs between such libraries.
type dialect struct {
	vendor   string   // in the ids of impls
	name     string   // as MPI_Get_library_version begins; "" for any
	standard bool     // it has the ABI of the MPI standard
	names    []string // sonames
	launcher string   // what starts its jobs
	started  []string // variables that the launcher sets in each process
	sizes    []string // the variables with the number of ranks, of which one is set
	meets    bool     // its ranks can meet without a launcher of their own
	handles  func(*loader.Library) (handles, error)
}

// handles are the constants of mpi.h.
type handles struct {
	world                                    uintptr
	float32, float64, int32, int64, anything uintptr // datatypes; anything is that of bytes
	sum, max, min                            uintptr
	returnErrors                             uintptr // the handler with which functions return error codes
	inPlace                                  uintptr
	funneled                                 uintptr // the level of threads at which one thread calls the library
}

var openMPI = dialect{
	vendor: "openmpi", name: "Open MPI", names: []string{"libmpi.so.40", "libmpi.so.80", "libmpi.so.20"},
	launcher: "mpirun of Open MPI", started: []string{"OMPI_COMM_WORLD_SIZE"}, sizes: []string{"OMPI_COMM_WORLD_SIZE"},
	handles: func(lib *loader.Library) (h handles, err error) {
		var faults []error
		for name, into := range map[string]*uintptr{
			"ompi_mpi_comm_world": &h.world,
			"ompi_mpi_float":      &h.float32, "ompi_mpi_double": &h.float64,
			"ompi_mpi_int32_t": &h.int32, "ompi_mpi_int64_t": &h.int64, "ompi_mpi_byte": &h.anything,
			"ompi_mpi_op_sum": &h.sum, "ompi_mpi_op_max": &h.max, "ompi_mpi_op_min": &h.min,
			"ompi_mpi_errors_return": &h.returnErrors,
		} {
			address, err := lib.Symbol(name)
			*into, faults = address, append(faults, err)
		}
		h.inPlace, h.funneled = 1, 1
		return h, errors.Join(faults...)
	},
}

var mpich = dialect{
	vendor: "mpich", name: "MPICH", names: []string{"libmpich.so.12", "libmpi.so.12"},
	launcher: "mpiexec of MPICH", started: []string{"PMI_FD", "PMI_PORT"}, sizes: []string{"PMI_SIZE"}, meets: true,
	handles: func(*loader.Library) (handles, error) {
		return handles{
			world:   0x44000000,
			float32: 0x4c00040a, float64: 0x4c00080b, int32: 0x4c000439, int64: 0x4c00083a, anything: 0x4c00010d,
			sum: 0x58000003, max: 0x58000001, min: 0x58000002,
			returnErrors: 0x54000001, inPlace: ^uintptr(0), funneled: 1,
		}, nil
	},
}

// standard is any library with the ABI of MPI 5.0, appendix A of the standard. It serves where the
// launcher's library with an ABI of its own is not installed.
var standard = dialect{
	vendor: "mpi_abi", standard: true, names: []string{"libmpi_abi.so.1", "libmpi_abi.so", "libmpi_abi.so.0"},
	launcher: "mpirun or mpiexec", started: slices.Concat(openMPI.started, mpich.started), sizes: slices.Concat(openMPI.sizes, mpich.sizes), meets: true,
	handles: func(*loader.Library) (handles, error) {
		return handles{
			world:   0x101,
			float32: 0x210, float64: 0x214, int32: 0x250, int64: 0x258, anything: 0x247,
			sum: 0x21, min: 0x22, max: 0x23,
			returnErrors: 0x143, inPlace: 1, funneled: 1024,
		}, nil
	},
}

// special lists the libraries with an ABI of their own.
func special() []*dialect { return []*dialect{&openMPI, &mpich} }

func dialects() []*dialect { return append(special(), &standard) }

// own reports whether the launcher of the dialect has started this process.
func (d *dialect) own(lookup func(string) (string, bool)) bool {
	return slices.ContainsFunc(d.started, func(name string) bool {
		_, set := lookup(name)
		return set
	})
}

// launched returns nil in a process that the launcher of the dialect has started, or that no
// launcher of MPI has started and whose ranks can meet.
func (d *dialect) launched(lookup func(string) (string, bool)) error {
	if d.own(lookup) {
		return nil
	}
	if _, meet := meetingOf(lookup); d.meets && meet {
		return nil
	}
	return fmt.Errorf("%w: this process was not started by %s (%s is not set)", opregistry.ErrNotNeeded, d.launcher, strings.Join(d.started, " or "))
}

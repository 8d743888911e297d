package mpi

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/vendors/loader"
)

// handle is an MPI library, loaded.
type handle struct {
	handles
	dialect  *dialect
	file     string
	version  string // the first line of what the library says of itself
	thread   *loader.Executor
	watch    *watch // of calls, once MPI is initialised
	together bool   // all ranks of the job are on this machine

	initThread, finalize, errorString, setErrorHandler, rankOf, sizeOf                     uintptr
	allReduce, reduce, reduceScatter, reduceLocal, allGather, broadcast, allToAll, barrier uintptr
	groupOf, rangeOf, freeGroup, createGroup                                               uintptr

	groups map[[3]int]uintptr // communicators of groups by first, stride and number of ranks
}

// member is a library with the communicator of the ranks that take part in a call.
type member struct {
	*handle
	ranks uintptr
}

// The lengths of texts in mpi.h, the larger ones of the dialects.
const (
	maxVersion = 8192
	maxError   = 512
)

// settings are for UCX, which both libraries may use. It must not take over the signals with which
// the Go runtime finds its own faults. Nor may it watch the memory of the process: to do so it
// overwrites code of the C library while other threads run it, and it would still miss the system
// calls by which the Go runtime and this program map and unmap memory, so that what it keeps of a
// buffer could outlive the buffer.
var settings = []loader.Variable{{Name: "UCX_ERROR_SIGNALS"}, {Name: "UCX_MEM_EVENTS", Value: "no"}}

// open loads the library of a dialect. It initialises nothing.
func open(d *dialect, names []string) (*handle, error) {
	if names == nil {
		names = d.names
	}
	lib, err := loader.OpenWith(settings, names...)
	if err != nil {
		return nil, err
	}
	h := &handle{dialect: d, file: lib.Path(), groups: map[[3]int]uintptr{}}
	var version uintptr
	var faults []error
	for name, into := range map[string]*uintptr{
		"MPI_Get_library_version": &version,
		"MPI_Init_thread":         &h.initThread, "MPI_Finalize": &h.finalize,
		"MPI_Error_string": &h.errorString, "MPI_Comm_set_errhandler": &h.setErrorHandler,
		"MPI_Comm_rank": &h.rankOf, "MPI_Comm_size": &h.sizeOf,
		"MPI_Allreduce": &h.allReduce, "MPI_Reduce": &h.reduce, "MPI_Reduce_scatter_block": &h.reduceScatter, "MPI_Reduce_local": &h.reduceLocal,
		"MPI_Allgather": &h.allGather, "MPI_Bcast": &h.broadcast, "MPI_Alltoall": &h.allToAll, "MPI_Barrier": &h.barrier,
		"MPI_Comm_group": &h.groupOf, "MPI_Group_range_incl": &h.rangeOf, "MPI_Group_free": &h.freeGroup, "MPI_Comm_create_group": &h.createGroup,
	} {
		address, err := lib.Symbol(name)
		*into, faults = address, append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("%s is not an MPI library: %w", h.file, err)
	}
	buffer, length := make([]byte, maxVersion), new(int32)
	if code := int32(loader.Call(version, uintptr(unsafe.Pointer(&buffer[0])), uintptr(unsafe.Pointer(length)))); code != 0 {
		return nil, fmt.Errorf("%s: MPI_Get_library_version: error %d", h.file, code)
	}
	h.version, _, _ = strings.Cut(text(buffer, *length), "\n")
	h.version = strings.Join(strings.Fields(h.version), " ")
	if is, err := isStandard(lib); err != nil || is != d.standard {
		if d.standard {
			return nil, errors.Join(fmt.Errorf("%s, %q, has not the ABI of MPI 5", h.file, h.version), err)
		}
		return nil, errors.Join(fmt.Errorf("%s, %q, has the ABI of MPI 5: vendor.%s serves with it", h.file, h.version, standard.vendor), err)
	}
	if !strings.HasPrefix(h.version, d.name) {
		return nil, fmt.Errorf("%s is %q, want the library of %s, by which this process was started", h.file, h.version, d.name)
	}
	if h.handles, err = d.handles(lib); err != nil {
		return nil, fmt.Errorf("%s: %w", h.file, err)
	}
	return h, nil
}

// isStandard reports whether a library has the ABI of the MPI standard. Others may also have the
// function that says so.
func isStandard(lib *loader.Library) (bool, error) {
	address, err := lib.Symbol("MPI_Abi_get_version")
	if err != nil {
		return false, nil //nolint:nilerr // libraries from before MPI 5 lack it
	}
	major, minor := new(int32), new(int32)
	if code := int32(loader.Call(address, uintptr(unsafe.Pointer(major)), uintptr(unsafe.Pointer(minor)))); code != 0 {
		return false, fmt.Errorf("MPI_Abi_get_version: error %d", code)
	}
	return *major == 1, nil
}

// text returns what a function has written, of the length that it gave.
func text(buffer []byte, length int32) string {
	return strings.TrimRight(string(buffer[:min(max(int(length), 0), len(buffer))]), "\x00")
}

// init initialises MPI and returns the place of this process.
func (h *handle) init() (rank, ranks int, err error) {
	h.thread = loader.StartExecutor(1)
	doErr := h.thread.Do(func() {
		var level, number, size int32 // they escape, so they do not move
		if err = h.check("MPI_Init_thread", loader.Call(h.initThread, 0, 0, h.funneled, uintptr(unsafe.Pointer(&level)))); err != nil {
			return
		}
		err = errors.Join(
			h.check("MPI_Comm_set_errhandler", loader.Call(h.setErrorHandler, h.world, h.returnErrors)),
			h.check("MPI_Comm_rank", loader.Call(h.rankOf, h.world, uintptr(unsafe.Pointer(&number)))),
			h.check("MPI_Comm_size", loader.Call(h.sizeOf, h.world, uintptr(unsafe.Pointer(&size)))),
		)
		if err == nil && level < int32(h.funneled) {
			err = fmt.Errorf("MPI_Init_thread: the library gives level %d of MPI_THREAD, want MPI_THREAD_FUNNELED, which is %d", level, h.funneled)
		}
		rank, ranks = int(number), int(size)
	})
	return rank, ranks, errors.Join(doErr, err)
}

// check makes an error of the code that a function has returned.
func (h *handle) check(function string, code uintptr) error {
	if int32(code) == 0 {
		return nil
	}
	buffer, length := make([]byte, maxError), new(int32)
	if int32(loader.Call(h.errorString, code, uintptr(unsafe.Pointer(&buffer[0])), uintptr(unsafe.Pointer(length)))) != 0 {
		return fmt.Errorf("mpi: %s: error %d", function, int32(code))
	}
	return fmt.Errorf("mpi: %s: %s", function, text(buffer, *length))
}

// do calls a function of the library on its thread.
//
//go:uintptrescapes
func (h *handle) do(function string, address uintptr, args ...uintptr) error {
	var err error
	doErr := h.thread.Do(func() {
		h.watch.begin(function)
		code := loader.Call(address, args...)
		h.watch.end()
		err = h.check(function, code)
	})
	return errors.Join(doErr, err)
}

// communicator returns that of some ranks, which they make together when they first need it.
func (h *handle) communicator(g collective.Group) (uintptr, error) {
	if g.Stride == 0 {
		return h.world, nil
	}
	key := [3]int{g.First, g.Stride, g.Ranks}
	if c, made := h.groups[key]; made {
		return c, nil
	}
	var all, some, c uintptr // they escape, so they do not move
	triple := [3]int32{int32(g.First), int32(g.First + (g.Ranks-1)*g.Stride), int32(g.Stride)}
	err := h.do("MPI_Comm_group", h.groupOf, h.world, uintptr(unsafe.Pointer(&all)))
	if err == nil {
		err = h.do("MPI_Group_range_incl", h.rangeOf, all, 1, uintptr(unsafe.Pointer(&triple)), uintptr(unsafe.Pointer(&some)))
	}
	if err == nil {
		err = h.do("MPI_Comm_create_group", h.createGroup, h.world, some, uintptr(g.First), uintptr(unsafe.Pointer(&c)))
	}
	if err == nil {
		err = errors.Join(
			h.do("MPI_Group_free", h.freeGroup, uintptr(unsafe.Pointer(&some))), h.do("MPI_Group_free", h.freeGroup, uintptr(unsafe.Pointer(&all))),
			h.do("MPI_Comm_set_errhandler", h.setErrorHandler, c, h.returnErrors),
		)
	}
	if err != nil {
		return 0, fmt.Errorf("connect %d ranks from %d on, with stride %d: %w", g.Ranks, g.First, g.Stride, err)
	}
	h.groups[key] = c
	return c, nil
}

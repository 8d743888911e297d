package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
)

// Options configure a Library.
type Options struct {
	// Names are the sonames or paths to try, in order; nil means the usual ones of the library that
	// belongs to the launcher.
	Names []string

	// Lookup returns variables of the environment; nil means os.LookupEnv.
	Lookup func(name string) (value string, set bool)

	// Lost is called when the job cannot go on because another rank is gone, while this process may
	// wait for it in a call that does not return. It should end the process.
	Lost func(error)

	// Warn is called with what goes wrong and ends nothing, such as ranks that have not come yet; nil
	// means that it is not reported.
	Warn func(error)
}

// Library is the MPI library as a source of impls. A program needs one.
type Library struct {
	lookup func(string) (string, bool)
	lost   func(error)
	warn   func(error)
	limit  atomic.Int64 // nanoseconds that a call may take; 0 is no limit
	open   map[*dialect]func() (*handle, error)

	mu      sync.Mutex
	world   *handle // once MPI is initialised
	place   collective.Group
	failure error // of the initialisation
	meeting *meeting
	closed  bool
	record  *recorder
}

// New returns a Library. Nothing is loaded yet.
func New(opts Options) *Library {
	l := &Library{lookup: opts.Lookup, lost: opts.Lost, warn: opts.Warn, open: map[*dialect]func() (*handle, error){}}
	if l.warn == nil {
		l.warn = func(error) {}
	}
	if l.lookup == nil {
		l.lookup = os.LookupEnv
	}
	var end func(error)
	if l.lost != nil {
		end = l.end
	}
	l.record = newRecorder()
	l.meeting = &meeting{record: l.record, lookup: l.lookup, lost: end, warn: l.warn, gone: make(chan error, 1)}
	for _, d := range dialects() {
		l.open[d] = sync.OnceValues(func() (*handle, error) {
			if err := d.launched(l.lookup); err != nil {
				return nil, err
			}
			if d.standard {
				for _, other := range special() {
					if h, err := l.open[other](); err == nil {
						return nil, fmt.Errorf("%w: %s serves", opregistry.ErrNotNeeded, h.file)
					}
				}
			}
			return open(d, opts.Names)
		})
	}
	return l
}

// Limit bounds the time of each call. One that takes longer waits for a rank that hangs, and the
// job cannot go on. 0 is no limit.
func (l *Library) Limit(d time.Duration) { l.limit.Store(int64(d)) }

// Yield makes the library leave the CPU to others while it waits for other ranks, for a run that
// computes meanwhile. Otherwise Open MPI polls, which is faster where nothing else runs. Yield must
// be called before the first collective, and does nothing if the user has set the parameter.
func (l *Library) Yield() error {
	const name = "OMPI_MCA_mpi_yield_when_idle"
	if _, decided := l.lookup(name); decided {
		return nil
	}
	return os.Setenv(name, "1")
}

// Waits says in which collective this rank is, and with whom; "" when it is in none.
func (l *Library) Waits() string {
	now, waits := current(l.record.last(1))
	if !waits {
		return ""
	}
	return fmt.Sprintf("waiting for %v in collective %v", now.Ago.Round(time.Millisecond), now) + " with ranks " + pmi.Numbers(now.members())
}

// Recent lists the last collectives of this rank, one a line, with how long they took; "" without
// any.
func (l *Library) Recent() string { return strings.TrimPrefix(l.record.lines(kept), "\n") }

// hangs reports a call that has taken too long. Ranks that are connected find out which of them
// hangs.
func (l *Library) hangs(function string, g collective.Group) {
	if l.lost == nil {
		return
	}
	where := fmt.Sprintf("%s for %v (distributed_timeout_minutes)", function, time.Duration(l.limit.Load()))
	if client := l.meeting.client; client != nil {
		client.Stuck(where)
		time.Sleep(answerTime)
	}
	l.end(fmt.Errorf("rank %d of %d has waited for the others in %s: a rank hangs, or its network is gone", g.Rank, g.Ranks, where))
}

// fails reports a collective that has failed. Ranks that are connected find out which of them has
// brought something else.
func (l *Library) fails(err error) {
	client := l.meeting.client
	if l.lost == nil || client == nil {
		return
	}
	client.Stuck(err.Error())
	time.Sleep(answerTime)
}

// end is told that the job cannot go on.
func (l *Library) end(err error) {
	if recent := l.record.lines(told); recent != "" {
		l.warn(fmt.Errorf("the last collectives of this rank:%s", recent))
	}
	l.lost(err)
}

// answerTime is how long a rank that waits too long waits for the answer which rank hangs.
const answerTime = 3 * time.Second

// Source returns the impls.
func (l *Library) Source() opregistry.Source {
	src := opregistry.Source{Name: "mpi"}
	for _, d := range dialects() {
		src.Impls = append(src.Impls, l.impls(d)...)
	}
	return src
}

// Info describes the library that this process uses, "" when it is not part of a job.
func (l *Library) Info() string {
	var faults []string
	for _, d := range dialects() {
		if d.launched(l.lookup) != nil {
			continue
		}
		h, err := l.open[d]()
		if err == nil {
			return fmt.Sprintf("%s, %s", h.version, h.file)
		}
		faults = append(faults, err.Error())
	}
	if faults == nil {
		return ""
	}
	return "not available: mpi: " + strings.Join(faults, "; ")
}

// Close ends the part of this process in the job. It waits for the other ranks and does nothing
// when MPI was not initialised.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil || l.failure != nil || l.closed {
		return nil
	}
	l.closed = true
	err := l.world.do("MPI_Finalize", l.world.finalize)
	l.world.thread.Close()
	return errors.Join(err, l.meeting.close())
}

// Leave ends the job for all ranks, for one that ends while the others do not expect it: they hear
// why, and none is waited for. The process has to end. Leave does nothing when MPI was not
// initialised.
func (l *Library) Leave(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil || l.failure != nil || l.closed {
		return
	}
	l.closed = true
	l.meeting.leave(why)
}

// impls returns the impls of a dialect.
func (l *Library) impls(d *dialect) []opregistry.Impl {
	return []opregistry.Impl{
		impl(l, d, collective.AllReduce, func(a collective.AllReduceArgs) collective.Group { return a.Group }, allReduce),
		impl(l, d, collective.Reduce, func(a collective.ReduceArgs) collective.Group { return a.Group }, reduce),
		impl(l, d, collective.ReduceScatter, func(a collective.ReduceScatterArgs) collective.Group { return a.Group }, reduceScatter),
		impl(l, d, collective.AllGather, func(a collective.AllGatherArgs) collective.Group { return a.Group }, allGather),
		impl(l, d, collective.Broadcast, func(a collective.BroadcastArgs) collective.Group { return a.Group }, broadcast),
		impl(l, d, collective.AllToAll, func(a collective.AllToAllArgs) collective.Group { return a.Group }, allToAll),
		impl(l, d, collective.Barrier, func(a collective.BarrierArgs) collective.Group { return a.Group }, barrier),
	}
}

// impl makes an impl of one function.
func impl[A any](l *Library, d *dialect, op *opregistry.Op[A], group func(A) collective.Group, run func(*opregistry.Exec, *member, A) error) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: "vendor." + d.vendor, Kind: opregistry.KindVendor, Vendor: d.vendor, Priority: 100,
		Determinism: opregistry.DeterminismOfClass,
		Available: func() error {
			_, err := l.open[d]()
			return err
		},
		Support: opregistry.Support{Call: func(a A) error {
			for _, o := range op.Operands(a) {
				if n := o.Tensor.NumElements() * bytewise(o.Tensor.DType()); n > maxCount {
					return opregistry.Unsupported("operand %q is %d elements for MPI, which counts up to %d", o.Name, n, maxCount)
				}
			}
			return l.serves(d, group(a))
		}},
		Run: opregistry.Func[A](func(x *opregistry.Exec, a A) error {
			m, err := l.join(d, group(a))
			if err != nil {
				return err
			}
			l.record.enter(described(string(op.Name()), a))
			err = run(x, m, a)
			if err != nil {
				l.fails(err)
			}
			l.record.leave()
			return err
		}),
	}
}

// serves returns nil if the ranks of a call are all ranks of the job, or a group of them.
func (l *Library) serves(d *dialect, g collective.Group) error {
	text := ""
	for _, name := range append(slices.Clip(d.sizes), envSize) {
		if value, set := l.lookup(name); set {
			text = value
			break
		}
	}
	size, err := strconv.Atoi(strings.TrimSpace(text))
	switch last := g.First + (g.Ranks-1)*g.Stride; {
	case err != nil:
	case g.Stride > 0 && last >= size:
		return opregistry.Unsupported("a group up to rank %d: the job has %d ranks", last, size)
	case g.Stride == 0 && size != g.Ranks:
		return opregistry.Unsupported("%d ranks: the job has %d, and a call without a stride is for all", g.Ranks, size)
	}
	return nil
}

// Meet waits until all ranks of the job are there, of which this process is one, and initialises
// MPI. It returns an error when ctx ends, when the ranks have not met in time, when one of them is
// lost (*LostError), and when this process is refused. After 5 seconds, and then every 30, it warns
// which ranks have not come. A function of the library that waits for other ranks cannot be
// interrupted: after an error the process has to end.
//
// Without Meet the first call meets the others, and waits for 10 minutes. Meet does nothing where
// the impls are not available.
func (l *Library) Meet(ctx context.Context, job collective.Group, limit time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range dialects() {
		if _, err := l.open[d](); err != nil {
			continue
		}
		if l.world == nil && l.failure == nil {
			_ = l.begin(ctx, d, limit) // it is kept as the failure of all calls
		}
		return l.takesPart(job)
	}
	return nil
}

// begin meets the other ranks and initialises MPI.
func (l *Library) begin(ctx context.Context, d *dialect, limit time.Duration) error {
	h, err := l.open[d]()
	if err == nil {
		if err = l.start(newWait(ctx, limit), d, h); err != nil {
			l.meeting.leave(err)
			err = fmt.Errorf("mpi: %w", err)
		}
	}
	l.world, l.failure = h, err
	return err
}

func (l *Library) start(w *wait, d *dialect, h *handle) error {
	launched := d.own(l.lookup) // before the meeting sets the variables of a launcher
	if !launched {
		if err := l.meeting.begin(w); err != nil {
			return err
		}
	}
	if err := l.initialise(w, d, h, launched); err != nil {
		return err
	}
	h.together = l.onOneMachine(l.place.Ranks)
	h.watch = newWatch(&l.limit, func(function string) { l.hangs(function, l.place) })
	if l.meeting.begun.Store(true); len(l.meeting.gone) > 0 {
		return lostError(<-l.meeting.gone)
	}
	if launched && l.lost != nil && l.place.Ranks > 1 {
		return l.meeting.attend(h, l.place.Rank, l.place.Ranks)
	}
	return nil
}

// initialise calls MPI_Init_thread, which waits for the other ranks of a launcher.
func (l *Library) initialise(w *wait, d *dialect, h *handle, launched bool) error {
	var rank, ranks int // only read when init has ended
	done := make(chan error, 1)
	go func() {
		var err error
		rank, ranks, err = h.init()
		done <- err
	}()
	var present *roll
	if launched {
		present = openRoll(l.lookup)
		defer present.close()
	}
	err := l.meeting.until(w, done, func() string {
		switch {
		case !launched:
			return "this rank waits for others in MPI_Init_thread, though all have come"
		case present == nil:
			return "this rank waits for others in MPI_Init_thread, where all ranks that " + d.launcher + " has started meet"
		default:
			return present.missing() + "; all ranks that " + d.launcher + " has started meet in MPI_Init_thread" + present.at
		}
	})
	if err == nil {
		l.place.Rank, l.place.Ranks = rank, ranks
	}
	return err
}

// join returns the library with MPI initialised.
func (l *Library) join(d *dialect, g collective.Group) (*member, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.world == nil && l.failure == nil {
		_ = l.begin(context.Background(), d, patience) // it is kept as the failure of all calls
	}
	if err := l.takesPart(g); err != nil {
		return nil, err
	}
	ranks, err := l.world.communicator(g)
	return &member{l.world, ranks}, err
}

// takesPart returns nil if this process is the rank that a group says.
func (l *Library) takesPart(g collective.Group) error {
	switch {
	case l.failure != nil:
		return l.failure
	case l.closed:
		return errors.New("mpi: the library is closed")
	case g.InJob() != l.place.Rank || g.Stride == 0 && g.Ranks != l.place.Ranks:
		return fmt.Errorf("mpi: this process should be rank %d of %d, and MPI says that it is rank %d of %d: start all ranks with one launcher, that of %s",
			g.InJob(), max(g.Ranks, g.First+(g.Ranks-1)*g.Stride+1), l.place.Rank, l.place.Ranks, l.world.version)
	}
	return nil
}

// localSizes are variables in which launchers pass the number of ranks on this machine.
var localSizes = []string{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"}

// onOneMachine reports whether all ranks of the job are on this machine. All of them find the same.
func (l *Library) onOneMachine(ranks int) bool {
	return slices.ContainsFunc(localSizes, func(name string) bool {
		text, _ := l.lookup(name)
		n, err := strconv.Atoi(strings.TrimSpace(text))
		return err == nil && n == ranks
	})
}

// datatype returns the MPI datatype of numbers.
func (h *handle) datatype(d tensor.DType) uintptr {
	switch d {
	case tensor.F64:
		return h.float64
	case tensor.F32:
		return h.float32
	case tensor.I32:
		return h.int32
	case tensor.I64:
		return h.int64
	default:
		panic("BUG: mpi: no datatype for " + d.String())
	}
}

// operator returns the MPI operator of a reduction.
func (h *handle) operator(r collective.Reduction) uintptr {
	switch r {
	case collective.Max:
		return h.max
	case collective.Min:
		return h.min
	case collective.Sum, collective.Avg: // divided by the number of ranks afterwards
		return h.sum
	default:
		panic("BUG: mpi: no operator for " + r.String())
	}
}

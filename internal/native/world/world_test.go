package world_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inJob is set in the processes that TestJob starts.
const inJob = "PRIMUS_WORLD_TEST"

func TestJob(t *testing.T) {
	launcher, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Skipf("no mpirun of Open MPI: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), launcher, "--oversubscribe", "--allow-run-as-root", "-np", "2", os.Args[0], "-test.run=^TestRank$", "-test.v")
	cmd.Env = append(os.Environ(), inJob+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, 2, strings.Count(string(out), "--- PASS: TestRank "), string(out))
}

// TestRank is what each of two ranks does.
func TestRank(t *testing.T) {
	if os.Getenv(inJob) == "" {
		t.Skip("runs only as a rank of TestJob")
	}
	rank, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_RANK"))
	require.NoError(t, err)
	lib := mpi.New(mpi.Options{})
	w := world.New(manager(t, lib.Source()), collective.Group{Rank: rank, Ranks: 2})
	assert.False(t, w.Alone())
	assert.Equal(t, rank == 0, w.Leads())

	a, b := float64(rank+1), float64(10*rank)
	require.NoError(t, w.Sum("numbers", &a, &b))
	assert.Equal(t, []float64{3, 10}, []float64{a, b})

	largest := []float64{[]float64{3, 1}[rank], []float64{2, 2.5}[rank]}
	require.NoError(t, w.Largest("numbers", largest))
	assert.Equal(t, []float64{3, 2.5}, largest)

	for _, texts := range [][2]string{{"first", "the second one"}, {"", "x"}, {"", ""}} {
		all, err := w.Gather("texts", []byte(texts[rank]))
		require.NoError(t, err)
		assert.Equal(t, texts, [2]string{string(all[0]), string(all[1])})
	}
	shared, err := w.Share("text", []byte([]string{"of rank 0", "x"}[rank]))
	require.NoError(t, err)
	assert.Equal(t, "of rank 0", string(shared))

	copied := numbers(t, 5, float32(rank+1))
	require.NoError(t, w.Copy("numbers", copied))
	assert.Equal(t, []float64{1, 1, 1, 1, 1}, copied.Float64s())

	own, other := numbers(t, 3, float32(rank+1)), numbers(t, 3, 0)
	require.NoError(t, w.Shift("numbers", own, other)())
	assert.Equal(t, []float64{float64(2 - rank), float64(2 - rank), float64(2 - rank)}, other.Float64s())

	checkExchange(t, w)
	w.Close()
	require.NoError(t, lib.Close())
}

// checkExchange exchanges gradients in several buckets, of which the first are sent early.
func checkExchange(t *testing.T, w *world.World) {
	t.Helper()
	const used = 3<<18 + 5
	for _, p := range []world.Parallel{{}, {Sharded: true}, {ReduceInBF16: true}, {Sharded: true, ReduceInBF16: true}} {
		values, grads := numbers(t, used+64, 0), numbers(t, used+64, 0)
		x, err := w.NewExchange(values, grads, used, p)
		require.NoError(t, err)
		for round := range 2 { // buckets are used again
			g := tensor.Data[float32](grads)
			for i := range used {
				g[i] = float32(i%50 + 100*w.Rank + round) // as their sums, exact in bf16
			}
			x.Send(1 << 17)
			assert.False(t, x.Begun(), "the first bucket is larger")
			x.Send(1<<19 + 7)
			assert.True(t, x.Begun())
			require.NoError(t, x.Wait())
			assert.False(t, x.Begun())
			if !p.Sharded {
				checkSums(t, 0, g[:used], round)
				continue
			}
			v := tensor.Data[float32](values)
			clear(v)
			for _, p := range x.Parts() {
				checkSums(t, p.Lo, tensor.Data[float32](p.Sums)[:max(min(p.Hi, used)-p.Lo, 0)], round)
				copy(v[p.Lo:p.Hi], tensor.Data[float32](p.Sums))
			}
			x.Gather()
			require.NoError(t, x.Need(1<<19))
			checkSums(t, 1<<19, v[1<<19:used], round)
			require.NoError(t, x.Need(0))
			checkSums(t, 0, v[:used], round)
		}
		spent, waited := x.Times()
		assert.Positive(t, spent)
		assert.Positive(t, waited)
	}
}

// checkSums compares sums over two ranks, from element lo on.
func checkSums(t *testing.T, lo int, sums []float32, round int) {
	t.Helper()
	for i, got := range sums {
		if want := float32(2*((lo+i)%50) + 100 + 2*round); got != want {
			t.Fatalf("element %d: got %v, want %v", lo+i, got, want)
		}
	}
}

func numbers(t *testing.T, n int, v float32) *tensor.Tensor {
	t.Helper()
	all := make([]float32, n)
	for i := range all {
		all[i] = v
	}
	x, err := tensor.FromSlice(all, n)
	require.NoError(t, err)
	return x
}

func manager(t *testing.T, sources ...opregistry.Source) *opmanager.Manager {
	t.Helper()
	reg := opregistry.NewRegistry()
	for _, src := range append(sources, reference.Source()) {
		require.NoError(t, reg.Register(src))
	}
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(nil, 0)})
	t.Cleanup(m.Close)
	return m
}

// One rank alone calls no op, and needs no manager.
func TestAlone(t *testing.T) {
	w := world.New(nil, collective.Group{Ranks: 1})
	assert.True(t, w.Alone() && w.Leads())
	a := 3.0
	require.NoError(t, w.Sum("a number", &a))
	assert.InDelta(t, 3, a, 0)
	all, err := w.Gather("text", []byte("own"))
	require.NoError(t, err)
	assert.Equal(t, [][]byte{[]byte("own")}, all)
	own, err := w.Share("text", []byte("own"))
	require.NoError(t, err)
	assert.Equal(t, "own", string(own))
	x := numbers(t, 3, 1)
	require.NoError(t, w.Copy("x", x))
	assert.Equal(t, []float64{1, 1, 1}, x.Float64s())
}

// A collective that nothing serves is an error with what was sent.
func TestUnserved(t *testing.T) {
	w := world.New(manager(t), collective.Group{Rank: 1, Ranks: 2})
	x := numbers(t, 3, 1)
	defer w.Close()
	for what, err := range map[string]error{"sum": w.Sum("sum", new(float64)), "copy": w.Copy("copy", x)} {
		failed, ok := errors.AsType[*world.Error](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, what, failed.What)
		assert.ErrorContains(t, err, fmt.Sprintf("%s: ", what))
		assert.ErrorContains(t, err, "2 ranks: it serves a job of one")
	}
}

func TestParallelFits(t *testing.T) {
	require.NoError(t, world.Parallel{TensorParallel: 2}.Fits(4))
	err := world.Parallel{TensorParallel: 2, ExpertParallel: 3}.Fits(1)
	assert.EqualError(t, err, "expert_model_parallel_size: given 3, want a divisor of the number of ranks, which is 1: start a multiple of 3 with --nproc, mpirun or another launcher\n"+
		"tensor_model_parallel_size: given 2, want a divisor of the number of ranks, which is 1: start a multiple of 2 with --nproc, mpirun or another launcher")
}

// The ways to exchange keys and values have Megatron's names, one for all layers or one for each.
func TestContextComm(t *testing.T) {
	for _, tt := range []struct {
		given any
		ring  bool
	}{
		{nil, true}, {"p2p", true}, {"all_gather", false}, {"allgather", false}, {[]any{"all_gather"}, false}, {[]any{"p2p", "p2p"}, true},
	} {
		p := world.Parallel{ContextParallel: 2, ContextComm: tt.given}
		require.NoError(t, p.Validate(), "%v", tt.given)
		assert.Equal(t, tt.ring, p.Rings(), "%v", tt.given)
	}
	for _, given := range []any{"a2a", "", 3, []any{}, []any{"p2p", "all_gather"}, []any{[]any{"p2p"}}, map[string]any{}} {
		assert.EqualError(t, world.Parallel{ContextParallel: 2, ContextComm: given}.Validate(), fmt.Sprintf("cp_comm_type: given %v, want p2p or all_gather, the same for all layers", given))
	}
}

package shards_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inJob is set in the processes that TestJob starts, to the directory of checkpoints.
const inJob = "PRIMUS_SHARDS_TEST"

// Three ranks save one checkpoint, in which every element is that of the rank which has it.
func TestJob(t *testing.T) {
	launcher, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Skipf("no mpirun of Open MPI: %v", err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), launcher, "--oversubscribe", "--allow-run-as-root", "-np", "3", os.Args[0], "-test.run=^TestRank$", "-test.v")
	cmd.Env = append(os.Environ(), inJob+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, 3, strings.Count(string(out), "--- PASS: TestRank "), string(out))
}

// TestRank is what each of three ranks does.
func TestRank(t *testing.T) {
	dir := os.Getenv(inJob)
	if dir == "" {
		t.Skip("runs only as a rank of TestJob")
	}
	rank, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_RANK"))
	require.NoError(t, err)
	lib := mpi.New(mpi.Options{})
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(lib.Source()))
	require.NoError(t, reg.Register(reference.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(nil, 0)})
	defer mgr.Close()
	w := world.New(mgr, collective.Group{Rank: rank, Ranks: 3})

	m := newModel(t)
	s, states := newShard(t, w, m)
	for i, p := range s.Params {
		for _, of := range states {
			copy(tensor.Data[float32](of.Tensors[i]), tensor.Data[float32](p.Value))
		}
	}
	store, err := checkpoint.NewStore(dir, checkpoint.Settings{Run: "run"})
	require.NoError(t, err)
	weights, err := shards.Whole(w, "model.safetensors", m.Tensors(), nil)
	require.NoError(t, err)
	moments, err := s.Spread("optimizer.safetensors", m.Places(), m.Places(), states, nil)
	require.NoError(t, err)

	// A rank that cannot write leaves no checkpoint, and all ranks say so.
	lost := moments
	if rank == 2 {
		lost.Name = "elsewhere.safetensors"
	}
	_, err = shards.Save(w, store, 1, []shards.File{weights, lost}, func(*checkpoint.Writer) error { return nil })
	require.ErrorContains(t, err, "elsewhere.safetensors: no such file")

	// Neither does a first rank that fails before or after the others have written.
	twice := []shards.File{weights, weights}
	_, err = shards.Save(w, store, 1, twice, func(*checkpoint.Writer) error { return nil })
	require.ErrorContains(t, err, "was written twice")
	_, err = shards.Save(w, store, 1, []shards.File{weights}, func(*checkpoint.Writer) error { return assert.AnError })
	require.ErrorContains(t, err, assert.AnError.Error())

	saved, err := shards.Save(w, store, 2, []shards.File{weights, moments}, func(out *checkpoint.Writer) error { return out.JSON("state.json", 1) })
	require.NoError(t, err)
	var file *safetensors.File
	if w.Leads() {
		found, err := os.ReadDir(dir)
		require.NoError(t, err)
		var names []string
		for _, f := range found {
			names = append(names, f.Name())
		}
		assert.Subset(t, []string{".lock", "step-00000002"}, names)
		c, err := checkpoint.Open(t.Context(), saved.Path)
		require.NoError(t, err)
		checkFile(t, c, "model.safetensors", "", m)
		checkFile(t, c, "optimizer.safetensors", ".exp_avg", m)
		checkFile(t, c, "optimizer.safetensors", ".exp_avg_sq", m)
		file, err = c.Safetensors(t.Context(), "optimizer.safetensors")
		require.NoError(t, err)
		defer file.Close()
		assert.FileExists(t, filepath.Join(saved.Path, "state.json"))
	}

	again, loaded := newShard(t, w, m)
	require.NoError(t, again.Load(w, file, m.Places(), m.Places(), loaded))
	for i, p := range again.Params {
		for _, of := range loaded {
			assert.Equal(t, tensor.Data[float32](p.Value), tensor.Data[float32](of.Tensors[i]))
		}
	}
	w.Close()
	require.NoError(t, lib.Close())
}

// newModel returns a model whose weights are all different.
func newModel(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.New(model.Config{
		NumLayers: 2, HiddenSize: 12, FFNHiddenSize: 20, NumAttentionHeads: 2, NumQueryGroups: 1, SeqLength: 8, VocabSize: 256,
		RotaryBase: 1e4, NormEpsilon: 1e-5, InitMethodStd: 0.02,
	}, cpu.New())
	require.NoError(t, err)
	for i := range tensor.Data[float32](m.Flats()[0].Values)[:m.Flats()[0].Used] {
		tensor.Data[float32](m.Flats()[0].Values)[i] = float32(i)
	}
	return m
}

// newShard returns the shard of a rank with two zero quantities of each piece.
func newShard(t *testing.T, w *world.World, m *model.Model) (*shards.Shard, []optim.State) {
	t.Helper()
	f := m.Flats()[0]
	x, err := w.NewExchange(f.Values, f.Grads, f.Used, world.Parallel{Sharded: true})
	require.NoError(t, err)
	s := &shards.Shard{}
	s.Cut(f, x.Parts(), func(p *model.Param) optim.Param { return optim.Param{Value: p.Value, Grad: p.Grad, Decay: p.Decay} }, func(*model.Param) bool { return true })
	states := []optim.State{{Name: "exp_avg"}, {Name: "exp_avg_sq"}}
	for i := range states {
		for _, p := range s.Params {
			one, err := tensor.FromSlice(make([]float32, p.Value.NumElements()))
			require.NoError(t, err)
			states[i].Tensors = append(states[i].Tensors, one)
		}
	}
	return s, states
}

// checkFile compares the tensors of a file with the weights.
func checkFile(t *testing.T, c *checkpoint.Checkpoint, name, suffix string, m *model.Model) {
	t.Helper()
	f, err := c.Safetensors(t.Context(), name)
	require.NoError(t, err)
	defer f.Close()
	for _, n := range m.Tensors() {
		got, shape, err := safetensors.Read[float32](f, n.Name+suffix)
		require.NoError(t, err)
		assert.Equal(t, n.Tensor.Shape(), shape)
		assert.Equal(t, tensor.Data[float32](n.Tensor), got, n.Name)
	}
}

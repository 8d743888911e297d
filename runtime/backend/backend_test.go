package backend_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func factory(name string) backend.Factory {
	return backend.Factory{Framework: name, New: func() backend.Adapter { return nil }}
}

func TestRegistry(t *testing.T) {
	r, err := backend.NewRegistry(factory("native"), factory("dummy"))
	require.NoError(t, err)
	assert.Equal(t, []string{"dummy", "native"}, r.Names())
	got, err := r.Get("native")
	require.NoError(t, err)
	assert.Equal(t, "native", got.Framework)
	_, err = r.Get("natvie")
	require.ErrorIs(t, err, backend.ErrUnknown)
	assert.EqualError(t, err, `unknown framework "natvie": available are dummy, native; did you mean "native"?`)
	_, err = backend.NewRegistry(factory("native"), factory("native"))
	require.ErrorContains(t, err, `two adapters for framework "native"`)
	_, err = backend.NewRegistry(backend.Factory{Framework: "x"})
	assert.ErrorContains(t, err, `"x" lacks a name or a constructor`)
}

func TestTrainers(t *testing.T) {
	classes := backend.Trainers{{Stage: "pretrain", Name: "A"}, {Stage: "pretrain", Name: "B"}, {Stage: "sft", Name: "C"}}
	for _, tt := range []struct{ stage, name, want, wantErr string }{
		{"pretrain", "", "A", ""},
		{"pretrain", "B", "B", ""},
		{"sft", "", "C", ""},
		{"sft", "B", "", `framework f, stage sft: given trainer_class "B", want C`},
		{"posttrain", "", "", `framework f: given stage "posttrain", want pretrain or sft: set the parameter stage, or a module preset that has it`},
	} {
		got, err := classes.Load("f", tt.stage, tt.name)
		assert.Equal(t, tt.want, got.Name)
		if tt.wantErr == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, tt.wantErr)
	}
}

func newArgs(t *testing.T, data map[string]any, without ...string) *backend.Args {
	t.Helper()
	v, err := document.FromGo(data)
	require.NoError(t, err)
	m, _ := v.Map()
	return backend.NewArgs(m, without...)
}

func TestArgs(t *testing.T) {
	a := newArgs(t, map[string]any{"n": 1, "m": map[string]any{"x": 1, "y": nil}, "drop": true}, "drop")
	assert.Equal(t, []string{"m", "n"}, a.Keys())
	start := a.Mark()
	require.NoError(t, a.Set("n", 1, "nobody"))
	assert.Equal(t, start, a.Mark(), "the value is there already")
	require.NoError(t, a.Set("m.x", map[string]any{"deep": 2}, "p"))
	require.NoError(t, a.Set("m.y.z", "new", "p"))
	require.NoError(t, a.Set("o.p.q", []int{1}, "p"))
	a.Delete("n", "q")
	assert.Equal(t, map[string]any{
		"m": map[string]any{"x": map[string]any{"deep": int64(2)}, "y": map[string]any{"z": "new"}},
		"o": map[string]any{"p": map[string]any{"q": []any{int64(1)}}},
	}, a.Map().Any())
	v, ok := a.Lookup("m.x.deep")
	assert.True(t, ok)
	assert.Equal(t, "2", v.Text())
	assert.Equal(t, "p", a.SetBy("m"))
	assert.Equal(t, "q", a.SetBy("n"))
	require.ErrorContains(t, a.Set("m.y.z.below", 1, "p"), "argument m.y.z.below: m is string new, want a mapping")
	require.ErrorContains(t, a.Set("n", make(chan int), "p"), "cannot be a configuration value")
	a.Rewind(start)
	assert.Equal(t, map[string]any{"n": int64(1), "m": map[string]any{"x": int64(1), "y": nil}}, a.Map().Any())
}

func TestMergeKeepsWhatWasDeleted(t *testing.T) {
	a := newArgs(t, map[string]any{"gone": 1, "kept": 1})
	a.Delete("gone", "patch p")
	v, err := document.FromGo(map[string]any{"gone": 1, "kept": 2, "more": 3})
	require.NoError(t, err)
	m, _ := v.Map()
	added, conflicts := a.Merge(m, "framework f")
	assert.Equal(t, []string{"more"}, added)
	assert.False(t, a.Has("gone"), "a deleted argument does not come back as a parameter")
	require.Len(t, conflicts, 1)
	assert.Equal(t, "argument kept: framework f keeps 1, the parameter's value 2 is dropped", conflicts[0].String())
}

func TestEnviron(t *testing.T) {
	vars := map[string]string{"A": "1", "EMPTY": ""}
	e := backend.MapEnviron(vars)
	over := e.Overlay()
	require.NoError(t, over.Set("A", "2", "x"))
	require.NoError(t, over.Set("A", "2", "x"))
	require.NoError(t, over.Set("EMPTY", "", "x"))
	assert.Equal(t, "2", over.Get("A", ""))
	assert.Equal(t, map[string]string{"A": "1", "EMPTY": ""}, vars)
	assert.Equal(t, []backend.EnvChange{{Name: "A", Value: "2", Before: "1", WasSet: true, Source: "x"}}, over.Changes())
	require.NoError(t, e.Set("A", "3", "x"))
	require.NoError(t, e.Set("B", "4", "x"))
	require.NoError(t, e.Set("A", "5", "x"))
	require.NoError(t, e.Rewind(1))
	assert.Equal(t, map[string]string{"A": "3", "EMPTY": ""}, vars)
	require.NoError(t, e.Rewind(0))
	assert.Equal(t, map[string]string{"A": "1", "EMPTY": ""}, vars)
	assert.Equal(t, "1/1/$B/${NO}/$/", e.Expand("$A/${A}/$B/${NO}/$/$EMPTY"))
}

func TestProcessEnviron(t *testing.T) {
	t.Setenv("PRIMUS_TEST_OLD", "1")
	e := backend.ProcessEnviron()
	require.NoError(t, e.Set("PRIMUS_TEST_OLD", "2", "x"))
	require.NoError(t, e.Set("PRIMUS_TEST_NEW", "3", "x"))
	assert.Equal(t, "2", os.Getenv("PRIMUS_TEST_OLD"))
	require.NoError(t, e.Rewind(0))
	assert.Equal(t, "1", os.Getenv("PRIMUS_TEST_OLD"))
	_, set := os.LookupEnv("PRIMUS_TEST_NEW")
	assert.False(t, set)
	require.ErrorContains(t, e.Set("", "x", "x"), `set variable ""`)
}

func TestMergeFlags(t *testing.T) {
	for _, tt := range []struct{ existing, managed, want string }{
		{"", "", ""},
		{"--a=1 --b", "", "--a=1 --b"},
		{" --a=1\t--b=2 ", "--b=3 --c", "--a=1 --b=3 --c"},
		{"--a --a=3", "--a=1", "--a=1"},
		{"--a=x=y", "--a=''", "--a=''"},
	} {
		assert.Equal(t, tt.want, backend.MergeFlags(tt.existing, tt.managed))
	}
}

func TestArchIsAskedOnlyWhenItMatters(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	asked := 0
	detect := func() backend.Arch { asked++; return backend.NoArch }
	e := backend.MapEnviron(map[string]string{})
	require.NoError(t, backend.ApplyEnvDefaults(e, "f", []backend.EnvDefault{{Name: "A", Value: "1"}}, detect, log))
	assert.Zero(t, asked)
	require.NoError(t, backend.ApplyEnvDefaults(e, "f", []backend.EnvDefault{
		{Name: "B", Value: "1", Arch: backend.GFX942}, {Name: "C", Value: "1", Arch: backend.GFX950},
	}, detect, log))
	assert.Equal(t, 1, asked)
	assert.Len(t, e.Changes(), 1)
}

func TestFindTree(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	find := func(given string, vars map[string]string) (backend.Paths, error) {
		return backend.FindTree(&backend.TrainContext{Framework: "f", Environ: backend.MapEnviron(vars)}, "Tree", given, "src", "3rdparty/x")
	}
	cache := filepath.Join("home", ".cache", "Primus", "third_party", "Tree")
	_, err := find("", map[string]string{"HOME": "home"})
	require.ErrorContains(t, err, "no source tree in third_party/Tree or "+cache)
	fill := func(place, file string) {
		require.NoError(t, os.MkdirAll(filepath.FromSlash(place), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.FromSlash(place), file), nil, 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join("third_party", "Tree"), 0o755))
	_, err = find("", map[string]string{"HOME": "home"})
	require.ErrorContains(t, err, "third_party/Tree, which is empty (git submodule update --init) or "+cache)
	for _, place := range []string{cache, "deps/Tree", "third_party/Tree", "by_env", "by_flag"} {
		fill(place, "README.md")
	}
	for _, tt := range []struct {
		given  string
		vars   map[string]string
		want   string
		source string
	}{
		{"by_flag", map[string]string{"BACKEND_PATH": "by_env"}, "by_flag", "--backend-path"},
		{"", map[string]string{"BACKEND_PATH": "by_env"}, "by_env", "BACKEND_PATH"},
		{"", map[string]string{"PRIMUS_THIRDPARTY_DIR": "deps"}, "third_party/Tree", "third_party"},
	} {
		got, err := find(tt.given, tt.vars)
		require.NoError(t, err)
		want := filepath.Join(dir, filepath.FromSlash(tt.want))
		assert.Equal(t, backend.Paths{
			Dir: want, PythonPath: []string{filepath.Join(want, "3rdparty", "x"), filepath.Join(want, "src"), want}, Source: tt.source,
		}, got)
	}
	require.NoError(t, os.RemoveAll("third_party"))
	got, err := find("", map[string]string{"PRIMUS_THIRDPARTY_DIR": "deps"})
	require.NoError(t, err)
	assert.Equal(t, "PRIMUS_THIRDPARTY_DIR", got.Source)
	got, err = find("", map[string]string{"HOME": "home"})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, cache), got.Dir)
	for _, vars := range []map[string]string{{"BACKEND_PATH": "gone"}, {}} {
		_, err = find("gone", vars)
		require.ErrorContains(t, err, `--backend-path: "gone" is not a directory`)
	}
	_, err = find("", map[string]string{"BACKEND_PATH": "gone"})
	assert.ErrorContains(t, err, `BACKEND_PATH: "gone" is not a directory`)
}

func TestDistributed(t *testing.T) {
	for _, tt := range []struct {
		vars map[string]string
		want backend.Distributed
	}{
		{nil, backend.Distributed{WorldSize: 1, LocalWorldSize: 1, MasterAddr: "127.0.0.1", MasterPort: 1024}},
		{map[string]string{"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": " 1 ", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "h", "MASTER_PORT": "29500", "NODE_RANK": "9", "NNODES": "9"},
			backend.Distributed{Rank: 3, WorldSize: 8, LocalRank: 1, LocalWorldSize: 4, MasterAddr: "h", MasterPort: 29500}},
		{map[string]string{"NODE_RANK": "1", "NNODES": "2"},
			backend.Distributed{Rank: 1, WorldSize: 2, LocalWorldSize: 1, MasterAddr: "127.0.0.1", MasterPort: 1024}},
		{map[string]string{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "NNODES": "1"},
			backend.Distributed{Rank: 5, WorldSize: 6, LocalRank: 1, LocalWorldSize: 2, MasterAddr: "127.0.0.1", MasterPort: 1024}},
		{map[string]string{"PMI_RANK": "5", "PMI_SIZE": "6", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
			backend.Distributed{Rank: 5, WorldSize: 6, LocalRank: 1, LocalWorldSize: 2, MasterAddr: "127.0.0.1", MasterPort: 1024}},
		{map[string]string{"PMI_RANK": "5", "PMI_SIZE": "6", "WORLD_SIZE": "1"},
			backend.Distributed{WorldSize: 1, LocalWorldSize: 1, MasterAddr: "127.0.0.1", MasterPort: 1024}},
	} {
		got, err := backend.ReadDistributed(backend.MapEnviron(tt.vars))
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
	_, err := backend.ReadDistributed(backend.MapEnviron(map[string]string{"RANK": "", "NNODES": "0"}))
	assert.ErrorContains(t, err, `variable RANK: given ""`)
	assert.ErrorContains(t, err, `variable NNODES: given "0", want an integer >= 1`)
}

func TestLogFileHoldsTheWholeLog(t *testing.T) {
	var l backend.LogFile
	write := func(text string) {
		n, err := io.WriteString(&l, text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	write("before ")
	var file bytes.Buffer
	require.NoError(t, l.Attach(&file))
	write("during ")
	l.Detach()
	write("after")
	assert.Equal(t, "before during ", file.String())
}

// A checkout of Primus has the source trees of frameworks, and an experiment in it takes them from
// there.
func TestFindTreeOfCheckout(t *testing.T) {
	checkout := t.TempDir()
	for _, dir := range []string{"primus/configs/modules", "third_party/Tree/src", "examples/a"} {
		require.NoError(t, os.MkdirAll(filepath.Join(checkout, filepath.FromSlash(dir)), 0o755))
	}
	tc := &backend.TrainContext{
		Framework: "f", Environ: backend.MapEnviron(nil), Experiment: &config.Experiment{File: filepath.Join(checkout, "examples", "a", "exp.yaml")},
	}
	got, err := backend.FindTree(tc, "Tree", "")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(checkout, "third_party", "Tree"), got.Dir)
	assert.Equal(t, "the checkout of the experiment", got.Source)
	assert.Equal(t, checkout, tc.Checkout())
}

package device_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// environment returns a getenv over pairs of name and value.
func environment(pairs ...string) func(string) (string, bool) {
	values := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	const noGPU = "device: using backend CPU because GPU is not registered; set STEPMESH_BACKEND=CPU to choose it explicitly"
	tests := []struct {
		name       string
		backends   []*probe
		env        []string
		wantName   string
		wantSource string
		wantNote   string
	}{
		{"default gpu", []*probe{ready("CPU"), ready("GPU")}, nil, "GPU", "default", ""},
		{"default gpu alone", []*probe{ready("GPU")}, nil, "GPU", "default", ""},
		{"default without gpu", []*probe{ready("CPU")}, nil, "CPU", "default", noGPU},
		{"default ignores others", []*probe{ready("CPU"), ready("ASCEND")}, nil, "CPU", "default", noGPU},
		{"default with unusable gpu", []*probe{ready("CPU"), broken("GPU", "no driver")}, nil, "CPU", "default",
			"device: using backend CPU because GPU is not usable: no driver; set STEPMESH_BACKEND=CPU to choose it explicitly"},
		{"default with panicking gpu", []*probe{ready("CPU"), panicking("GPU", "boom")}, nil, "CPU", "default",
			"device: using backend CPU because GPU is not usable: its Usable method panicked: boom; set STEPMESH_BACKEND=CPU to choose it explicitly"},
		{"note is one line", []*probe{ready("CPU"), broken("GPU", "no driver\n\n  no library\n")}, nil, "CPU", "default",
			"device: using backend CPU because GPU is not usable: no driver; no library; set STEPMESH_BACKEND=CPU to choose it explicitly"},
		{"gpu without a reason", []*probe{ready("CPU"), broken("GPU", " \n")}, nil, "CPU", "default",
			"device: using backend CPU because GPU is not usable: it gives no reason; set STEPMESH_BACKEND=CPU to choose it explicitly"},
		{"named", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", "CPU"}, "CPU", "STEPMESH_BACKEND", ""},
		{"named in another case", []*probe{ready("CPU"), ready("MY_CHIP")}, []string{"STEPMESH_BACKEND", " my_chip "}, "MY_CHIP", "STEPMESH_BACKEND", ""},
		{"misspelt variable", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BAKCEND", "cpu"}, "CPU", "STEPMESH_BAKCEND", ""},
		{"both equal", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", "cpu ", "STEPMESH_BAKCEND", "CPU"}, "CPU", "STEPMESH_BACKEND", ""},
		{"blank is unset", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", " ", "STEPMESH_BAKCEND", ""}, "GPU", "default", ""},
		{"blank beside misspelt", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", "\t", "STEPMESH_BAKCEND", "CPU"}, "CPU", "STEPMESH_BAKCEND", ""},
		{"blank misspelt beside named", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", "CPU", "STEPMESH_BAKCEND", " "}, "CPU", "STEPMESH_BACKEND", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reg := registryOf(t, tt.backends...)
			got, err := device.Select(reg, environment(tt.env...))
			require.NoError(t, err)
			want, err := reg.Get(tt.wantName)
			require.NoError(t, err)
			assert.Equal(t, tt.wantName, got.Name)
			assert.Same(t, want, got.Backend)
			assert.Equal(t, tt.wantSource, got.Source)
			assert.Equal(t, tt.wantNote, got.Note)
		})
	}
}

func TestSelectErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		backends []*probe
		env      []string
		wantErr  error
		want     string
	}{
		{"conflict", []*probe{ready("CPU"), ready("GPU")}, []string{"STEPMESH_BACKEND", "CPU", "STEPMESH_BAKCEND", " gpu"}, device.ErrConflict,
			`device: conflicting choice of backend: STEPMESH_BACKEND="CPU" but STEPMESH_BAKCEND="gpu"; unset one of them`},
		{"unknown", []*probe{ready("CPU"), broken("ASCEND", "no card")}, []string{"STEPMESH_BACKEND", "gpu"}, device.ErrNotFound,
			`device: no such backend: STEPMESH_BACKEND="gpu"; registered: ASCEND (unusable: no card), CPU (usable); did you mean "CPU"?`},
		{"unknown from misspelt", []*probe{ready("CPU")}, []string{"STEPMESH_BAKCEND", "GRAPHCORE"}, device.ErrNotFound,
			`device: no such backend: STEPMESH_BAKCEND="GRAPHCORE"; registered: CPU (usable)`},
		{"not a name", []*probe{ready("MY_CHIP")}, []string{"STEPMESH_BACKEND", "my-chip"}, device.ErrNotFound,
			`device: no such backend: STEPMESH_BACKEND="my-chip"; registered: MY_CHIP (usable); did you mean "MY_CHIP"?`},
		{"named but unusable", []*probe{ready("CPU"), broken("GPU", "no driver"), panicking("X", "boom")}, []string{"STEPMESH_BACKEND", "gpu"}, device.ErrUnusable,
			`device: backend is not usable: STEPMESH_BACKEND="gpu": no driver; also registered: CPU (usable), X (unusable: its Usable method panicked: boom)`},
		{"named but panicking", []*probe{panicking("GPU", errors.New("boom"))}, []string{"STEPMESH_BACKEND", "GPU"}, device.ErrUnusable,
			`device: backend is not usable: STEPMESH_BACKEND="GPU": its Usable method panicked: boom; also registered: none`},
		{"empty registry", nil, nil, device.ErrNotFound,
			`device: no such backend: the default is GPU, else CPU; registered: none; register one of the two or name another in STEPMESH_BACKEND`},
		{"no default", []*probe{ready("ASCEND"), broken("GPU", "no driver")}, nil, device.ErrNotFound,
			`device: no such backend: the default is GPU, else CPU; registered: ASCEND (usable), GPU (unusable: no driver); register one of the two or name another in STEPMESH_BACKEND`},
		{"unusable defaults", []*probe{ready("ASCEND"), broken("CPU", "closed"), broken("GPU", "no driver")}, nil, device.ErrUnusable,
			`device: backend is not usable: CPU, the last default: closed; also registered: ASCEND (usable), GPU (unusable: no driver); name a usable one in STEPMESH_BACKEND`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := device.Select(registryOf(t, tt.backends...), environment(tt.env...))
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, tt.wantErr)
			assert.Zero(t, got)
		})
	}
}

func TestSelectReadsOnlyItsVariables(t *testing.T) {
	t.Parallel()
	var asked []string
	_, err := device.Select(registryOf(t, ready("CPU")), func(name string) (string, bool) {
		asked = append(asked, name)
		return "", false
	})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{device.EnvBackend, device.EnvBackendMisspelt}, asked)
}

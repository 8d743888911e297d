package openblas

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/primus-fl/primus/vendors/loader"
	"github.com/stretchr/testify/assert"
)

func TestSettings(t *testing.T) {
	timeout := loader.Variable{Name: "OPENBLAS_THREAD_TIMEOUT", Value: idleTimeout}
	threads := func(n int) loader.Variable {
		return loader.Variable{Name: "OPENBLAS_NUM_THREADS", Value: strconv.Itoa(min(n, runtime.NumCPU()))}
	}
	all := runtime.GOMAXPROCS(0)
	tests := []struct {
		name string
		cpu  generation
		opts Options
		set  string
		want []loader.Variable
	}{
		{"avx512", avx512, Options{Threads: 1}, "", []loader.Variable{{Name: "OPENBLAS_CORETYPE", Value: "SkylakeX"}, threads(1), timeout}},
		{"avx2", avx2, Options{Threads: 1}, "", []loader.Variable{{Name: "OPENBLAS_CORETYPE", Value: "Haswell"}, threads(1), timeout}},
		{"older", legacy, Options{Threads: 1}, "", []loader.Variable{threads(1), timeout}},
		{"not amd64", unknown, Options{Threads: 1}, "", []loader.Variable{threads(1), timeout}},
		{"default threads", unknown, Options{}, "", []loader.Variable{threads(all), timeout}},
		{"more threads than CPUs", unknown, Options{Threads: 1 << 20}, "", []loader.Variable{threads(runtime.NumCPU()), timeout}},
		{"OpenMP's number is the default", unknown, Options{}, "OMP_NUM_THREADS", []loader.Variable{timeout}},
		{"an option is stronger", unknown, Options{Threads: 1}, "OMP_NUM_THREADS", []loader.Variable{threads(1), timeout}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			isSet := func(name string) bool { return name == tt.set }
			assert.Equal(t, tt.want, settings(tt.cpu, tt.opts, isSet))
		})
	}
}

func TestWarn(t *testing.T) {
	tests := []struct {
		core string
		cpu  generation
		want string
	}{
		{"Prescott", avx512, "SkylakeX"},
		{"Prescott", avx2, "Haswell"},
		{"Core2", avx2, "Haswell"},
		{"Haswell", avx512, "SkylakeX"},
		{"Haswell", avx2, ""},
		{"Zen", avx2, ""},
		{"SkylakeX", avx512, ""},
		{"SapphireRapids", avx512, ""},
		{"SkylakeX", avx2, ""},
		{"Prescott", legacy, ""},
		{"neoversen1", unknown, ""},
		{"FromTheFuture", avx512, ""},
	}
	for _, tt := range tests {
		t.Run(tt.core, func(t *testing.T) {
			got := warn(tt.core, tt.cpu)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.core)
			assert.Contains(t, got, tt.want)
		})
	}
}

package opbench_test

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestBench(t *testing.T) {
	t.Parallel()
	backend := cpu.New()
	t.Cleanup(func() { assert.NoError(t, backend.Close()) })
	b := opbench.Bench{
		Device: backend, Exec: opregistry.NewExec(nil, 0), Snap: snapshot(t), Impls: []string{"reference.go"}, Settings: opbench.Settings{Repeat: 2},
	}
	require.NoError(t, b.CheckImpls())
	rows, err := b.Measure(t.Context(), tensor.F32, func(m *opbench.Maker) ([]opbench.Case, error) {
		c, err := m.GEMM(8, 8, 8, opbench.Layouts()[0])
		return []opbench.Case{c}, err
	})
	require.NoError(t, err)
	require.Len(t, rows, 1, "only the impl that is wanted")
	r := rows[0]
	assert.Equal(t, "reference.go", r.Impl)
	assert.Equal(t, opbench.Compute, r.Bound)
	require.NotNil(t, r.Time)
	assert.Equal(t, 2, r.Time.Count)
	assert.InEpsilon(t, 2*8*8*8/r.Time.Median/1e6, r.GFLOPS, 1e-9)

	picture, err := opbench.Plot(rows)
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)

	b.Impls = []string{"reference.og"}
	assert.ErrorContains(t, b.CheckImpls(), `did you mean "reference.go"?`)
}

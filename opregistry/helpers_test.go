package opregistry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// copyArgs are the arguments of the op that the tests register impls of.
type copyArgs struct {
	In  *tensor.Tensor `op:"0 in read any"`
	Out *tensor.Tensor `op:"1 out write any"`
}

// otherArgs are the arguments of another op.
type otherArgs struct {
	N int `op:"0 n"`
}

func newCopy() *opregistry.Op[copyArgs] {
	return opregistry.NewOp("copy", opregistry.Schema[copyArgs]{Doc: "copies"})
}

func newOther() *opregistry.Op[otherArgs] {
	return opregistry.NewOp("other", opregistry.Schema[otherArgs]{})
}

func doNothing(*opregistry.Exec, copyArgs) error { return nil }

// impl returns a good impl of op.
func impl(op opregistry.Handle, id string) opregistry.Impl {
	return opregistry.Impl{Op: op, ID: id, Kind: opregistry.KindReference, Run: doNothing}
}

func source(name string, impls ...opregistry.Impl) opregistry.Source {
	return opregistry.Source{Name: name, Impls: impls}
}

func register(t *testing.T, r *opregistry.Registry, src opregistry.Source) {
	t.Helper()
	require.NoError(t, r.Register(src))
}

// ids returns the ids of the impls of the op with this name.
func ids(t *testing.T, s *opregistry.Snapshot, op string) []string {
	t.Helper()
	i, ok := s.Index(op)
	require.True(t, ok, "op %s", op)
	var out []string
	for _, e := range s.Impls(i) {
		out = append(out, e.ID+" of "+e.Source)
	}
	return out
}

func vector(t *testing.T, n int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(make([]float32, n))
	require.NoError(t, err)
	return x
}

package sandbox

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"

	"github.com/primus-fl/primus/internal/primustest"
)

// lists has arguments of the sorts that are more than one word.
type lists struct {
	X     *tensor.Tensor           `op:"0 x write any"`
	Many  []*tensor.Tensor         `op:"1 many read any"`
	Lists [][]*tensor.Tensor       `op:"2 lists"`
	Axes  []int                    `op:"3 axes"`
	Alpha opregistry.OptionalFloat `op:"4 alpha"`
	On    bool                     `op:"5 on"`
	N     int32                    `op:"6 n"`
	U     uint16                   `op:"7 u"`
	F     float32                  `op:"8 f"`
}

var listsOp = opregistry.NewOp("lists", opregistry.Schema[lists]{Lists: "a read any; b? read any"})

func newTensor(t testing.TB, shape ...int) *tensor.Tensor {
	t.Helper()
	n := 1
	for _, d := range shape {
		n *= d
	}
	x, err := tensor.FromSlice(make([]float32, n), shape...)
	require.NoError(t, err)
	return x
}

func message(t testing.TB) *encoder {
	t.Helper()
	x := newTensor(t, 2, 3)
	again, err := x.AsStrided([]int{2, 3}, []int{3, 1}, 0)
	require.NoError(t, err)
	e := &encoder{}
	require.NoError(t, e.encode(listsOp, lists{
		X: x, Many: []*tensor.Tensor{nil, again, newTensor(t, 4)}, Lists: [][]*tensor.Tensor{{again, newTensor(t)}, nil}, Axes: []int{-1, 7},
		Alpha: opregistry.Float(-0.5), On: true, N: -3, U: 65535, F: 0.1,
	}))
	return e
}

func TestMessage(t *testing.T) {
	t.Parallel()
	e := message(t)
	assert.Len(t, e.tensors, 3, "one view is one tensor, however often it is given")
	for i, want := range []placed{{read: true, written: true}, {read: true}, {read: true}} {
		assert.Equal(t, want.read, e.tensors[i].read, "%d", i)
		assert.Equal(t, want.written, e.tensors[i].written, "%d: an operand that is read, and what is no operand, is not written", i)
	}
	v, err := decode(listsOp, e.body, make([]byte, e.size))
	require.NoError(t, err)
	a := v.Interface().(lists)
	assert.Equal(t, tensor.Shape{2, 3}, a.X.Shape())
	assert.Nil(t, a.Many[0])
	assert.Same(t, a.X, a.Many[1])
	assert.Equal(t, tensor.Shape{4}, a.Many[2].Shape())
	assert.Same(t, a.X, a.Lists[0][0])
	assert.Empty(t, a.Lists[1])
	assert.Equal(t, []int{-1, 7}, a.Axes)
	assert.Equal(t, opregistry.Float(-0.5), a.Alpha)
	a.X, a.Many, a.Lists, a.Axes, a.Alpha = nil, nil, nil, nil, opregistry.OptionalFloat{}
	assert.Equal(t, lists{On: true, N: -3, U: 65535, F: 0.1}, a)
}

func TestMessageIsCutOff(t *testing.T) {
	t.Parallel()
	e := message(t)
	for n := range len(e.body) {
		_, err := decode(listsOp, e.body[:n], make([]byte, e.size))
		require.Error(t, err, "%d bytes", n)
	}
	_, err := decode(listsOp, append(e.body, 0), make([]byte, e.size))
	require.ErrorContains(t, err, "has 1 bytes too many")
	_, err = decode(listsOp, e.body[:len(e.body)-1], make([]byte, e.size-1))
	require.Error(t, err)
}

// A message that anything may have written is decoded or an error, and its tensors lie in the
// memory that there is.
func FuzzMessage(f *testing.F) {
	f.Add(message(f).body)
	f.Fuzz(func(t *testing.T, body []byte) {
		defer primustest.Measured(t, len(body))()
		data := make([]byte, 4096)
		v, err := decode(listsOp, body, data)
		if err != nil {
			return
		}
		for _, x := range append(v.Interface().(lists).Many, v.Interface().(lists).X) {
			if x != nil && x.NumElements() > 0 {
				first := reflect.ValueOf(data).Pointer()
				assert.GreaterOrEqual(t, uintptr(x.Pointer()), first)
				assert.LessOrEqual(t, uintptr(x.Pointer())+uintptr(x.NumElements()*x.DType().Size()), first+uintptr(len(data)))
			}
		}
	})
}

// Oracle: round trip.
func FuzzReply(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, reply{declined, "not today"}.write(&b))
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer primustest.Measured(t, len(data))()
		r, err := readReply(bytes.NewReader(data))
		if err != nil {
			return
		}
		var back bytes.Buffer
		require.NoError(t, r.write(&back))
		assert.Equal(t, data[:back.Len()], back.Bytes())
	})
}

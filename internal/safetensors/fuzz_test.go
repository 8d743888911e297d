package safetensors_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/safetensors"
)

// FuzzReader feeds any bytes to the reader. What it accepts must be covered
// exactly by its tensors, readable, and equal after it was written again.
//
// Oracle: round trip.
func FuzzReader(f *testing.F) {
	one := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	f.Add(file(one, 4))
	f.Add(file(`{"__metadata__":{"k":"v"},"b":{"dtype":"BOOL","shape":[0,3],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I64","shape":[],"data_offsets":[2,10]}}   `, 10))
	f.Add(file(`{}`, 0))
	f.Add(file(one, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in *safetensors.File
		var err error
		primustest.Cost(t, len(b), 1000, func() { in, err = parse(b) })
		if err != nil {
			return
		}
		var entries []safetensors.Entry
		covered := int64(0)
		contents := make(map[string][]byte)
		for _, name := range in.Names() {
			data, err := in.Bytes(name)
			if err != nil {
				return // a BOOL with another byte
			}
			info, _ := in.Info(name)
			require.Equal(t, info.Size(), int64(len(data)))
			covered += info.Size()
			if name == "" {
				return // readable, but Write refuses it
			}
			contents[name] = data
			e, err := safetensors.Stream(name, info.DType, info.Shape, bytesTo(data))
			require.NoError(t, err)
			entries = append(entries, e)
		}
		require.LessOrEqual(t, covered, int64(len(b)))
		var again bytes.Buffer
		require.NoError(t, safetensors.Write(&again, entries, in.Metadata()))
		out, err := parse(again.Bytes())
		require.NoError(t, err)
		require.Equal(t, in.Names(), out.Names())
		require.Equal(t, in.Metadata(), out.Metadata())
		for name, want := range contents {
			got, err := out.Bytes(name)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func bytesTo(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

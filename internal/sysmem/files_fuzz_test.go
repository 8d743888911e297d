package sysmem

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzLimit reads the files of a kernel. Whatever they hold, there is a limit that is not larger
// than that of the machine, or an error.
func FuzzLimit(f *testing.F) {
	f.Add("MemTotal: 100 kB\nSwapTotal: 5 kB\n", "0::/a/b\n", "1024\n")
	f.Add("MemTotal: 99999999999999 kB\nSwapTotal: 99999999999999 kB", "4:cpu,memory:/../..\n0::/", "max")
	f.Add("MemTotal: 0 kB", "::", "-1")
	f.Fuzz(func(t *testing.T, info, group, number string) {
		defer primustest.Measured(t, len(info)+len(group)+len(number))()
		root := fstest.MapFS{}
		for name, text := range map[string]string{
			meminfo: info, ownGroup: group, groups + "/memory.max": number, groups + "/a/memory.max": number, groups + "/memory/memory.limit_in_bytes": number,
		} {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		l, err := read(root)
		if err != nil {
			return
		}
		machine, err := readMeminfo(root)
		require.NoError(t, err)
		require.LessOrEqual(t, l.Bytes, machine["MemTotal"]+machine["SwapTotal"])
	})
}

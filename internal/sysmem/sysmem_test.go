package sysmem

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	const (
		gib      = 1 << 30
		memory   = "MemTotal:       16777216 kB\nMemFree: 1 kB\nSwapTotal:       0 kB\nHugePages_Total:       0\n"
		withSwap = "MemTotal:       16777216 kB\nSwapTotal:       2097152 kB\n"
	)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  Limit
	}{
		{"no groups", map[string]string{meminfo: memory}, Limit{16 * gib, "/proc/meminfo"}},
		{"swap", map[string]string{meminfo: withSwap}, Limit{18 * gib, "/proc/meminfo"}},
		{"version 2 without a limit", map[string]string{
			meminfo: memory, ownGroup: "0::/user.slice/job\n", groups + "/user.slice/job/memory.max": "max\n",
		}, Limit{16 * gib, "/proc/meminfo"}},
		{"version 2", map[string]string{
			meminfo: memory, ownGroup: "0::/user.slice/job\n", groups + "/user.slice/job/memory.max": "4294967296\n",
		}, Limit{4 * gib, "/sys/fs/cgroup/user.slice/job/memory.max"}},
		{"a group above is tighter", map[string]string{
			meminfo: memory, ownGroup: "0::/user.slice/job\n", groups + "/user.slice/job/memory.max": "4294967296\n",
			groups + "/user.slice/memory.max": "1073741824\n",
		}, Limit{gib, "/sys/fs/cgroup/user.slice/memory.max"}},
		{"a group that is looser than the machine", map[string]string{
			meminfo: memory, ownGroup: "0::/\n", groups + "/memory.max": "1099511627776\n",
		}, Limit{16 * gib, "/proc/meminfo"}},
		{"a container, whose path is that on the host", map[string]string{
			meminfo: memory, ownGroup: "0::/docker/0123\n", groups + "/memory.max": "1073741824\n",
		}, Limit{gib, "/sys/fs/cgroup/memory.max"}},
		{"version 2 with swap", map[string]string{
			meminfo: withSwap, ownGroup: "0::/job\n", groups + "/job/memory.max": "1073741824\n",
		}, Limit{3 * gib, "/sys/fs/cgroup/job/memory.max"}},
		{"version 2 without swap for the group", map[string]string{
			meminfo: withSwap, ownGroup: "0::/job\n", groups + "/job/memory.max": "1073741824\n", groups + "/job/memory.swap.max": "0\n",
		}, Limit{gib, "/sys/fs/cgroup/job/memory.max"}},
		{"version 1", map[string]string{
			meminfo: memory, ownGroup: "12:cpu,cpuacct:/job\n4:memory:/job\n0::/\n", groups + "/memory/job/memory.limit_in_bytes": "2147483648\n",
			groups + "/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, Limit{2 * gib, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for name, text := range tt.files {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := read(files)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
	_, err := read(fstest.MapFS{meminfo: {Data: []byte("nothing\n")}})
	assert.ErrorContains(t, err, "no line MemTotal")
	_, err = read(fstest.MapFS{})
	assert.ErrorContains(t, err, "proc/meminfo")
}

// Any machine has between a megabyte and a petabyte.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	limit, err := Read()
	require.NoError(t, err)
	assert.Greater(t, limit.Bytes, uint64(1<<20))
	assert.Less(t, limit.Bytes, uint64(1<<50))
	assert.NotEmpty(t, limit.Source)
}

func TestText(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[float64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.00 KiB", 12600: "12.3 KiB", 1<<20 - 600: "1023 KiB", 1<<20 - 500: "1.00 MiB", 4.52e12: "4.11 TiB", 1e30: "827181 YiB", math.Inf(1): "+Inf YiB",
	} {
		assert.Equal(t, want, Text(bytes))
	}
	assert.Equal(t, "NaN bytes", Text(math.NaN()))
}

package projection

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzScheduleFile reads files of schedules in two formats: each is a schedule with a name, or an
// error.
func FuzzScheduleFile(f *testing.F) {
	for _, text := range []string{`{"micro_batches": 1, "stages": ["F0 BW0"]}`, "micro_batches: 1\nmicro_batches: 2", "[]", "a: &a [*a]", ""} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	dir, all := f.TempDir(), formats.All()
	f.Fuzz(func(t *testing.T, text []byte, yaml bool) {
		file := filepath.Join(dir, "schedule.json")
		if yaml {
			file = filepath.Join(dir, "schedule.yaml")
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
		var table pipeline.Table
		var err error
		primustest.Cost(t, len(text), 20_000, func() { table, err = readSchedule(t.Context(), file, all) })
		if err == nil {
			require.NotEmpty(t, table.Name)
		}
	})
}

package rundir_test

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/rundir"
)

// run returns the records of a run whose loss falls from 5.5 to about 1.6, with
// a validation every valid steps.
func run(steps, valid int) []rundir.Record {
	records := make([]rundir.Record, steps)
	for i := range records {
		x := float64(i) / float64(steps)
		r := rundir.Record{Step: int64(i + 1), Loss: 1.6 + 3.9*math.Exp(-8*x) + 0.12*math.Sin(float64(i)*2.3)*math.Cos(float64(i)*0.71)}
		if valid > 0 && (i+1)%valid == 0 {
			v := 1.7 + 3.8*math.Exp(-7.5*x)
			r.ValidLoss = &v
		}
		records[i] = r
	}
	return records
}

func decode(t *testing.T, b []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	return img
}

// has counts the pixels that are near a colour.
func has(img image.Image, r, g, b int) int {
	n := 0
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			cr, cg, cb, _ := img.At(x, y).RGBA()
			if abs(int(cr>>8)-r)+abs(int(cg>>8)-g)+abs(int(cb>>8)-b) < 12 {
				n++
			}
		}
	}
	return n
}

func abs(v int) int { return max(v, -v) }

func TestPlotShowsBothCurves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		steps, valid int
		train        bool
		validation   bool
	}{
		{"one step", 1, 0, true, false},
		{"one step with validation", 1, 1, true, true},
		{"short", 20, 5, true, true},
		{"usual", 600, 50, true, true},
		{"long", 60000, 500, true, true},
		{"without validation", 300, 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := rundir.PlotLoss(rundir.Losses{Name: tt.name, Unit: "nats per token", Records: run(tt.steps, tt.valid)})
			require.NoError(t, err)
			img := decode(t, b)
			assert.Equal(t, image.Pt(990, 550), img.Bounds().Size())
			assert.Equal(t, tt.train, has(img, 0x1f, 0x5f, 0xa8) > 20, "the training curve")
			assert.Equal(t, tt.validation, has(img, 0xd9, 0x5f, 0x0e) > 20, "the validation curve")
			if dir := os.Getenv("PRIMUS_TEST_PLOTS"); dir != "" {
				require.NoError(t, os.WriteFile(dir+"/"+tt.name+".png", b, 0o644))
			}
		})
	}
}

func TestPlotLeavesOutWhatIsNotFinite(t *testing.T) {
	t.Parallel()
	records := run(100, 10)
	records[50].Loss = math.NaN()
	*records[59].ValidLoss = math.Inf(1)
	_, err := rundir.PlotLoss(rundir.Losses{Records: records})
	require.NoError(t, err)

	_, err = rundir.PlotLoss(rundir.Losses{Records: []rundir.Record{{Step: 1, Loss: 1e18}}})
	require.NoError(t, err)

	_, err = rundir.PlotLoss(rundir.Losses{Records: []rundir.Record{{Step: 1, Loss: math.NaN()}}})
	require.ErrorContains(t, err, "no finite loss")
	_, err = rundir.PlotLoss(rundir.Losses{})
	require.ErrorContains(t, err, "no finite loss")
}

func TestPlotGoesIntoTheRunDirectory(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	require.Error(t, d.PlotLoss(rundir.Losses{Name: "exp"}))
	require.NoError(t, d.PlotLoss(rundir.Losses{Name: "exp", Records: run(10, 5)}))
	b, err := os.ReadFile(d.Path(rundir.PlotName))
	require.NoError(t, err)
	decode(t, b)
}

func TestPlotRuns(t *testing.T) {
	t.Parallel()
	b, err := rundir.PlotRuns("two", []rundir.Losses{{Name: "a", Records: run(300, 50)}, {Name: "b", Records: run(20, 0)}})
	require.NoError(t, err)
	img := decode(t, b)
	assert.Greater(t, has(img, 0x1f, 0x5f, 0xa8), 20, "the first run")
	assert.Greater(t, has(img, 0xd9, 0x5f, 0x0e), 20, "the second run")
	if dir := os.Getenv("PRIMUS_TEST_PLOTS"); dir != "" {
		require.NoError(t, os.WriteFile(dir+"/two.png", b, 0o644))
	}
	same := []rundir.Losses{{Name: "a", Unit: "nats per pair", Records: run(300, 50)}, {Name: "b", Unit: "nats per pair", Records: run(20, 0)}}
	pairs, err := rundir.PlotRuns("two", same)
	require.NoError(t, err)
	assert.NotEqual(t, b, pairs, "the axis has the unit")
	same[1].Unit = "nats per token"
	mixed, err := rundir.PlotRuns("two", same)
	require.NoError(t, err)
	assert.Equal(t, b, mixed, "there is no unit of both")
	_, err = rundir.PlotRuns("none", nil)
	require.ErrorContains(t, err, "given 0 runs, want 1 to 10")
	_, err = rundir.PlotRuns("many", make([]rundir.Losses, 11))
	require.ErrorContains(t, err, "given 11 runs")
	_, err = rundir.PlotRuns("empty", []rundir.Losses{{Name: "a"}})
	require.ErrorContains(t, err, "a has no finite loss")
}

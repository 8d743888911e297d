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
		r.TokensPerSecond, r.StepSeconds = 4000, 0.25
		if valid > 0 && (i+1)%valid == 0 {
			v := 1.7 + 3.8*math.Exp(-7.5*x)
			r.ValidLoss, r.ValidTokens = &v, 4096
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
	b, err := rundir.PlotRuns("two", "step", []rundir.Losses{{Name: "a", Records: run(300, 50)}, {Name: "b", Records: run(20, 0)}})
	require.NoError(t, err)
	img := decode(t, b)
	assert.Greater(t, has(img, 0x1f, 0x5f, 0xa8), 20, "the first run")
	assert.Greater(t, has(img, 0xd9, 0x5f, 0x0e), 20, "the second run")
	if dir := os.Getenv("PRIMUS_TEST_PLOTS"); dir != "" {
		require.NoError(t, os.WriteFile(dir+"/two.png", b, 0o644))
	}
	same := []rundir.Losses{{Name: "a", Unit: "nats per pair", Records: run(300, 50)}, {Name: "b", Unit: "nats per pair", Records: run(20, 0)}}
	pairs, err := rundir.PlotRuns("two", "step", same)
	require.NoError(t, err)
	assert.NotEqual(t, b, pairs, "the axis has the unit")
	same[1].Unit = "nats per token"
	mixed, err := rundir.PlotRuns("two", "step", same)
	require.NoError(t, err)
	assert.Equal(t, b, mixed, "there is no unit of both")
	_, err = rundir.PlotRuns("none", "step", nil)
	require.ErrorContains(t, err, "given 0 runs, want 1 to 10")
	_, err = rundir.PlotRuns("many", "step", make([]rundir.Losses, 11))
	require.ErrorContains(t, err, "given 11 runs")
	_, err = rundir.PlotRuns("empty", "step", []rundir.Losses{{Name: "a"}})
	require.ErrorContains(t, err, "a has no finite loss")
}

// The evaluation at the end takes more text than those on the way: no line leads to it.
func TestPlotJoinsEvaluationsOfOneKind(t *testing.T) {
	t.Parallel()
	records := run(300, 50)
	other := 4.9 // far above the evaluations before
	records[299].ValidLoss, records[299].ValidTokens = &other, 131072
	for name, plotted := range map[string]func() ([]byte, error){
		"loss": func() ([]byte, error) { return rundir.PlotLoss(rundir.Losses{Name: "a", Records: records}) },
		"runs": func() ([]byte, error) {
			return rundir.PlotRuns("b", "tokens", []rundir.Losses{{Name: "x", Records: run(2, 0)}, {Name: "a", Records: records}})
		},
	} {
		b, err := plotted()
		require.NoError(t, err)
		if dir := os.Getenv("PRIMUS_TEST_PLOTS"); dir != "" {
			require.NoError(t, os.WriteFile(dir+"/final-"+name+".png", b, 0o644))
		}
		img := decode(t, b)
		// Between the last two evaluations and above both training and validation there is nothing.
		w, h := img.Bounds().Dx(), img.Bounds().Dy()
		between := image.NewRGBA(image.Rect(0, 0, w/20, h/4))
		for y := range h / 4 {
			for x := range w / 20 {
				between.Set(x, y, img.At(w*86/100+x, h*40/100+y))
			}
		}
		assert.Zero(t, has(between, 0xd9, 0x5f, 0x0e), name)
	}
	for _, over := range rundir.Horizontals() {
		_, err := rundir.PlotRuns("a", over, []rundir.Losses{{Name: "a", Records: records}})
		require.NoError(t, err)
	}
}

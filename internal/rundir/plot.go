package rundir

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/primus-fl/primus/internal/chart"
)

// PlotName is the name of the loss plot in a run directory.
const PlotName = "loss.png"

const (
	// maxPoints is how many points of a curve are drawn; longer curves are
	// averaged over equal runs of steps.
	maxPoints = 1500

	// smoothing is the number of neighbours on either side that the smoothed
	// curve averages, as a part of all points.
	smoothing = 0.02

	// maxStep is above every step that is drawn.
	maxStep = 1 << 50

	// minSmooth is the number of points from which a smoothed curve is drawn.
	minSmooth = 60

	// maxMarks is the largest number of points that are drawn as dots.
	maxMarks = 60
)

// PlotLoss returns a PNG with the training and validation losses of a run over the steps, with the
// tokens and the time up to each tick. With enough records the training loss is drawn faint and a
// centred moving average of it over it; long runs are averaged to the resolution of the image. A
// line joins evaluations of equally many tokens only; the last one, which usually takes more, is a
// ring, and so is that of the test. Losses beyond the range of f32 and steps that f64 cannot
// represent are left out. It is an error if there are no records.
func PlotLoss(run Losses) ([]byte, error) {
	l := curves(run.Records, "step")
	if l.empty() {
		return nil, fmt.Errorf("rundir: plot: given no finite loss of a step, want at least one")
	}
	lines := append(trainLines(thin(l.train, maxPoints)), validLines(thin(l.valid, maxPoints))...)
	c := chart.Chart{Title: run.Name, Width: 648, Height: 360}
	return plot(c, run.Unit, lines, l.markers("", validColor, testColor), func(x *chart.Axis) { spent(x, run.Records) })
}

// plot draws lines of losses in a chart whose axes span them. finish changes the horizontal one.
func plot(c chart.Chart, unit string, lines []chart.Line, markers []chart.Marker, finish func(x *chart.Axis)) ([]byte, error) {
	c.X, c.Y = axes(lines, markers)
	finish(&c.X)
	if unit != "" {
		c.Y.Label += " (" + unit + ")"
	}
	for _, l := range lines {
		c.Series = append(c.Series, l)
	}
	for _, m := range markers {
		c.Series = append(c.Series, m)
	}
	png, err := c.PNG()
	if err != nil {
		return nil, fmt.Errorf("rundir: plot: %w", err)
	}
	return png, nil
}

// The colours of validation and test.
var (
	validColor = color.RGBA{0xd9, 0x5f, 0x0e, 0xff}
	testColor  = color.RGBA{0x2b, 0x8a, 0x3e, 0xff}
)

// lossPoints are the losses of a run.
type lossPoints struct {
	train, valid []chart.Point
	last, test   *chart.Point // the evaluation at the end, if it is of another kind, and the test
	lastTokens   int          // of the evaluation at the end
}

func (l lossPoints) empty() bool {
	return len(l.train) == 0 && len(l.valid) == 0 && l.last == nil && l.test == nil
}

// markers returns what no line joins.
func (l lossPoints) markers(name string, valid, test color.RGBA) []chart.Marker {
	var all []chart.Marker
	if l.last != nil {
		all = append(all, chart.Marker{Name: fmt.Sprintf("%sfinal evaluation, %s tokens", name, short(float64(l.lastTokens))), Color: valid, At: *l.last})
	}
	if l.test != nil {
		all = append(all, chart.Marker{Name: name + "test", Color: test, At: *l.test})
	}
	return all
}

// Horizontals are the values that losses can be drawn over.
func Horizontals() []string { return []string{"step", "tokens", "time"} }

// curves returns the losses over step, tokens or time, the latter in hours.
func curves(records []Record, over string) (l lossPoints) {
	finite := func(v float64) bool { return math.Abs(v) <= math.MaxFloat32 }
	usual := usualTokens(records)
	tokens, seconds := 0.0, 0.0
	for _, r := range records {
		if finite(r.TokensPerSecond*r.StepSeconds) && finite(r.StepSeconds) {
			tokens, seconds = tokens+r.TokensPerSecond*r.StepSeconds, seconds+r.StepSeconds
		}
		if r.Step >= maxStep {
			continue
		}
		at := map[string]float64{"step": float64(r.Step), "tokens": tokens, "time": seconds / 3600}[over]
		if finite(r.Loss) {
			l.train = append(l.train, chart.Point{X: at, Y: r.Loss})
		}
		if r.ValidLoss != nil && finite(*r.ValidLoss) {
			if r.ValidTokens == usual {
				l.valid = append(l.valid, chart.Point{X: at, Y: *r.ValidLoss})
			} else {
				l.last, l.lastTokens = &chart.Point{X: at, Y: *r.ValidLoss}, r.ValidTokens
			}
		}
		if r.TestLoss != nil && finite(*r.TestLoss) {
			l.test = &chart.Point{X: at, Y: *r.TestLoss}
		}
	}
	return l
}

// usualTokens returns the number of tokens that most evaluations have, of several that of the
// first.
func usualTokens(records []Record) int {
	times := map[int]int{}
	usual := 0
	for _, r := range records {
		if r.ValidLoss != nil {
			times[r.ValidTokens]++
		}
	}
	most := 0
	for _, r := range records {
		if r.ValidLoss != nil && times[r.ValidTokens] > most {
			usual, most = r.ValidTokens, times[r.ValidTokens]
		}
	}
	return usual
}

// short writes a number of tokens with three digits or fewer.
func short(n float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if n >= 0.9995*unit.size {
			return strconv.FormatFloat(n/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// spent writes the tokens and the time of all steps up to each tick below it, where they are known.
func spent(x *chart.Axis, records []Record) {
	tokens, seconds := make([]float64, len(records)+1), make([]float64, len(records)+1)
	for i, r := range records {
		tokens[i+1], seconds[i+1] = tokens[i]+r.TokensPerSecond*r.StepSeconds, seconds[i]+r.StepSeconds
	}
	if all := tokens[len(records)]; !(all > 0 && all < math.MaxInt64) || !(seconds[len(records)] < 1e9) {
		return
	}
	x.Label = "step, tokens, time of steps"
	ticks := chart.Ticks(x.Min, x.Max, 7, true) // wider labels
	for i, t := range ticks {
		n, _ := slices.BinarySearchFunc(records, t.Value+1, func(r Record, step float64) int { return cmp.Compare(float64(r.Step), step) })
		took := time.Duration(seconds[n] * float64(time.Second))
		round := time.Second
		if took < 10*time.Second {
			round = 100 * time.Millisecond
		}
		ticks[i].Label += "\n" + short(tokens[n]) + "\n" + took.Round(round).String()
	}
	x.Ticks = ticks
}

// thin averages runs of points until at most limit are left.
func thin(points []chart.Point, limit int) []chart.Point {
	if len(points) <= limit {
		return points
	}
	out := make([]chart.Point, limit)
	for i := range out {
		lo, hi := i*len(points)/limit, (i+1)*len(points)/limit
		for _, p := range points[lo:hi] {
			out[i].X += p.X / float64(hi-lo)
			out[i].Y += p.Y / float64(hi-lo)
		}
	}
	return out
}

// smooth averages each point with as many neighbours on either side: half of
// them, fewer near the ends. A straight line stays as it is.
func smooth(points []chart.Point, half int) []chart.Point {
	sums := make([]float64, len(points)+1)
	for i, p := range points {
		sums[i+1] = sums[i] + p.Y
	}
	out := make([]chart.Point, len(points))
	for i, p := range points {
		h := min(half, i, len(points)-1-i)
		out[i] = chart.Point{X: p.X, Y: (sums[i+h+1] - sums[i-h]) / float64(2*h+1)}
	}
	return out
}

// smoothingOf returns how many neighbours on either side the smoothed curve averages.
func smoothingOf(points []chart.Point) int { return max(int(smoothing*float64(len(points))), 2) }

// axes spans all points, with a margin above and below.
func axes(lines []chart.Line, markers []chart.Marker) (x, y chart.Axis) {
	inf := math.Inf(1)
	x = chart.Axis{Label: "step", Min: inf, Max: -inf, Grid: true}
	y = chart.Axis{Label: "loss", Min: inf, Max: -inf, Grid: true}
	for _, m := range markers {
		lines = append(slices.Clip(lines), chart.Line{Points: []chart.Point{m.At}})
	}
	for _, l := range lines {
		for _, p := range l.Points {
			x.Min, x.Max = min(x.Min, p.X), max(x.Max, p.X)
			y.Min, y.Max = min(y.Min, p.Y), max(y.Max, p.Y)
		}
	}
	margin := max(0.04*(y.Max-y.Min), 0.05, 1e-6*math.Abs(y.Max))
	y.Min, y.Max = y.Min-margin, y.Max+margin
	if x.Max <= x.Min {
		x.Min, x.Max = x.Min-1, x.Max+1
	}
	x.Ticks = chart.Ticks(x.Min, x.Max, 10, true)
	y.Ticks = chart.Ticks(y.Min, y.Max, 8, false)
	return x, y
}

func trainLines(points []chart.Point) []chart.Line {
	c := color.RGBA{0x1f, 0x5f, 0xa8, 0xff}
	if len(points) == 0 {
		return nil
	}
	if len(points) < minSmooth {
		return []chart.Line{{Name: "training", Color: c, Width: 1.8, Marks: len(points) < 2, Points: points}}
	}
	averaged := smooth(points, smoothingOf(points))
	return []chart.Line{
		{Name: "training, each step", Color: color.RGBA{0xaf, 0xcb, 0xe8, 0xff}, Width: 0.9, Points: points},
		{Name: "training, moving average", Color: c, Width: 1.8, Points: averaged},
	}
}

func validLines(points []chart.Point) []chart.Line {
	if len(points) == 0 {
		return nil
	}
	return []chart.Line{{Name: "validation", Color: validColor, Width: 1.8, Marks: len(points) <= maxMarks, Points: points}}
}

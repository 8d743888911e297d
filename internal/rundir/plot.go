package rundir

import (
	"fmt"
	"image/color"
	"math"

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

// PlotLoss returns a PNG with the training and validation losses of a run over the steps. With
// enough records the training loss is drawn faint and a centred moving average of it over it; long
// runs are averaged to the resolution of the image. Losses beyond the range of f32 and steps that
// f64 cannot represent are left out. It is an error if there are no records.
func PlotLoss(run Losses) ([]byte, error) {
	train, valid := curves(run.Records)
	if len(train) == 0 && len(valid) == 0 {
		return nil, fmt.Errorf("rundir: plot: given no finite loss of a step, want at least one")
	}
	lines := append(trainLines(thin(train, maxPoints)), validLines(thin(valid, maxPoints))...)
	return plot(chart.Chart{Title: run.Name, Width: 648, Height: 360}, run.Unit, lines)
}

// plot draws lines of losses in a chart whose axes span them.
func plot(c chart.Chart, unit string, lines []chart.Line) ([]byte, error) {
	c.X, c.Y = axes(lines)
	if unit != "" {
		c.Y.Label += " (" + unit + ")"
	}
	for _, l := range lines {
		c.Series = append(c.Series, l)
	}
	png, err := c.PNG()
	if err != nil {
		return nil, fmt.Errorf("rundir: plot: %w", err)
	}
	return png, nil
}

func curves(records []Record) (train, valid []chart.Point) {
	finite := func(v float64) bool { return math.Abs(v) <= math.MaxFloat32 }
	for _, r := range records {
		if r.Step >= maxStep {
			continue
		}
		if finite(r.Loss) {
			train = append(train, chart.Point{X: float64(r.Step), Y: r.Loss})
		}
		if r.ValidLoss != nil && finite(*r.ValidLoss) {
			valid = append(valid, chart.Point{X: float64(r.Step), Y: *r.ValidLoss})
		}
	}
	return train, valid
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
func axes(lines []chart.Line) (x, y chart.Axis) {
	inf := math.Inf(1)
	x = chart.Axis{Label: "step", Min: inf, Max: -inf, Grid: true}
	y = chart.Axis{Label: "loss", Min: inf, Max: -inf, Grid: true}
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
	return []chart.Line{{Name: "validation", Color: color.RGBA{0xd9, 0x5f, 0x0e, 0xff}, Width: 1.8, Marks: len(points) <= maxMarks, Points: points}}
}

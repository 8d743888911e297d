package rundir

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// PlotName is the name of the loss plot in a run directory.
const PlotName = "loss.png"

const (
	plotWidth  = 9 * vg.Inch
	plotHeight = 5 * vg.Inch
	plotDPI    = 110

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
)

// PlotLoss returns a PNG with the training and validation losses over the steps.
// With enough records the training loss is drawn faint and a centred moving
// average of it over it; long runs are averaged to the resolution of the image.
// Losses that f32 cannot hold and steps that f64 cannot tell apart are left out.
// No record at all is an error.
func PlotLoss(title string, records []Record) ([]byte, error) {
	train, valid := curves(records)
	if len(train) == 0 && len(valid) == 0 {
		return nil, fmt.Errorf("rundir: plot: got no finite loss of a step, want at least one")
	}
	p := newPlot(title)
	if err := addTrain(p, thin(train, maxPoints)); err != nil {
		return nil, fmt.Errorf("rundir: plot the training loss: %w", err)
	}
	if err := addValid(p, thin(valid, maxPoints)); err != nil {
		return nil, fmt.Errorf("rundir: plot the validation loss: %w", err)
	}
	margin := max(0.04*(p.Y.Max-p.Y.Min), 0.05, 1e-6*math.Abs(p.Y.Max))
	p.Y.Min, p.Y.Max = p.Y.Min-margin, p.Y.Max+margin
	if p.X.Max <= p.X.Min {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	return render(p)
}

func curves(records []Record) (train, valid plotter.XYs) {
	finite := func(v float64) bool { return math.Abs(v) <= math.MaxFloat32 }
	for _, r := range records {
		if r.Step >= maxStep {
			continue
		}
		if finite(r.Loss) {
			train = append(train, plotter.XY{X: float64(r.Step), Y: r.Loss})
		}
		if r.ValidLoss != nil && finite(*r.ValidLoss) {
			valid = append(valid, plotter.XY{X: float64(r.Step), Y: *r.ValidLoss})
		}
	}
	return train, valid
}

// thin averages runs of points until at most limit are left.
func thin(points plotter.XYs, limit int) plotter.XYs {
	if len(points) <= limit {
		return points
	}
	out := make(plotter.XYs, limit)
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
func smooth(points plotter.XYs, half int) plotter.XYs {
	sums := make([]float64, len(points)+1)
	for i, p := range points {
		sums[i+1] = sums[i] + p.Y
	}
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		h := min(half, i, len(points)-1-i)
		out[i] = plotter.XY{X: p.X, Y: (sums[i+h+1] - sums[i-h]) / float64(2*h+1)}
	}
	return out
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	sans(&p.Title.TextStyle, 14)
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text = "step"
	p.Y.Label.Text = "loss (nats/byte)"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle, 12)
		axis.Label.Padding = vg.Points(4)
		sans(&axis.Tick.Label, 10)
		axis.LineStyle.Color = gray(0x70)
		axis.Tick.LineStyle.Color = gray(0x70)
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gray(0xe6), gray(0xe6)
	p.Add(grid)
	p.Legend.Top = true
	p.Legend.XOffs, p.Legend.YOffs = -vg.Points(10), -vg.Points(8)
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(26)
	sans(&p.Legend.TextStyle, 11)
	p.X.Tick.Marker = niceTicks{most: 10, whole: true}
	p.Y.Tick.Marker = niceTicks{most: 8}
	return p
}

func sans(style *draw.TextStyle, size float64) {
	style.Font.Variant = "Sans"
	style.Font.Size = vg.Points(size)
}

func gray(v uint8) color.Color { return color.RGBA{v, v, v, 0xff} }

func trainColor() color.Color { return color.RGBA{0x1f, 0x5f, 0xa8, 0xff} }

func faintTrainColor() color.Color { return color.RGBA{0xaf, 0xcb, 0xe8, 0xff} }

func validColor() color.Color { return color.RGBA{0xd9, 0x5f, 0x0e, 0xff} }

func addTrain(p *plot.Plot, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	if len(points) < minSmooth {
		return addLine(p, "training", points, trainColor(), 1.8, len(points) < 2)
	}
	if err := addLine(p, "training, each step", points, faintTrainColor(), 0.9, false); err != nil {
		return err
	}
	averaged := smooth(points, max(int(smoothing*float64(len(points))), 2))
	return addLine(p, "training, moving average", averaged, trainColor(), 1.8, false)
}

func addValid(p *plot.Plot, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	return addLine(p, "validation", points, validColor(), 1.8, len(points) <= 60)
}

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.Color, width float64, marks bool) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(width)
	p.Add(line)
	if !marks {
		p.Legend.Add(name, line)
		return nil
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	p.Legend.Add(name, line, scatter)
	return nil
}

func render(p *plot.Plot) ([]byte, error) {
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(
		vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI), vgimg.UseBackgroundColor(color.White))}
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(14), vg.Points(8), -vg.Points(8)))
	var png bytes.Buffer
	if _, err := canvas.WriteTo(&png); err != nil {
		return nil, fmt.Errorf("rundir: encode the plot: %w", err)
	}
	return png.Bytes(), nil
}

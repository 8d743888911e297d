package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"
	"github.com/primus-fl/primus/runtime/backend"
)

// lossPlot is an observer that draws the losses of a run as text, for --plot.
type lossPlot struct {
	first, last int       // the steps drawn
	steps       int       // of the run
	train       []float64 // a mean for every stride steps
	stride      int
	sum         float64 // of the steps that are not in train yet
	count       int
	valid       []evaluation
}

// An evaluation is a validation loss on the way.
type evaluation struct {
	step int
	loss float64
}

// mostMeans bounds what a plot keeps of a run, however long it is.
const mostMeans = 4096

// RunStarted forgets what was drawn.
func (p *lossPlot) RunStarted(r backend.Run) {
	*p = lossPlot{first: r.FirstStep, last: r.FirstStep - 1, steps: r.Steps, stride: 1}
}

// StepDone adds a step. The evaluation of the last step, which takes more text than those on the
// way, is in the summary.
func (p *lossPlot) StepDone(s backend.Step) {
	p.last = s.Step
	if s.Steps > 0 {
		p.steps = s.Steps
	}
	p.sum += s.Loss
	if p.count++; p.count == p.stride {
		p.train = append(p.train, p.sum/float64(p.count))
		p.sum, p.count = 0, 0
	}
	if len(p.train) == mostMeans {
		for i := range mostMeans / 2 {
			p.train[i] = (p.train[2*i] + p.train[2*i+1]) / 2
		}
		p.train, p.stride = p.train[:mostMeans/2], 2*p.stride
	}
	if s.ValidLoss != nil && s.Step != p.steps && !math.IsNaN(*s.ValidLoss) && !math.IsInf(*s.ValidLoss, 0) {
		p.valid = append(p.valid, evaluation{s.Step, *s.ValidLoss})
	}
}

// RunEnded implements [backend.Observer].
func (p *lossPlot) RunEnded(backend.Result) {}

// Columns and lines of a plot beside its graph: numbers with the axis, and the line below it.
const (
	besideGraph = 12
	leastGraph  = 16
)

// Text returns a plot of this many columns and lines at most, "" when there is nothing to draw or
// no room for it.
func (p *lossPlot) Text(columns, lines int, color bool) string {
	width := columns - besideGraph
	if width < leastGraph || lines < 5 {
		return ""
	}
	points := p.columns(width)
	if points == nil {
		return ""
	}
	const dot = "•"
	series, names := [][]float64{points}, "training loss"
	if valid := p.validColumns(len(points)); valid != nil {
		series, names = append(series, valid), "training loss ─ and validation loss "+dot
	}
	options := []asciigraph.Option{
		asciigraph.Height(lines - 2), asciigraph.Precision(3),
		asciigraph.SeriesChars(asciigraph.DefaultCharSet, asciigraph.CreateCharSet(dot)),
	}
	if color {
		options = append(options, asciigraph.SeriesColors(asciigraph.Default, asciigraph.DarkOrange))
	}
	graph := asciigraph.PlotMany(series, options...)
	return strings.TrimRight(graph, "\n") + fmt.Sprintf("\n%s of steps %d to %d", names, p.first, p.last)
}

// columns returns the training loss for each column of a graph: means where there are more losses
// than columns, and what lies between two losses where there are fewer. A loss that is not finite
// is left out.
func (p *lossPlot) columns(width int) []float64 {
	losses := slices.DeleteFunc(slices.Clone(p.train), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(losses) < 2 {
		return nil
	}
	points := make([]float64, width)
	for i := range points {
		if len(losses) < width {
			at, part := math.Modf(float64(i*(len(losses)-1)) / float64(width-1))
			next := min(int(at)+1, len(losses)-1)
			points[i] = losses[int(at)] + part*(losses[next]-losses[int(at)])
			continue
		}
		some := losses[i*len(losses)/width : (i+1)*len(losses)/width]
		for _, loss := range some {
			points[i] += loss / float64(len(some))
		}
	}
	return points
}

// validColumns returns the validation losses between the evaluations, nil with less than two.
func (p *lossPlot) validColumns(width int) []float64 {
	if len(p.valid) < 2 {
		return nil
	}
	points := make([]float64, width)
	for i := range points {
		step := p.first + (p.last-p.first)*i/max(width-1, 1)
		points[i] = math.NaN()
		for k := 1; k < len(p.valid); k++ {
			a, b := p.valid[k-1], p.valid[k]
			if a.step <= step && step <= b.step && a.step < b.step {
				points[i] = a.loss + (b.loss-a.loss)*float64(step-a.step)/float64(b.step-a.step)
			}
		}
	}
	if !slices.ContainsFunc(points, func(v float64) bool { return !math.IsNaN(v) }) {
		return nil
	}
	return points
}

var _ backend.Observer = (*lossPlot)(nil)

package train

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
)

// plotted returns the plot of a run of these losses, with an evaluation every so many steps.
func plotted(losses []float64, every int) *lossPlot {
	p := &lossPlot{}
	p.RunStarted(backend.Run{FirstStep: 1, Steps: len(losses)})
	for i, loss := range losses {
		s := backend.Step{Step: i + 1, Loss: loss}
		if every > 0 && s.Step%every == 0 {
			valid := loss + 1
			s.ValidLoss = &valid
		}
		p.StepDone(s)
	}
	return p
}

func falling(n int) []float64 {
	losses := make([]float64, n)
	for i := range losses {
		losses[i] = 5 - 4*float64(i)/float64(n)
	}
	return losses
}

func TestPlotFitsItsRoom(t *testing.T) {
	for _, steps := range []int{2, 3, 70, 5000, 20000} {
		p := plotted(falling(steps), max(steps/10, 1))
		assert.Less(t, len(p.train), mostMeans)
		for _, width := range []int{30, 80, 200} {
			for _, lines := range []int{5, 14, 40} {
				shown := p.Text(width, lines, true)
				assert.LessOrEqual(t, text.LongestLineLen(shown), max(width, 60), shown)
				assert.LessOrEqual(t, strings.Count(shown, "\n")+1, lines, shown)
				assert.Contains(t, shown, fmt.Sprintf("of steps 1 to %d", steps))
			}
		}
	}
}

func TestPlotWithoutRoomOrLosses(t *testing.T) {
	assert.Empty(t, plotted(falling(50), 0).Text(20, 14, false), "too narrow")
	assert.Empty(t, plotted(falling(50), 0).Text(80, 4, false), "too low")
	assert.Empty(t, plotted(nil, 0).Text(80, 14, false))
	assert.Empty(t, plotted([]float64{1}, 0).Text(80, 14, false))
	assert.Empty(t, plotted([]float64{math.NaN(), math.Inf(1), math.NaN()}, 1).Text(80, 14, false))
	assert.Contains(t, plotted([]float64{3, math.NaN(), 2, math.Inf(1), 1}, 0).Text(80, 14, false), "3.000")
}

func TestPlotShowsEvaluationsOnTheWay(t *testing.T) {
	assert.NotContains(t, plotted(falling(40), 0).Text(80, 14, false), "validation")
	assert.NotContains(t, plotted(falling(40), 20).Text(80, 14, false), "validation", "the last evaluation has more text")
	shown := plotted(falling(40), 10).Text(80, 14, false)
	assert.Contains(t, shown, "validation")
	assert.Greater(t, strings.Count(shown, "•"), 10)
	assert.NotContains(t, shown, "\x1b")
	assert.Contains(t, plotted(falling(40), 10).Text(80, 14, true), "\x1b")
}

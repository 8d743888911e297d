package chart_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/chart"
)

func draw(t *testing.T, c chart.Chart) image.Image {
	t.Helper()
	b, err := c.PNG()
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	return img
}

// extent returns the smallest rectangle that holds all pixels of a colour inside the given one.
func extent(img image.Image, within image.Rectangle, c color.RGBA) image.Rectangle {
	var found image.Rectangle
	for y := within.Min.Y; y < within.Max.Y; y++ {
		for x := within.Min.X; x < within.Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)) == c {
				found = found.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return found
}

func red() color.RGBA { return color.RGBA{0xff, 0, 0, 0xff} }

func TestBarsHaveTheLengthsOfTheirValues(t *testing.T) {
	t.Parallel()
	img := draw(t, chart.Chart{
		Title: "bars", Width: 720, Height: 216,
		X: chart.Axis{Label: "GB/s", Max: 100, Ticks: chart.Ticks(0, 100, 10, false), Grid: true},
		Y: chart.Axis{Min: -1, Max: 2, Ticks: []chart.Tick{{Value: 0, Label: "short"}, {Value: 1, Label: "long"}}},
		Series: []chart.Series{
			chart.Bars{Color: red(), Y: []float64{0, 1}, Values: []float64{20, 60}, Thickness: 0.5},
		},
	})
	assert.Equal(t, image.Pt(1100, 330), img.Bounds().Size())
	upper := extent(img, image.Rect(0, 60, 900, 150), red())
	lower := extent(img, image.Rect(0, 150, 900, 330), red())
	assert.Equal(t, upper.Min.X, lower.Min.X)
	assert.InDelta(t, 3, float64(upper.Dx())/float64(lower.Dx()), 0.05)
	assert.InDelta(t, upper.Dy(), lower.Dy(), 1)
}

func TestLineGoesThroughItsPoints(t *testing.T) {
	t.Parallel()
	c := chart.Chart{
		Width: 360, Height: 360,
		X: chart.Axis{Max: 10}, Y: chart.Axis{Max: 10},
		Series: []chart.Series{
			chart.Line{Color: red(), Width: 2, Points: []chart.Point{{X: 0, Y: 0}, {X: 5, Y: 10}, {X: 10, Y: 0}}},
		},
	}
	plain := extent(draw(t, c), image.Rect(0, 0, 550, 550), red())
	assert.Greater(t, plain.Dx(), 450)
	assert.Greater(t, plain.Dy(), 450)

	line := c.Series[0].(chart.Line)
	line.Points, line.Marks = []chart.Point{{X: 5, Y: 5}}, true
	c.Series[0] = line
	dot := extent(draw(t, c), image.Rect(0, 100, 550, 550), red())
	assert.InDelta(t, (plain.Min.X+plain.Max.X)/2, (dot.Min.X+dot.Max.X)/2, 2)
	assert.InDelta(t, dot.Dx(), dot.Dy(), 1)
	assert.Greater(t, dot.Dx(), 5)
}

func TestBoxesLieWhereTheyAre(t *testing.T) {
	t.Parallel()
	c := chart.Chart{
		Width: 360, Height: 360, X: chart.Axis{Max: 10}, Y: chart.Axis{Max: 10},
		Series: []chart.Series{chart.Boxes{Color: color.White, Boxes: []chart.Box{{X0: 2, X1: 4, Y0: 1, Y1: 2, Color: red()}, {X0: 6, X1: 8, Y0: 1, Y1: 2, Color: red()}}}},
	}
	img := draw(t, c)
	left, both := extent(img, image.Rect(0, 0, 290, 550), red()), extent(img, img.Bounds(), red())
	assert.InDelta(t, 3*left.Dx(), both.Dx(), 3)
	assert.InDelta(t, left.Dx(), 2*left.Dy(), 6)
}

func TestAxesNeedASpan(t *testing.T) {
	t.Parallel()
	for _, tt := range []chart.Axis{{}, {Min: 2, Max: 1}, {Max: math.NaN()}} {
		_, err := chart.Chart{Width: 100, Height: 100, X: chart.Axis{Max: 1}, Y: tt}.PNG()
		require.ErrorContains(t, err, "want Min less than Max")
		_, err = chart.Chart{Width: 100, Height: 100, X: tt, Y: chart.Axis{Max: 1}}.PNG()
		require.ErrorContains(t, err, "want Min less than Max")
	}
}

//go:build !(amd64 || arm64) || noasm

package vector

func dot(x, y []float32) float32                     { return dotGeneric(x, y) }
func sum(x []float32) float32                        { return sumGeneric(x) }
func maximum(x []float32) float32                    { return maxGeneric(x) }
func axpy(a float32, x, y []float32)                 { axpyGeneric(a, x, y) }
func scale(a float32, dst, x []float32)              { scaleGeneric(a, dst, x) }
func add(dst, x, y []float32)                        { addGeneric(dst, x, y) }
func mul(dst, x, y []float32)                        { mulGeneric(dst, x, y) }
func mulSub(dst, x, y []float32, c float32)          { mulSubGeneric(dst, x, y, c) }
func expSum(dst, x []float32, shift float32) float32 { return expSumGeneric(dst, x, shift) }
func sigmoid(dst, x []float32)                       { sigmoidGeneric(dst, x) }

func expScale(dst, x []float32, shift, a float32)           { expScaleGeneric(dst, x, shift, a) }
func gate(dst, a, b []float32, f Swish)                     { gateGeneric(dst, a, b, f) }
func gateGrad(da, db, dy, a, b []float32, f Swish)          { gateGradGeneric(da, db, dy, a, b, f) }
func normal(cdf, pdf, x []float32)                          { normalGeneric(cdf, pdf, x) }
func softCap(dst, x []float32, inverse, limit float32)      { softCapGeneric(dst, x, inverse, limit) }
func clamp(dst, x []float32, lo, hi float32)                { clampGeneric(dst, x, lo, hi) }
func keep(dst, y, x []float32, lo, hi float32)              { keepGeneric(dst, y, x, lo, hi) }
func logSumExp(dst []float64, x []float32, cols, pitch int) { logSumExpGeneric(dst, x, cols, pitch) }

func mulScaleVector(_, _, _ []float32, _ float32) int { return 0 }

func scaleFiniteVector(_, _ []float32, _ float32) (int, bool) { return 0, true }

func sumSquaresVector([]float32) (int, float64) { return 0, 0 }

func dotRows(dst, x, y []float32, pitch int) { dotRowsGeneric(dst, x, y, pitch) }

func tileVector() int { return 0 }

func dotTile(*TileProducts, *TileSums, []float32, int, []float32, int, int) {}

func axpyRows(dst, a, y []float32, pitch int) { axpyRowsGeneric(dst, a, y, pitch) }

func sumRows(dst, w []float32, wStep int, y []float32, pitch int, rows []int32) {
	sumRowsGeneric(dst, w, wStep, y, pitch, rows)
}

func dotRowsBF16(dst, x []float32, y []uint16, pitch int) { dotRowsBF16Generic(dst, x, y, pitch) }

func dotRowsF16(dst, x []float32, y []uint16, pitch int) { dotRowsF16Generic(dst, x, y, pitch) }

func widenBF16Vector(_ []float32, _ []uint16) (done int) { return 0 }

func widenF16Vector(_ []float32, _ []uint16) (done int) { return 0 }

func narrowBF16Vector(_ []uint16, _ []float32) (done int) { return 0 }

func narrowF16Vector(_ []uint16, _ []float32) (done int) { return 0 }

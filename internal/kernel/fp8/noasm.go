//go:build !amd64 || noasm

package fp8

func amaxesVector(_, _ []float32, _ int) (done int) { return 0 }

func raiseVector(_, _ []float32) (done int) { return 0 }

func (*Format) encodeVector(_ []byte, _, _ []float32, _ int) (done int) { return 0 }

func (*Format) encodeEachVector(_ []byte, _, _ []float32) (done int) { return 0 }

func (*Format) decodeVector(_ []float32, _ []byte, _ []float32, _ int) (done int) { return 0 }

func (*Format) decodeEachVector(_ []float32, _ []byte, _ []float32) (done int) { return 0 }

func amaxColumnsVector(_, _ []float32, _, _ int) (done int) { return 0 }

func (*Format) encodeColumnsVector(_ []byte, _ int, _ []float32, _, _ int, _ []float32) (done int) {
	return 0
}

func (*Format) scalesVector(_, _ []float32, _ float32, _ bool) (done int) { return 0 }

func encodeE8M0Vector(_ []byte, _ []float32, _ int32) (done int) { return 0 }

func decodeE8M0Vector(_ []float32, _ []byte) (done int) { return 0 }

func (*Format) encodeAmaxVector(_ []byte, _ []float32, _ float32) (done int, amax float32) {
	return 0, 0
}

func amaxBF16Vector(_ []uint16) (done int, amax float32) { return 0, 0 }

func (*Format) encodeAmaxBF16Vector(_ []byte, _ []uint16, _ float32) (done int, amax float32) {
	return 0, 0
}

func (*Format) quantizeBF16Vector(_ []byte, _ []float32, _ []uint16, _ int, _ float32, _ bool) (done int) {
	return 0
}

func (*Format) quantizeE8M0BF16Vector(_, _ []byte, _ []uint16) (done int) { return 0 }

func (*Format) quantizeVector(_ []byte, _, _ []float32, _ int, _ float32, _ bool) (done int) {
	return 0
}

func (*Format) quantizeE8M0Vector(_, _ []byte, _ []float32) (done int) { return 0 }

func transposeVector(_ []byte, _ int, _ []byte, _, _, _ int, _ bool) (down, right int) { return 0, 0 }

func encodeE2M1Vector(_ []byte, _ []float32, _ []byte, _ *[128]E2M1Limits) (done int) { return 0 }

func amaxesE2M1BF16Vector(_ []float32, _ []uint16) (done int) { return 0 }

func encodeE2M1BF16Vector(_ []byte, _ []uint16, _ []byte, _ *E2M1Words) (done int) { return 0 }

func encodeE2M1DownBF16Vector(_ []byte, _ []uint16, _ int, _ []byte, _ *E2M1Words) (done int) {
	return 0
}

func amaxColumnsBF16Vector(_ []float32, _ []uint16, _, _ int) (done int) { return 0 }

func encodeE2M1AtRandomVector(_ []byte, _ []float32, _ []byte, _ []uint32, _ *[128]float64) (done int) {
	return 0
}

func turnRowsVector(_ []float32, _ int, _ []float32, _, _ int) (done int) { return 0 }

func encodeE2M1DownVector(_ []byte, _ []float32, _ int, _ []byte, _ *[128]E2M1Limits) (done int) {
	return 0
}

func decodeE2M1Vector(_ []float32, _, _ []byte, _ *[256]E2M1Values) (done int) { return 0 }

func (*E2M1Scales) encodeVector(_ []byte, _ []float32) (done int) { return 0 }

func decodeE2M1DownVector(_ []float32, _ int, _ []byte, _ int, _ []byte, _ *[256]E2M1Values, _ bool) (done int) {
	return 0
}

func transposeWordsVector(_ []byte, _ int, _ []byte, _, _, _ int) (down, right int) { return 0, 0 }

func copyVector(_ []byte, _ int, _ []byte, _, _, _ int) (done int) { return 0 }

//go:build !race

package reference_test

const underRaceDetector = false

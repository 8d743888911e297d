//go:build !race

package simd

func raceRead([]float32) {}

func raceReadRows(_ []float32, _, _, _ int) {}

func raceWrite[T float32 | float64]([]T) {}

func raceTile(*Tile) {}

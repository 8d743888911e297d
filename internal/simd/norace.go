//go:build !race

package simd

func raceRead[T float32 | uint16]([]T) {}

func raceReadRows(_ []float32, _, _, _ int) {}

func raceWrite[T float32 | float64 | uint16]([]T) {}

func raceTile(*Tile) {}

//go:build !race

package simd

func raceRead[T float32 | uint16]([]T) {}

func raceWrite[T float32 | uint16]([]T) {}

func raceTile(*Tile) {}

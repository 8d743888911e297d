//go:build linux && !amd64 && !arm64

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
)

func failCalls(context.Context, *lab, *rand.Rand) (int, error) { return unobserved() }

func powerLoss(context.Context, *lab, *rand.Rand) (int, error) { return unobserved() }

func unobserved() (int, error) {
	return 0, fmt.Errorf("%w: the drill does not know the system calls of %s", errSkip, runtime.GOARCH)
}

func beObserved([]string) int { return 1 }

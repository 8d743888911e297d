//go:build !amd64 || noasm

package opbench

func fmaKernel() (kernel func(rounds int), perRound float64) { return nil, 0 }

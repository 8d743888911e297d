//go:build !race

package opmanager_test

import "time"

const hammerTime = time.Second

//go:build race

package opmanager_test

import "time"

const hammerTime = 10 * time.Second

//go:build unix

package durable

import "syscall"

const errQuota = syscall.EDQUOT

//go:build unix

package main

import "syscall"

const (
	interrupt  = syscall.SIGINT
	terminated = syscall.SIGTERM
	hangup     = syscall.SIGHUP
)

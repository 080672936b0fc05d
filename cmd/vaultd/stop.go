package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// stopLimit bounds the daemon's end after a signal: a file server that does not answer
// can hold a call for ever, and nobody can take it back.
const stopLimit = 9 * time.Second

// endInTime ends the process when ctx has ended and ended is not called in time. Such a
// call is left behind. Nothing is half-done by that: every intent is in the ledger, and
// the next start goes on from it.
func endInTime(ctx context.Context) (ended func()) {
	done := make(chan struct{})
	context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(stopLimit):
			fmt.Fprintln(os.Stderr, "vaultd: something hangs, perhaps a drop folder's file server; ended without waiting for it")
			os.Exit(exitDone)
		}
	})
	return func() { close(done) }
}

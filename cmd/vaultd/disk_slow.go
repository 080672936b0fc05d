//go:build slowdisk

package main

import "time"

// ledgerFault plays a slow disk, for measurements: each of a commit's two syncs takes 5 ms more.
func ledgerFault() func(op string) error {
	return func(string) error {
		time.Sleep(5 * time.Millisecond)
		return nil
	}
}

//go:build !slowdisk

package main

// ledgerFault is what befalls each commit of the ledger: nothing but what the disk does.
func ledgerFault() func(op string) error { return nil }

package main

import (
	"io/fs"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/testdata"
)

// receivedSamples is how many documents come in over the business network of the demo.
const receivedSamples = 2

// publishReceivedSamples lets the samples wait at the emulated business
// network: what testdata has of each, and a PDF.
func publishReceivedSamples(emu *emulator.Server) error {
	folder, err := fs.Sub(testdata.Received, "received")
	if err != nil {
		return err
	}
	return publishReceived(emu, folder, func(name string) []emulator.ReceivedFile {
		return []emulator.ReceivedFile{{Name: name + ".pdf", Content: drawPDF(name, 1)}}
	})
}

// countReceived counts the documents that came in and of which the network was told that they are here.
func countReceived(l *boltledger.Ledger) (n int, err error) {
	err = l.Arrivals(func(a arrival.Arrival) error {
		if a.Kind == arrival.Received {
			n++
		}
		return nil
	}, arrival.Acknowledged)
	return n, err
}

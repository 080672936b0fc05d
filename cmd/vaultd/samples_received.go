package main

import (
	"io/fs"
	"path"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/testdata"
)

// receivedSample is one document that comes in over the business network of the demo: what testdata has under its number, and a PDF.
type receivedSample struct {
	number string
	kind   archive.NetworkKind
}

func listReceivedSamples() []receivedSample {
	return []receivedSample{{"HG-204", archive.NetworkInvoice}, {"HG-G7", archive.NetworkCreditNote}}
}

// publishReceivedSamples lets the samples wait at the stand-in of the business network.
func publishReceivedSamples(emu *emulator.Server) error {
	for _, s := range listReceivedSamples() {
		data, err := fs.ReadFile(testdata.Received, path.Join("received", s.number+".json"))
		if err != nil {
			return err
		}
		if _, err := emu.PublishReceived(emulator.ReceivedDocument{Kind: string(s.kind), Data: data, Files: []emulator.ReceivedFile{{Name: s.number + ".pdf", Content: drawPDF(s.number, 1)}}}); err != nil {
			return err
		}
	}
	return nil
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

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/testdata"
)

// networkDrop is the demo's drop folder of the business network.
const networkDrop = "acme-out"

// networkSample is one folder of the demo that is to be sent over the business network: what testdata has under its name, and a PDF.
type networkSample struct {
	folder      string
	pdf         string // beside the document; may be empty
	isRejected  bool   // the network rejects it after it has delivered it
	isBadNumber bool   // the number of its recipient has a digit too few
}

// listNetworkSamples returns what is dropped for the business network: two invoices, of which one is rejected after it was delivered, and a credit
// note that is refused before anything of it is sent.
func listNetworkSamples() []networkSample {
	return []networkSample{
		{folder: "RE 5001", pdf: "rechnung.pdf"},
		{folder: "RE 5002", pdf: "rechnung.pdf", isRejected: true},
		{folder: "GS 12", isBadNumber: true},
	}
}

// drop writes the folder in dir, with its document last.
func (s networkSample) drop(dir string) error {
	document, err := fs.ReadFile(testdata.Network, path.Join(networkDrop, s.folder, networkDocument))
	if err != nil {
		return err
	}
	to := filepath.Join(dir, networkDrop, s.folder)
	err = os.Mkdir(to, 0o770)
	if err == nil && s.pdf != "" {
		err = os.WriteFile(filepath.Join(to, s.pdf), drawPDF(s.folder, 2), 0o660)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(to, networkDocument), document, 0o660))
}

// hasEnded reports whether the demo need not wait for an entry any longer.
func hasEnded(e ledger.Entry) bool {
	if e.State == ledger.Delivered && !e.Contradicted {
		for _, s := range listNetworkSamples() {
			if s.isRejected && e.Drop == networkDrop && e.Folder == s.folder {
				return false // the last word is still to come
			}
		}
	}
	return e.State == ledger.Quarantined || e.State.IsFinal() && (e.Source == ledger.Kept || e.Source == ledger.Returned)
}

// networkCounts is what became of the demo's folders for the business network.
type networkCounts struct {
	delivered, rejectedLate int
	refused                 []string // the words for who dropped them
}

func (n *networkCounts) add(e ledger.Entry) {
	switch {
	case e.Drop != networkDrop:
	case e.State == ledger.Delivered && e.Contradicted:
		n.rejectedLate++
	case e.State == ledger.Delivered:
		n.delivered++
	case e.State == ledger.Rejected:
		words, _, _ := strings.Cut(present.CauseText(e), "\n")
		n.refused = append(n.refused, sanitize.Text(e.Folder)+": "+sanitize.Text(words))
	}
}

// text says it in a line for each thing.
func (n *networkCounts) text() string {
	text := fmt.Sprintf("%d delivered, %d REJECTED AFTER DELIVERY, %d refused before anything was sent", n.delivered, n.rejectedLate, len(n.refused))
	for _, words := range n.refused {
		text += "\n         " + words
	}
	return text
}

package archive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Receiver is whom a document is for, by the metadata that was frozen when it was packed.
type Receiver struct {
	Address string   // of a single PDF: where it was sent to
	Name    string   // of any other document: the recipient, as it names them
	IDs     []string // with it: the recipient's numbers
}

// Receiver returns whom a document is for.
func (d Document) Receiver() Receiver { return Receiver{Name: d.RecipientName, IDs: d.RecipientIDs} }

// ReadReceiver reads whom a document is for from its canonical metadata, of any route. Nothing is known of metadata that was erased.
func ReadReceiver(metadata []byte) (r Receiver, err error) {
	if len(metadata) == 0 {
		return r, nil
	}
	var pdf PDFRequest
	if err := json.Unmarshal(metadata, &pdf); err != nil {
		return r, fmt.Errorf("read the receiver of a document: %w", err)
	}
	if pdf.Receiving != "" {
		return Receiver{Address: pdf.Receiving}, nil
	}
	d, err := ParseMetadata(metadata)
	return d.Receiver(), err
}

// String gives the receiver in one line; empty: nobody is named.
func (r Receiver) String() string {
	all := append([]string{r.Address, r.Name}, r.IDs...)
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ")
}

package networkapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// The members of a document.
const (
	typeMember       = "documentType"
	dataMember       = "data"
	preferenceMember = "processingPreference"
	printingMember   = "printingPreference"
	filesMember      = "files" // what each file is to the document; for vaultd, and not sent
)

func isDocumentMember(name string) bool {
	return name == typeMember || name == dataMember || name == preferenceMember || name == printingMember || name == filesMember
}

// parts are the members of a document, byte for byte as they stand in it.
type parts struct {
	kind                       archive.NetworkKind
	data, preference, printing []byte // the last two are nil where the document has none
}

// parseParts reads the members of a document that are sent. A member that stands twice, or one that is not known, is an error:
// nobody can say which value is meant, or it would silently not be sent.
func parseParts(document []byte) (p parts, err error) {
	doc, err := parseDocument(document)
	if err != nil {
		return parts{}, err
	}
	src, root := doc.src, doc.root
	if len(doc.repeated) > 0 {
		r := doc.repeated[0]
		return parts{}, fmt.Errorf("line %d: %q stands twice", doc.lineAt(r.At), shortenText(r.Key))
	}
	for _, m := range root.Members {
		if !isDocumentMember(m.Key) {
			return parts{}, fmt.Errorf("line %d: %q is not sent", doc.lineAt(m.At), shortenText(m.Key))
		}
	}
	p.kind = kindOf(root)
	data, preference := root.Find(dataMember), root.Find(preferenceMember)
	switch {
	case p.kind == "":
		return parts{}, errors.New("documentType is neither Invoice nor CreditNote")
	case !data.Is(strictjson.Object):
		return parts{}, errors.New("data is no object")
	case preference != nil && !preference.Is(strictjson.Object):
		return parts{}, errors.New("processingPreference is no object")
	}
	p.data = src[data.At:data.End]
	if preference != nil {
		p.preference = src[preference.At:preference.End]
	}
	if printing := root.Find(printingMember); printing != nil {
		p.printing = src[printing.At:printing.End]
	}
	return p, nil
}

// kindOf returns the kind of a document; empty: its documentType is none.
func kindOf(root *node) archive.NetworkKind {
	if root.Find(typeMember) == nil {
		return archive.NetworkInvoice
	}
	return archive.ParseNetworkKind(root.FindText(typeMember))
}

// ReadKind returns whether a document is an invoice or a credit note, as its documentType says; without one it is an invoice.
func ReadKind(document []byte) (archive.NetworkKind, error) {
	p, err := parseParts(document)
	if err != nil {
		return "", fmt.Errorf("read the document: %w", err)
	}
	return p.kind, nil
}

// ComposeBody returns the body with which a document is sent: the numbers of
// its files in their order, and its data, processingPreference and
// printingPreference, byte for byte as they stand in the document. So no amount
// passes through a number of this program. The same arguments give the same
// bytes.
func ComposeBody(document []byte, files []archive.FileID) ([]byte, error) {
	p, err := parseParts(document)
	if err != nil {
		return nil, fmt.Errorf("compose the body of a document: %w", err)
	}
	type ref struct {
		ID archive.FileID `json:"refId"`
	}
	refs := []ref{}
	for _, id := range files {
		if _, err := archive.ParseFileID(string(id)); err != nil {
			return nil, fmt.Errorf("compose the body of a document: %w", err)
		}
		refs = append(refs, ref{id})
	}
	list, err := json.Marshal(refs)
	if err != nil {
		return nil, fmt.Errorf("compose the body of a document: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(`{"fileRefs":`)
	b.Write(list)
	b.WriteString(`,"` + dataMember + `":`)
	b.Write(p.data)
	if p.preference != nil {
		b.WriteString(`,"` + preferenceMember + `":`)
		b.Write(p.preference)
	}
	if p.printing != nil {
		b.WriteString(`,"` + printingMember + `":`)
		b.Write(p.printing)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

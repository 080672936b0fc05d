package archive

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// PDFRequest is what the PDF flow asks of one upload. Its fields are those of the service, and they stand in this order for ever.
type PDFRequest struct {
	Receiving string `json:"receivingEmailAddress"`    // the address of the PDF flow
	Notify    string `json:"notificationEmailAddress"` // who is told by the service
}

// Encode returns the canonical JSON object. The same request gives the same bytes.
func (r PDFRequest) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic(err) // two texts always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// DerivePDFID returns the identity of a PDF: UUID version 5 of the route "pdf", the receiving address and the digest of the file. The
// file's name and who is notified are no part of it. The case of the address does not count, because it makes no other mailbox.
func DerivePDFID(receiving string, content Digest) ID {
	b := slices.Concat([]byte("pdf"), []byte{0}, []byte(strings.ToLower(receiving)), []byte{0}, content[:])
	return ID(uuid.NewSHA1(namespace, b))
}

// ReceivingDigest identifies a receiving address. Its case does not count.
func ReceivingDigest(receiving string) Digest { return Sum([]byte(strings.ToLower(receiving))) }

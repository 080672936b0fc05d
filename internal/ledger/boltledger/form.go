package boltledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"sync"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Schema is the number of the stored form that this package writes. A ledger of a
// later one is refused; testdata holds one set of golden records per number.
const Schema = 1

// layout counts the changes of the stored form that the tags of records do not
// show: keys of buckets, journal lines, what a field means. It is raised with each
// of them until the schema is released.
const layout = 18

// checkForm returns the schema of the ledger, or why its form cannot be read.
func checkForm(meta *bbolt.Bucket) (schema int, err error) {
	schema, err = strconv.Atoi(string(meta.Get(schemaKey)))
	digest, own := string(meta.Get(formKey)), ownForm()
	switch {
	case err != nil || schema < 1:
		return 0, damage("its schema number is %q", meta.Get(schemaKey))
	// Before the number: a development version may bear any number.
	case digest == "": // written before forms had digests
		return 0, fmt.Errorf("%w (schema %d, without a digest of its form)", ledger.ErrDevelopment, schema)
	case schema > Schema:
		return 0, fmt.Errorf("%w: schema %d, this one knows up to %d", ledger.ErrNewerSchema, schema, Schema)
	case digest != own:
		return 0, fmt.Errorf("%w (schema %d, form %s, expected %s)", ledger.ErrDevelopment, schema, digest, own)
	}
	return schema, nil
}

// writeForm notes the form of this program in the ledger.
func writeForm(meta *bbolt.Bucket) error {
	if err := meta.Put(schemaKey, []byte(strconv.Itoa(Schema))); err != nil {
		return err
	}
	return meta.Put(formKey, []byte(ownForm()))
}

// ownForm is digestOfForm, computed once: a start takes no time for it.
var ownForm = sync.OnceValue(digestOfForm)

// digestOfForm is the digest of everything that decides how a ledger is read.
func digestOfForm() string {
	h := sha256.New()
	fmt.Fprintln(h, "layout", layout)
	for _, m := range []*message{
		entryForm.message, documentForm.message, noteForm.message, blockForm.message, summaryForm.message, scanForm.message, arrivalForm.message, noticeForm.message,
	} {
		m.describeTo(h)
	}
	for _, b := range buckets {
		fmt.Fprintln(h, string(b))
	}
	fmt.Fprintln(h, "states", ledger.Quarantined, "sources", ledger.Gone, "arrivals", uint8(arrival.GivenUp))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// describeTo writes all that the tags and the types say of a message.
func (m *message) describeTo(w io.Writer) {
	fmt.Fprintln(w, m.name)
	for _, f := range m.fields {
		fmt.Fprintln(w, f.num, f.name, f.kind, f.list)
		if f.part != nil {
			f.part.describeTo(w)
		}
	}
}

package boltledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Schema is the number of the stored form that this package writes. A ledger of a
// later one is refused; testdata holds one set of golden records per number.
const Schema = 1

// layout counts the changes of the stored form that the tables of records do not
// show: keys of buckets, journal lines, what a field means. It is raised with each
// of them until the schema is released.
const layout = 14

// checkForm returns the schema of the ledger, or why its form cannot be read.
func checkForm(meta *bbolt.Bucket) (schema int, err error) {
	schema, err = strconv.Atoi(string(meta.Get(schemaKey)))
	digest, own := string(meta.Get(formKey)), digestOfTables()
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
	return meta.Put(formKey, []byte(digestOfTables()))
}

// digestOfTables is the digest of everything that decides how a ledger is read.
func digestOfTables() string {
	h := sha256.New()
	fmt.Fprintln(h, "layout", layout)
	for _, t := range tables() {
		fmt.Fprintln(h, t.name, t.fields)
	}
	for _, b := range buckets {
		fmt.Fprintln(h, string(b))
	}
	fmt.Fprintln(h, "states", ledger.Quarantined, "sources", ledger.Gone, "arrivals", uint8(arrival.GivenUp))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// table is a record as docs/ledger.proto describes it: "uint32 rev = 2" and so on.
type table struct {
	name   string
	fields []string
}

// tables lists all records that a ledger stores.
func tables() []table {
	return []table{
		tableOf(entryForm), tableOf(nodeForm), tableOf(packageForm), tableOf(causeForm), tableOf(registrationForm), tableOf(ticketForm),
		tableOf(headerForm), tableOf(instantForm), tableOf(prunedForm), tableOf(documentForm), tableOf(asReadForm), tableOf(ownerForm), tableOf(noteForm), tableOf(fileForm),
		tableOf(blockForm), tableOf(infoForm), tableOf(addressForm), tableOf(summaryForm), tableOf(stateCountForm), tableOf(totalForm),
		tableOf(safeForm), tableOf(incarnationForm), tableOf(secretForm), tableOf(countForm),
		tableOf(pendingForm), tableOf(missingForm), tableOf(scanForm), tableOf(arrivalForm), tableOf(arrivalFileForm), tableOf(doubtForm), tableOf(fileToldForm), tableOf(saidForm), tableOf(arrivalCountForm), tableOf(noticeForm),
	}
}

func tableOf[T any](m *message[T]) table {
	t := table{name: m.name}
	for _, f := range m.fields {
		t.fields = append(t.fields, fmt.Sprintf("%s %s = %d", f.kind, f.name, f.num))
	}
	return t
}

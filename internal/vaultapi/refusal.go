package vaultapi

import (
	"net/http"
	"slices"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// What a refused registration means for whoever wrote the metadata. The
// interface tells no codes: the status and the field that its words name are
// all there is. A field that people write is theirs to mend; everything else is
// for IT.
var (
	refusedField = apicall.Plain{Head: "NOT ARCHIVED", Says: "The archive does not take a field of metadata.json", Do: "Put that field right, or ask IT where it does not stand in that file"}
	refusedSize  = apicall.Plain{Head: "NOT ARCHIVED", Says: "metadata.json says more than the archive takes", Do: "Make it shorter"}
	refusedElse  = apicall.Plain{Head: "NOT ARCHIVED", Says: "The archive does not take what vaultd told it about this invoice, and its words name no field of metadata.json",
		Do: "Nothing in this folder is known to be at fault: IT asks the provider, and tells you when to move this whole folder back."}
)

// wordRefusal puts a refusal of a registration into words. It returns err.
func wordRefusal(err error) error {
	e := apicall.AsError(err)
	if e.Outcome != apicall.Refused {
		return err
	}
	switch {
	case namesMetadata(e.Field):
		e.Code, e.Plain = "field-not-accepted", &refusedField
	case e.Status == http.StatusRequestEntityTooLarge:
		e.Code, e.Plain = "metadata-too-large", &refusedSize
	default:
		e.Code, e.Plain = "not-accepted", &refusedElse
	}
	return e
}

// namesMetadata reports whether the path of a field, like 0.amount, leads
// through a field that people write.
func namesMetadata(path string) bool {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]/", r) }) {
		if slices.Contains(archive.MetadataFields(), step) {
			return true
		}
	}
	return false
}

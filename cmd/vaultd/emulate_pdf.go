package main

import (
	"time"

	"github.com/spf13/pflag"

	"vaultd/internal/emulator"
)

// addPDFFlags adds the flags of the PDF upload.
func addPDFFlags(f *pflag.FlagSet, p *emulator.PDF, r *emulator.PDFReadings) {
	f.StringVar(&p.Path, "pdf-path", "/v2/pdf/invoiceUpload", "`path` of the PDF upload")
	f.StringVar(&p.Account.Name, "pdf-user", "", "this `user` alone, with the same secret, may use the PDF upload; empty: the main one")
	f.StringVar(&p.Scope, "pdf-scope", "importDocuments.write", "`scope` that calls to the PDF upload need")
	f.StringArrayVar(&p.Receiving, "pdf-receiving", nil, "receiving `address` that the PDF upload knows; repeat for several; none: it knows every address")
	f.DurationVar(&p.Window, "pdf-window", time.Hour, "how long an upload address of a PDF works")
	f.StringVar(&r.URLForm, "pdf-url-form", "", "where an answer has the upload address: uploadUrl, url, or object (uploadUrl is an object with url)")
	f.StringVar(&r.BumID, "pdf-bumid", "", "the bumId of an upload: told or none")
	f.StringVar(&r.Validity, "pdf-validity", "", "how long an upload address works: told in it, or untold")
	f.StringVar(&r.ContentType, "pdf-content-type", "", "of an uploaded PDF: any, or signed: the address is good for application/pdf alone")
	f.StringVar(&r.ErrorBody, "pdf-error-body", "", "form of error answers: specified (detail, for 422 a list), or a word of --error-body")
	f.StringVar(&r.RepeatedPut, "pdf-repeated-put", "", "a further PUT to an address: replace, or second-flow: it begins a second PDF flow")
}
